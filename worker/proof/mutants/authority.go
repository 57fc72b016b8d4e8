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
		packages: core, tests: "^(TestAuthorityLostBeforeTheClaim|TestGuardsAtTheClaim)$",
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
		old: "if !ok || version.AcceptsState(r.sdkFormat, r.sdkVersion, r.sdkSchema) != nil {", broken: "if false {",
		packages: core, tests: "^(TestMigrationRequired|TestGuardsAtTheClaim)$",
	},
	{
		guard: "the agent and its key", holds: "I3", file: "approvals/revalidate.go",
		old: "if !ok || !agent.Allows(r.tool) || !f.keyLive {", broken: "if !ok {",
		packages: core, tests: "^(TestAuthorityLostBeforeTheClaim|TestKeys)$",
	},
	{
		guard: "a button's MAC", holds: "I27", file: "approvals/decide.go",
		old: "!rq.Button.genuine(f.card.macKey, rq.Channel) || rq.Channel", broken: "rq.Channel",
		packages: core, tests: "^TestButtonIsBound$",
	},
	{
		guard: "a button's channel", holds: "I27", file: "approvals/button.go",
		old: "m.Write([]byte(b.payload() + \"\\x00\" + channel))", broken: "m.Write([]byte(b.payload() + channel[:0]))",
		packages: core, tests: "Button",
	},
	{
		guard: "a card's channel", holds: "I27", file: "approvals/decide.go",
		old: " || rq.Channel != f.card.channel:", broken: ":",
		packages: core, tests: "Button",
	},
	{
		guard: "a card's message", holds: "I27", file: "approvals/decide.go",
		old: "case rq.MessageTS != f.card.messageTS:", broken: "case false:",
		packages: core, tests: "^TestButtonIsBound$",
	},
	{
		guard: "one vote a person", holds: "I6", file: "approvals/decide.go",
		old: "if slices.ContainsFunc(f.votes, func(v Vote) bool { return v.By == \"slack:\"+user }) {", broken: "if false {",
		packages: core, tests: "^TestQuorum$",
	},
	{
		guard: "the requester decides nothing", holds: "I5", file: "approvals/authority.go",
		old: "if requester && f.req.requester == \"slack:\"+user {", broken: "if false {",
		packages: core, tests: "^TestWhoMayDecide$",
	},
	{
		guard: "a stale mirror counts for nothing", holds: "I4", file: "approvals/authority.go",
		old: "case !ok || f.now.Sub(row.syncedAt) > age ||", broken: "case !ok ||",
		packages: core, tests: "^(TestStaleMirrorDecidesNothing|TestHeldByAnUnreadableDirectory)$",
	},
	{
		guard: "an ambiguous decision is read back", holds: "I17", file: "approvals/decide.go",
		old: "if errors.Is(err, errAmbiguous) {\n\t\tr, err = s.decidedBy(ctx, rq)", broken: "if errors.Is(err, errAmbiguous) {\n\t\tr, err = s.decide(ctx, rq)",
		packages: core, tests: "^TestAmbiguousDecisionIsReadBack$",
	},
	{
		guard: "another agent's claim", holds: "I22", file: "approvals/agentops.go",
		old: "case r.tenant != key.Tenant || r.agent != key.Agent:", broken: "case false:",
		packages: core, tests: "^TestNothingCrossesAgentsAndTenants$",
	},
}
