package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdpoint/holdpoint/approvals"
)

// Version is the API's, as in its paths; a change that breaks an agent makes another one.
const Version = "v1"

// everywhere lists the codes that any route may answer with.
var everywhere = []approvals.Code{approvals.CodeInvalidRequest, approvals.CodeUnauthorized, approvals.CodeRateLimited, codeInternal, codeUnavailable}

// schemaNames are the names in the document of types whose Go names say something else to an outsider.
var schemaNames = map[reflect.Type]string{
	typeOf[approvals.View]():       "Approval",
	typeOf[approvals.Scope]():      "Reviewers",
	typeOf[event]():                "AuditEvent",
	typeOf[approvals.LedgerView](): "Ledger",
	typeOf[intakeBody]():           "Intake",
	typeOf[runBody]():              "Run",
	typeOf[stateBody]():            "RunState",
	typeOf[callBody]():             "Call",
	typeOf[revokeBody]():           "Withdrawal",
	typeOf[nothingBody]():          "Nothing",
	typeOf[ackBody]():              "Acknowledgement",
	typeOf[claimBody]():            "Claim",
	typeOf[leaseBody]():            "Lease",
	typeOf[completeBody]():         "Completion",
	typeOf[failBody]():             "Failure",
	typeOf[pageAnswer]():           "Page",
	typeOf[eventsAnswer]():         "AuditTrail",
	typeOf[redeliverAnswer]():      "Redelivery",
	typeOf[claimAnswer]():          "ClaimAnswer",
	typeOf[renewAnswer]():          "Renewal",
	typeOf[resumeMessage]():        "Resume",
}

const schemaPrefix = "#/components/schemas/"

// describe makes the OpenAPI document of the routes. huma's own routes, formats and transformers stay off: the server writes its
// bytes itself.
func describe(table []route) huma.Config {
	registry := huma.NewMapRegistry(schemaPrefix, func(t reflect.Type, hint string) string {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if name, ok := schemaNames[t]; ok {
			return name
		}
		return huma.DefaultSchemaNamer(t, hint)
	})
	registry.RegisterTypeAlias(typeOf[approvals.ID](), typeOf[idWord]())
	registry.RegisterTypeAlias(typeOf[approvals.Status](), typeOf[statusWord]())
	registry.RegisterTypeAlias(typeOf[approvals.LedgerState](), typeOf[ledgerWord]())
	registry.RegisterTypeAlias(typeOf[approvals.Reason](), typeOf[reasonWord]())
	registry.RegisterTypeAlias(typeOf[approvals.Code](), typeOf[codeWord]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Holdpoint", Version: Version, Description: "The agents' API of Holdpoint: hand in a paused run, learn what people decided, " +
			"run what was approved, once.\n\nBodies are JSON. Unknown and duplicate names are refused; lengths count bytes; null is the same as absent, but as a result. Errors are RFC 9457 problems with a `code`."},
		Security: []map[string][]string{{"key": {}}},
		Tags: []*huma.Tag{
			{Name: tagApprovals, Description: "What waits, what was decided."},
			{Name: tagRuns, Description: "How a run goes on, for agents that pull."},
			{Name: tagOperations, Description: "How an agent runs an approved call under the ledger."},
		},
		Components: &huma.Components{
			Schemas:         registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", BearerFormat: "hp_…", Description: "An API key of one agent of one tenant."}},
		},
	}
	requests := map[string]bool{}
	for _, r := range table {
		if r.body != nil {
			collect(r.body, requests)
		}
		doc.AddOperation(r.describe(registry))
	}
	tidy(registry, requests)
	return huma.Config{OpenAPI: doc}
}

func (r route) describe(registry huma.Registry) *huma.Operation {
	op := &huma.Operation{Method: r.method, Path: r.path, OperationID: r.id, Summary: r.summary, Description: r.about, Tags: []string{r.tag}, Responses: map[string]*huma.Response{}}
	if strings.Contains(r.path, "{approval_id}") {
		op.Parameters = append(op.Parameters, &huma.Param{Name: "approval_id", In: "path", Required: true, Schema: registry.Schema(typeOf[approvals.ID](), true, ""), Description: "The approval's id."})
	}
	if strings.Contains(r.path, "{run_id}") {
		op.Parameters = append(op.Parameters, &huma.Param{Name: "run_id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Description: "Your name for the run, percent-encoded."})
	}
	for _, q := range r.query {
		op.Parameters = append(op.Parameters, &huma.Param{Name: q.name, In: "query", Description: q.about, Schema: &q.schema, Example: q.example})
	}
	if r.body != nil {
		op.RequestBody = &huma.RequestBody{Required: r.bodyRequired, Content: map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(r.body, true, "")}}}
	}
	for _, a := range r.replies {
		response := &huma.Response{Description: a.about}
		if a.body != nil {
			response.Content = map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(a.body, true, "")}}
		}
		if a.location {
			response.Headers = map[string]*huma.Param{"Location": {Description: "The approval, or the list of the run's where there are several.", Schema: &huma.Schema{Type: huma.TypeString, Format: "uri-reference"}}}
		}
		op.Responses[strconv.Itoa(a.status)] = response
	}
	r.describeProblems(op, registry)
	return op
}

// describeProblems adds a response for each status that the route's codes lead to.
func (r route) describeProblems(op *huma.Operation, registry huma.Registry) {
	codes := map[int][]string{}
	for _, m := range meanings {
		if slices.Contains(everywhere, m.code) || slices.Contains(r.codes, m.code) {
			codes[m.status] = append(codes[m.status], string(m.code))
		}
	}
	if r.body != nil {
		for _, status := range []int{http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType} {
			codes[status] = append(codes[status], string(approvals.CodeInvalidRequest))
		}
	}
	for status, names := range codes {
		response := &huma.Response{
			Description: fmt.Sprintf("%s: %s", http.StatusText(status), strings.Join(names, ", ")),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: registry.Schema(typeOf[Problem](), true, "")}},
		}
		switch status {
		case http.StatusUnauthorized:
			response.Headers = map[string]*huma.Param{"WWW-Authenticate": {Schema: &huma.Schema{Type: huma.TypeString}}}
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			response.Headers = map[string]*huma.Param{"Retry-After": {Description: "Seconds.", Schema: &huma.Schema{Type: huma.TypeInteger}}}
		}
		op.Responses[strconv.Itoa(status)] = response
	}
}

// collect notes the schema names of a body and of what is in it.
func collect(t reflect.Type, names map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(verbatimType) {
		return
	}
	names[schemaNames[t]] = true
	for i := range t.NumField() {
		collect(t.Field(i).Type, names)
	}
}

// tidy makes the schemas say what is on the wire: lists are never null, answers may gain members (the contract says so) while bodies
// may not, and the approval's members are explained.
func tidy(registry huma.Registry, requests map[string]bool) {
	snapshot := registry.Schema(typeOf[approvals.Snapshot](), true, "")
	for name, schema := range registry.Map() {
		if !requests[name] {
			schema.AdditionalProperties = nil
		}
		for member, property := range schema.Properties {
			if property.Type == huma.TypeArray {
				property.Nullable = false
			}
			if about := memberDocs[name+"."+member]; about != "" {
				property.Description = about
			}
		}
	}
	approval := registry.Map()["Approval"]
	for _, member := range []string{"parent_id", "child_id"} {
		approval.Properties[member].Nullable = true
	}
	snapshot.Description = approval.Properties["snapshot"].Description
	approval.Properties["snapshot"] = snapshot
}

// render writes the document as it is served and as it is kept in docs.
func render(doc *huma.OpenAPI) []byte {
	flat, err := json.Marshal(doc)
	var b bytes.Buffer
	if err == nil {
		err = json.Indent(&b, flat, "", "  ")
	}
	if err != nil {
		panic(fmt.Errorf("intake: the OpenAPI document: %w", err)) // built from constants: a test would have seen it
	}
	b.WriteByte('\n')
	return b.Bytes()
}
