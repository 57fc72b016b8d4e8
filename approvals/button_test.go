package approvals

import (
	"bytes"
	"testing"
)

// FuzzParseButton: whatever a payload holds, it is refused or is exactly what EncodeButton makes; it never passes for another's.
func FuzzParseButton(f *testing.F) {
	key, other := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)
	id, err := ParseID("apr_01h455vb4pex5vsknk084sn02q") // the same in every process of the fuzzer
	if err != nil {
		f.Fatal(err)
	}
	value := EncodeButton(key, "C0APPROVALS", id, "sha256-proposal-v1:77ab0123456789abcdef", 3)
	f.Add(value)
	f.Add("hp1....")
	f.Add("hp1.apr_01h455vb4pex5vsknk084sn02q.77ab.1.AAAAAAAAAAAAAAAA")
	f.Add(value + "\x00")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseButton(s)
		if err != nil {
			if err.Error() != errButton.Error() {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		if len(s) > 256 || b.Version < 1 || b.ID.IsZero() && b.ID.String() != "" {
			t.Fatalf("read %q as version %d", s, b.Version)
		}
		if b.genuine(other, "C0APPROVALS") || b.genuine(key, "C0OTHER") || b.genuine(nil, "C0APPROVALS") {
			t.Fatalf("%q passes for another key or channel", s)
		}
		if b.genuine(key, "C0APPROVALS") && s != value {
			t.Fatalf("%q is a second form of a genuine button", s)
		}
	})
}

func TestButtonRoundTrip(t *testing.T) {
	t.Parallel()
	key, id := bytes.Repeat([]byte{7}, 32), NewID()
	value := EncodeButton(key, "C0APPROVALS", id, "sha256-proposal-v1:77ab0123456789abcdef", 1<<40)
	if len(value) > 75+20 { // an overflow option holds 75 characters, a button 2,000
		t.Errorf("a value of %d characters", len(value))
	}
	b, err := ParseButton(value)
	if err != nil || b.ID != id || b.DigestPrefix != "77ab01234567" || b.Version != 1<<40 || !b.genuine(key, "C0APPROVALS") {
		t.Fatalf("%+v %v", b, err)
	}
}
