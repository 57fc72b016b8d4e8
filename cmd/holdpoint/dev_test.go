package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdpoint/holdpoint/approvals"
)

// trial is one `holdpoint dev` process.
type trial struct {
	*process
	slack, key string
}

var (
	pageURL = regexp.MustCompile(`Slack \(simulated\)\s+(http://\S+)`)
	apiURL  = regexp.MustCompile(`API\s+(http://\S+)/v1/approvals`)
	keyLine = regexp.MustCompile(`HOLDPOINT_KEY=(hp_\S+)`)
)

// try starts `holdpoint dev` and waits for its banner. It is told nothing of the test's own database, Redis and Slack.
func try(t *testing.T, w *world, tmp string, args ...string) *trial {
	t.Helper()
	path, err := plainBinary()
	w.must(err)
	g := &program{w: w, path: path, env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + tmp}}
	p := g.start(append([]string{"dev"}, args...)...)
	started := make(chan error, 1)
	go func() { started <- p.out.says(w.ctx, "Not for production") }()
	select {
	case err := <-started:
		w.must(err)
	case <-p.ended:
		t.Fatalf("dev ended: %s%s", p.out, p.log)
	}
	out := p.out.String()
	page, api, key := pageURL.FindStringSubmatch(out), apiURL.FindStringSubmatch(out), keyLine.FindStringSubmatch(out)
	if page == nil || api == nil || key == nil {
		t.Fatalf("the banner lacks an address or the key:\n%s", out)
	}
	w.base, w.key = api[1], key[1]
	return &trial{process: p, slack: page[1], key: key[1]}
}

// stranger is a world of which only the agent's side is used.
func stranger(t *testing.T) *world {
	t.Helper()
	built(t, plainBinary)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return &world{t: t, ctx: ctx, logs: &journal{}, dir: t.TempDir()}
}

// shortTemp is a folder that Postgres' own user can enter, with a path short enough for its socket.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // Postgres is another user when the test is root
		t.Fatal(err)
	}
	return dir
}

// tab opens the simulator's page as a person.
func tab(t *testing.T, url, user string) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: install Debian's chromium to run the page's tests")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	for _, flag := range []string{"disable-quic", "disable-component-update", "disable-background-networking", "disable-sync"} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	limit, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	alloc, stop := chromedp.NewExecAllocator(limit, opts...)
	t.Cleanup(stop)
	page, closePage := chromedp.NewContext(alloc)
	t.Cleanup(closePage)
	err = chromedp.Do(page, chromedp.Navigate(url), chromedp.WaitVisible(".nav-item"), chromedp.Click("#me"),
		chromedp.WaitVisible(`[data-user="`+user+`"]`), chromedp.Click(`[data-user="`+user+`"]`), sees(`document.querySelector("#me b").textContent.includes("(")`))
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// sees waits until the page shows what a condition says.
func sees(condition string) chromedp.Action[chromedp.Void] {
	return chromedp.Poll[chromedp.Void](condition, chromedp.WithPollingTimeout(patience))
}

// stat is a condition on a line of the demo's panel.
func stat(label, value string) chromedp.Action[chromedp.Void] {
	return sees(`[...document.querySelectorAll("#panel .stat")].some((s) => s.innerText.includes("` + label + `") && s.innerText.includes("` + value + `"))`)
}

// The first minute: one command, a page, a click. The counter goes to 1, the card changes by itself, the run goes on; and Ctrl-C leaves
// nothing behind.
func TestDevFirstMinute(t *testing.T) {
	t.Parallel()
	w := stranger(t)
	tmp := shortTemp(t)
	d := try(t, w, tmp, "--listen", "127.0.0.1:0")
	page := tab(t, d.slack, "U0ALICE")
	err := chromedp.Do(page,
		stat("Effects at the tool", "0"),
		chromedp.WaitVisible("#log .btn.primary"), chromedp.Click("#log .btn.primary"),
		chromedp.WaitVisible("dialog[open] button[value=yes]"), stat("Effects at the tool", "0"), // high risk: asked first
		chromedp.Click("dialog[open] button[value=yes]"),
		stat("Effects at the tool", "1"),
		sees(`document.querySelector("#log").innerText.includes("Done") && !document.querySelector("#log .btn.primary")`),
		stat("run_", "resumed"), stat("Requests it received", "1"),
	)
	if err != nil {
		text, _ := chromedp.Run(page, chromedp.Evaluate[string](`document.body.innerText`))
		t.Fatalf("%v\nthe page:\n%s\nthe log:\n%s", err, text, d.log)
	}
	for _, path := range []string{"/docs", "/openapi.json", "/metrics", "/healthz", "/readyz"} {
		if status := fetch(w, w.base+path); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	var list struct{ Approvals []approvals.View }
	if status, wrong := w.ask(http.MethodGet, "/v1/approvals", nil, &list); status != http.StatusOK || len(list.Approvals) != 1 || list.Approvals[0].Status != approvals.Completed {
		t.Errorf("the banner's key: %d %+v %+v", status, wrong, list)
	}
	servers := servers(t, tmp)
	if len(servers) == 0 {
		t.Error("no Postgres of it was found: its end can't be checked")
	}
	w.within(20*time.Second, "Ctrl-C", func() {
		d.signal(syscall.SIGINT)
		if code := d.end(); code != 0 {
			t.Errorf("exit code %d: %s", code, d.log)
		}
	})
	for _, pid := range servers {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("Postgres process %d is still there", pid)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// servers are the processes whose command line or working folder is in a folder: the private Postgres' own.
func servers(t *testing.T, dir string) (pids []int) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(found) == 0 {
		t.Skip("no /proc: processes can't be listed here")
	}
	for _, link := range found {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir+"/") {
			pids = append(pids, number(t, strings.Split(link, "/")[2]))
		}
	}
	return pids
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// --data keeps everything: what waits when dev ends can be decided after the next start, and runs once.
func TestDevKeepsItsData(t *testing.T) {
	t.Parallel()
	w := stranger(t)
	tmp := shortTemp(t)
	data := filepath.Join(tmp, "data")
	d := try(t, w, tmp, "--listen", "127.0.0.1:0", "--data", data)
	first, key := w.waiting(), d.key
	api := strings.TrimPrefix(w.base, "http://")
	d.signal(syscall.SIGINT)
	if code := d.end(); code != 0 {
		t.Fatalf("exit code %d: %s", code, d.log)
	}
	d = try(t, w, tmp, "--listen", api, "--data", data)
	if v := w.get(first.ApprovalID); v.Status != approvals.Pending || v.Digest != first.Digest {
		t.Fatalf("after the restart it is %s", v.Status)
	}
	if d.key != key {
		t.Error("a second start made a second key")
	}
	page := tab(t, d.slack, "U0ALICE")
	// Its card is there again, and the only one: a second start begins no second run.
	card := `[...document.querySelectorAll("#log .msg")].find((m) => m.innerText.includes("` + first.ApprovalID.String() + `"))`
	err := chromedp.Do(page, sees(card+`?.querySelector(".btn.primary")`), sees(card+`.querySelector(".btn.primary").click() === undefined`),
		chromedp.WaitVisible("dialog[open] button[value=yes]"), chromedp.Click("dialog[open] button[value=yes]"),
		sees(card+`.innerText.includes("Done")`), stat("Effects at the tool", "1"))
	if err != nil {
		text, _ := chromedp.Run(page, chromedp.Evaluate[string](`document.body.innerText`))
		t.Fatalf("%v\nthe page:\n%s\nthe log:\n%s", err, text, d.log)
	}
	if v := w.becomes(first.ApprovalID, approvals.Completed); v.Ledger.Attempts != 1 {
		t.Errorf("%d attempts", v.Ledger.Attempts)
	}
	var list struct{ Approvals []approvals.View }
	if status, wrong := w.ask(http.MethodGet, "/v1/approvals", nil, &list); status != http.StatusOK || len(list.Approvals) != 1 {
		t.Errorf("%d approvals of one run: %d %+v", len(list.Approvals), status, wrong)
	}
	quiet := func() {
		t.Helper()
		if log := d.log.String(); strings.Contains(log, "WARN") || strings.Contains(log, "ERROR") {
			t.Errorf("logged: %s", log)
		}
	}
	quiet() // a card that is posted again, since the Slack of before is gone, is no news
	// Killed, and started a third time: the counter stands where it stood.
	d.signal(syscall.SIGKILL)
	d.end()
	d = try(t, w, tmp, "--listen", api, "--data", data)
	page = tab(t, d.slack, "U0ALICE")
	if err := chromedp.Do(page, stat("Effects at the tool", "1"), stat("run_", "resumed")); err != nil {
		t.Errorf("the third start: %v", err)
	}
	quiet()
	d.signal(syscall.SIGTERM)
	if code := d.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, d.log)
	}
	if _, err := os.Stat(filepath.Join(data, "keyset.json")); err != nil {
		t.Error("the keyset was not kept")
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// waiting gives the one approval that the demo's agent made, once it is there.
func (w *world) waiting() (v approvals.View) {
	w.t.Helper()
	w.eventually("the demo's run waits", func() (string, bool) {
		var list struct{ Approvals []approvals.View }
		status, wrong := w.ask(http.MethodGet, "/v1/approvals?status=pending", nil, &list)
		if status != http.StatusOK {
			return wrong.Detail, false
		}
		if len(list.Approvals) > 0 {
			v = list.Approvals[0]
		}
		return "none", len(list.Approvals) == 1
	})
	return v
}
