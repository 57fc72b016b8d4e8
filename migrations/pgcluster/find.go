package pgcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// An install is one PostgreSQL on this machine.
type install struct {
	dir     string // holds postgres and initdb
	major   int
	version string // `postgres --version`, whole
}

// Find returns the folder that holds the binaries of a usable PostgreSQL
// (MinMajor or later): the one on PATH, else the newest one in the places where
// distributions, Homebrew, Postgres.app and Download put it. Where there is
// none the error is ErrNoBinaries and says what to install.
func Find() (string, error) {
	in, err := find(0)
	return in.dir, err
}

// find returns the preferred install, of the given major version unless that is 0.
func find(major int) (install, error) {
	var seen []install
	for _, dir := range candidates() {
		in, err := probe(dir)
		if err != nil {
			continue
		}
		seen = append(seen, in)
	}
	return choose(seen, major)
}

// choose takes the first of the candidates, in their order, that will do.
func choose(seen []install, major int) (install, error) {
	for _, in := range seen {
		if in.major == major || major == 0 && in.major >= MinMajor {
			return in, nil
		}
	}
	switch {
	case major != 0:
		return install{}, fmt.Errorf("%w: it was written by PostgreSQL %d, whose programs are not installed here", ErrVersion, major)
	case len(seen) > 0:
		return install{}, fmt.Errorf("%w: PostgreSQL %d in %s is too old, %d or later is needed; %s",
			ErrNoBinaries, seen[0].major, seen[0].dir, MinMajor, advice())
	}
	return install{}, fmt.Errorf("%w: %s", ErrNoBinaries, advice())
}

func advice() string {
	switch runtime.GOOS {
	case "darwin":
		return "install it with `brew install postgresql@17`, or Postgres.app; or name a server with --database-url"
	case "linux":
		return "install it with `apt-get install postgresql` (Debian, Ubuntu) or `dnf install postgresql-server` (Fedora); or name a server with --database-url"
	}
	return fmt.Sprintf("install PostgreSQL %d or later and put its programs on PATH; or name a server with --database-url", MinMajor)
}

// candidates lists the folders to look in: PATH's, then the others with the
// highest version in their name first.
func candidates() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",     // Debian, Ubuntu
		"/usr/libexec/postgresql*/bin",  // Alpine
		"/usr/lib/postgresql*/bin",      // Alpine, SUSE
		"/usr/pgsql-*/bin",              // PGDG on Fedora and RHEL
		"/usr/local/pgsql/bin",          // from source
		"/opt/homebrew/opt/postgresql*", // Homebrew; bin is added below
		"/usr/local/opt/postgresql*",
		"/home/linuxbrew/.linuxbrew/opt/postgresql*",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		matches, _ := filepath.Glob(pattern) // the only error is a bad pattern
		for _, m := range matches {
			if filepath.Base(m) != "bin" {
				m = filepath.Join(m, "bin")
			}
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(numberIn(b), numberIn(a)) })
	dirs = append(dirs, found...)
	if cache, err := CacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(downloadDir(cache), "bin"))
	}
	seen := make(map[string]bool, len(dirs))
	return slices.DeleteFunc(dirs, func(d string) bool {
		again := seen[d]
		seen[d] = true
		return again
	})
}

var (
	digits        = regexp.MustCompile(`\d+`)
	versionOutput = regexp.MustCompile(`PostgreSQL\) (\d+)`)
)

// numberIn is the last number in a path, 0 if there is none.
func numberIn(path string) int {
	all := digits.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	n, err := strconv.Atoi(all[len(all)-1])
	if err != nil {
		return 0
	}
	return n
}

// probe asks a folder's postgres for its version.
func probe(dir string) (install, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return install{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := version(ctx, filepath.Join(dir, "postgres"))
	if err != nil {
		return install{}, err
	}
	m := versionOutput.FindSubmatch(out)
	if m == nil {
		return install{}, errors.New("postgres --version: unknown answer")
	}
	major, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return install{}, err
	}
	return install{dir: dir, major: major, version: string(out)}, nil
}

// version runs a program that may have been unpacked a moment ago: a fork in
// flight then still has it open for writing, and for that long it can't be run.
func version(ctx context.Context, program string) ([]byte, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := exec.CommandContext(ctx, program, "--version").Output()
		if !errors.Is(err, syscall.ETXTBSY) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// CacheDir is where initialised clusters and downloaded binaries are kept:
// holdpoint in the user's cache folder. For root it is /var/cache/holdpoint,
// since the user that the server then runs as can't enter root's home.
func CacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/holdpoint", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w", err)
	}
	return filepath.Join(dir, "holdpoint"), nil
}
