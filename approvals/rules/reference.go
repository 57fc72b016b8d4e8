package rules

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Scheme says where a referenced value is kept.
type Scheme string

// The schemes of a reference. A literal is the text itself, for settings that needn't
// be secret.
const (
	SecretScheme  Scheme = "secret" // $HOLDPOINT_SECRETS/<tenant>/NAME
	EnvScheme     Scheme = "env"    // while there is one tenant
	FileScheme    Scheme = "file"   // while there is one tenant
	LiteralScheme Scheme = "literal"
)

// Ref is a value named by reference, or a literal.
type Ref struct {
	Scheme Scheme
	Name   string // the secret's, variable's or file's name; the literal's text
}

// String gives the reference as the configuration writes it.
func (r Ref) String() string {
	if r.Scheme == LiteralScheme {
		return r.Name
	}
	return string(r.Scheme) + ":" + r.Name
}

var (
	secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// references collects those that depend on there being one tenant.
type references struct {
	sole  bool
	local []string
}

// ref reads a reference. Faults never repeat the value: it may be a pasted secret.
func (r *reader) ref(n *node, path string, literal bool, refs *references) Ref {
	s, ok := r.text(n, path)
	if !ok {
		return Ref{}
	}
	scheme, name, found := strings.Cut(s, ":")
	switch ref := (Ref{Scheme: Scheme(scheme), Name: name}); {
	case found && ref.Scheme == SecretScheme:
		if !secretName.MatchString(name) {
			r.fault(n, path, "after secret: stands a name of letters, digits, dots, - and _")
		}
		return ref
	case found && ref.Scheme == EnvScheme:
		upper := strings.ToUpper(name)
		switch {
		case !envName.MatchString(name):
			r.fault(n, path, "after env: stands the name of an environment variable")
		case strings.HasPrefix(upper, "HOLDPOINT_"), strings.HasPrefix(upper, "SLACK_"):
			r.fault(n, path, "HOLDPOINT_* and SLACK_* are this service's own and can't be referred to")
		}
		r.soleOnly(n, path, ref, refs)
		return ref
	case found && ref.Scheme == FileScheme:
		if !filepath.IsAbs(name) || filepath.Clean(name) != name || forbiddenFile(name) {
			r.fault(n, path, "after file: stands the absolute path of a plain file")
		}
		r.soleOnly(n, path, ref, refs)
		return ref
	case !literal:
		r.fault(n, path, "must be a reference: secret:NAME, env:NAME or file:PATH; the value itself doesn't belong here")
		return Ref{}
	}
	return Ref{Scheme: LiteralScheme, Name: s}
}

func (r *reader) soleOnly(n *node, path string, ref Ref, refs *references) {
	if !refs.sole {
		r.fault(n, path, "%s: works while there is one tenant only; use secret:NAME", ref.Scheme)
	}
	if !contains(refs.local, ref.String()) {
		refs.local = append(refs.local, ref.String())
	}
}

// forbiddenFile guards the files through which a process's own environment shows.
func forbiddenFile(path string) bool {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// ErrReference is a reference that can't be resolved. Its text names the reference,
// never a value.
var ErrReference = errors.New("reference can't be resolved")

// RefResolver gives the value behind a reference at the moment of its use.
type RefResolver interface {
	Resolve(tenant string, ref Ref) (string, error)
}

// Secrets resolves references from a folder, the environment and files.
type Secrets struct {
	Dir       string                      // $HOLDPOINT_SECRETS; empty: no folder
	Sole      bool                        // exactly one tenant exists, so env: and file: work
	LookupEnv func(string) (string, bool) // nil: the process's environment
}

const maxSecretBytes = 64 << 10

// Resolve reads the value anew each time, so that a rotated secret counts at once. One
// line break at the end is not part of it. Errors wrap [ErrReference].
func (s Secrets) Resolve(tenant string, ref Ref) (string, error) {
	fail := func(why string) (string, error) {
		return "", fmt.Errorf("%w: %s:%s of tenant %s: %s", ErrReference, ref.Scheme, ref.Name, tenant, why)
	}
	var value string
	switch ref.Scheme {
	case LiteralScheme:
		return ref.Name, nil
	case SecretScheme:
		if s.Dir == "" {
			return fail("HOLDPOINT_SECRETS isn't set")
		}
		if !tenantName.MatchString(tenant) || !secretName.MatchString(ref.Name) {
			return fail("not a name")
		}
		// A Root can't be left by a link: one tenant's folder never shows another's.
		root, err := os.OpenRoot(filepath.Join(s.Dir, tenant))
		if err != nil {
			return fail("the tenant's folder can't be opened")
		}
		defer func() { _ = root.Close() }()
		file, err := root.Open(ref.Name)
		if err != nil {
			return fail("the file can't be opened")
		}
		data, err := readSecret(file)
		if err != nil {
			return fail(err.Error())
		}
		value = data
	case EnvScheme:
		upper := strings.ToUpper(ref.Name)
		if !s.Sole || strings.HasPrefix(upper, "HOLDPOINT_") || strings.HasPrefix(upper, "SLACK_") {
			return fail("not allowed here")
		}
		lookup := s.LookupEnv
		if lookup == nil {
			lookup = os.LookupEnv
		}
		v, ok := lookup(ref.Name)
		if !ok {
			return fail("the variable isn't set")
		}
		value = v
	case FileScheme:
		target, err := filepath.EvalSymlinks(ref.Name)
		if !s.Sole || !filepath.IsAbs(ref.Name) || err == nil && forbiddenFile(target) {
			return fail("not allowed here")
		}
		if err != nil {
			return fail("the file can't be opened")
		}
		file, err := os.Open(target)
		if err != nil {
			return fail("the file can't be opened")
		}
		if value, err = readSecret(file); err != nil {
			return fail(err.Error())
		}
	default:
		return fail("unknown scheme")
	}
	value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	if value == "" {
		return fail("it is empty")
	}
	return value, nil
}

func readSecret(file *os.File) (string, error) {
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.New("not a plain file")
	}
	data, err := io.ReadAll(io.LimitReader(file, maxSecretBytes+1))
	switch {
	case err != nil:
		return "", errors.New("the file can't be read")
	case len(data) > maxSecretBytes:
		return "", fmt.Errorf("larger than %d bytes", maxSecretBytes)
	}
	return string(data), nil
}
