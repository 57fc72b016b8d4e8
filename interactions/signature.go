package interactions

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// window is how far a request's timestamp may be from now, in both directions.
const window = 5 * time.Minute

// errUnsigned says nothing more on purpose: an attacker learns nothing, and no signature ends up in a log.
var errUnsigned = errors.New("not signed by Slack")

type signature [sha256.Size]byte

// verify checks Slack's v0 signature against every secret (two during a rotation).
func verify(secrets [][]byte, h http.Header, body []byte, now time.Time) (signature, error) {
	var got signature
	stamp, ok1 := only(h, "X-Slack-Request-Timestamp")
	text, ok2 := only(h, "X-Slack-Signature")
	if !ok1 || !ok2 {
		return got, errUnsigned
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != stamp { // one spelling, so that a replay can't be respelled
		return got, errUnsigned
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > window || age < -window {
		return got, errUnsigned
	}
	digits, ok := strings.CutPrefix(text, "v0=")
	if !ok || len(digits) != hex.EncodedLen(len(got)) {
		return got, errUnsigned
	}
	if _, err := hex.Decode(got[:], []byte(digits)); err != nil {
		return got, errUnsigned
	}
	match := false
	for _, secret := range secrets {
		m := hmac.New(sha256.New, secret)
		m.Write([]byte("v0:" + stamp + ":"))
		m.Write(body)
		match = hmac.Equal(m.Sum(nil), got[:]) || match
	}
	if !match {
		return got, errUnsigned
	}
	return got, nil
}

// only is a header's single value.
func only(h http.Header, name string) (string, bool) {
	v := h.Values(name)
	if len(v) != 1 || v[0] == "" {
		return "", false
	}
	return v[0], true
}

// memory remembers what was seen for at least the time that a signature is good for: its timestamp may be five minutes
// ahead, so ten. Only what Slack signed gets in, so nobody else can fill it.
type memory struct {
	mu         sync.Mutex
	began      time.Time
	young, old map[signature]struct{}
}

// fresh notes s and says whether it is new.
func (m *memory) fresh(s signature, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age := now.Sub(m.began); m.young == nil || age > 2*window {
		m.old = m.young
		if age > 4*window {
			m.old = nil
		}
		m.young, m.began = map[signature]struct{}{}, now
	}
	_, young := m.young[s]
	_, old := m.old[s]
	if young || old {
		return false
	}
	m.young[s] = struct{}{}
	return true
}
