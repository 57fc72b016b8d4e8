package templates

import (
	"strings"
	"testing"
)

// kinds are the audit trail's own words, each with a row of its kind and what a person is told of it.
var kinds = map[string]struct {
	row  Happening
	told string
}{
	"approval.requested": {
		Happening{By: "agent:support-agent", To: "pending", Detail: []byte(`{"rule":"refunds","key":"key_1"}`)},
		"Proposed by the agent support-agent under the rule refunds",
	},
	"approval.expired":            {Happening{From: "approved", To: "expired"}, "Expired: it was approved but could not run in time."},
	"approval.revoked":            {Happening{By: "slack:U0ROOT", Detail: []byte(`{"reason":"revoked_by_admin","words":"called back"}`)}, "Revoked by @U0ROOT: an admin revoked it, “called back”. Nothing was executed"},
	"approval.revoked_late":       {Happening{By: "slack:U0ROOT", Detail: []byte(`{"words":"stop"}`)}, "Revoked by @U0ROOT, “stop”: too late for the attempt that runs; none is made after it"},
	"approval.migration_required": {Happening{}, "Out of date: the agent or the tool changed. It must be proposed again; nothing was executed"},
	"decision.vote":               {Happening{By: "slack:U0BO", Detail: []byte(`{"votes":1,"quorum":2}`)}, "@U0BO approved (1 of 2); more approvals are needed"},
	"decision.approved":           {Happening{By: "rule:small-refunds"}, "the rule small-refunds approved: it may run"},
	"decision.rejected":           {Happening{By: "slack:U0BO"}, "@U0BO rejected it. Nothing was executed"},
	"decision.edited":             {Happening{By: "slack:U0CY", Detail: []byte(`{"child":"apr_01k0child"}`)}, "@U0CY edited the arguments: replaced by a new request, apr_01k0child"},
	"decision.responded":          {Happening{By: "slack:U0BO"}, "@U0BO answered it. Nothing was executed"},
	"decision.refused":            {Happening{By: "slack:U0EVE", Detail: []byte(`{"verb":"approve","why":"not_reviewer"}`)}, "@U0EVE tried to approve it and was refused: not one of its reviewers"},
	"execution.held":              {Happening{Detail: []byte(`{"reason":"paused"}`)}, "Held: an admin paused this. It starts once that is over, if there is time"},
	"execution.claimed":           {Happening{By: "agent:support-agent", Detail: []byte(`{"attempt":2}`)}, "Checked once more, and started: attempt 2, run by the agent support-agent"},
	"execution.succeeded":         {Happening{Detail: []byte(`{"receipt":"re_8842"}`)}, "Done: the receipt is re_8842"},
	"execution.failed":            {Happening{Detail: []byte(`{"error":"422 refunded already"}`)}, "Failed without any effect: “422 refunded already”"},
	"execution.retry":             {Happening{Detail: []byte(`{"attempt":1,"error":"503"}`)}, "Attempt 1 failed without any effect: “503”; it is tried again"},
	"execution.absent":            {Happening{}, "The tool says that it has not happened; it is tried again"},
	"execution.unknown":           {Happening{Detail: []byte(`{"attempt":1,"error":"timeout"}`)}, "Attempt 1 ended without a clear answer: “timeout”; it is found out before anything else"},
	"execution.report_refused":    {Happening{By: "agent:support-agent", Detail: []byte(`{"class":"succeeded","why":"the key was revoked"}`)}, "A report of the agent support-agent was not believed: “the key was revoked”. The operation is settled as if nothing had been said"},
	"execution.uncertain":         {Happening{Detail: []byte(`{"why":"execute_expired"}`)}, "Nobody knows whether it happened: it was approved but could not run in time. Automatic retries stopped"},
	"evidence.first":              {Happening{By: "slack:U0ROOT", Detail: []byte(`{"happened":true,"evidence":"line 7"}`)}, "@U0ROOT found that it happened: “line 7”. A second person must say the same"},
	"evidence.happened":           {Happening{By: "slack:U0ROOT", Detail: []byte(`{"evidence":"line 7"}`)}, "@U0ROOT found that it happened: “line 7”. Recorded as done"},
	"evidence.did_not_happen":     {Happening{By: "slack:U0ROOT"}, "@U0ROOT found that it did not happen. Recorded as failed, without effect"},
	"run.told":                    {Happening{Detail: []byte(`{"agent_revision":"git:1f0c2d9"}`)}, "The agent was told, and its run goes on under git:1f0c2d9"},
	"vote.voided":                 {Happening{By: "slack:U0ROOT", Detail: []byte(`{"reviewer":"slack:U0CY","user":"U0CY","reason":"left the team"}`)}, "@U0CY's vote no longer counts: blocked by @U0ROOT (“left the team”)"},
	"run.accepted":                {Happening{}, "The agent took the message and has yet to confirm it"},
	"run.not_told":                {Happening{Detail: []byte(`{"attempt":3,"error":"500"}`)}, "The agent could not be told (try 3): “500”; it is told again later"},
	"run.stopped":                 {Happening{}, "The agent answered that this run is over; it is told no more"},
	"run.dead_lettered":           {Happening{Detail: []byte(`{"attempt":9}`)}, "The agent could not be told for 24 hours. Given up; an operator can deliver it again"},
}

func TestTrailIsInWords(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for kind, tc := range kinds {
		tc.row.Kind = kind
		got := Tell(tc.row).Plain()
		if got != tc.told {
			t.Errorf("%s\n got %q\nwant %q", kind, got, tc.told)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%s says the same as %s", kind, other)
		}
		seen[got] = kind
	}
	for _, tc := range []struct {
		row  Happening
		told string
	}{
		{Happening{Kind: "approval.requested", By: "slack:U0CY", Detail: []byte(`{"rule":"refunds","parent":"apr_01k0parent"}`)}, "Proposed anew with the arguments of @U0CY, in place of apr_01k0parent under the rule refunds"},
		{Happening{Kind: "approval.expired", From: "pending"}, "Expired: nobody decided in time."},
		{Happening{Kind: "decision.approved", By: "slack:U0BO", Detail: []byte(`{"votes":2,"quorum":2}`)}, "@U0BO approved (2 of 2): it may run"},
		{Happening{Kind: "decision.rejected", By: "slack:U0BO", Detail: []byte(`{"reason":"wrong order"}`)}, "@U0BO rejected it: “wrong order”. Nothing was executed"},
		{Happening{Kind: "approval.revoked", By: "slack:U0ROOT", Detail: []byte(`{"reason":"reviewer_lost_authority","words":"left the team"}`)}, "Revoked by @U0ROOT: someone who approved this may no longer approve it, so the approvals don't suffice, “left the team”. Nothing was executed"},
		{Happening{Kind: "execution.claimed", Detail: []byte(`{"attempt":1,"lookup":true}`)}, "Asked the tool whether it had happened"},
		// What is not known is told by its own name.
		{Happening{Kind: "moon.rose", From: "pending", To: "approved", By: "system"}, "moon.rose: pending → approved · Holdpoint"},
		{Happening{Kind: "approval.of_the_future", By: "slack:U0BO"}, "approval.of_the_future · @U0BO"},
		{Happening{Kind: "decision.refused", By: "slack:U0EVE", Detail: []byte(`{"why":"of_the_future"}`)}, "@U0EVE tried to do it and was refused: of_the_future"},
		{Happening{Kind: "run.told", Detail: []byte(`not JSON`)}, "The agent was told, and its run goes on"},
	} {
		if got := Tell(tc.row).Plain(); got != tc.told {
			t.Errorf("%s\n got %q\nwant %q", tc.row.Kind, got, tc.told)
		}
	}
}

// Each kind of refusal says why in its own words, without the code's underscores.
func TestRefusedIsToldWhy(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for why, words := range refusedBecause {
		if other, twice := seen[words]; twice {
			t.Errorf("%s says the same as %s", why, other)
		}
		if strings.Contains(words, "_") {
			t.Errorf("%s: %q", why, words)
		}
		seen[words] = why
	}
}

// The messages show the words, not the kinds.
func TestAuditShowsWords(t *testing.T) {
	t.Parallel()
	row := kinds["decision.refused"].row
	row.Kind, row.At = "decision.refused", noon
	m := AuditMessage(refund(), []Event{Tell(row)})
	got := blockText(t, m.Blocks, "audit")
	if !strings.Contains(got, "was refused: not one of its reviewers") || strings.Contains(got, "decision.refused") {
		t.Error(got)
	}
}
