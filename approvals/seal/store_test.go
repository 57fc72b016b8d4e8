package seal

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	for _, bucketURL := range []string{"mem://", "file://" + filepath.ToSlash(dir)} {
		t.Run(strings.SplitN(bucketURL, ":", 2)[0], func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			b, err := OpenBucket(ctx, bucketURL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
			uri, err := b.Put(ctx, "acme/states/0198", []byte("sealed\x00bytes"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := b.Get(ctx, uri); err != nil || string(got) != "sealed\x00bytes" {
				t.Errorf("%q, %v", got, err)
			}
			if again, err := b.Put(ctx, "acme/states/0198", []byte("new")); err != nil || again != uri {
				t.Errorf("%s, %v", again, err)
			}
			if got, err := b.Get(ctx, uri); err != nil || string(got) != "new" {
				t.Errorf("%q, %v", got, err)
			}
			for range 2 {
				if err := b.Delete(ctx, uri); err != nil {
					t.Error(err)
				}
			}
			if _, err := b.Get(ctx, uri); !errors.Is(err, ErrNoBlob) {
				t.Errorf("deleted: %v", err)
			}
			for _, key := range []string{"", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a b", "a\x00", "ä", strings.Repeat("a", maxKey+1)} {
				if _, err := b.Put(ctx, key, nil); err == nil {
					t.Errorf("key %q was taken", key)
				}
				if _, err := b.Get(ctx, uriScheme+key); err == nil || errors.Is(err, ErrNoBlob) {
					t.Errorf("URI of %q: %v", key, err)
				}
			}
			for _, uri := range []string{"", "acme/states/0198", "file:///etc/passwd", "https://acme.example"} {
				if _, err := b.Get(ctx, uri); err == nil {
					t.Errorf("%q was read", uri)
				}
				if err := b.Delete(ctx, uri); err == nil {
					t.Errorf("%q was deleted", uri)
				}
			}
			cancelled, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := b.Put(cancelled, "acme/x", []byte("x")); err == nil {
				t.Error("Put ignores its context")
			}
		})
	}
}

// The folders are the owner's alone, and nothing lies beside the blobs.
func TestFileStoreModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	b, err := OpenBucket(t.Context(), "file://"+filepath.ToSlash(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if _, err := b.Put(t.Context(), "acme/1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			files = append(files, filepath.Base(path))
			return nil
		}
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %04o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil || len(files) != 1 || files[0] != "1" {
		t.Errorf("files %q, %v", files, err)
	}
}

func TestOpenBucketRefuses(t *testing.T) {
	t.Parallel()
	for _, bucketURL := range []string{"", "::", "nowhere://x"} {
		if _, err := OpenBucket(t.Context(), bucketURL); err == nil {
			t.Errorf("%q was opened", bucketURL)
		}
	}
}
