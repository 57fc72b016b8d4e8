package seal

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/core/registry"
	"github.com/tink-crypto/tink-go/v2/tink"
)

func generated(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := Generate(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGenerateAndOpen(t *testing.T) {
	t.Parallel()
	path := generated(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	aad := ArgumentsAAD("acme", "1")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := first.Seal([]byte("x"), aad)
	if err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{path, "file:" + path, "file://" + filepath.ToSlash(path)} {
		s, err := Open(uri)
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		if got, err := s.Open(sealed, aad); err != nil || string(got) != "x" {
			t.Errorf("%s: %q, %v", uri, got, err)
		}
		if len(s.Warnings()) != 0 {
			t.Errorf("%s: %v", uri, s.Warnings())
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestGenerateRefusesToOverwrite(t *testing.T) {
	t.Parallel()
	path := generated(t)
	before, _ := os.ReadFile(path)
	if err := Generate(path); !errors.Is(err, ErrKeyset) {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("the keyset changed")
	}
	if err := Generate(filepath.Join(t.TempDir(), "no", "such", "folder")); !errors.Is(err, ErrKeyset) {
		t.Errorf("%v", err)
	}
}

func TestKeysetMode(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no file modes there")
	}
	path := generated(t)
	for mode, want := range map[os.FileMode]error{0o600: nil, 0o400: nil, 0o640: nil, 0o440: nil, 0o644: ErrKeysetMode, 0o604: ErrKeysetMode, 0o660: ErrKeysetMode, 0o602: ErrKeysetMode} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path)
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%04o: %v, want %v", mode, err, want)
			continue
		}
		if want != nil && !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%04o: %v names no fix", mode, err)
		}
		if err == nil && (len(s.Warnings()) > 0) != (mode&0o040 != 0) {
			t.Errorf("%04o: warnings %q", mode, s.Warnings())
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for uri, want := range map[string]error{
		"":                                      ErrKeyset,
		"file:":                                 ErrKeyset,
		"file://host/keyset.json":               ErrKeyset,
		"https://acme.example/keyset.json":      ErrKMSUnsupported,
		"aws-kms://arn:aws:kms:eu-central-1:1:": ErrKMSUnsupported,
		"gcp-kms://projects/p":                  ErrKMSUnsupported,
		"hcvault://vault/transit/keys/k":        ErrKMSUnsupported,
		filepath.Join(dir, "absent"):            ErrKeyset,
		dir:                                     ErrKeyset,
		write("empty", ""):                      ErrKeyset,
		write("text", "canary-4711"):            ErrKeyset,
		write("json", `{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"canary-4711"}}]}`): ErrKeyset,
	} {
		s, err := Open(uri)
		if !errors.Is(err, want) || s != nil {
			t.Errorf("%q: %v, want %v", uri, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: the error quotes the file: %v", uri, err)
		}
	}
	if _, err := Open("aws-kms://x"); err == nil || !strings.Contains(err.Error(), "keyset setting") {
		t.Errorf("%v doesn't name the setting", err)
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	path := generated(t)
	aad := ArgumentsAAD("acme", "1")
	before, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := before.Seal([]byte("x"), aad)
	if err != nil {
		t.Fatal(err)
	}
	if err := Rotate(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	after, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.Open(old, aad); err != nil || string(got) != "x" {
		t.Errorf("the old key no longer opens: %v", err)
	}
	rewrapped, err := after.Rewrap(old, aad)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.Open(rewrapped, aad); err != nil || string(got) != "x" {
		t.Errorf("rewrapped: %q, %v", got, err)
	}
	if _, err := before.Open(rewrapped, aad); !errors.Is(err, ErrSealed) {
		t.Errorf("rewrapped under the old key still: %v", err)
	}
	if _, err := after.Rewrap(old, ArgumentsAAD("acme", "2")); !errors.Is(err, ErrSealed) {
		t.Errorf("rewrapped under another binding: %v", err)
	}
	if err := Rotate(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, ErrKeyset) {
		t.Errorf("%v", err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".keyset-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// testKMS stands in for a KMS, behind the interface that Tink's clients have.
type testKMS struct{ key tink.AEAD }

func (testKMS) Supported(uri string) bool { return strings.HasPrefix(uri, "hcvault://test-kms/") }

func (k testKMS) GetAEAD(uri string) (tink.AEAD, error) {
	if strings.HasSuffix(uri, "/known") {
		return k.key, nil
	}
	return nil, errors.New("canary-4711")
}

func TestOpenKMS(t *testing.T) {
	t.Parallel()
	registry.RegisterKMSClient(testKMS{ephemeral(t).kek})
	s, err := Open("hcvault://test-kms/known")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	aad := ArgumentsAAD("acme", "1")
	sealed, err := s.Seal([]byte("x"), aad)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Open(sealed, aad); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := s.Open(sealed, ArgumentsAAD("acme", "2")); err == nil {
		t.Error("another binding opens")
	}
	if _, err := Open("hcvault://test-kms/other"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a key that the client refuses: %v", err)
	}
}
