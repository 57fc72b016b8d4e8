package seal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func ephemeral(t testing.TB) *Sealer {
	t.Helper()
	s, err := NewEphemeral()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// I23: what is sealed for one row opens for no other.
func TestBinding(t *testing.T) {
	t.Parallel()
	s := ephemeral(t)
	bindings := map[string][]byte{
		"state":                StateAAD("acme", "run_1", "p1", "openai-agents-js"),
		"state, other tenant":  StateAAD("acme2", "run_1", "p1", "openai-agents-js"),
		"state, other run":     StateAAD("acme", "run_2", "p1", "openai-agents-js"),
		"state, other pause":   StateAAD("acme", "run_1", "p2", "openai-agents-js"),
		"state, other format":  StateAAD("acme", "run_1", "p1", "openai-agents-python"),
		"state, shifted":       StateAAD("acmer", "un_1", "p1", "openai-agents-js"),
		"state, empty run":     StateAAD("acmerun_1", "", "p1", "openai-agents-js"),
		"arguments":            ArgumentsAAD("acme", "p1"),
		"arguments, other row": ArgumentsAAD("acme", "p2"),
		"result":               ResultAAD("acme", "p1"),
		"message":              MessageAAD("acme", "p1"),
		"none":                 nil,
	}
	for name, aad := range bindings {
		sealed, err := s.Seal([]byte("content"), aad)
		if err != nil {
			t.Fatal(err)
		}
		for other, aad := range bindings {
			got, err := s.Open(sealed, aad)
			switch {
			case name == other && (err != nil || string(got) != "content"):
				t.Errorf("%s: %q, %v", name, got, err)
			case name != other && (!errors.Is(err, ErrSealed) || got != nil):
				t.Errorf("%s opens as %s: %v", name, other, err)
			}
		}
	}
}

func TestBindingProperty(t *testing.T) {
	t.Parallel()
	fields := rapid.SliceOfN(rapid.StringMatching(`[a\x00]{0,9}`), 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := fields.Draw(t, "a"), fields.Draw(t, "b")
		same := len(a) == len(b)
		for i := range a {
			same = same && a[i] == b[i]
		}
		if bytes.Equal(binding(a[0], a[1:]...), binding(b[0], b[1:]...)) != same {
			t.Fatalf("%q and %q", a, b)
		}
	})
}

func TestOtherKey(t *testing.T) {
	t.Parallel()
	a, b := ephemeral(t), ephemeral(t)
	aad := ArgumentsAAD("acme", "1")
	x, _ := a.Seal([]byte("x"), aad)
	y, _ := a.Seal([]byte("x"), aad)
	if _, err := b.Open(x, aad); !errors.Is(err, ErrSealed) {
		t.Errorf("another key: %v", err)
	}
	if bytes.Equal(x.Ciphertext, y.Ciphertext) || bytes.Equal(x.WrappedKey, y.WrappedKey) {
		t.Error("sealing twice gives the same bytes")
	}
	if _, err := a.Open(Sealed{WrappedKey: x.WrappedKey, Ciphertext: y.Ciphertext}, aad); !errors.Is(err, ErrSealed) {
		t.Errorf("another value's data key: %v", err)
	}
	if _, err := a.Open(Sealed{}, aad); !errors.Is(err, ErrSealed) {
		t.Errorf("nothing: %v", err)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	s := ephemeral(t)
	aad := ArgumentsAAD("acme", "1")
	sealed, err := s.Seal([]byte("content"), aad)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := sealed.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	open := func(data []byte) error {
		var got Sealed
		if err := got.UnmarshalBinary(data); err != nil {
			return err
		}
		_, err := s.Open(got, aad)
		return err
	}
	if err := open(encoded); err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(encoded) {
		damaged := bytes.Clone(encoded)
		damaged[bit/8] ^= 1 << (bit % 8)
		if err := open(damaged); !errors.Is(err, ErrSealed) {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
	}
	for n := range len(encoded) {
		if err := open(encoded[:n]); !errors.Is(err, ErrSealed) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if err := open(append(bytes.Clone(encoded), 0)); !errors.Is(err, ErrSealed) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestEncoding(t *testing.T) {
	t.Parallel()
	s := ephemeral(t)
	for _, size := range []int{0, 1, 6 << 10} {
		sealed, err := s.Seal(make([]byte, size), nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := sealed.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got Sealed
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		clear(data) // the decoded value keeps nothing of it
		opened, err := s.Open(got, nil)
		if err != nil || len(opened) != size {
			t.Errorf("%d bytes: %d, %v", size, len(opened), err)
		}
	}
	if _, err := (Sealed{}).MarshalBinary(); err == nil {
		t.Error("nothing was encoded as something")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := ephemeral(t).Check(); err != nil {
		t.Error(err)
	}
	if err := (&Sealer{kek: forgetful{}}).Check(); !errors.Is(err, ErrSealed) {
		t.Errorf("a key that unwraps to something else: %v", err)
	}
	if err := (&Sealer{kek: broken{}, remote: true}).Check(); !errors.Is(err, ErrKMS) {
		t.Errorf("a KMS that is down: %v", err)
	}
}

// The content is bound by itself: a KMS that ignores the binding weakens nothing.
func TestDeafKMS(t *testing.T) {
	t.Parallel()
	s := &Sealer{kek: deaf{}, remote: true}
	sealed, err := s.Seal([]byte("x"), ArgumentsAAD("acme", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(sealed, ArgumentsAAD("acme", "2")); !errors.Is(err, ErrSealed) {
		t.Errorf("another row: %v", err)
	}
}

// forgetful unwraps to another key.
type forgetful struct{}

func (forgetful) Encrypt(plaintext, _ []byte) ([]byte, error) { return bytes.Clone(plaintext), nil }
func (forgetful) Decrypt(ciphertext, _ []byte) ([]byte, error) {
	return make([]byte, len(ciphertext)), nil
}

// deaf wraps without looking at the binding.
type deaf struct{}

func (deaf) Encrypt(plaintext, _ []byte) ([]byte, error)  { return bytes.Clone(plaintext), nil }
func (deaf) Decrypt(ciphertext, _ []byte) ([]byte, error) { return bytes.Clone(ciphertext), nil }

// broken fails, with words that must not be passed on.
type broken struct{}

func (broken) Encrypt([]byte, []byte) ([]byte, error) { return nil, errors.New("canary-4711") }
func (broken) Decrypt([]byte, []byte) ([]byte, error) { return nil, errors.New("canary-4711") }

func TestKMSOutage(t *testing.T) {
	t.Parallel()
	s := &Sealer{kek: broken{}, remote: true}
	_, sealErr := s.Seal([]byte("x"), nil)
	_, openErr := s.Open(Sealed{WrappedKey: []byte("x")}, nil)
	_, rewrapErr := s.Rewrap(Sealed{WrappedKey: []byte("x")}, nil)
	for _, err := range []error{sealErr, openErr, rewrapErr} {
		if !errors.Is(err, ErrKMS) || errors.Is(err, ErrSealed) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v", err)
		}
	}
}

func TestSealerDoesntPrint(t *testing.T) {
	t.Parallel()
	s := ephemeral(t)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "sealer", s)
	for _, p := range []string{fmt.Sprintf("%v", s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%s", s), fmt.Sprintf("%d", s)} {
		if p != "[sealer]" {
			t.Errorf("printed %s", p)
		}
	}
	if !strings.Contains(log.String(), "sealer=[sealer]") {
		t.Errorf("logged %s", log.String())
	}
}

func FuzzUnmarshal(f *testing.F) {
	s := ephemeral(f)
	sealed, _ := s.Seal([]byte("content"), nil)
	data, _ := sealed.MarshalBinary()
	f.Add(data)
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Add([]byte{1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var got Sealed
		if err := got.UnmarshalBinary(data); err != nil {
			return
		}
		again, err := got.MarshalBinary()
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("re-encodes as %x, not %x (%v)", again, data, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	s := ephemeral(b)
	aad := StateAAD("acme", "run_1", "01980000-0000-7000-8000-000000000000", "openai-agents-js")
	for name, size := range map[string]int{"6KiB": 6 << 10, "1MiB": 1 << 20} {
		plaintext := bytes.Repeat([]byte("x"), size)
		b.Run("seal/"+name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Seal(plaintext, aad); err != nil {
					b.Fatal(err)
				}
			}
		})
		sealed, err := s.Seal(plaintext, aad)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("open/"+name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Open(sealed, aad); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
