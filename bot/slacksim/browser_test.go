package slacksim_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// browser opens the page in a headless Chromium.
func browser(t *testing.T, s *slacksim.Sim) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: install Debian's chromium to run the page's tests")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	for _, flag := range []string{"disable-quic", "disable-component-update", "disable-background-networking", "disable-sync"} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	limit, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	alloc, stop := chromedp.NewExecAllocator(limit, opts...)
	t.Cleanup(stop)
	tab, closeTab := chromedp.NewContext(alloc)
	t.Cleanup(closeTab)
	if err := chromedp.Do(tab, chromedp.Navigate(s.URL()+"/"), chromedp.WaitVisible(".nav-item")); err != nil {
		t.Fatal(err)
	}
	return tab
}

// The story of a card on the page: it appears, asks before it acts, opens a form that shows the app's complaint and
// keeps what was typed, and changes by itself.
func TestPageInABrowser(t *testing.T) {
	s := newSim(t, slacksim.Options{Unlimited: true})
	a := newApp(t, s)
	tab := browser(t, s)
	run := func(actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(tab, actions...); err != nil {
			t.Fatal(err)
		}
	}
	card := strings.Replace(approveCard, `"value":"v1.abc"`, `"value":"v1.abc","confirm":{"title":{"type":"plain_text","text":"Deploy?"},"text":{"type":"mrkdwn","text":"*production*"},"confirm":{"type":"plain_text","text":"Yes"},"deny":{"type":"plain_text","text":"No"}}`, 1)
	ts := post(t, s, card)
	run(chromedp.WaitVisible("#log .btn.primary"), chromedp.Click("#log .btn.primary"), chromedp.WaitVisible("dialog[open] .btn"))
	if len(a.more) != 0 {
		t.Fatal("the click was sent before the person confirmed it")
	}
	run(chromedp.Click(`dialog[open] button[value=yes]`))
	a.wait(1)
	if got := a.last().payload; at(got, "actions", "0", "value") != "v1.abc" || at(got, "user", "id") != "U0ANA" {
		t.Errorf("payload %v", got)
	}

	if _, code := open(t, s, "views.open", word(t, a.last().payload, "trigger_id"), modal(withSubmit, reasonForm)); code != "" {
		t.Fatal(code)
	}
	input := `dialog[open] input[type=text]`
	run(chromedp.WaitVisible(input), chromedp.Click(`dialog[open] button[type=submit]`), chromedp.WaitVisible(`dialog[open] [aria-invalid=true]`))
	if len(a.more) != 0 {
		t.Error("an incomplete form was sent")
	}
	a.reply(complain)
	run(chromedp.SendKeys(input, "too soon"), chromedp.Click(`dialog[open] button[type=submit]`),
		chromedp.Poll[chromedp.Void](`document.querySelector("dialog[open] .error").textContent === "Say more"`))
	if kept, err := chromedp.Run(tab, chromedp.Value(input)); err != nil || kept != "too soon" {
		t.Errorf("after the complaint the field holds %q", kept)
	}
	a.reply(nil)
	run(chromedp.Click(`dialog[open] button[type=submit]`), chromedp.Poll[chromedp.Void](`!document.querySelector("dialog[open]")`))
	if at(a.last().payload, "view", "state", "values", "why", "reason", "value") != "too soon" {
		t.Errorf("state %v", at(a.last().payload, "view", "state"))
	}

	raw(t, s, "chat.update", url.Values{"channel": {"C0APP"}, "ts": {ts}, "text": {"done"}, "blocks": {`[{"type":"header","text":{"type":"plain_text","text":"✅ Done & dusted"}}]`}})
	run(chromedp.Poll[chromedp.Void](`document.querySelector(".b-header")?.textContent === "✅ Done & dusted" && !document.querySelector("#log .btn.primary")`),
		chromedp.Poll[chromedp.Void](`document.querySelector(".msg.flash") !== null`))
	run(chromedp.SendKeys("#compose", "/approvals whoami\r"))
	run(chromedp.Poll[chromedp.Void](`document.querySelector("#compose").value === ""`))
	if got := a.waitFor(slacksim.CommandsPath); got.form.Get("text") != "whoami" {
		t.Errorf("command %v", got.form)
	}
}

// Nothing in a message becomes markup, wherever it stands.
func TestPageEscapesEverything(t *testing.T) {
	s := newSim(t, slacksim.Options{Unlimited: true})
	evil := `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	e := string(quoted)
	short := `"<b id=owned>x</b>"`
	post(t, s, `[
	 {"type":"header","text":{"type":"plain_text","text":`+e+`}},
	 {"type":"section","text":{"type":"mrkdwn","text":`+e+`},"fields":[{"type":"plain_text","text":`+e+`,"emoji":false}]},
	 {"type":"section","text":{"type":"mrkdwn","text":"<https://a.example|<b id=owned>> <!date^1^<b id=owned>^javascript:x|<b id=owned>> <@<b id=owned>> `+"`<b id=owned>`"+`"}},
	 {"type":"markdown","text":"# <b id=owned>\n[x](javascript:alert(1)) `+"`<b id=owned>`"+`"},
	 {"type":"image","image_url":"https://a.example/x.png","alt_text":`+e+`},
	 {"type":"context","elements":[{"type":"plain_text","text":`+e+`}]},
	 {"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":`+e+`}]},{"type":"rich_text_section","elements":[{"type":"link","url":"mailto:javascript:alert(1)","text":`+e+`},{"type":"emoji","name":"<b id=owned>"}]}]},
	 {"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":`+short+`}},{"type":"overflow","options":[{"text":{"type":"plain_text","text":`+short+`},"value":"v"}]}]}]`)
	s.AddUser(slacksim.User{ID: "U0EVIL", Name: "<b id=owned>", RealName: `<b id=owned>Eve</b>`})
	tab := browser(t, s)
	if err := chromedp.Do(tab, chromedp.WaitVisible(".msg")); err != nil {
		t.Fatal(err)
	}
	for what, js := range map[string]string{
		"elements made by text": `document.querySelectorAll("#owned, #app img, #app script, #app iframe").length`,
		"unsafe links":          `[...document.querySelectorAll("a")].filter((a) => !/^(https?:|mailto:)/.test(a.href) && a.className !== "skip").length`,
		"scripts run":           `document.title.includes("owned") ? 1 : 0`,
	} {
		if n, err := chromedp.Run(tab, chromedp.Evaluate[int](js)); err != nil || n != 0 {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
	if shown, err := chromedp.Run(tab, chromedp.Text(".b-header")); err != nil || shown != evil {
		t.Errorf("the header is shown as %q, %v", shown, err)
	}
}

func complain(_ int, _ received, w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"response_action":"errors","errors":{"why":"Say more"}}`)
}
