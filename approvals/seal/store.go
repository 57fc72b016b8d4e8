package seal

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file:///PATH
	_ "gocloud.dev/blob/memblob"  // mem://, for tests and development
	"gocloud.dev/gcerrors"
)

// Store keeps sealed values outside of Postgres. Its contents are ciphertext;
// still, its owner must be the only one to write it.
type Store interface {
	// Put stores data under key (letters, digits and /_.- ) and gives the URI
	// to find it by. Putting again under a key replaces.
	Put(ctx context.Context, key string, data []byte) (uri string, err error)
	// Get reads what Put stored; ErrNoBlob when it isn't there.
	Get(ctx context.Context, uri string) ([]byte, error)
	// Delete removes it; nothing there is no error.
	Delete(ctx context.Context, uri string) error
}

// ErrNoBlob means that the store has nothing under that URI.
var ErrNoBlob = errors.New("seal: no such blob")

// uriScheme starts what Put gives. The URI doesn't name the bucket, so that a
// bucket can move.
const uriScheme = "blob:"

// Bucket is a Store over an object store of gocloud.dev.
type Bucket struct{ bucket *blob.Bucket }

var _ Store = (*Bucket)(nil)

// OpenBucket opens a gocloud.dev URL: file:///PATH (the folder is made, mode
// 0700) or mem://. Close it at the end.
func OpenBucket(ctx context.Context, bucketURL string) (*Bucket, error) {
	u, err := url.Parse(bucketURL)
	if err != nil {
		return nil, errors.New("seal: the blob store's setting is no URL")
	}
	if u.Scheme == "file" {
		// No sidecar files, and temporary files on the same file system: a
		// blob appears whole or not at all.
		q := u.Query()
		for key, value := range map[string]string{"metadata": "skip", "no_tmp_dir": "true", "create_dir": "true", "dir_file_mode": "0700"} {
			if !q.Has(key) {
				q.Set(key, value)
			}
		}
		u.RawQuery = q.Encode()
	}
	bucket, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("seal: open the blob store %s://: %w", u.Scheme, err)
	}
	return &Bucket{bucket}, nil
}

// Close releases the store.
func (b *Bucket) Close() error { return b.bucket.Close() }

// keyShape keeps keys to what every object store and file system takes as it is.
var keyShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$`)

// maxKey is below the 1,024 bytes that object stores allow.
const maxKey = 900

// Put implements [Store].
func (b *Bucket) Put(ctx context.Context, key string, data []byte) (string, error) {
	if len(key) > maxKey || !keyShape.MatchString(key) {
		return "", errors.New("seal: a blob key is made of letters, digits, /, _, . and -")
	}
	err := b.bucket.WriteAll(ctx, key, data, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return "", fmt.Errorf("seal: store a blob: %w", err)
	}
	return uriScheme + key, nil
}

// Get implements [Store].
func (b *Bucket) Get(ctx context.Context, uri string) ([]byte, error) {
	key, err := blobKey(uri)
	if err != nil {
		return nil, err
	}
	data, err := b.bucket.ReadAll(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, ErrNoBlob
	}
	if err != nil {
		return nil, fmt.Errorf("seal: read a blob: %w", err)
	}
	return data, nil
}

// Delete implements [Store].
func (b *Bucket) Delete(ctx context.Context, uri string) error {
	key, err := blobKey(uri)
	if err != nil {
		return err
	}
	err = b.bucket.Delete(ctx, key)
	if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("seal: delete a blob: %w", err)
	}
	return nil
}

func blobKey(uri string) (string, error) {
	key, ok := strings.CutPrefix(uri, uriScheme)
	if !ok || len(key) > maxKey || !keyShape.MatchString(key) {
		return "", errors.New("seal: not the URI of a blob")
	}
	return key, nil
}
