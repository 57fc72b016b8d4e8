package secret

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Shaped like the real thing, and made up. They are put together here so that
// no scanner of this repository takes them for real.
var (
	githubToken = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	slackToken  = "xoxb-" + "123456789012-1234567890123-" + "abcdefghijklmnopqrstuvwx"
	privateKey  = "-----BEGIN " + "PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", 6) + "-----END " + "PRIVATE KEY-----"
	awsKey      = "AKIA" + "Z7QWERTYUIOPASDF"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{"github": githubToken, "slack": slackToken, "private key": privateKey, "aws": awsKey} {
		for _, text := range []string{token, "deploy with " + token + " please", token + "\n" + token, "ünïcode → " + token + " # gitleaks:allow"} {
			found := Find(text)
			if len(found) != strings.Count(text, token) {
				t.Errorf("%s: %d findings in a text with %d", name, len(found), strings.Count(text, token))
				continue
			}
			for _, f := range found {
				if f.Rule == "" || !strings.Contains(token, text[f.Start:f.End]) || f.End-f.Start < len(token)*3/4 {
					t.Errorf("%s: finding %+v", name, f)
				}
			}
		}
	}
}

func TestFindNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "deploy 2026.07.24 to production", "the api key and the token stay secret", "call_deploy_1", "resp_fake_1", "tenant-a:release:2026.07.24",
		`["bare","deploy_release"]`, "trace_5c994fd44ef148e5a4255b974d9f9a5a", "00000000-0000-0000-0000-000000000042",
		"367cb46be96fa11da87030dbc0cf83bd0294053ac150e835b916990d2f5e6d0e", "apr_01k0x2n4e8fv9t1q7c3b5m6d8s", "https://acme.example/releases/1",
		`{"total_tokens":15,"input_tokens":10}`,
	} {
		if found := Find(text); found != nil {
			t.Errorf("%q: %+v", text, found)
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	plain := "nothing here"
	if Mask(plain) != plain {
		t.Error("a text without a secret changed")
	}
	text := "use " + githubToken + " or " + slackToken + "."
	got := Mask(text)
	if want := "use [redacted: 40 chars] or [redacted: 56 chars]."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if Found(got) {
		t.Error("the mask is itself found")
	}
	if got := Redacted("ключ"); got != "[redacted: 4 chars]" {
		t.Errorf("%s: characters are not bytes", got)
	}
}

// Long texts are looked at through windows: nothing is missed at their edges, and every occurrence counts wherever it stands.
func TestFindInLongTexts(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{"github": githubToken, "slack": slackToken, "private key": privateKey} {
		for _, filler := range []string{"lorem ipsum ", "lorem\n", "x"} {
			if name != "github" && filler != "x" {
				continue // the filler makes no difference between the kinds; scanning is slow under the race detector
			}
			for _, before := range []int{window - overlap - 20, window - overlap, window - 1100, window - 30, window - 3, window, 3*window - 17} {
				pad := strings.Repeat(filler, before/len(filler)) + " "
				text := pad + token + " " + pad + token + " " + pad
				found := Find(text)
				if len(found) != 2 || found[0].Start < len(pad) || found[0].Start > len(pad)+len(token)/4 || !strings.Contains(token, text[found[1].Start:found[1].End]) {
					t.Errorf("%s after %d bytes of %q: %+v", name, len(pad), filler, found)
				}
				if strings.Contains(Mask(text), token) {
					t.Errorf("%s after %d bytes of %q is not masked", name, len(pad), filler)
				}
			}
		}
	}
	// Nothing is made up at an edge: a long word after `key=` is no generic key, cut or not.
	for shift := range 40 {
		if text := strings.Repeat("lorem ipsum ", (window-2000)/12+shift*4) + " key=" + strings.Repeat("QUJDREVG", 900) + " ipsum"; Found(text) {
			t.Errorf("a long word is taken for a credential, %d bytes in", strings.Index(text, "key="))
		}
	}
}

// A text that is full of credentials is one: looking at each of them costs the square of their number, and would let one request hold
// a processor for hours.
func TestFloodOfCredentials(t *testing.T) {
	t.Parallel()
	flood := strings.Repeat("key token api secret = aBcD1234efgh5678 password: hunter ", 1<<20/57)
	for what, look := range map[string]func() bool{
		"find": func() bool { f := Find(flood); return len(f) == 1 && f[0].Start == 0 && f[0].End == len(flood) },
		"mask": func() bool { return Mask(flood) == Redacted(flood) },
		"walk": func() bool {
			for range Walk(map[string]any{"a": flood, "b": []any{flood}}, Options{Unpack: true}) {
				return true
			}
			return false
		},
	} {
		done := make(chan bool, 1)
		go func() { done <- look() }()
		select {
		case ok := <-done:
			if !ok {
				t.Errorf("%s: not taken as a whole", what)
			}
		case <-time.After(time.Minute): // it takes a fifth of a second
			t.Fatalf("%s: still looking", what)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	got := merge([]Finding{{"c", 8, 9}, {"b", 2, 6}, {"a", 0, 4}, {"d", 6, 7}, {"a2", 0, 2}})
	want := []Finding{{"a", 0, 6}, {"d", 6, 7}, {"c", 8, 9}}
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestFindConcurrently(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if len(Find("x "+githubToken)) != 1 || Find("no api key here") != nil {
					t.Error("findings differ under concurrency")
				}
			}
		})
	}
	wg.Wait()
}

func FuzzFind(f *testing.F) {
	for _, seed := range []string{"", githubToken, "token: " + slackToken, privateKey, "a\x00b \xff api_key=abc"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		end := 0
		for _, finding := range Find(s) {
			if finding.Start < end || finding.End <= finding.Start || finding.End > len(s) {
				t.Fatalf("finding %+v after %d in %d bytes", finding, end, len(s))
			}
			end = finding.End
		}
		for _, finding := range Find(s) {
			if strings.Contains(Mask(s), s[finding.Start:finding.End]) && finding.End-finding.Start > 8 {
				t.Fatal("a secret is left after masking")
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	Warm()
	for name, text := range map[string]string{
		"plain":   "deploy 2026.07.24 to production",
		"keyword": "the api key and the token stay secret",
		"64KiB":   strings.Repeat("Deploys a release to an environment. ", 64<<10/37),
		"token":   "deploy with " + githubToken,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Find(text)
			}
		})
	}
}

// What is longer than windows overlap: a key of 8192 bits, a PGP key, a token with many claims.
func TestFindLongCredentials(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCbKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 100)
	claims := strings.Repeat("eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6", 200)
	for name, token := range map[string]string{
		"rsa": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + body + "-----END RSA " + "PRIVATE KEY-----",
		"pgp": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n\n" + body + "-----END PGP " + "PRIVATE KEY BLOCK-----",
		"jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + claims + ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
	} {
		if !Found(token) {
			t.Fatalf("%s alone is not found", name)
		}
		for _, before := range []int{0, 1500, 3200, 4000, 5000, 7000, 8190, 9000, 20_000} {
			text := strings.Repeat("some words of prose. ", before/21) + "\n" + token + "\n" + strings.Repeat("more words of prose. ", 400)
			if masked := Mask(text); !Found(text) || strings.Contains(masked, token[len(token)/3:len(token)/3+200]) {
				t.Errorf("%s after %d bytes is not masked", name, before)
			}
		}
	}
}
