package main

import (
	"os"
	"path/filepath"
	"time"
)

// tempPrefix names the folders of starts without --data.
const tempPrefix = "holdpoint-dev-"

// tempFolder makes one, after removing those of starts that were killed: they hold a keyset that opens nothing any more.
func tempFolder(base string) (dir string, remove func(), err error) {
	left, _ := filepath.Glob(filepath.Join(base, tempPrefix+"*")) // the only error is a bad pattern
	for _, old := range left {
		if info, err := os.Lstat(old); err == nil && info.IsDir() && abandoned(old, info) {
			_ = os.RemoveAll(old)
		}
	}
	if dir, err = os.MkdirTemp(base, tempPrefix); err != nil {
		return "", nil, err
	}
	release, err := hold(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir); release() }, nil
}

// comingUp is how long a folder without a lock may be one that is being made.
const comingUp = time.Minute
