package intake

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

type openAPI struct {
	Paths map[string]map[string]struct {
		OperationID string
		Parameters  []struct {
			Name, In, Description string
			Schema                map[string]any
		}
		RequestBody *struct {
			Required bool
			Content  map[string]struct{ Schema map[string]any }
		}
		Responses map[string]struct {
			Description string
			Content     map[string]struct{ Schema map[string]any }
		}
	}
	Components struct {
		Schemas map[string]struct {
			Properties           map[string]map[string]any
			Required             []string
			AdditionalProperties any
		}
	}
}

func served(t *testing.T) (document string, parsed openAPI) {
	t.Helper()
	r := newHouse(t, Options{}).do("GET", "/openapi.json", "")
	if r.status != 200 || r.header.Get("Content-Type") != "application/openapi+json" {
		t.Fatalf("%d %v", r.status, r.header)
	}
	r.decoded(t, &parsed)
	return r.body, parsed
}

// docs/openapi.json is what the server serves. After a change: go test ./bot/intake -run TestOpenAPIFile -update
func TestOpenAPIFile(t *testing.T) {
	t.Parallel()
	document, _ := served(t)
	file := filepath.Join("..", "..", "docs", "openapi.json")
	if *update {
		if err := os.WriteFile(file, []byte(document), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), document); diff != "" {
		t.Errorf("docs/openapi.json is old; run this test with -update\n%s", diff)
	}
}

// The document is complete: every route, its parameters and bodies, every code, a word to every member, and no reference to nowhere.
func TestOpenAPIIsComplete(t *testing.T) {
	t.Parallel()
	document, doc := served(t)
	operations := 0
	for _, r := range routes() {
		op, ok := doc.Paths[r.path][strings.ToLower(r.method)]
		if !ok || op.OperationID != r.id {
			t.Errorf("%s %s is not there", r.method, r.path)
		}
		operations++
		for _, p := range op.Parameters {
			if p.Description == "" || len(p.Schema) == 0 {
				t.Errorf("%s: parameter %+v", r.id, p)
			}
		}
		if got := len(op.Parameters); got != len(r.query)+strings.Count(r.path, "{") {
			t.Errorf("%s has %d parameters", r.id, got)
		}
		if (r.body != nil) != (op.RequestBody != nil) || r.body != nil && op.RequestBody.Required != r.bodyRequired {
			t.Errorf("%s: body %+v", r.id, op.RequestBody)
		}
		for _, m := range meanings {
			told := strings.Contains(op.Responses[strconv.Itoa(m.status)].Description, string(m.code))
			if want := slices.Contains(r.codes, m.code) || slices.Contains(everywhere, m.code); told != want {
				t.Errorf("%s tells of %s: %v", r.id, m.code, told)
			}
		}
		for status, response := range op.Responses {
			_, problem := response.Content["application/problem+json"]
			if response.Description == "" || problem != (status >= "400") {
				t.Errorf("%s: response %s %+v", r.id, status, response)
			}
		}
	}
	for _, methods := range doc.Paths {
		operations -= len(methods)
	}
	if operations != 0 {
		t.Errorf("%d operations too few", operations)
	}
	for _, ref := range regexp.MustCompile(`"\$ref": "([^"]*)"`).FindAllStringSubmatch(document, -1) {
		if _, ok := doc.Components.Schemas[strings.TrimPrefix(ref[1], schemaPrefix)]; !ok {
			t.Errorf("%s leads nowhere", ref[1])
		}
	}
	for _, name := range []string{"Approval", "Snapshot", "Pause", "Problem", "Intake", "Call", "Run", "RunState", "Completion", "Failure", "ClaimAnswer", "Resume"} {
		schema := doc.Components.Schemas[name]
		if len(schema.Properties) == 0 {
			t.Errorf("%s is empty", name)
		}
		for member, s := range schema.Properties {
			if s["description"] == nil && s["$ref"] == nil {
				t.Errorf("%s.%s has no explanation", name, member)
			}
		}
	}
	for where := range memberDocs {
		name, member, _ := strings.Cut(where, ".")
		if _, ok := doc.Components.Schemas[name].Properties[member]; !ok {
			t.Errorf("%s is explained and isn't there", where)
		}
	}
}

// What the document says of a body is what the reader does with it: the names, which are required, and that there are no others.
func TestOpenAPIIsTrueOfBodies(t *testing.T) {
	t.Parallel()
	_, doc := served(t)
	bodies := []reflect.Type{typeOf[runBody](), typeOf[stateBody](), typeOf[callBody]()}
	for _, r := range routes() {
		if r.body != nil {
			bodies = append(bodies, r.body)
		}
	}
	for _, b := range bodies {
		schema := doc.Components.Schemas[schemaNames[b]]
		var names []string
		for _, m := range members(b) {
			names = append(names, m.name)
		}
		var told []string
		for name := range schema.Properties {
			told = append(told, name)
		}
		slices.Sort(names)
		slices.Sort(told)
		if diff := cmp.Diff(names, told); diff != "" || schema.AdditionalProperties != false {
			t.Errorf("%s: %s, additional %v", b, diff, schema.AdditionalProperties)
		}
	}
	for _, required := range []string{"Intake.run", "Run.id", "Run.app_state_version", "RunState.format", "Call.tool_call_id", "Call.tool", "Call.arguments", "Acknowledgement.pause", "Lease.lease_token", "Lease.epoch", "Completion.lease_token", "Failure.epoch"} {
		name, member, _ := strings.Cut(required, ".")
		if !slices.Contains(doc.Components.Schemas[name].Required, member) {
			t.Errorf("%s is not required", required)
		}
	}
	for _, answer := range []string{"Approval", "Pause", "Problem", "ClaimAnswer"} {
		if doc.Components.Schemas[answer].AdditionalProperties != nil {
			t.Errorf("%s is closed: members may be added to answers", answer)
		}
	}
}

// What the server answers is what the document says: every member of a real answer is in its schema, and the required ones are there.
func TestOpenAPIIsTrueOfAnswers(t *testing.T) {
	t.Parallel()
	_, doc := served(t)
	h := newHouse(t, Options{})
	id := h.approved("{}").String()
	for _, c := range []struct{ schema, body string }{
		{"Approval", h.do("GET", "/v1/approvals/"+id, "").body},
		{"Page", h.do("GET", "/v1/approvals", "").body},
		{"AuditTrail", h.do("GET", "/v1/approvals/"+id+"/events", "").body},
		{"Pause", h.do("POST", "/v1/approvals", oneCall).body},
		{"ClaimAnswer", h.do("POST", "/v1/operations/"+id+"/claim", "").body},
		{"Redelivery", h.do("POST", "/v1/approvals/"+id+"/resume", "").body},
		{"Problem", h.do("POST", "/v1/approvals", `{"cals":1}`).body},
	} {
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.body), &got); err != nil {
			t.Fatal(err)
		}
		schema := doc.Components.Schemas[c.schema]
		for name, value := range got {
			said, ok := schema.Properties[name]
			if !ok {
				t.Errorf("%s.%s is answered and not told of", c.schema, name)
			}
			if string(value) == "null" && !slices.Contains(asList(said["type"]), any("null")) && said["type"] != nil {
				t.Errorf("%s.%s is null", c.schema, name)
			}
		}
		for _, name := range schema.Required {
			if _, ok := got[name]; !ok {
				t.Errorf("%s.%s is required and not answered", c.schema, name)
			}
		}
	}
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// The page stands alone: no script, nothing from elsewhere, an anchor for every problem's type, every operation and every schema.
func TestPage(t *testing.T) {
	t.Parallel()
	_, doc := served(t)
	r := newHouse(t, Options{}).do("GET", "/docs", "")
	if r.status != 200 || r.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", r.status, r.header)
	}
	for _, foreign := range []string{"<script", "src=", "http://", "https://", "@import", "url(", " on"} {
		if foreign == " on" {
			if regexp.MustCompile(`<[^>]* on[a-z]+=`).MatchString(r.body) {
				t.Error("the page has a handler")
			}
		} else if strings.Contains(r.body, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
	anchors := map[string]int{}
	for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(r.body, -1) {
		anchors[id[1]]++
	}
	for _, m := range meanings {
		if anchors[string(m.code)] != 1 {
			t.Errorf("%d anchors for %s", anchors[string(m.code)], m.code)
		}
	}
	for _, route := range routes() {
		if anchors[route.id] != 1 {
			t.Errorf("%d anchors for %s", anchors[route.id], route.id)
		}
	}
	for name := range doc.Components.Schemas {
		if anchors["schema-"+name] != 1 {
			t.Errorf("%d anchors for %s", anchors["schema-"+name], name)
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(r.body, -1) {
		if anchors[link[1]] != 1 {
			t.Errorf("#%s leads nowhere", link[1])
		}
	}
	if strings.Contains(r.body, "`") || !strings.Contains(r.body, "<code>since</code>") {
		t.Error("code in the descriptions is not set as code")
	}
	if !strings.Contains(r.header.Get("Content-Security-Policy"), "style-src 'sha256-") || !strings.Contains(r.body, "<style>"+pageStyle+"</style>") {
		t.Error("the page's style is not the one that its policy allows")
	}
}
