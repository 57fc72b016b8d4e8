package proof

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdpoint/holdpoint/approvals"
)

// The rows of the matrix that are no point in a process: an answer that gets lost on its way.

// cutter stands before Postgres. Armed, it lets a COMMIT through and breaks the connection instead of handing on the answer.
type cutter struct {
	skip atomic.Int64 // commits to let through first; negative: not armed
	cuts atomic.Int64
	all  sync.WaitGroup
}

// arm cuts the answer to one commit, after n others.
func (c *cutter) arm(n int) { c.skip.Store(int64(n)) }

// before puts the cutter between the product and Postgres.
func (c *cutter) before(w *world) {
	c.skip.Store(-1)
	cfg, err := pgx.ParseConfig(w.dsn)
	w.must(err)
	network, to := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(w.ctx))
	w.t.Cleanup(func() {
		stop()
		_ = l.Close()
		c.all.Wait()
	})
	c.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(ctx, network, to)
			if err != nil {
				_ = in.Close()
				continue
			}
			end := sync.OnceFunc(func() { _, _ = in.Close(), out.Close() })
			context.AfterFunc(ctx, end)
			c.all.Go(func() { defer end(); _, _ = io.Copy(out, in) })
			c.all.Go(func() { defer end(); c.answers(in, out) })
		}
	})
	dsn := url.URL{Scheme: "postgres", Host: l.Addr().String(), Path: "/" + cfg.Database, User: url.UserPassword(cfg.User, cfg.Password), RawQuery: "sslmode=disable"}
	w.processDSN = dsn.String()
}

// committed is the tag of the server's CommandComplete.
var committed = []byte("COMMIT\x00")

func (c *cutter) answers(to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if bytes.Contains(buf[:n], committed) && c.skip.Load() >= 0 && c.skip.Add(-1) < 0 {
			c.cuts.Add(1)
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// "click: COMMIT sent, answer lost": the decision is read back by its id, and the click is answered with it (I17). The same of an
// intake.
func TestLostAnswerToACommit(t *testing.T) {
	t.Parallel()
	for class, tool := range classes {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			c := &cutter{}
			w := newWorld(t, c.before)
			w.serve()
			one := &call{op: "lost-" + class, tool: tool, plan: "ok"}
			c.arm(0)
			if status, err := w.submit(one); err != nil || status != http.StatusCreated && status != http.StatusOK || c.cuts.Load() != 1 {
				t.Fatalf("intake: %d %v, %d cuts", status, err, c.cuts.Load())
			}
			ts := w.posted(one.id)
			c.arm(0)
			if _, err := w.approve("U0ALICE", ts); err != nil || c.cuts.Load() != 2 {
				t.Fatalf("click: %v, %d cuts", err, c.cuts.Load())
			}
			if n := value[int](w, `SELECT count(*) FROM approval_decision`); n != 1 || w.status(one.id) != approvals.Approved {
				t.Errorf("%d votes, %s", n, w.status(one.id))
			}
			if n := value[int](w, `SELECT count(*) FROM audit_event WHERE kind = 'decision.refused'`); n != 0 {
				t.Error("it was run again, and met itself")
			}
			w.work()
			w.becomes(one.id, approvals.Completed)
			w.settled()
			w.check()
		})
	}
}

// A worker loses the answer to its first, second, third … commit: claims, outcomes, relays and deliveries among them.
func TestLostAnswersInAWorker(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := &cutter{}
			w := newWorld(t, c.before)
			w.repeats = true // the record of a delivery may be lost, too
			all := w.quietly(1)
			c.arm(n)
			w.work()
			for _, one := range all {
				w.becomes(one.id, approvals.Completed, approvals.Uncertain)
			}
			if c.cuts.Load() != 1 {
				t.Fatal("no answer was lost: nothing was proven")
			}
			for _, one := range all {
				if w.status(one.id) == approvals.Uncertain { // an opaque one whose claim's answer was lost
					w.attended()
					w.reconcile(one)
				}
			}
			w.settled()
			w.check()
		})
	}
}

// "Slack post → message ts saved": the worker is killed when Slack has the card and nobody knows where. The next one finds it by its
// mark and posts no second.
func TestKilledBetweenPostAndPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to, err := url.Parse(w.sim.URL())
	w.must(err)
	taken, release := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(taken) })
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if strings.HasSuffix(r.Request.URL.Path, "chat.postMessage") {
				first()
				<-release
			}
			return nil
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	server := &http.Server{Handler: proxy}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		close(release)
		_ = server.Close()
		serving.Wait()
	})
	w.front()
	c := &call{op: "posted", tool: "send", plan: "ok"}
	w.propose(c)
	p := w.work("HOLDPOINT_SLACK_API_URL=http://" + l.Addr().String() + "/api/")
	select {
	case <-taken:
	case <-w.ctx.Done():
		t.Fatal("nothing was posted")
	}
	p.kill()
	if n := len(w.sim.Messages(room)); n != 1 || w.place(c.id) != "" {
		t.Fatalf("%d messages, the place is %q: nothing would be proven", n, w.place(c.id))
	}
	w.work()
	w.eventually("the card is found", func() (string, bool) { return "", w.place(c.id) != "" })
	if n := len(w.sim.Messages(room)); n != 1 {
		t.Errorf("%d messages", n)
	}
	_, err = w.approve("U0ALICE", w.place(c.id))
	w.must(err)
	w.becomes(c.id, approvals.Completed)
	w.settled()
	w.check()
}
