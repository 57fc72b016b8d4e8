package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdpoint/holdpoint/approvals/canon"
	"github.com/holdpoint/holdpoint/approvals/rules"
	"github.com/holdpoint/holdpoint/approvals/secret"
)

// maxReason bounds the agent's own words, in characters.
const maxReason = 4000

// takeSnapshot makes what the reviewer sees. Everything is shown but what the tool's `redact` names and what looks like a
// credential; numbers keep the text that was sent. The bytes are kept as they are and are part of the digest.
func takeSnapshot(ctx context.Context, tool *rules.Tool, args canon.Arguments, reason string) ([]byte, error) {
	s := Snapshot{Reason: cut(secret.Mask(reason), maxReason)}
	if !args.Readable() {
		s.Title = tool.Name
		if len(tool.Redact) > 0 {
			s.Raw = fmt.Sprintf("[hidden: %d bytes that cannot be read, so nothing in them can be redacted apart]", len(args.Raw))
		} else {
			s.Raw = strings.ToValidUTF8(secret.Mask(string(args.Raw)), "\uFFFD")
		}
		return marshal(s)
	}
	shown, hidden, err := redact(ctx, tool, args.Raw)
	if err != nil {
		return nil, err
	}
	if s.Arguments, err = marshal(shown); err != nil {
		return nil, err
	}
	s.Redacted, s.Title = hidden, tool.Title(shown)
	for _, l := range tool.Links(shown) {
		s.Links = append(s.Links, SnapshotLink(l))
	}
	return marshal(s)
}

// redact gives the arguments as they may be shown, and the pointers of what is hidden in them.
func redact(ctx context.Context, tool *rules.Tool, raw []byte) (map[string]any, []string, error) {
	numbers, err := canon.Numbers(raw)
	if err != nil {
		return nil, nil, err
	}
	var doc any = numbers
	var hidden []string
	hide := func(pointer string) error {
		v, ok := canon.Get(doc, pointer)
		if !ok {
			return nil
		}
		if doc, err = canon.Set(doc, pointer, mask(v)); err == nil {
			hidden = append(hidden, pointer)
		}
		return err
	}
	for _, pointer := range tool.Redact {
		if err := hide(pointer); err != nil {
			return nil, nil, err
		}
	}
	for found := range secret.Walk(doc, secret.Options{Unpack: true, Stop: func() bool { return ctx.Err() != nil }}) {
		pointer := found.At
		if pointer == "" {
			pointer = found.Pointer
		}
		if err := hide(pointer); err != nil {
			return nil, nil, err
		}
	}
	if ctx.Err() != nil { // the search may be cut short: nothing of it may be shown
		return nil, nil, ctx.Err()
	}
	out, ok := doc.(map[string]any)
	if !ok { // a credential as a member's name of the outermost object
		out = map[string]any{}
	}
	return out, hidden, nil
}

// mask stands in for a hidden value. Its length would narrow a low-entropy one down, so only the kind is told.
func mask(v any) string {
	switch v.(type) {
	case string:
		return "[redacted]"
	case map[string]any, []any:
		return "[redacted: structure]"
	}
	return "[redacted: value]"
}

// restore puts the sealed values back where an edit left their masks: redacted fields that were not touched keep them (I10).
func restore(edited []byte, original canon.Arguments, hidden []string) ([]byte, error) {
	numbers, err := canon.Numbers(edited)
	if err != nil {
		return nil, err
	}
	source, err := canon.Numbers(original.Raw)
	if err != nil {
		return nil, err
	}
	var doc any = numbers
	for _, pointer := range hidden {
		was, ok := canon.Get(source, pointer)
		if !ok {
			continue
		}
		if now, ok := canon.Get(doc, pointer); ok && now == any(mask(was)) {
			if doc, err = canon.Set(doc, pointer, was); err != nil {
				return nil, err
			}
		}
	}
	return marshal(doc)
}

// marshal is JSON without HTML escapes, so that what is shown reads as it was sent.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
