package pgcluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// downloadVersion is what Download fetches.
const downloadVersion = embeddedpostgres.V17

func downloadDir(cache string) string {
	major, _, _ := strings.Cut(string(downloadVersion), ".")
	return filepath.Join(cache, "postgresql-"+major)
}

// Download fetches PostgreSQL's binaries for this machine into CacheDir, checks
// them and returns their folder, where Find finds them from then on. About
// 20 MB; progress, which may be nil, is told the bytes so far and the whole
// size (-1 while unknown). Every failure is an ErrDownload with a sentence that
// says what to do instead. Nothing half-made is left.
//
// The library github.com/fergusstrange/embedded-postgres knows where the
// binaries are and how to unpack them.
func Download(ctx context.Context, progress func(done, total int64)) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDownload, err)
	}
	upstream, err := repository()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDownload, err)
	}
	return download(ctx, upstream, downloadDir(cache), progress)
}

// repository is the address that the library would use by itself; it has no
// accessor for it. TestRepository holds this to the library's version.
func repository() (string, error) {
	field := reflect.ValueOf(embeddedpostgres.DefaultConfig()).FieldByName("binaryRepositoryURL")
	if !field.IsValid() || field.Kind() != reflect.String || field.Len() == 0 {
		return "", errors.New("the library does not tell its repository")
	}
	return field.String(), nil
}

func download(ctx context.Context, upstream, dir string, progress func(done, total int64)) (_ string, err error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("%w: %w; instead, %s", ErrDownload, err, advice())
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the server's user runs what is in it
		return fail(err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".part-")
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	relay, err := newRelay(ctx, upstream, progress)
	if err != nil {
		return fail(err)
	}
	defer relay.close()
	free, err := freePort(ctx)
	if err != nil {
		return fail(err)
	}
	binaries := filepath.Join(work, "binaries")
	pg := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(downloadVersion).BinaryRepositoryURL(relay.url).Port(free).Logger(io.Discard).
		CachePath(filepath.Join(work, "archive")).BinariesPath(binaries).
		RuntimePath(filepath.Join(work, "runtime")).DataPath(filepath.Join(work, "data")))
	// The library can't fetch without starting. Its start fails where we are
	// root, after the unpacking, which is all that is wanted; probe decides.
	startErr := pg.Start()
	if startErr == nil {
		if err := pg.Stop(); err != nil {
			return fail(err)
		}
	}
	if err := relay.failure(); err != nil {
		return fail(err) // the library's own error would name the relay
	}
	if _, err := probe(filepath.Join(binaries, "bin")); err != nil {
		return fail(errors.Join(errors.New("what came does not run here"), err, startErr))
	}
	if err := os.Chmod(binaries, 0o755); err != nil { //nolint:gosec // as above
		return fail(err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(binaries, dir)); err != nil {
		return fail(err)
	}
	return filepath.Join(dir, "bin"), nil
}

func freePort(ctx context.Context) (uint32, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "localhost:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no TCP port")
	}
	return uint32(addr.Port), nil
}

// A relay stands between the library and its repository on loopback, for what
// the library lacks: cancellation, progress, the cause of a failure, and
// insisting on a checksum (it goes on without one).
type relay struct {
	ctx      context.Context //nolint:containedctx // of the one download that it serves
	upstream string
	secret   string // first part of the path: only the library knows it
	url      string
	progress func(done, total int64)
	client   *http.Client
	server   *http.Server

	mu  sync.Mutex
	err error
}

func newRelay(ctx context.Context, upstream string, progress func(done, total int64)) (*relay, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	r := &relay{ctx: ctx, upstream: strings.TrimSuffix(upstream, "/"), secret: "/" + rand.Text(), progress: progress, client: &http.Client{}}
	r.url = "http://" + l.Addr().String() + r.secret
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }() // ends with close
	return r, nil
}

func (r *relay) close() {
	_ = r.server.Close()
	r.client.CloseIdleConnections()
}

func (r *relay) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// ServeHTTP passes one GET on; the first failure is kept for failure.
func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path, ok := strings.CutPrefix(req.URL.Path, r.secret)
	if !ok || req.Method != http.MethodGet {
		http.NotFound(w, req)
		return
	}
	if err := r.pass(w, path); err != nil {
		r.mu.Lock()
		if r.err == nil {
			r.err = err
		}
		r.mu.Unlock()
		// Cut the answer, so that the library sees no complete one.
		panic(http.ErrAbortHandler)
	}
}

func (r *relay) pass(w http.ResponseWriter, path string) error {
	const sum = ".sha256"
	if !strings.HasSuffix(path, sum) {
		// No checksum, no archive.
		if err := r.get(path+sum, func(*http.Response) error { return nil }); err != nil {
			return err
		}
	}
	return r.get(path, func(resp *http.Response) error {
		if resp.ContentLength >= 0 {
			w.Header().Set("Content-Length", fmt.Sprint(resp.ContentLength))
		}
		report := r.progress
		if strings.HasSuffix(path, sum) {
			report = func(int64, int64) {}
		}
		report(0, resp.ContentLength)
		_, err := io.Copy(w, &counted{r: resp.Body, total: resp.ContentLength, report: report})
		return err
	})
}

func (r *relay) get(path string, use func(*http.Response) error) error {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, r.upstream+path, nil)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("there is no PostgreSQL %s for this kind of machine (%s: %s)", downloadVersion, req.URL.Host, resp.Status)
	}
	return use(resp)
}

// counted reports what is read through it.
type counted struct {
	r           io.Reader
	done, total int64
	report      func(done, total int64)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.done += int64(n)
	c.report(c.done, c.total)
	return n, err
}
