package pgcluster

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	t.Parallel()
	dir, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	in, err := probe(dir)
	if err != nil || in.major < MinMajor {
		t.Errorf("%s holds PostgreSQL %d, %v", dir, in.major, err)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	old, path, newest := install{dir: "/old", major: 13}, install{dir: "/path", major: 15}, install{dir: "/newest", major: 18}
	for _, c := range []struct {
		name  string
		seen  []install
		major int
		want  string
		err   error
		says  string
	}{
		{"the first that will do", []install{path, newest}, 0, "/path", nil, ""},
		{"too old ones are passed over", []install{old, newest}, 0, "/newest", nil, ""},
		{"the data's version", []install{path, newest}, 18, "/newest", nil, ""},
		{"an old version for old data", []install{newest, old}, 13, "/old", nil, ""},
		{"none", nil, 0, "", ErrNoBinaries, "install"},
		{"only too old", []install{old}, 0, "", ErrNoBinaries, "13 in /old is too old"},
		{"not the data's version", []install{path}, 17, "", ErrVersion, "PostgreSQL 17"},
	} {
		in, err := choose(c.seen, c.major)
		if in.dir != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, in.dir, err, c.want, c.err)
		}
		if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q does not say %q", c.name, err, c.says)
		}
	}
}

func TestCandidatesOrder(t *testing.T) {
	dir := t.TempDir()
	fakePostgres(t, dir, 16)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	got := candidates()
	if got[0] != dir {
		t.Errorf("PATH's is not the first: %v", got)
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(got))); len(sorted) != len(got) {
		t.Errorf("a folder is named twice: %v", got)
	}
	if found, err := Find(); err != nil || found != dir {
		t.Errorf("Find: %s, %v; want %s", found, err, dir)
	}
	for path, want := range map[string]int{"/usr/lib/postgresql/17/bin": 17, "/opt/homebrew/opt/postgresql@16/bin": 16, "/usr/local/pgsql/bin": 0} {
		if n := numberIn(path); n != want {
			t.Errorf("numberIn(%s) = %d, want %d", path, n, want)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := probe(dir); err == nil {
		t.Error("an empty folder is taken")
	}
	fakePostgres(t, dir, 16)
	if in, err := probe(dir); err != nil || in.major != 16 {
		t.Errorf("major %d, %v; want 16", in.major, err)
	}
	write(t, filepath.Join(dir, "postgres"), "#!/bin/sh\necho tea\n")
	if _, err := probe(dir); err == nil {
		t.Error("something else named postgres is taken")
	}
}

// fakePostgres is a folder as Find looks for one.
func fakePostgres(t *testing.T, dir string, major int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	for name, text := range fakePrograms(major) {
		write(t, filepath.Join(dir, name), text)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
