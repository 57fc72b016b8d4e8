package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

type nodeKind string

const (
	objectNode  nodeKind = "a mapping"
	listNode    nodeKind = "a list"
	textNode    nodeKind = "text"
	numberNode  nodeKind = "a number"
	booleanNode nodeKind = "true or false"
	nullNode    nodeKind = "nothing"
)

// node is one value of a configuration with the place where it stands. YAML files
// and stored bodies become the same tree, so one reader serves both. line and col
// count from 1 and are 0 in a stored body.
type node struct {
	kind      nodeKind
	text      string // the text, the number's literal, "true" or "false"
	items     []*node
	fields    []field
	line, col int
	quoted    bool // the text starts one column further right
	block     bool // a block scalar: the text starts on the next line
}

type field struct {
	key       string
	line, col int
	value     *node
}

func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

const maxDepth = 64

// jsonNumber is RFC 8259's grammar: what passes keeps its digits in a JSON body.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// parseYAML reads one document. Anchors, aliases, merge keys and tags are refused:
// a stored body must mean what a person reads, without expansion.
func parseYAML(file string, data []byte) (root *node, problems []*Problem) {
	fail := func(line, col int, msg string) {
		problems = append(problems, &Problem{File: file, Line: line, Col: col, Msg: msg})
	}
	defer func() {
		if recover() != nil { // the parser is known to panic on some malformed input
			root, problems = nil, nil
			fail(0, 0, "is not readable as YAML")
		}
	}()
	// Repeated keys are allowed here and refused below, where their place is known.
	doc, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		// GetMessage only: the full text quotes the lines around the fault.
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil {
			at := syntax.GetToken().Position
			fail(at.Line, at.Column, "is not valid YAML: "+syntax.GetMessage())
		} else {
			fail(0, 0, "is not valid YAML")
		}
		return nil, problems
	}
	var body ast.Node
	for _, d := range doc.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			at := position(d.Body)
			fail(at.Line, at.Column, "holds a second YAML document; use one file for each")
			return nil, problems
		}
		body = d.Body
	}
	if body == nil {
		fail(1, 1, "is empty")
		return nil, problems
	}
	root = fromAST(body, 0, fail)
	return root, problems
}

// position is where a value begins: for a block mapping, its first key (the parser
// says: its first colon).
func position(n ast.Node) *token.Position {
	switch v := n.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return v.Values[0].Key.GetToken().Position
		}
	case *ast.MappingValueNode:
		return v.Key.GetToken().Position
	}
	return n.GetToken().Position
}

func fromAST(n ast.Node, depth int, fail func(line, col int, msg string)) *node {
	at := position(n)
	out := &node{kind: nullNode, line: at.Line, col: at.Column}
	if depth > maxDepth {
		fail(at.Line, at.Column, "is nested too deeply")
		return out
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		out.kind = objectNode
		for _, pair := range v.Values {
			out.add(pair, depth, fail)
		}
	case *ast.MappingValueNode:
		out.kind = objectNode
		out.add(v, depth, fail)
	case *ast.SequenceNode:
		out.kind = listNode
		for _, item := range v.Values {
			out.items = append(out.items, fromAST(item, depth+1, fail))
		}
	case *ast.StringNode:
		out.kind, out.text = textNode, v.Value
		origin := n.GetToken().Type.String()
		out.quoted = origin == "SingleQuote" || origin == "DoubleQuote"
	case *ast.LiteralNode:
		out.kind, out.text, out.block = textNode, v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode:
		out.kind, out.text = numberNode, n.GetToken().Value
		if !jsonNumber.MatchString(out.text) {
			fail(at.Line, at.Column, "is a number in a form that isn't taken; write plain decimal digits, or quote it")
		}
	case *ast.BoolNode:
		out.kind, out.text = booleanNode, "false"
		if v.Value {
			out.text = "true"
		}
	case *ast.NullNode:
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		fail(at.Line, at.Column, "YAML anchors, aliases and tags aren't taken; write the value out")
	default:
		fail(at.Line, at.Column, "is a YAML construct that isn't taken")
	}
	return out
}

func (n *node) add(pair *ast.MappingValueNode, depth int, fail func(line, col int, msg string)) {
	at := pair.Key.GetToken().Position
	var key string
	switch k := pair.Key.(type) {
	case *ast.StringNode:
		key = k.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		key = pair.Key.GetToken().Value
	default:
		fail(at.Line, at.Column, "YAML merge keys and complex keys aren't taken")
		return
	}
	if n.get(key) != nil {
		fail(at.Line, at.Column, fmt.Sprintf("key %q is written twice", key))
		return
	}
	n.fields = append(n.fields, field{key: key, line: at.Line, col: at.Column, value: fromAST(pair.Value, depth+1, fail)})
}

// parseJSON reads a stored body. It refuses repeated keys and trailing data.
func parseJSON(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	n, err := fromJSON(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the end")
	}
	return n, nil
}

func fromJSON(dec *json.Decoder, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	token, err := dec.Token()
	if err != nil {
		return nil, errors.New("not valid JSON")
	}
	switch v := token.(type) {
	case json.Delim:
		n := &node{kind: listNode}
		if v == '{' {
			n.kind = objectNode
		}
		for dec.More() {
			var key string
			if n.kind == objectNode {
				token, err := dec.Token()
				if err != nil {
					return nil, errors.New("not valid JSON")
				}
				key, _ = token.(string) // the decoder guarantees a string here
				if n.get(key) != nil {
					return nil, fmt.Errorf("key %q is written twice", key)
				}
			}
			value, err := fromJSON(dec, depth+1)
			if err != nil {
				return nil, err
			}
			if n.kind == objectNode {
				n.fields = append(n.fields, field{key: key, value: value})
			} else {
				n.items = append(n.items, value)
			}
		}
		if _, err := dec.Token(); err != nil {
			return nil, errors.New("not valid JSON")
		}
		return n, nil
	case string:
		return &node{kind: textNode, text: v}, nil
	case json.Number:
		return &node{kind: numberNode, text: v.String()}, nil
	case bool:
		if v {
			return &node{kind: booleanNode, text: "true"}, nil
		}
		return &node{kind: booleanNode, text: "false"}, nil
	default:
		return &node{kind: nullNode}, nil
	}
}

// value gives the tree as encoding/json's types, numbers as json.Number.
func (n *node) value() any {
	switch n.kind {
	case objectNode:
		out := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			out[f.key] = f.value.value()
		}
		return out
	case listNode:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.value()
		}
		return out
	case textNode:
		return n.text
	case numberNode:
		return json.Number(n.text)
	case booleanNode:
		return n.text == "true"
	default:
		return nil
	}
}

// appendJSON writes the tree with sorted keys: the one canonical form.
func (n *node) appendJSON(out []byte) []byte {
	switch n.kind {
	case objectNode:
		sorted := append([]field(nil), n.fields...)
		sort.Slice(sorted, func(i, j int) bool { return sorted[i].key < sorted[j].key })
		out = append(out, '{')
		for i, f := range sorted {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, f.key), ':')
			out = f.value.appendJSON(out)
		}
		return append(out, '}')
	case listNode:
		out = append(out, '[')
		for i, item := range n.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.appendJSON(out)
		}
		return append(out, ']')
	case textNode:
		return appendString(out, n.text)
	case numberNode, booleanNode:
		return append(out, n.text...)
	default:
		return append(out, "null"...)
	}
}

// canonical is a copy without places and with sorted keys, as if read from a stored
// body.
func (n *node) canonical() *node {
	out := &node{kind: n.kind, text: n.text}
	for _, item := range n.items {
		out.items = append(out.items, item.canonical())
	}
	for _, f := range n.fields {
		out.fields = append(out.fields, field{key: f.key, value: f.value.canonical()})
	}
	sort.Slice(out.fields, func(i, j int) bool { return out.fields[i].key < out.fields[j].key })
	return out
}

func appendString(out []byte, s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
