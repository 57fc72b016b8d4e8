//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folderLock is held for as long as its process lives, however it ends.
const folderLock = "owner.lock"

// hold marks a folder as in use.
func hold(dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, folderLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// abandoned says whether a folder is ours and nobody's any more.
func abandoned(dir string, info fs.FileInfo) bool {
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, folderLock), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil { // killed before it was held: nothing is in it yet
		left, readErr := os.ReadDir(dir)
		return errors.Is(err, fs.ErrNotExist) && readErr == nil && len(left) == 0 && time.Since(info.ModTime()) > comingUp
	}
	defer func() { _ = f.Close() }()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
