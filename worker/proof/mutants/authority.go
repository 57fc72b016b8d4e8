package main

// authority are the guards of who may: decisions, buttons, and what is held against the present at a claim.
var authority = []mutant{
	{
		guard: "expiry under the lock", holds: "I7", file: "approvals/decide.go",
		old: "case !f.now.Before(r.expiresAt):\n\t\treturn deny(DenyExpired, \"\"), nil", broken: "case false:\n\t\treturn deny(DenyExpired, \"\"), nil",
		packages: proof, tests: "^TestGuardsJudgement$",
	},
	{
		guard: "execute_by at the claim", holds: "I2 I3", file: "approvals/revalidate.go",
		old: "if !f.now.Before(r.expiresAt) {\n\t\treturn end(Expired", broken: "if false {\n\t\treturn end(Expired",
		packages: core, tests: "Authority|Expire|Sweep|Retries|Guards|TestLifeAgainstTheOracle",
	},
	{
		guard: "digest that the person saw", holds: "I1 I6", file: "approvals/decide.go",
		old: "case rq.Button.DigestPrefix != shortDigest(r.digest):", broken: "case false:",
		packages: core, tests: "^(TestButtonIsBound|TestEdit)$",
	},
	{
		guard: "digest of the sealed bytes", holds: "I1", file: "approvals/revalidate.go",
		old: "if err != nil || !ok || !f.votesAgree() {", broken: "if err != nil || !ok && false || !f.votesAgree() {",
		packages: core, tests: "^(TestAuthorityLostBeforeTheClaim|TestSealedColumnsAreBound|TestStateProposesOtherArguments)$",
	},
	{
		guard: "digest of every counted vote", holds: "I1 I6", file: "approvals/revalidate.go",
		old: "if err != nil || !ok || !f.votesAgree() {", broken: "if err != nil || !ok {",
		packages: core, tests: "^TestAuthorityLostBeforeTheClaim$",
	},
	{
		guard: "arguments against the state", holds: "I1 I23", file: "approvals/revalidate.go",
		old: "if x.checkState && !s.stateAgrees(f) {", broken: "if false {",
		packages: core, tests: "^TestState",
	},
	{
		guard: "quorum count", holds: "I6", file: "approvals/decide.go",
		old: "if len(f.counted())+1 >= need {", broken: "if need > 0 {",
		packages: core, tests: "^(TestQuorum|TestQuorumAgainstTheCurrentRule)$",
	},
	{
		guard: "quorum at the claim", holds: "I3", file: "approvals/revalidate.go",
		old: "case valid >= need:\n\t\treturn rule, nil", broken: "case valid >= 0:\n\t\treturn rule, nil",
		packages: core, tests: "^TestAuthorityLostBeforeTheClaim$",
	},
	{
		guard: "authority again at the claim", holds: "I3", file: "approvals/revalidate.go",
		old: "case no == \"\" && g != nil && f.excluded(user, rule) == \"\":", broken: "default:",
		packages: core, tests: "^(TestAuthorityLostBeforeTheClaim|TestSeedAuthorityIsReadAgain)$",
	},
	{
		guard: "requester's role at the claim", holds: "I3", file: "approvals/revalidate.go",
		old: "case g == nil:\n\t\t\treturn no(end(Revoked, ReasonRequesterLostRole))", broken: "case false:\n\t\t\treturn no(end(Revoked, ReasonRequesterLostRole))",
		packages: core, tests: "^(TestAuthorityLostBeforeTheClaim|TestSeedAuthorityIsReadAgain)$",
	},
	{
		guard: "the kill switch", holds: "I3", file: "approvals/revalidate.go",
		old: "if f.stops[\"tenant:\"] || f.stops[\"agent:\"+r.agent] || f.stops[\"tool:\"+r.tool] {", broken: "if false {",
		packages: core, tests: "^TestHeldByASwitchOrAWindow$",
	},
	{
		guard: "the window", holds: "I3", file: "approvals/revalidate.go",
		old: "if rule.Window != nil && !rule.Window.Open(f.now) {\n\t\treturn hold", broken: "if false {\n\t\treturn hold",
		packages: core, tests: "^TestHeldBy",
	},
	{
		guard: "the tool's revision", holds: "I3", file: "approvals/revalidate.go",
		old: "if !ok || tool.Revision() != r.toolRevision {", broken: "if !ok {",
		packages: core, tests: "^(TestMigrationRequired|TestToolChangedAtTheClaim)$",
	},
	{
		guard: "the registry of versions", holds: "I12", file: "approvals/revalidate.go",
		old: "if !ok || version.AcceptsState(r.sdkFormat, r.sdkVersion, r.sdkSchema) != nil {", broken: "if _ = version; false {",
		packages: core, tests: "^TestMigrationRequired$",
	},
	{
		guard: "the agent and its key", holds: "I3", file: "approvals/revalidate.go",
		old: "if !ok || !agent.Allows(r.tool) || !f.keyLive {", broken: "if !ok {",
		packages: core, tests: "^(TestAuthorityLostBeforeTheClaim|TestKeys)$",
	},
	{
		guard: "a button's MAC", holds: "I27", file: "approvals/button.go",
		old: "!b.genuine(key, channel) || channel != storedChannel", broken: "channel != storedChannel",
		packages: core, tests: "^(TestButtonIsBound|TestFormsAreBound)$",
	},
	{
		guard: "a button's channel", holds: "I27", file: "approvals/button.go",
		old: "m.Write([]byte(b.payload() + \"\\x00\" + channel))", broken: "m.Write([]byte(b.payload() + channel[:0]))",
		packages: core, tests: "Button",
	},
	{
		guard: "a card's channel", holds: "I27", file: "approvals/button.go",
		old: " || channel != storedChannel:", broken: ":",
		packages: core, tests: "^TestFormsAreBound$",
	},
	{
		guard: "a card's message", holds: "I27", file: "approvals/button.go",
		old: "case message != storedMessage:", broken: "case false:",
		packages: core, tests: "^(TestButtonIsBound|TestFormsAreBound)$",
	},
	{
		guard: "one vote a person", holds: "I6", file: "approvals/decide.go",
		old: "return v.By == \"slack:\"+user }); i >= 0 {", broken: "return v.By == \"slack:\"+user }); i >= len(f.votes) {",
		packages: core, tests: "^TestQuorum$",
	},
	{
		guard: "the requester decides nothing", holds: "I5", file: "approvals/authority.go",
		old: "if requester && f.req.requester == \"slack:\"+user {", broken: "if false {",
		packages: core, tests: "^TestWhoMayDecide$",
	},
	{
		guard: "the editor does not approve", holds: "I5", file: "approvals/authority.go",
		old: "if editor && slices.Contains(f.req.editors, \"slack:\"+user) {", broken: "if false {",
		packages: core, tests: "^(TestEverybodyAtEveryAct|TestEdit)$",
	},
	{
		guard: "being in a list is not enough", holds: "I4", file: "approvals/authority.go",
		old: "case !f.full(user):\n\t\treturn DenyIneligible", broken: "case false:\n\t\treturn DenyIneligible",
		packages: core, tests: "^(TestEverybodyAtEveryAct|TestWhoMayBeBehindACall)$",
	},
	{
		guard: "whoever does not count is in no group", holds: "I4", file: "approvals/authority.go",
		old: "if !f.full(user) || f.blocked[user] {", broken: "if false {",
		packages: core, tests: "^TestWhoMayBeBehindACall$",
	},
	{
		guard: "a block voids votes, and lifting it revives none", holds: "I3 I6", file: "approvals/facts.go",
		old: "(b.active OR d.decided_at <= b.at))", broken: "b.active)",
		packages: core, tests: "^TestABlockVoidsVotesForGood$",
	},
	{
		guard: "void votes are not counted", holds: "I3 I6", file: "approvals/request.go",
		old: "v.Decision == string(Approve) && !v.Void", broken: "v.Decision == string(Approve)",
		packages: core, tests: "^(TestABlockVoidsVotesForGood|TestBlock)$",
	},
	{
		guard: "groups that conditions ask for are read", holds: "I3 I4", file: "approvals/revalidate.go",
		old: "if groups := f.unread(r.requester, age); len(groups) > 0 {", broken: "if groups := f.unread(r.requester, age); len(groups) > 1000 {",
		packages: core, tests: "^TestConditionsOverAStaleGroup$",
	},
	{
		guard: "no reservation without a claim", holds: "I2 I7", file: "approvals/execute.go",
		old: "b.Queue(sqlMustClaim, id, f.req.version+1)", broken: "_ = sqlMustClaim",
		packages: core, tests: "^TestDeadlineBetweenTheBatchesOfAClaim$",
	},
	{
		guard: "the cap of open calls of a run", holds: "limits", file: "approvals/compose.go",
		old: "if f.open-still+w.open+fresh > f.tenant.Limits.OpenPerRun {", broken: "if fresh < 0 {",
		packages: core, tests: "^TestIntakeRefusals$",
	},
	{
		guard: "an unpause starts what it listed", holds: "I3", file: "approvals/suspend.go",
		old: "if err == nil && now != rq.Listed {", broken: "if err == nil && now == \"\" {",
		packages: core, tests: "^TestUnpauseStartsWhatWasListed$",
	},
	{
		guard: "a reconciliation's press is the card's", holds: "I27", file: "approvals/reconcile.go",
		old: "f.bound(p.Button, p.Channel, p.MessageTS) != \"\"", broken: "false",
		packages: core, tests: "^TestFormsAreBound$",
	},
	{
		guard: "two statements are two people's", holds: "I18", file: "approvals/reconcile.go",
		old: "case t.Person == said.Person || t.By == said.By:", broken: "case t.By == said.By:",
		packages: core, tests: "^TestSecondPersonIsAnotherPerson$",
	},
	{
		guard: "a stale mirror counts for nothing", holds: "I4", file: "approvals/authority.go",
		old: "case !ok || f.now.Sub(row.syncedAt) > age ||", broken: "case !ok ||",
		packages: core, tests: "^(TestStaleMirrorDecidesNothing|TestHeldByAnUnreadableDirectory)$",
	},
	{
		guard: "an ambiguous decision is read back", holds: "I17", file: "approvals/decide.go",
		old: "if r, err = s.decidedBy(ctx, rq); err == nil {", broken: "if r, err = s.decide(ctx, rq); err == nil {",
		packages: proof, tests: "^TestLostAnswerToACommit$",
	},
	{
		guard: "another agent's claim", holds: "I22", file: "approvals/agentops.go",
		old: "case r.tenant != key.Tenant || r.agent != key.Agent:", broken: "case false:",
		packages: core, tests: "^TestNothingCrossesAgentsAndTenants$",
	},
}
