//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// syncers is how many files are synced at once: a file system then commits
// many of them together.
const syncers = 32

// copyTree copies a cluster that is not running and hands the copy to who; with
// sync the copy is on the disk when it returns. Only folders and plain files
// are taken: a fresh cluster has nothing else.
func copyTree(src, dst string, who runner, sync bool) error {
	root, err := os.OpenRoot(src)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var made []string
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dst, filepath.FromSlash(name))
		switch {
		case d.IsDir():
			if err := os.Mkdir(to, 0o700); err != nil {
				return err
			}
		case d.Type().IsRegular():
			if err := copyFile(root, name, to); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s: neither a file nor a folder", name)
		}
		made = append(made, to)
		return who.own(to)
	})
	if err != nil || !sync {
		return err
	}
	var g errgroup.Group
	g.SetLimit(syncers)
	for _, path := range made {
		g.Go(func() error { return syncPath(path) })
	}
	return g.Wait()
}

func copyFile(root *os.Root, name, to string) (err error) {
	in, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	// On Linux this is copy_file_range: a reflink where the file system has it.
	_, err = io.Copy(out, in)
	return err
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
