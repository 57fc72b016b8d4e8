package proof

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"
)

// proxies stand before Postgres, Redis and the tools, and reset connections.
type proxies struct {
	w    *world
	all  []*toxiproxy.Proxy
	cuts atomic.Int64
	stop context.CancelFunc
	done sync.WaitGroup // the bridge

	cutting sync.WaitGroup
	closers []func()
	bridges sync.WaitGroup
}

// before puts proxies before everything that the product's parts connect to. The test's own connections go around them.
func (x *proxies) before(w *world) {
	x.w = w
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	place := func(name, upstream string) string {
		p := toxiproxy.NewProxy(server, name, "127.0.0.1:0", upstream)
		w.must(p.Start())
		x.all = append(x.all, p)
		return p.Listen
	}
	cfg, err := pgx.ParseConfig(w.dsn)
	w.must(err)
	network, to := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	if network == "unix" {
		to = x.bridge(to)
	}
	host, port, err := net.SplitHostPort(place("postgres", to))
	w.must(err)
	dsn := url.URL{Scheme: "postgres", Host: net.JoinHostPort(host, port), Path: "/" + cfg.Database, User: url.UserPassword(cfg.User, cfg.Password), RawQuery: "sslmode=disable"}
	if cfg.Password == "" {
		dsn.User = url.User(cfg.User)
	}
	w.processDSN = dsn.String()
	w.processRedis = "redis://" + place("redis", w.redis.Addr()) + "/0"
	w.toolURL = "http://" + place("tool", strings.TrimPrefix(w.sinkURL, "http://"))
}

// bridge gives a TCP address for a Unix socket, which is where the tests' own Postgres listens: toxiproxy speaks TCP only.
func (x *proxies) bridge(socket string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	x.w.must(err)
	x.closers = append(x.closers, func() { _ = l.Close() })
	x.done.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			x.bridges.Go(func() { join(in, socket) })
		}
	})
	return l.Addr().String()
}

// join copies both ways until either end is gone.
func join(in net.Conn, socket string) {
	defer func() { _ = in.Close() }()
	out, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	ends := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1]) // a broken connection is what this is for
			ends <- struct{}{}
		}()
	}
	<-ends
	_ = in.Close()
	_ = out.Close()
	<-ends
}

// pace is how long it is on average from one cut to the next. A connection to Postgres is dear to make (each statement is prepared):
// cut more often, hardly one lives long enough to do anything, and nothing is tortured.
var pace = map[string]time.Duration{"postgres": 2 * time.Second, "redis": time.Second, "tool": 200 * time.Millisecond}

// begin cuts connections, now here and now there, in both directions: a request, or an answer, of a commit too, is lost.
func (x *proxies) begin(seed uint64) {
	ctx, stop := context.WithCancel(x.w.ctx)
	x.stop = stop
	for i, p := range x.all {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		pace := pace[p.Name]
		x.cutting.Go(func() {
			for x.rest(ctx, pace/2+time.Duration(r.Int64N(int64(pace)))) {
				direction := []string{"upstream", "downstream"}[r.IntN(2)]
				cut := fmt.Sprintf(`{"name": "cut", "type": "reset_peer", "stream": %q, "toxicity": 0.2, "attributes": {"timeout": 0}}`, direction)
				if _, err := p.Toxics.AddToxicJson(strings.NewReader(cut)); err != nil {
					x.w.t.Errorf("cut %s: %v", p.Name, err)
					return
				}
				x.cuts.Add(1)
				x.rest(ctx, 20*time.Millisecond)
				if err := p.Toxics.RemoveToxic(context.WithoutCancel(ctx), "cut"); err != nil {
					x.w.t.Errorf("mend %s: %v", p.Name, err)
					return
				}
			}
		})
	}
}

func (x *proxies) rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// mend ends the cutting: what follows must come to its end.
func (x *proxies) mend() {
	x.stop()
	x.cutting.Wait()
}

func (x *proxies) close() {
	for _, p := range x.all {
		p.Stop()
	}
	for _, c := range x.closers {
		c()
	}
	x.done.Wait()
	x.bridges.Wait()
}
