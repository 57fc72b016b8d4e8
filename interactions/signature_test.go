package interactions

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// Slack's published vector (docs.slack.dev/authentication/verifying-requests-from-slack).
const (
	vectorSecret = "8f742231b10e8888abcd99yyyzzz85a5"
	vectorTime   = 1531420618
	vectorBody   = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA" +
		"&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
		"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	vectorDigest = "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
)

func vector() http.Header {
	return http.Header{"X-Slack-Request-Timestamp": {strconv.Itoa(vectorTime)}, "X-Slack-Signature": {"v0=" + vectorDigest}}
}

func TestPublishedVector(t *testing.T) {
	t.Parallel()
	at := time.Unix(vectorTime, 0)
	got, err := verify([][]byte{[]byte(vectorSecret)}, vector(), []byte(vectorBody), at)
	if err != nil || hex.EncodeToString(got[:]) != vectorDigest {
		t.Fatal(err)
	}
	if _, err := verify([][]byte{[]byte("new"), []byte(vectorSecret)}, vector(), []byte(vectorBody), at); err != nil {
		t.Error("the second secret of a rotation is not looked at")
	}
}

func TestWhatIsNotSigned(t *testing.T) {
	t.Parallel()
	at := time.Unix(vectorTime, 0)
	for name, c := range map[string]struct {
		change func(http.Header)
		body   string
		now    time.Time
	}{
		"other body":              {body: vectorBody + "x", now: at},
		"five minutes and a bit":  {body: vectorBody, now: at.Add(window + time.Second)},
		"from the future":         {body: vectorBody, now: at.Add(-window - time.Second)},
		"no signature":            {func(h http.Header) { h.Del("X-Slack-Signature") }, vectorBody, at},
		"no time":                 {func(h http.Header) { h.Del("X-Slack-Request-Timestamp") }, vectorBody, at},
		"two signatures":          {func(h http.Header) { h.Add("X-Slack-Signature", "v0="+vectorDigest) }, vectorBody, at},
		"two times":               {func(h http.Header) { h.Add("X-Slack-Request-Timestamp", "1") }, vectorBody, at},
		"another spelling of now": {func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "+1531420618") }, vectorBody, at},
		"no number":               {func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "now") }, vectorBody, at},
		"another version":         {func(h http.Header) { h.Set("X-Slack-Signature", "v1="+vectorDigest) }, vectorBody, at},
		"no hex":                  {func(h http.Header) { h.Set("X-Slack-Signature", "v0="+strings.Repeat("g", 64)) }, vectorBody, at},
		"cut":                     {func(h http.Header) { h.Set("X-Slack-Signature", "v0="+vectorDigest[:62]) }, vectorBody, at},
		"one bit":                 {func(h http.Header) { h.Set("X-Slack-Signature", "v0=b"+vectorDigest[1:]) }, vectorBody, at},
	} {
		h := vector()
		if c.change != nil {
			c.change(h)
		}
		if _, err := verify([][]byte{[]byte(vectorSecret)}, h, []byte(c.body), c.now); err == nil {
			t.Errorf("%s: taken", name)
		} else if s := fmt.Sprintf("%+v", err); strings.Contains(s, vectorDigest[:8]) {
			t.Errorf("%s: the error tells the signature", name)
		}
	}
	for _, now := range []time.Time{at.Add(window), at.Add(-window)} {
		if _, err := verify([][]byte{[]byte(vectorSecret)}, vector(), []byte(vectorBody), now); err != nil {
			t.Errorf("within the window: %v", err)
		}
	}
}

func TestMemoryForgetsNothingInTheWindow(t *testing.T) {
	t.Parallel()
	var m memory
	now := time.Unix(vectorTime, 0)
	s := signature{1}
	if !m.fresh(s, now) {
		t.Fatal("new")
	}
	for _, later := range []time.Duration{0, window, 2 * window} {
		if m.fresh(s, now.Add(later)) {
			t.Errorf("forgotten after %s", later)
		}
	}
	if !m.fresh(signature{2}, now.Add(2*window+time.Second)) || m.fresh(s, now.Add(2*window+2*time.Second)) {
		t.Error("forgotten as the generation changed")
	}
	if m.fresh(signature{3}, now.Add(9*window)); len(m.young)+len(m.old) != 1 {
		t.Errorf("%d kept", len(m.young)+len(m.old))
	}
}

// Every route, whatever is sent: unsigned, forged and repeated requests are 401, and the core hears nothing.
func TestRouteWalk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stamp := strconv.FormatInt(time.Now().Unix(), 10) // one for all: a second that passes in between would sign otherwise
	for path, rt := range w.h.routes() {
		send := func(body string, change func(*http.Request)) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", rt.contentType)
			r.Header.Set("X-Slack-Request-Timestamp", stamp)
			r.Header.Set("X-Slack-Signature", slacksim.Sign(secret, stamp, []byte(body)))
			if change != nil {
				change(r)
			}
			rec := httptest.NewRecorder()
			w.h.ServeHTTP(rec, r)
			return rec.Code
		}
		if got := send("a=1", func(r *http.Request) { r.Header.Del("X-Slack-Signature") }); got != http.StatusUnauthorized {
			t.Errorf("%s unsigned: %d", path, got)
		}
		if got := send("a=2", func(r *http.Request) { r.Header.Set("X-Slack-Signature", slacksim.Sign("other", "1", nil)) }); got != http.StatusUnauthorized {
			t.Errorf("%s forged: %d", path, got)
		}
		if got := send(`{"p":"`+path+`"}`, nil); got != http.StatusBadRequest { // signed, and no payload of ours
			t.Errorf("%s signed: %d", path, got)
		}
		if got := send(`{"p":"`+path+`"}`, nil); got != http.StatusUnauthorized {
			t.Errorf("%s repeated byte for byte: %d", path, got)
		}
		if got := send("b="+path, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }); got != http.StatusUnsupportedMediaType {
			t.Errorf("%s as text: %d", path, got)
		}
		if got := send(strings.Repeat("x", maxBody+1), nil); got != http.StatusRequestEntityTooLarge {
			t.Errorf("%s too large: %d", path, got)
		}
		if got := send("c="+path, func(r *http.Request) { r.Method = http.MethodGet }); got != http.StatusMethodNotAllowed {
			t.Errorf("%s GET: %d", path, got)
		}
	}
	if n := len(w.core.requests()) + len(w.core.done()); n != 0 {
		t.Errorf("the core heard %d requests", n)
	}
}

func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := Options{SigningSecrets: [][]byte{[]byte("s")}, AppID: appID, Slack: w.h.slack, Cards: w.cards, Directory: w.dir}
	if _, err := New(w.core, good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no secret":       func(o *Options) { o.SigningSecrets = nil },
		"an empty secret": func(o *Options) { o.SigningSecrets = [][]byte{[]byte("s"), {}} },
		"three secrets":   func(o *Options) { o.SigningSecrets = [][]byte{{1}, {2}, {3}} },
		"no app":          func(o *Options) { o.AppID = "" },
		"no client":       func(o *Options) { o.Slack = nil },
	} {
		o := good
		change(&o)
		if _, err := New(w.core, o); err == nil {
			t.Errorf("%s: it starts", name)
		}
	}
}
