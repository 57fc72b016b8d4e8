package rules

import (
	"crypto/sha256"
	"encoding/hex"
)

// Revision is the hex SHA-256 of the tool's name and configuration as written, in
// canonical form: comments, formatting and the order of keys don't count, every value
// does, secret references as references. An approval names the revision it was asked
// under; another one means that the tool has changed.
func (t *Tool) Revision() string { return t.revision }

func (t *Tool) hash(n *node) string {
	form := &node{kind: listNode, items: []*node{
		{kind: textNode, text: "holdpoint/tool-revision/v1"},
		{kind: textNode, text: t.Name},
		n,
	}}
	sum := sha256.Sum256(form.appendJSON(nil))
	return hex.EncodeToString(sum[:])
}
