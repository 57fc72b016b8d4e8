package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
)

// Agent is one agent of a tenant: the tools it may propose and its versions.
type Agent struct {
	Name     string
	Tools    []string // as listed
	Versions map[string]*Version
}

// Allows reports whether the agent may propose the tool.
func (a *Agent) Allows(tool string) bool { return contains(a.Tools, tool) }

// Version gives the registered application version.
func (a *Agent) Version(appVersion string) (*Version, bool) {
	v, ok := a.Versions[appVersion]
	return v, ok
}

// Blocked is what becomes of a run when one of its calls expired or was revoked.
type Blocked string

// The settings of `blocked`.
const (
	Withhold  Blocked = "withhold" // the state stays here (the default)
	RejectRun Blocked = "reject"   // the run goes on with that call rejected
)

// Version is one release of an agent's application.
type Version struct {
	Name    string
	Open    bool // takes new requests; a closed one still decides, executes and resumes
	States  []State
	Resume  Resume
	Blocked Blocked
}

// State is a format of paused states that a release reads.
type State struct {
	Format  string
	SDK     string   // a constraint such as ">=0.19.3"; empty: any
	Schemas []string // empty: all that this service reads

	constraint constraint
}

// Resume is how the run is told: a webhook, or the agent pulls.
type Resume struct {
	Pull   bool
	URL    string
	Secret Ref // signs the webhook
}

// The formats of paused states.
const (
	FormatOpenAIPython = "openai-agents-python"
	FormatOpenAIJS     = "openai-agents-js"
	FormatOpaque       = "opaque" // the state is kept, not read
	FormatNone         = "none"   // the agent keeps its state itself
)

// ErrVersion is a state that a version doesn't take (version_unsupported,
// version_unregistered). Its text names formats and versions only.
var ErrVersion = errors.New("state not taken by this version")

// AcceptsState checks a state's format, the SDK that wrote it and its schema. An SDK
// version that is missing or unreadable fails a constraint. schema is empty for opaque
// and none. Errors wrap [ErrVersion].
func (v *Version) AcceptsState(format, sdkVersion, schema string) error {
	for _, s := range v.States {
		if s.Format != format {
			continue
		}
		if s.SDK != "" {
			got, err := parseSDK(sdkVersion)
			if err != nil {
				return fmt.Errorf("%w: %s takes %s from SDK %s; the state's SDK version is missing or unreadable", ErrVersion, v.Name, format, s.SDK)
			}
			if !s.constraint.allows(got) {
				return fmt.Errorf("%w: %s takes %s from SDK %s", ErrVersion, v.Name, format, s.SDK)
			}
		}
		if len(s.Schemas) > 0 && !contains(s.Schemas, schema) {
			return fmt.Errorf("%w: %s takes %s with listed schemas only", ErrVersion, v.Name, format)
		}
		return nil
	}
	return fmt.Errorf("%w: %s doesn't list this format", ErrVersion, v.Name)
}

func (r *reader) agent(name, path string, n *node, known names, egress []netip.Prefix, refs *references) *Agent {
	o := r.object(n, path, "tools", "versions")
	a := &Agent{Name: name, Versions: map[string]*Version{}}
	o.need("tools")
	a.Tools = o.texts("tools", func(s string) string {
		if !contains(known.tools, s) {
			return fmt.Sprintf("%q isn't configured under tools%s", s, meant(s, known.tools))
		}
		return ""
	})
	o.need("versions")
	versions := o.entries("versions", versionName, "letters, digits and _ . / : + @ -, at most 128")
	if len(versions) == 0 && o.has("versions") {
		o.fault("versions", "registers no version")
	}
	for _, f := range versions {
		a.Versions[f.key] = r.version(f.key, o.at("versions")+"."+f.key, f.value, egress, refs)
	}
	return a
}

func (r *reader) version(name, path string, n *node, egress []netip.Prefix, refs *references) *Version {
	o := r.object(n, path, "intake", "states", "resume", "blocked")
	v := &Version{
		Name:    name,
		Open:    o.choice("intake", "open", "open", "closed") == "open",
		Blocked: Blocked(o.choice("blocked", string(Withhold), string(Withhold), string(RejectRun))),
	}
	if o.need("states") != nil && len(o.list("states")) == 0 {
		o.fault("states", "lists no format")
	}
	for i, item := range o.list("states") {
		s := r.state(item, fmt.Sprintf("%s[%d]", o.at("states"), i))
		for _, have := range v.States {
			if have.Format == s.Format {
				r.fault(item, fmt.Sprintf("%s[%d].format", o.at("states"), i), "format %q is listed twice", s.Format)
			}
		}
		v.States = append(v.States, s)
	}
	resume := o.need("resume")
	switch {
	case resume == nil:
	case resume.kind == textNode && resume.text == "pull":
		v.Resume.Pull = true
	case resume.kind == textNode:
		o.fault("resume", "must be `pull`, or a mapping with url and secret")
	default:
		s := r.object(resume, o.at("resume"), "url", "secret")
		if v.Resume.URL = s.needText("url"); v.Resume.URL != "" {
			r.url(s, "url", v.Resume.URL, nil, urlUse{egress: egress, fixed: true})
		}
		if secret := s.need("secret"); secret != nil {
			v.Resume.Secret = r.ref(secret, s.at("secret"), false, refs)
		}
	}
	return v
}

var schemaVersion = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*$`)

func (r *reader) state(n *node, path string) State {
	o := r.object(n, path, "format", "sdk", "schemas")
	s := State{}
	if o.need("format") != nil {
		s.Format = o.choice("format", "", FormatOpenAIPython, FormatOpenAIJS, FormatOpaque, FormatNone)
	}
	if s.Format == FormatNone {
		o.unfit("doesn't apply to `none`: there is no state", "sdk")
	}
	if s.Format == FormatNone || s.Format == FormatOpaque {
		o.unfit("can't be checked: this format isn't read", "schemas")
	}
	if s.SDK = o.text("sdk"); s.SDK != "" {
		var err error
		if s.constraint, err = parseConstraint(s.SDK); err != nil {
			o.fault("sdk", "must be a constraint such as \">=0.19.3\" or \">=0.19.3, <0.21\"")
		}
	}
	for i, item := range o.list("schemas") {
		// 1.13 without quotes is a number in YAML; its digits are what is meant.
		if item.kind != textNode && item.kind != numberNode || !schemaVersion.MatchString(item.text) {
			r.fault(item, fmt.Sprintf("%s[%d]", o.at("schemas"), i), "must be a schema version such as \"1.13\"")
			continue
		}
		s.Schemas = append(s.Schemas, item.text)
	}
	return s
}
