package intake

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's template and style
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

// docsPage renders the document as one page without scripts, fonts or anything else from elsewhere, and gives the content security
// policy under which only its own style applies.
func docsPage(doc *huma.OpenAPI) (page []byte, policy string) {
	sum := sha256.Sum256([]byte(pageStyle))
	policy = fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", base64.StdEncoding.EncodeToString(sum[:]))
	t := template.Must(template.New("page").Funcs(template.FuncMap{
		"kind": kind, "ref": ref, "paragraphs": paragraphs, "spans": spans, "lower": strings.ToLower, "required": func(s *huma.Schema, name string) bool { return slices.Contains(s.Required, name) },
	}).Parse(strings.Replace(pageSource, "STYLE", pageStyle, 1)))
	var b bytes.Buffer
	err := t.Execute(&b, map[string]any{
		"Doc": doc, "Groups": grouped(doc), "Schemas": doc.Components.Schemas.Map(), "Codes": meaningRows(),
	})
	if err != nil {
		panic(fmt.Errorf("intake: the documentation page: %w", err)) // built from constants: a test would have seen it
	}
	return b.Bytes(), policy
}

type group struct {
	Tag        *huma.Tag
	Operations []*huma.Operation
}

// grouped puts the operations under their tags, in the order of the routes' table.
func grouped(doc *huma.OpenAPI) []group {
	var out []group
	for _, tag := range doc.Tags {
		g := group{Tag: tag}
		for _, r := range routes() {
			item := doc.Paths[r.path]
			for _, op := range []*huma.Operation{item.Get, item.Post} {
				if op != nil && op.OperationID == r.id && slices.Contains(op.Tags, tag.Name) {
					g.Operations = append(g.Operations, op)
				}
			}
		}
		out = append(out, g)
	}
	return out
}

type meaningRow struct {
	Code, Title string
	Status      int
}

func meaningRows() []meaningRow {
	rows := make([]meaningRow, len(meanings))
	for i, m := range meanings {
		rows[i] = meaningRow{string(m.code), m.title, m.status}
	}
	return rows
}

// kind is a schema's type in a word or two.
func kind(s *huma.Schema) string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		return ref(s)
	case len(s.OneOf) > 0:
		words := make([]string, len(s.OneOf))
		for i, o := range s.OneOf {
			words[i] = kind(o)
		}
		return strings.Join(words, " or ")
	case s.Type == huma.TypeArray:
		return "list of " + kind(s.Items)
	case s.Type == "":
		return "any JSON"
	case s.Format == "date-time":
		return "time"
	}
	return s.Type
}

// ref is the schema's name, for a schema or for a list of it.
func ref(s *huma.Schema) string {
	if s != nil && s.Ref == "" && s.Items != nil {
		s = s.Items
	}
	if s == nil {
		return ""
	}
	return strings.TrimPrefix(s.Ref, schemaPrefix)
}

// span is a stretch of a paragraph; code stands between backticks.
type span struct {
	Text string
	Code bool
}

func spans(paragraph string) []span {
	var out []span
	for i, text := range strings.Split(paragraph, "`") {
		if text != "" {
			out = append(out, span{text, i%2 == 1})
		}
	}
	return out
}

func paragraphs(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n\n")
}
