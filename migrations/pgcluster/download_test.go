package pgcluster

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

func fakePrograms(major int) map[string]string {
	return map[string]string{
		"postgres": fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.1'\n", major),
		"initdb":   "#!/bin/sh\nexit 1\n",
		"pg_ctl":   "#!/bin/sh\nexit 1\n",
	}
}

// archive is a jar as the repository has it: a .txz in a zip.
func archive(t *testing.T, programs map[string]string) []byte {
	t.Helper()
	var txz, jar bytes.Buffer
	xzw, err := xz.NewWriter(&txz)
	if err != nil {
		t.Fatal(err)
	}
	tw := tar.NewWriter(xzw)
	for name, text := range programs {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/" + name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), xzw.Close()); err != nil {
		t.Fatal(err)
	}
	zw := zip.NewWriter(&jar)
	f, err := zw.Create("postgres.txz")
	if err == nil {
		_, err = f.Write(txz.Bytes())
	}
	if err := errors.Join(err, zw.Close()); err != nil {
		t.Fatal(err)
	}
	return jar.Bytes()
}

// repositoryOf serves one archive; sum is what it says the checksum is.
func repositoryOf(t *testing.T, jar []byte, sum string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, string(downloadVersion)):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".jar"):
			_, _ = w.Write(jar)
		case strings.HasSuffix(r.URL.Path, ".jar.sha256") && sum != "":
			_, _ = w.Write([]byte(sum))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestDownload(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins are shell scripts")
	}
	good := archive(t, fakePrograms(17))
	sum := sha256.Sum256(good)
	right := hex.EncodeToString(sum[:])
	useless := archive(t, map[string]string{"readme": "nothing here"})
	uselessSum := sha256.Sum256(useless)
	for _, c := range []struct {
		name, upstream, says string
	}{
		{"whole", repositoryOf(t, good, right), ""},
		{"wrong checksum", repositoryOf(t, good, strings.Repeat("0", 64)), "checksums do not match"},
		{"no checksum", repositoryOf(t, good, ""), "there is no PostgreSQL"},
		{"not what it should be", repositoryOf(t, useless, hex.EncodeToString(uselessSum[:])), "does not run here"},
		{"nothing there", "http://127.0.0.1:1", "connect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			dir := filepath.Join(parent, "postgresql-17")
			var calls int
			var last, total int64
			got, err := download(t.Context(), c.upstream, dir, func(done, size int64) {
				if done < last {
					t.Errorf("progress went back from %d to %d", last, done)
				}
				calls, last, total = calls+1, done, size
			})
			if c.says == "" {
				if err != nil || got != filepath.Join(dir, "bin") {
					t.Fatalf("%s, %v", got, err)
				}
				if in, err := probe(got); err != nil || in.major != 17 {
					t.Errorf("what came: PostgreSQL %d, %v", in.major, err)
				}
				if calls < 2 || last != int64(len(good)) || total != last {
					t.Errorf("progress: %d calls, %d of %d; want %d", calls, last, total, len(good))
				}
			} else if !errors.Is(err, ErrDownload) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "install") {
				t.Errorf("got %v; want ErrDownload that says %q and what to install", err, c.says)
			}
			left, err := os.ReadDir(parent)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range left {
				if c.says != "" || e.Name() != "postgresql-17" {
					t.Errorf("left behind: %s", e.Name())
				}
			}
		})
	}
}

func TestDownloadIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done() // never answers
	}))
	t.Cleanup(srv.Close)
	go func() {
		<-asked
		cancel()
	}()
	if _, err := download(ctx, srv.URL, filepath.Join(t.TempDir(), "pg"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestRepository(t *testing.T) {
	t.Parallel()
	got, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(got); err != nil || u.Scheme != "https" || u.Host == "" {
		t.Errorf("repository %q, %v: not an https address", got, err)
	}
}

// Only the library knows the relay's path: it is no proxy for other programs.
func TestRelayIsPrivate(t *testing.T) {
	t.Parallel()
	r, err := newRelay(t.Context(), repositoryOf(t, []byte("jar"), "sum"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	base := strings.TrimSuffix(r.url, r.secret)
	for target, want := range map[string]int{
		base + "/" + string(downloadVersion) + ".jar":  http.StatusNotFound,
		r.url + "/" + string(downloadVersion) + ".jar": http.StatusOK,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", strings.TrimPrefix(target, base), resp.Status, want)
		}
	}
}
