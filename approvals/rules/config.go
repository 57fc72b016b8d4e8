package rules

import (
	"fmt"
	"net/netip"
	"sort"
)

// File is one configuration file: its name, for errors, and its YAML.
type File struct {
	Name string
	Data []byte
}

// Config is a set of configuration files, compiled.
type Config struct {
	Tenants map[string]*Tenant

	places map[*Rule]*Problem // where each rule stands, for warnings
}

// Names lists the tenants, sorted.
func (c *Config) Names() []string { return sortedKeys(c.Tenants) }

const maxFileBytes = 4 << 20

// Parse compiles files that together are one configuration: each tenant stands in
// one file, `egress` in one, and covers every tenant of the set. `env:` and `file:`
// references are refused when the set has several tenants. The error joins every
// problem found, each a [*Problem].
func Parse(files []File) (*Config, error) {
	r := &reader{}
	type source struct {
		file string
		name string
		n    *node
		path string
	}
	var tenants []source
	var egress *node
	var prefixes []netip.Prefix
	for _, f := range files {
		r.file = f.Name
		if len(f.Data) > maxFileBytes {
			r.fault(nil, "", "is larger than %d bytes", maxFileBytes)
			continue
		}
		root, problems := parseYAML(f.Name, f.Data)
		r.problems = append(r.problems, problems...)
		if root == nil || len(problems) > 0 {
			continue
		}
		top := r.object(root, "", "egress", "tenants")
		if n := top.n.get("egress"); n != nil {
			if egress != nil {
				top.fault("egress", "stands in more than one file")
			} else {
				egress, prefixes = n, r.egress(n, "egress")
			}
		}
		all := top.n.get("tenants")
		if all == nil || !r.mapping(all, "tenants") {
			continue
		}
		for _, field := range all.fields {
			path := "tenants." + field.key
			if !tenantName.MatchString(field.key) {
				r.problems = append(r.problems, &Problem{File: f.Name, Line: field.line, Col: field.col, Path: path, Msg: "a tenant's name is letters, digits, - and _, at most 63"})
			}
			tenants = append(tenants, source{file: f.Name, name: field.key, n: field.value, path: path})
		}
	}
	if len(tenants) == 0 && len(r.problems) == 0 {
		r.file = "configuration"
		r.fault(nil, "tenants", "is required: there is no tenant")
	}
	config := &Config{Tenants: map[string]*Tenant{}}
	for _, s := range tenants {
		r.file = s.file
		if config.Tenants[s.name] != nil {
			r.fault(s.n, s.path, "is defined twice")
			continue
		}
		config.Tenants[s.name] = r.tenant(s.name, s.path, s.n, egress, prefixes, len(tenants) == 1)
	}
	r.sort(files)
	if err := r.err(); err != nil {
		return nil, err
	}
	config.places = r.places
	return config, nil
}

// Compile gives the tenant of a stored body ([Tenant.Body]), equal to the one that
// [Parse] gave. Whether `env:` and `file:` references are allowed now is for
// [Secrets] and for whoever applies a revision ([Tenant.LocalReferences]).
func Compile(tenant string, body []byte) (*Tenant, error) {
	r := &reader{file: fmt.Sprintf("stored configuration of %q", tenant)}
	root, err := parseJSON(body)
	if err != nil {
		return nil, &Problem{File: r.file, Msg: err.Error()}
	}
	if !tenantName.MatchString(tenant) {
		return nil, &Problem{File: r.file, Msg: "isn't a tenant's name"}
	}
	top := r.object(root, "", "egress", "tenant")
	var prefixes []netip.Prefix
	egress := top.n.get("egress")
	if egress != nil {
		prefixes = r.egress(egress, "egress")
	}
	var t *Tenant
	if n := top.need("tenant"); n != nil {
		t = r.tenant(tenant, "tenant", n, egress, prefixes, true)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return t, nil
}

// Private destinations that no setting opens: a cloud's metadata service lives at a
// link-local address, and the rest reach no host or too many.
var neverEgress = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8"),
}

func (r *reader) egress(n *node, path string) []netip.Prefix {
	o := r.object(n, path, "allow")
	var out []netip.Prefix
	for _, s := range o.texts("allow", func(s string) string {
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			return "must be a network such as 10.2.0.0/16"
		case p.Masked() != p:
			return fmt.Sprintf("has bits after its length; did you mean %s?", p.Masked())
		case p.Addr().Is4In6():
			return "must be written as an IPv4 network"
		case p.Bits() < 7 || p.Addr().Is4() && p.Bits() < 8:
			return "is too wide: name the networks that tools and agents live on"
		}
		for _, never := range neverEgress {
			if never.Overlaps(p) {
				return fmt.Sprintf("overlaps %s, which is never opened", never)
			}
		}
		return ""
	}) {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
