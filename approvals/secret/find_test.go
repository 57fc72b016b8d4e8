package secret

import (
	"strings"
	"sync"
	"testing"
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
