package approvals

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/google/uuid"
)

const (
	proposalPrefix = "sha256-proposal-v1:"
	saltBytes      = 32
)

// fields hashes a sequence of values so that no two different sequences give the same bytes: each is preceded by its length.
type fields struct{ h hash.Hash }

func newFields(domain string) fields {
	f := fields{sha256.New()}
	f.text(domain)
	return f
}

func (f fields) bytes(b []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(b)))
	f.h.Write(n[:])
	f.h.Write(b)
}

func (f fields) text(s string) { f.bytes([]byte(s)) }

func (f fields) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	f.bytes(b[:])
}

func (f fields) list(l []string) {
	f.number(int64(len(l)))
	for _, s := range l {
		f.text(s)
	}
}

// proposalDigest is what the human approves (contract, "digest"): everything that makes this call this call, salted so that a
// low-entropy redacted argument cannot be guessed from it. argumentsDigest is recomputed from the sealed bytes by the caller.
func proposalDigest(salt []byte, r *requestRow, argumentsDigest string) string {
	f := newFields("holdpoint proposal v1")
	f.bytes(salt)
	f.text(r.tenant)
	f.text(r.agent)
	f.text(r.runID)
	f.list(r.callPath)
	f.list(r.agentPath)
	f.text(r.toolCallID)
	f.text(r.tool)
	f.text(r.toolRevision)
	f.text(r.executor)
	f.text(argumentsDigest)
	f.text(r.target)
	f.text(r.targetVersion)
	f.text(r.appStateVersion)
	f.text(r.agentRevision)
	f.text(r.sdkFormat)
	f.text(r.sdkVersion)
	f.text(r.sdkSchema)
	f.text(r.requester)
	f.text(r.rule)
	f.number(r.configRevision)
	f.bytes(r.snapshot)
	return proposalPrefix + hex.EncodeToString(f.h.Sum(nil))
}

// shortDigest is the part of a proposal's digest that a card shows and a button carries: 12 hex digits.
func shortDigest(digest string) string {
	d := strings.TrimPrefix(digest, proposalPrefix)
	if len(d) > 12 {
		d = d[:12]
	}
	return d
}

// ShortDigest is the prefix of the approval's digest as cards show it.
func (v View) ShortDigest() string { return shortDigest(v.Digest) }

// operationKey names the effect to the tool (I14): tenant + lineage + operation + target. No model and no client chooses it.
func operationKey(tenant string, lineage ID, tool, target string) string {
	f := newFields("holdpoint operation v1")
	f.text(tenant)
	f.bytes(lineage[:])
	f.text(tool)
	f.text(target)
	return "op_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(f.h.Sum(nil)[:20]))
}

// intakeKey names a pause by what the agent sent (I21): calls, state and run.pause_key; nothing that the server adds.
func intakeKey(in *Intake, calls []submitted) []byte {
	f := newFields("holdpoint intake v1")
	f.text(in.RunID)
	f.text(in.PauseKey)
	f.text(in.AppStateVersion)
	f.text(in.Requester)
	f.text(in.Format)
	f.text(in.SDKVersion)
	state := sha256.Sum256(in.State)
	f.bytes(state[:])
	f.number(int64(len(calls)))
	for i := range calls {
		c := &calls[i]
		f.list(c.in.CallPath)
		f.list(c.in.AgentPath)
		f.text(c.in.ToolCallID)
		f.text(c.in.Tool)
		f.bytes(c.args.Raw)
		f.text(c.in.TargetVersion)
	}
	return f.h.Sum(nil)
}

// lockKey is the advisory lock of a run's intake.
func lockKey(tenant, agent, run string) int64 {
	f := newFields("holdpoint run lock v1")
	f.text(tenant)
	f.text(agent)
	f.text(run)
	return int64(binary.BigEndian.Uint64(f.h.Sum(nil)))
}

// WebhookID is the id of a pause's one resume message: the same on every try.
func WebhookID(pause uuid.UUID) string { return "msg_" + strings.ReplaceAll(pause.String(), "-", "") }

func newDigest(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}
