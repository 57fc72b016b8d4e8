package main

import (
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/templates"
)

// The kill switch is seen where people look: thrown from a shell, it stands on the card of what waits, in the list and on the page's
// panel, with who and why. What is approved under it is held; lifted, all of that is gone and the call runs. Lifting what is not
// paused changes nothing.
func TestPauseIsSeen(t *testing.T) {
	p := one(t)
	shell := func(args ...string) result { return typed(append(args, "--tenant=acme", "--database-url="+p.dsn)...) }
	page := &dev{sim: p.sim}
	page.core.Store(p.core)
	a := p.deploy("run_paused")
	p.pending(a.ApprovalID)

	if r := shell("pause", "tool", "deploy_release", "--lift", "--yes", "--reason=x"); r.code != 1 || !strings.Contains(r.err, "tool deploy_release is not paused") || !strings.Contains(r.err, "paused: nothing") {
		t.Errorf("lifting what is not paused: %+v", r)
	}
	if r := shell("pause", "tool", "deploy", "--reason=x"); r.code != 1 || !strings.Contains(r.err, `no tool "deploy"`) || !strings.Contains(r.err, "deploy_release, historical_approval") {
		t.Errorf("pausing what is not there: %+v", r)
	}
	if r := shell("pause", "tool", "deploy_release", "--reason=incident 7"); r.code != 0 || !strings.Contains(r.out, "tool deploy_release paused") || !strings.Contains(r.out, "Waiting for a decision: 1") {
		t.Fatalf("pause: %+v", r)
	}
	const why = "tool deploy_release: incident 7"
	p.card(a.ApprovalID, "⏸ Paused", why, "It can be decided")
	if r := shell("approvals", "list"); !strings.Contains(r.out, "paused: "+why+" (by operator:") {
		t.Errorf("list: %+v", r)
	}
	if items := page.paused(); len(items) != 1 || items[0].Value != why || !strings.HasPrefix(items[0].Label, "⏸ Paused by operator:") {
		t.Errorf("the panel: %+v", items)
	}

	p.click("U0ALICE", p.pending(a.ApprovalID), templates.ActionApprove)
	p.card(a.ApprovalID, "⏸ Approved; held", why)
	if r := shell("pause", "agent", "release-agent", "--lift", "--yes", "--reason=x"); r.code != 1 || !strings.Contains(r.err, "paused: tool deploy_release") {
		t.Errorf("lifting another: %+v", r)
	}
	if r := shell("pause", "tool", "deploy_release", "--lift", "--yes", "--reason=over"); r.code != 0 || !strings.Contains(r.out, "Starting after being checked again: 1") || !strings.Contains(r.out, a.ApprovalID.String()) {
		t.Errorf("unpause: %+v", r)
	}
	p.becomes(a.ApprovalID, approvals.Completed)
	if m := p.card(a.ApprovalID, "Done"); strings.Contains(m.PlainText(), "Paused") {
		t.Errorf("still paused: %s", m.PlainText())
	}
	if items := page.paused(); len(items) != 0 {
		t.Errorf("the panel: %+v", items)
	}
	// An edited call's trail and a held call's read as a story, in the shell as in Slack.
	r := shell("approvals", "show", a.ApprovalID.String())
	for _, words := range []string{"Proposed by the agent release-agent under the rule deploys", "@U0ALICE approved: it may run", "Held: an admin paused this.", "Checked once more, and started: attempt 1", "Done", "The agent was told"} {
		if words == "The agent was told" {
			p.eventually(words, func() (string, bool) {
				r = shell("approvals", "show", a.ApprovalID.String())
				return r.out, strings.Contains(r.out, words)
			})
		}
		if !strings.Contains(r.out, words) {
			t.Errorf("no %q in\n%s", words, r.out)
		}
	}
}
