package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/core/registry"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

var (
	// ErrKMSUnsupported means that the keyset setting names a KMS that this
	// binary has no client for.
	ErrKMSUnsupported = errors.New("seal: this build has no client for that KMS")
	// ErrKeyset means that the keyset file is missing, unreadable, or no keyset.
	ErrKeyset = errors.New("seal: keyset")
	// ErrKeysetMode means that others than the owner can read or change the
	// keyset file.
	ErrKeysetMode = errors.New("seal: keyset file is open to others")
)

// kmsSchemes are the URIs that Tink's extensions register clients for.
var kmsSchemes = []string{"aws-kms://", "gcp-kms://", "hcvault://"}

// Open makes a sealer from the keyset setting: the path of a keyset file (also
// as file:PATH or file:///PATH), or the URI of a KMS key (aws-kms://…,
// gcp-kms://…, hcvault://…) whose client the program registered with Tink's
// registry. A keyset file that anyone can read, or its group can write, is
// refused with ErrKeysetMode; one that its group can read, as mounted secrets
// often are, gives a warning.
func Open(uri string) (*Sealer, error) {
	for _, scheme := range kmsSchemes {
		if strings.HasPrefix(uri, scheme) {
			return openKMS(uri, scheme)
		}
	}
	path, err := keysetPath(uri)
	if err != nil {
		return nil, err
	}
	handle, warnings, err := readKeyset(path)
	if err != nil {
		return nil, err
	}
	s, err := fromHandle(handle)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrKeyset, path, err)
	}
	s.warnings = warnings
	return s, nil
}

func openKMS(uri, scheme string) (*Sealer, error) {
	client, err := registry.GetKMSClient(uri)
	if err != nil {
		return nil, fmt.Errorf("%w: the keyset setting starts with %q; set it to the path of a keyset file (made by `holdpoint keys keyset --out FILE`), or use a build that registers this KMS", ErrKMSUnsupported, scheme)
	}
	kek, err := client.GetAEAD(uri)
	if err != nil {
		return nil, fmt.Errorf("seal: the KMS client for %q doesn't accept the keyset setting's key", scheme)
	}
	return &Sealer{kek: kek, remote: true}, nil
}

// keysetPath takes the path out of the setting.
func keysetPath(uri string) (string, error) {
	rest, isFile := strings.CutPrefix(uri, "file:")
	switch {
	case uri == "" || isFile && rest == "":
		return "", fmt.Errorf("%w: no file is named; set it to the path of a keyset file", ErrKeyset)
	case !isFile && strings.Contains(uri, "://"):
		return "", fmt.Errorf("%w: the setting is neither a file nor one of %s", ErrKMSUnsupported, strings.Join(kmsSchemes, " "))
	case !isFile:
		return uri, nil
	case !strings.HasPrefix(rest, "//"):
		return rest, nil
	}
	u, err := url.Parse(uri)
	if err != nil || u.Host != "" || u.Path == "" {
		return "", fmt.Errorf("%w: a file URL has three slashes: file:///PATH", ErrKeyset)
	}
	return filepath.FromSlash(u.Path), nil
}

// maxKeyset bounds a keyset file; one key is some 300 bytes.
const maxKeyset = 1 << 20

func readKeyset(path string) (*keyset.Handle, []string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeyset, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyset {
		return nil, nil, fmt.Errorf("%w %s: not a keyset file", ErrKeyset, path)
	}
	var warnings []string
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" {
		switch {
		case mode&0o027 != 0:
			return nil, nil, fmt.Errorf("%w: %s has mode %04o; run: chmod 600 %s", ErrKeysetMode, path, mode, path)
		case mode&0o040 != 0:
			warnings = append(warnings, fmt.Sprintf("the keyset file %s can be read by its group (mode %04o); 0600 is safer", path, mode))
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeyset, err)
	}
	defer clear(b)
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(b)))
	if err != nil {
		// Tink's error may quote the file.
		return nil, nil, fmt.Errorf("%w %s: not a Tink keyset in JSON", ErrKeyset, path)
	}
	return handle, warnings, nil
}

// Generate writes a new keyset with one AES-256-GCM key to path, mode 0600. It
// refuses to overwrite: everything sealed under a lost key is lost.
func Generate(path string) error {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return fmt.Errorf("seal: make a key: %w", err)
	}
	b, err := encodeKeyset(handle)
	if err != nil {
		return err
	}
	defer clear(b)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w %s: exists, and is not overwritten", ErrKeyset, path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeyset, err)
	}
	if err := writeDurably(f, b); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return syncDir(filepath.Dir(path))
}

// Rotate adds a new key to the keyset at path and makes it the one that seals
// from now on; the older keys still open. The file is replaced in one step.
// Processes read it when they start.
func Rotate(path string) error {
	handle, _, err := readKeyset(path)
	if err != nil {
		return err
	}
	manager := keyset.NewManagerFromHandle(handle)
	id, err := manager.Add(aead.AES256GCMKeyTemplate())
	if err == nil {
		err = manager.SetPrimary(id)
	}
	if err == nil {
		handle, err = manager.Handle()
	}
	if err != nil {
		return fmt.Errorf("%w: add a key: %w", ErrKeyset, err)
	}
	b, err := encodeKeyset(handle)
	if err != nil {
		return err
	}
	defer clear(b)
	f, err := os.CreateTemp(filepath.Dir(path), ".keyset-*") // mode 0600
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeyset, err)
	}
	// A crash before the rename leaves the old keyset; one after it, the new.
	err = writeDurably(f, b)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrKeyset, err), os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func encodeKeyset(handle *keyset.Handle) ([]byte, error) {
	var b bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&b)); err != nil {
		return nil, errors.New("seal: encode the keyset")
	}
	return append(b.Bytes(), '\n'), nil
}

// writeDurably writes, syncs and closes.
func writeDurably(f *os.File, b []byte) error {
	_, err := f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes a new name in a folder survive a power cut.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders can't be opened for this there
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeyset, err)
	}
	return errors.Join(d.Sync(), d.Close())
}
