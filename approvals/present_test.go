package approvals

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tink-crypto/tink-go/v2/core/registry"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/holdpoint/holdpoint/approvals/seal"
)

const kmsURI = "hcvault://present.test/transit/keys/k"

// kms stands in for one outside: it wraps nothing, and meets every unwrapping with answer.
type kms struct {
	asked  atomic.Int32
	answer atomic.Pointer[func() error]
}

func (k *kms) Supported(uri string) bool               { return uri == kmsURI }
func (k *kms) GetAEAD(string) (tink.AEAD, error)       { return k, nil }
func (k *kms) Encrypt(plain, _ []byte) ([]byte, error) { return append([]byte{7}, plain...), nil }
func (k *kms) Decrypt(cipher, _ []byte) ([]byte, error) {
	k.asked.Add(1)
	if err := (*k.answer.Load())(); err != nil {
		return nil, err
	}
	return cipher[1:], nil
}

// Looking at a list waits for no KMS: not with a connection in hand, not after the first that failed, and not for long.
func TestPresentWaitsForNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	k := &kms{}
	answer := func(f func() error) { k.asked.Store(0); k.answer.Store(&f) }
	answer(func() error { return nil })
	registry.RegisterKMSClient(k)
	sealer, err := seal.Open(kmsURI)
	w.must(err)
	clicks := w.open("one", 1, nil)
	w.s = New(Options{Clicks: clicks, Intake: w.db, Work: w.db, Sealer: sealer, Directory: w.dir})
	const n = 4
	for range n {
		w.propose("send_mail", mail)
	}
	w.change("args.amount > 50", "args.amount > 60")
	known := func() (known int) {
		t.Helper()
		open, err := w.s.Open(w.ctx, "acme", 10)
		w.must(err)
		for _, v := range open {
			if v.Present == nil {
				t.Fatal("nothing is told")
			}
			if v.Present.Known {
				known++
			}
		}
		return known
	}
	answer(func() error {
		if clicks.Stat().AcquiredConns() != 0 {
			t.Error("a connection is held while the KMS is asked")
		}
		return nil
	})
	if got := known(); got != n || k.asked.Load() != n {
		t.Fatalf("%d known, asked %d times", got, k.asked.Load())
	}
	answer(func() error { return errors.New("down") })
	if got := known(); got != 0 || k.asked.Load() != 1 {
		t.Fatalf("the KMS is down: %d known, asked %d times", got, k.asked.Load())
	}
	hang := make(chan struct{})
	answer(func() error { <-hang; return nil })
	done := make(chan int, 1)
	go func() { done <- known() }()
	select {
	case got := <-done:
		if got != 0 {
			t.Fatalf("the KMS hangs: %d known", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("waits for a KMS that hangs")
	}
	close(hang)
	answer(func() error { return nil })
}
