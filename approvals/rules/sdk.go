package rules

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// sdkVersion is a released version of an SDK, as npm (semver) and Python (PEP 440)
// write them: numbers, then perhaps a pre- or post-release.
type sdkVersion struct {
	release [4]int
	stage   int // see stages; 0 is the release itself
	number  int
}

func (v sdkVersion) pre() bool { return v.stage < 0 }

var stages = map[string]int{"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1, "": 0, "post": 1}

// Build metadata after + says nothing about order.
var sdkForm = regexp.MustCompile(`^v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})(?:[-.]?([a-z]+)[-.]?([0-9]{1,9})?)?(?:\+[0-9A-Za-z.-]+)?$`)

var errSDK = errors.New("not a version")

func parseSDK(s string) (sdkVersion, error) {
	m := sdkForm.FindStringSubmatch(s)
	if m == nil {
		return sdkVersion{}, errSDK
	}
	var v sdkVersion
	for i, part := range strings.Split(m[1], ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return sdkVersion{}, errSDK
		}
		v.release[i] = n
	}
	stage, ok := stages[m[2]]
	if !ok {
		return sdkVersion{}, errSDK // such as -canary: its place in the order isn't known
	}
	v.stage = stage
	if m[3] != "" {
		n, err := strconv.Atoi(m[3])
		if err != nil {
			return sdkVersion{}, errSDK
		}
		v.number = n
	}
	return v, nil
}

func (v sdkVersion) compare(w sdkVersion) int {
	a := append(v.release[:], v.stage, v.number)
	b := append(w.release[:], w.stage, w.number)
	for i := range a {
		switch {
		case a[i] < b[i]:
			return -1
		case a[i] > b[i]:
			return 1
		}
	}
	return 0
}

// constraint is a list of bounds that must all hold, such as ">=0.19.3, <0.21".
type constraint []bound

type bound struct {
	op string
	at sdkVersion
}

var boundForm = regexp.MustCompile(`^(>=|<=|==|!=|=|>|<)\s*([^\s<>=!]+)$`)

func parseConstraint(s string) (constraint, error) {
	var out constraint
	for _, part := range strings.Split(s, ",") {
		m := boundForm.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return nil, errSDK
		}
		at, err := parseSDK(m[2])
		if err != nil {
			return nil, err
		}
		out = append(out, bound{op: m[1], at: at})
	}
	return out, nil
}

// allows is false for a pre-release, unless a bound names one: as in npm and PEP 440,
// ">=0.19.3" doesn't mean 0.20.0rc1.
func (c constraint) allows(v sdkVersion) bool {
	named := false
	for _, b := range c {
		named = named || b.at.pre()
		order := v.compare(b.at)
		var ok bool
		switch b.op {
		case ">=":
			ok = order >= 0
		case "<=":
			ok = order <= 0
		case ">":
			ok = order > 0
		case "<":
			ok = order < 0
		case "!=":
			ok = order != 0
		default: // = and ==
			ok = order == 0
		}
		if !ok {
			return false
		}
	}
	return named || !v.pre()
}
