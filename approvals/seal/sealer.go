package seal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/subtle/random"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// ErrSealed is the one error of opening: wrong key, wrong binding, or damaged
// bytes. Which of them it was is not told.
var ErrSealed = errors.New("seal: can't be opened with this key and binding")

// ErrKMS means that a KMS didn't wrap or unwrap a data key. It may be out of
// reach, and a later try may work, or it refuses: a KMS tells the two apart by
// message only, and its message may say too much to be passed on.
var ErrKMS = errors.New("seal: the KMS didn't wrap or unwrap the data key")

// dataKeyBytes is the length of a data key: AES-256.
const dataKeyBytes = 32

// Sealer seals and opens. It is safe for concurrent use, and prints as
// "[sealer]".
type Sealer struct {
	kek      tink.AEAD
	remote   bool // kek is a KMS
	warnings []string
}

// NewEphemeral makes a sealer with a key that lives as long as the process, for
// tests and for development on throw-away data.
func NewEphemeral() (*Sealer, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("seal: make a key: %w", err)
	}
	return fromHandle(handle)
}

func fromHandle(handle *keyset.Handle) (*Sealer, error) {
	kek, err := aead.New(handle)
	if err != nil {
		return nil, errors.New("seal: the keyset holds no AEAD key (Tink's AES256_GCM is expected)")
	}
	return &Sealer{kek: kek}, nil
}

// Warnings are remarks from [Open] that an operator should see, one sentence
// each, without secrets.
func (s *Sealer) Warnings() []string { return s.warnings }

// Sealed is an encrypted value with its encrypted data key. Neither is secret.
type Sealed struct {
	WrappedKey []byte // the data key, encrypted by the key-encrypting key
	Ciphertext []byte // nonce (12 bytes), content, tag (16 bytes)
}

// Seal encrypts plaintext under a fresh data key and binds both to aad, one of
// this package's …AAD values. With a KMS this is one call to it.
func (s *Sealer) Seal(plaintext, aad []byte) (Sealed, error) {
	key := random.GetRandomBytes(dataKeyBytes)
	defer clear(key)
	content, err := subtle.NewAESGCM(key)
	if err != nil {
		return Sealed{}, errors.New("seal: make a data key")
	}
	ciphertext, err := content.Encrypt(plaintext, aad)
	if err != nil {
		return Sealed{}, errors.New("seal: encrypt")
	}
	return s.wrapped(key, ciphertext, aad)
}

func (s *Sealer) wrapped(key, ciphertext, aad []byte) (Sealed, error) {
	wrapped, err := s.kek.Encrypt(key, aad)
	switch {
	case err != nil && s.remote:
		return Sealed{}, ErrKMS
	case err != nil:
		return Sealed{}, errors.New("seal: wrap the data key")
	}
	return Sealed{WrappedKey: wrapped, Ciphertext: ciphertext}, nil
}

// Open decrypts what [Sealer.Seal] made under the same aad. The error is
// ErrSealed; with a KMS it is ErrKMS when the data key wasn't unwrapped.
func (s *Sealer) Open(sealed Sealed, aad []byte) ([]byte, error) {
	key, err := s.unwrap(sealed.WrappedKey, aad)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	content, err := subtle.NewAESGCM(key)
	if err != nil {
		return nil, ErrSealed
	}
	plaintext, err := content.Decrypt(sealed.Ciphertext, aad)
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}

func (s *Sealer) unwrap(wrapped, aad []byte) ([]byte, error) {
	key, err := s.kek.Decrypt(wrapped, aad)
	switch {
	case err != nil && s.remote:
		return nil, ErrKMS
	case err != nil || len(key) != dataKeyBytes:
		return nil, ErrSealed
	}
	return key, nil
}

// Rewrap encrypts the data key anew under the keyset's primary key; the content
// is untouched. It is how sealed values move to a new key after [Rotate].
func (s *Sealer) Rewrap(sealed Sealed, aad []byte) (Sealed, error) {
	key, err := s.unwrap(sealed.WrappedKey, aad)
	if err != nil {
		return Sealed{}, err
	}
	defer clear(key)
	return s.wrapped(key, sealed.Ciphertext, aad)
}

// Check seals and opens a probe: what the doctor runs, to see that the key, or
// the KMS, is there and works both ways.
func (s *Sealer) Check() error {
	probe, aad := []byte("holdpoint seal check"), binding("check")
	sealed, err := s.Seal(probe, aad)
	if err != nil {
		return err
	}
	opened, err := s.Open(sealed, aad)
	if err != nil {
		return err
	}
	if string(opened) != string(probe) {
		return errors.New("seal: the key doesn't give back what it sealed")
	}
	return nil
}

// String, GoString, Format and LogValue keep the key-encrypting key out of
// logs.
func (s *Sealer) String() string { return "[sealer]" }

// GoString implements fmt.GoStringer.
func (s *Sealer) GoString() string { return "[sealer]" }

// Format implements fmt.Formatter.
func (s *Sealer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[sealer]") }

// LogValue implements slog.LogValuer.
func (s *Sealer) LogValue() slog.Value { return slog.StringValue("[sealer]") }

// encodingV1 is the first byte of an encoded Sealed.
const encodingV1 = 1

// maxWrapped bounds a wrapped key; the largest KMS answer is a few hundred
// bytes.
const maxWrapped = 1 << 16

// MarshalBinary encodes for one bytea column: version (1 byte), length of the
// wrapped key (4 bytes, big-endian), wrapped key, ciphertext.
func (s Sealed) MarshalBinary() ([]byte, error) {
	if len(s.WrappedKey) == 0 || len(s.WrappedKey) > maxWrapped {
		return nil, errors.New("seal: nothing sealed to encode")
	}
	out := make([]byte, 0, 5+len(s.WrappedKey)+len(s.Ciphertext))
	out = append(out, encodingV1)
	out = binary.BigEndian.AppendUint32(out, uint32(len(s.WrappedKey)))
	out = append(out, s.WrappedKey...)
	return append(out, s.Ciphertext...), nil
}

// UnmarshalBinary decodes what MarshalBinary wrote, without keeping data. The
// error is ErrSealed.
func (s *Sealed) UnmarshalBinary(data []byte) error {
	if len(data) < 5 || data[0] != encodingV1 {
		return ErrSealed
	}
	n := binary.BigEndian.Uint32(data[1:5])
	rest := data[5:]
	if n == 0 || n > maxWrapped || uint64(n) > uint64(len(rest)) {
		return ErrSealed
	}
	s.WrappedKey = append([]byte(nil), rest[:n]...)
	s.Ciphertext = append([]byte(nil), rest[n:]...)
	return nil
}
