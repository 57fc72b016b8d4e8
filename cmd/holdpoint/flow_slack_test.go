package main

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/holdpoint/holdpoint/templates"
)

// What people meet in Slack: several of them at once, commands, the kill switch, and a Slack that has a bad day.

// freeze keeps cards as they are: what takes a button away fails, until the faults are cleared.
func freeze(sim *slacksim.Sim) {
	sim.Fault("response_url", slacksim.ServerError{}, 0)
	sim.Fault("chat.update", slacksim.ServerError{}, 0)
}

// A double click, a click of somebody else on the same card, and a replay of the first one count once. Two serve and two worker
// instances share the work; the second person is told who was first (I6, I8, I13).
func TestClicksCountOnce(t *testing.T) {
	t.Parallel()
	p := start(t, 2, 2)
	a := p.deploy("run_double")
	card := p.pending(a.ApprovalID)
	p.tool.hold(1)
	freeze(p.sim)
	twice, err := p.sim.ClickTwice(p.ctx, "U0ALICE", card.Channel, card.TS, templates.ActionApprove, slacksim.ClickOptions{})
	p.must(err)
	p.click("U0BOB", card, templates.ActionApprove)
	p.hears("U0BOB", "Already approved")
	p.hears("U0BOB", "@U0ALICE")
	p.sim.ClearFaults()
	if r, err := p.sim.Replay(p.ctx, twice[0].Delivery); err != nil && r.Status != http.StatusUnauthorized {
		t.Errorf("a replayed click: %v", err) // the process that saw it refuses it; another one finds the vote
	}
	p.tool.release()
	v := p.becomes(a.ApprovalID, approvals.Completed)
	p.card(a.ApprovalID, "Done")
	p.resumed("run_double")
	p.settled()
	p.effects(1, 1)
	p.toldOnce("run_double")
	if len(v.Votes) != 1 || v.Votes[0].By != "slack:U0ALICE" {
		t.Errorf("votes %+v", v.Votes)
	}
}

// Everybody presses at the same moment, in two processes: one is first, and each of the others is told (I6, I8).
func TestRaceOfClicks(t *testing.T) {
	t.Parallel()
	p := start(t, 2, 2)
	a := p.deploy("run_race")
	card := p.pending(a.ApprovalID)
	freeze(p.sim)
	var all sync.WaitGroup
	for _, user := range []string{"U0ALICE", "U0BOB", "U0ALICE", "U0BOB", "U0MALLORY", "U0REQ"} {
		all.Go(func() {
			if _, err := p.sim.Click(p.ctx, user, card.Channel, card.TS, templates.ActionApprove, slacksim.ClickOptions{}); err != nil {
				t.Errorf("%s: %v", user, err)
			}
		})
	}
	all.Wait()
	p.sim.ClearFaults()
	v := p.becomes(a.ApprovalID, approvals.Completed)
	loser := "U0BOB"
	if v.DecidedBy == "slack:U0BOB" {
		loser = "U0ALICE"
	}
	p.hears(loser, "Already approved")
	p.hears("U0MALLORY", "can't approve")
	p.resumed("run_race")
	p.settled()
	p.effects(1, 1)
	p.toldOnce("run_race")
	if n := p.number(`SELECT count(*) FROM approval_decision WHERE approval_id = $1`, a.ApprovalID); n != 1 {
		t.Errorf("%d votes", n)
	}
}

// Who may not decide is told what is missing, and nothing changes (I5).
func TestNotAReviewer(t *testing.T) {
	p := one(t)
	a := p.deploy("run_mallory")
	p.approve("U0MALLORY", a.ApprovalID)
	p.hears("U0MALLORY", "can't approve")
	p.settled()
	if v := p.get(a.ApprovalID); v.Status != approvals.Pending || len(v.Votes) != 0 {
		t.Errorf("%s with %d votes", v.Status, len(v.Votes))
	}
	p.effects(0, 0)
}

// An admin lists and revokes from Slack; the card says by whom, and the run is told without its state. Others can't.
func TestListAndRevoke(t *testing.T) {
	p := one(t)
	a := p.deploy("run_revoked")
	p.pending(a.ApprovalID)
	p.command("U0ALICE", "list")
	p.hears("U0ALICE", a.ApprovalID.String())
	p.command("U0ALICE", "revoke "+a.ApprovalID.String()+" because")
	p.hears("U0ALICE", "Only Holdpoint's admins")
	p.command("U0ROOT", "revoke run:run_revoked wrong branch")
	p.hears("U0ROOT", "Revoked 1")
	p.becomes(a.ApprovalID, approvals.Revoked)
	card := p.card(a.ApprovalID, "Revoked", "@U0ROOT", "wrong branch", "nothing was executed")
	if slices.Contains(card.Actions(), templates.ActionApprove) {
		t.Error("a revoked call still offers Approve")
	}
	m := p.resumed("run_revoked")
	if d := m.Data.Decisions[0]; m.Type != approvals.RunBlocked || m.Data.State != nil || d.Outcome != "not_run" || d.ReasonCode == nil || *d.ReasonCode != "revoked_by_admin" {
		t.Errorf("told %+v", m)
	}
	p.command("U0ALICE", "list")
	p.hears("U0ALICE", "Nothing waits for a decision")
	p.settled()
	p.effects(0, 0)
}

// The kill switch: approved calls are held, shown as held, and start once when it is lifted (I3).
func TestPauseAndUnpause(t *testing.T) {
	p := one(t)
	a := p.deploy("run_held")
	p.command("U0ROOT", "pause tool deploy_release incident 7")
	p.hears("U0ROOT", "Paused")
	p.approve("U0ALICE", a.ApprovalID)
	p.card(a.ApprovalID, "Approved; held", "paused by @U0ROOT", "incident 7")
	p.settled()
	p.effects(0, 0)
	p.command("U0ROOT", "unpause tool deploy_release over")
	question := p.hears("U0ROOT", "1 approved would start at once")
	if _, err := p.sim.Click(p.ctx, "U0ROOT", question.Channel, question.TS, "hp_unpause", slacksim.ClickOptions{}); err != nil {
		t.Fatal(err)
	}
	p.hears("U0ROOT", "Unpaused")
	p.becomes(a.ApprovalID, approvals.Completed)
	p.resumed("run_held")
	p.settled()
	p.effects(1, 1)
}

// Slack's API is down when somebody clicks: the decision counts, the tool runs, and the card follows when Slack is back (L6).
func TestSlackDownAtTheClick(t *testing.T) {
	p := one(t)
	a := p.deploy("run_down")
	card := p.pending(a.ApprovalID)
	for _, method := range []string{"response_url", "chat.update", "chat.postMessage", "chat.postEphemeral"} {
		p.sim.Fault(method, slacksim.ServerError{Status: 503}, 0)
	}
	p.click("U0ALICE", card, templates.ActionApprove)
	p.becomes(a.ApprovalID, approvals.Completed)
	p.resumed("run_down")
	p.effects(1, 1)
	if now, _ := p.sim.Message(card.Channel, card.TS); now.Updates != 0 {
		t.Error("the card changed while Slack was down")
	}
	p.sim.ClearFaults()
	now := p.card(a.ApprovalID, "Done")
	if now.TS != card.TS || slices.Contains(now.Actions(), templates.ActionApprove) {
		t.Errorf("the card is at %s, was at %s, and offers %v", now.TS, card.TS, now.Actions())
	}
	p.settled()
	p.effects(1, 1)
}

// An answer of Slack gets lost after it took the post: the card is found again, not posted twice.
func TestLostAnswerToThePost(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	p.sim.Fault("chat.postMessage", slacksim.LoseAnswer{}, 1)
	p.work()
	a := p.deploy("run_lost")
	p.approve("U0ALICE", a.ApprovalID)
	p.card(a.ApprovalID, "Done")
	p.settled()
	if n := len(p.sim.Messages(room)); n != 1 {
		t.Errorf("%d cards", n)
	}
	p.effects(1, 1)
}

// A card that Slack refuses is posted as plain sentences: nobody can decide from it, everybody sees that something waits.
func TestRefusedCard(t *testing.T) {
	t.Parallel()
	p := start(t, 1, 0)
	p.sim.Fault("chat.postMessage", slacksim.Error{Code: "invalid_blocks"}, 1)
	p.work()
	a := p.deploy("run_plain")
	m := p.card(a.ApprovalID, "Waiting for approval", "Slack refused the full card", "/approvals show "+a.ApprovalID.String())
	if len(m.Actions()) != 0 || strings.Contains(m.Text, "tenant-a") {
		t.Errorf("the plain card offers %v, and says %s", m.Actions(), m.Text)
	}
	p.command("U0ALICE", "show "+a.ApprovalID.String())
	p.hears("U0ALICE", "Deploy 2026.07.24 to production")
	p.settled()
	if n := p.number(`SELECT count(*) FROM card WHERE plain AND failure LIKE '%invalid_blocks%'`); n != 1 {
		t.Error("the row does not tell why the card is plain")
	}
	p.effects(0, 0)
}
