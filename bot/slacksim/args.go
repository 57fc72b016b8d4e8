package slacksim

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// bodyLimit is well above any accepted call: a 250 KB view is the largest.
const bodyLimit = 2 << 20

// args are a Web API call's arguments: a form, or a JSON object.
type args struct {
	form   url.Values
	object map[string]json.RawMessage
	token  string
}

// readArgs takes application/x-www-form-urlencoded (and a GET's query) and application/json, as Slack does.
func readArgs(r *http.Request) (args, *failure) {
	a := args{form: url.Values{}}
	if r.Method == http.MethodGet {
		a.form = r.URL.Query()
	} else {
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, bodyLimit))
		if err != nil {
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				return a, fail("request_too_large")
			}
			return a, fail("invalid_post_type")
		}
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch kind {
		case "application/json":
			if json.Unmarshal(body, &a.object) != nil || a.object == nil {
				return a, fail("invalid_json")
			}
		case "application/x-www-form-urlencoded", "":
			if a.form, err = url.ParseQuery(string(body)); err != nil {
				return a, fail("invalid_form_data")
			}
		default:
			return a, fail("invalid_post_type")
		}
	}
	a.token = a.form.Get("token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		a.token = bearer // a JSON body's own token is not looked at: Slack wants the header there
	}
	return a, nil
}

func (a args) has(name string) bool {
	if a.object != nil {
		v, ok := a.object[name]
		return ok && string(v) != "null"
	}
	return a.form.Has(name)
}

// str is an argument as text.
func (a args) str(name string) string {
	if a.object == nil {
		return a.form.Get(name)
	}
	raw := a.object[name]
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// raw is an argument that holds JSON: itself in a JSON body, its text in a form; JSON bodies may carry text too.
func (a args) raw(name string) []byte {
	return []byte(a.str(name))
}

func (a args) boolean(name string) bool {
	switch strings.ToLower(a.str(name)) {
	case "1", "true", "yes":
		return true
	}
	return false
}

// number is an integer argument between low and high; absent gives def, nonsense the nearer bound.
func (a args) number(name string, def, low, high int) int {
	v := a.str(name)
	if v == "" {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return def
	}
	return min(max(n, low), high)
}
