//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// A runner is the user that the server's processes run as.
type runner struct {
	name     string
	uid, gid int
	drop     bool // we are root, so processes and folders are handed to this user
}

// serverUser is the caller or, since PostgreSQL refuses root, an unprivileged
// user in root's place.
func serverUser() (runner, error) {
	if os.Geteuid() != 0 {
		return runner{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid > 0 {
			return runner{name: name, uid: uid, gid: gid, drop: true}, nil
		}
	}
	return runner{}, fmt.Errorf("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
}

// own hands one file or folder to the server's user.
func (r runner) own(path string) error {
	if !r.drop {
		return nil
	}
	return os.Lchown(path, r.uid, r.gid)
}

// command builds a process of the server's user: a group of its own, so that a
// Ctrl-C in the terminal reaches the owner only, and a clean environment, since
// ours may hold tokens.
func (r runner) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = cleanEnv(dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if r.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.gid)}
	}
	return cmd
}

func cleanEnv(home string) []string {
	env := []string{"LC_ALL=C", "TZ=UTC", "HOME=" + home}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// reaches says whether the server's user can enter a folder and all above it.
func (r runner) reaches(dir string) error {
	if !r.drop {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			return err
		}
		if !r.enters(info) {
			return fmt.Errorf("PostgreSQL can't run as root, so it runs as the user %s, who can't enter %s: use a folder elsewhere", r.name, d)
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}

func (r runner) enters(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	uid, gid := ids(info)
	switch {
	case uid == r.uid:
		return mode&0o100 != 0
	case gid == r.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// ids are a file's owner and group.
func ids(info fs.FileInfo) (uid, gid int) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, -1
	}
	return int(st.Uid), int(st.Gid)
}
