package main

// transitions are the guards of what may happen: locks, the one door, the ledger, intake and telling.
var transitions = []mutant{
	{
		guard: "request row lock", holds: "I6 I7 I8", file: "approvals/facts.go",
		old: "WHERE r.approval_id = $1 FOR UPDATE`)", broken: "WHERE r.approval_id = $1`)",
		packages: core, tests: "^(TestTraps|TestTwoLastVotesAtOnce|TestOppositeDecisionsAtOnce|TestNoDecisionAfterWaitingOverTheDeadline|TestSiblingsClosePauseOnce)$", short: true,
	},
	{
		guard: "ledger row lock", holds: "I13 I16", file: "approvals/facts.go",
		old: "WHERE l.lineage_id = (SELECT lineage_id FROM approval_request WHERE approval_id = $1) FOR UPDATE`)", broken: "WHERE l.lineage_id = (SELECT lineage_id FROM approval_request WHERE approval_id = $1)`)",
		packages: proof, tests: "^TestGuardsLocks$",
	},
	{
		guard: "FOR SHARE on the active configuration", holds: "I3", file: "approvals/facts.go",
		old: "WHERE c.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1) FOR SHARE`)", broken: "WHERE c.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1)`)",
		packages: proof, tests: "^TestGuardsLocks$",
	},
	{
		guard: "FOR SHARE on people", holds: "I3 I4", file: "approvals/facts.go",
		old: "ORDER BY u.user_id FOR SHARE`)\n\t// Locks the groups", broken: "ORDER BY u.user_id`)\n\t// Locks the groups",
		packages: proof, tests: "^TestGuardsLocks$",
	},
	{
		guard: "FOR SHARE on groups", holds: "I3 I4", file: "approvals/facts.go",
		old: "ORDER BY g.group_id FOR SHARE`)\n\tsqlReadGroups", broken: "ORDER BY g.group_id`)\n\tsqlReadGroups",
		packages: core, tests: "^(TestTraps|TestMembershipIsLockedUnderADecision)$",
	},
	{
		guard: "a run's advisory lock", holds: "I21", file: "approvals/submit_tx.go",
		old: "`SELECT pg_advisory_xact_lock($1)`", broken: "`SELECT pg_advisory_xact_lock_shared($1)`",
		packages: core, tests: "^(TestIntakeHoldsItsRun|TestConcurrentIntakes)$",
	},
	{
		guard: "repeat of an intake", holds: "I21", file: "approvals/submit_tx.go",
		old: "if f.repeat != (uuid.UUID{}) {", broken: "if false {",
		packages: core, tests: "^TestRepeatedIntake$",
	},
	{
		guard: "status predicate of the swap", holds: "I9", file: "approvals/transition.go",
		old: "r.status = ANY ($2::text[]) AND ($4::bigint IS NULL OR r.version = $4)\n\t\tAND (NOT $25", broken: "$2::text[] IS NOT NULL AND ($4::bigint IS NULL OR r.version = $4)\n\t\tAND (NOT $25",
		packages: proof, tests: "^TestGuardsSwap$",
	},
	{
		guard: "version predicate of the swap", holds: "I8", file: "approvals/transition.go",
		old: "($4::bigint IS NULL OR r.version = $4)\n\t\tAND (NOT $25", broken: "($4::bigint IS NULL OR true)\n\t\tAND (NOT $25",
		packages: proof, tests: "^TestGuardsSwap$",
	},
	{
		guard: "expiry in the swap", holds: "I7", file: "approvals/transition.go",
		old: "(NOT $25::boolean OR r.expires_at > clock_timestamp())", broken: "(NOT $25::boolean OR true)",
		packages: core, tests: "^TestDeadlineBetweenTheBatches$",
	},
	{
		guard: "clock after the lock", holds: "I7", file: "approvals/facts.go",
		old: "sqlClock = statement(`SELECT clock_timestamp()`)", broken: "sqlClock = statement(`SELECT now()`)",
		packages: proof, tests: "^TestGuardsClock$",
	},
	{
		guard: "ledger token in the swap", holds: "I16", file: "approvals/transition.go",
		old: "AND l.token = $5 AND l.epoch = $11", broken: "AND l.epoch = $11",
		packages: proof, tests: "^TestGuardsFence$",
	},
	{
		guard: "ledger epoch in the swap", holds: "I16", file: "approvals/transition.go",
		old: "AND l.token = $5 AND l.epoch = $11", broken: "AND l.token = $5 AND ($11::bigint IS NOT NULL)",
		packages: core, tests: "Lease|Stale|Fence|Guards|Outcome",
	},
	{
		guard: "fence under the lock", holds: "I16", file: "approvals/ledger.go",
		old: "if led == nil || led.token != l.Token || led.epoch != l.Epoch {", broken: "if led == nil {",
		packages: core, tests: "Lease|Takeover|Agent|Guards",
	},
	{
		guard: "fence of a renewal", holds: "I16", file: "approvals/ledger.go",
		old: "AND token = $2 AND epoch = $3 AND state = 'executing'", broken: "AND $2::uuid IS NOT NULL AND $3::bigint IS NOT NULL AND state = 'executing'",
		packages: proof, tests: "^TestGuardsRenewal$",
	},
	{
		guard: "an hour of renewals at most", holds: "I16", file: "approvals/ledger.go",
		old: "AND clock_timestamp() < claimed_at + $5::interval", broken: "AND $5::interval IS NOT NULL",
		packages: core, tests: "Lease|Agent|Guards",
	},
	{
		guard: "epoch grows by one", holds: "I16", file: "approvals/execute.go",
		old: "WHERE l.epoch = excluded.epoch - 1 AND l.state IN", broken: "WHERE l.state IN",
		packages: proof, tests: "^TestGuardsReservation$",
	},
	{
		guard: "lease check", holds: "I13 I16", file: "approvals/execute.go",
		old: "if r.executor != string(who.executor) || !f.ledger.leaseOver(f.now) {", broken: "if r.executor != string(who.executor) {",
		packages: core, tests: "^(TestOneClaimOfMany|TestLeaseAndResult|TestTakeover)$",
	},
	{
		guard: "back-off before a retry", holds: "L3", file: "approvals/execute.go",
		old: "f.ledger.nextTryAt != nil && f.now.Before(*f.ledger.nextTryAt)", broken: "false",
		packages: core, tests: "^(TestRetriesEnd|TestOutcomes)$",
	},
	{
		guard: "opaque is never sent again", holds: "I13 I18", file: "approvals/takeover.go",
		old: "\tdefault:\n\t\treturn f.doubt(\"the tool cannot be asked and must not be sent again\", who), nil\n", broken: "",
		packages: core, tests: "^(TestTakeover|TestTakeoverIsRefused)$",
	},
	{
		guard: "look up before sending again", holds: "I13", file: "approvals/takeover.go",
		old: "return f.run(who, nil, args, true), nil", broken: "return f.run(who, nil, args, false), nil",
		packages: core, tests: "^TestTakeover$",
	},
	{
		guard: "timeout and settle before a lookup", holds: "I13", file: "approvals/takeover.go",
		old: "if believed := f.believed(tool); f.now.Before(believed) {\n\t\t\treturn step{claim: Claim{Why: string(Running)}, due: believed}, nil", broken: "if believed := f.believed(tool); false {\n\t\t\treturn step{claim: Claim{Why: string(Running)}, due: believed}, nil",
		packages: core, tests: "^TestTakeover$",
	},
	{
		guard: "key retention", holds: "I19", file: "approvals/takeover.go",
		old: "case l.firstSentAt != nil && !f.now.Add(timeout).Before(l.firstSentAt.Add(tool.KeyRetention())):", broken: "case l.firstSentAt != nil && timeout < 0:",
		packages: core, tests: "^(TestTakeoverIsRefused|TestRetriesEnd)$",
	},
	{
		guard: "attempts are capped", holds: "I19", file: "approvals/takeover.go",
		old: "case l.attempts >= maxAttempts:", broken: "case false:",
		packages: core, tests: "^(TestTakeoverIsRefused|TestRetriesEnd)$",
	},
	{
		guard: "a late revoke forbids a retry", holds: "I2", file: "approvals/ledger.go",
		old: "case r.revokedAt != nil:\n\t\treturn r.revokedFor()", broken: "case false:\n\t\treturn r.revokedFor()",
		packages: core, tests: "Revoke|Retries",
	},
	{
		guard: "maybe_effect holds back a refusal", holds: "I17", file: "approvals/ledger.go",
		old: "if led.maybeEffect || r.status == Uncertain {\n\t\t\treturn a.uncertain(\"refused now", broken: "if r.status == Uncertain {\n\t\t\treturn a.uncertain(\"refused now",
		packages: core, tests: "^(TestMaybeEffect|TestOutcomes)$",
	},
	{
		guard: "maybe_effect survives a takeover", holds: "I17", file: "approvals/execute.go",
		old: "l.maybeEffect || l.state == Running", broken: "l.maybeEffect",
		packages: core, tests: "^(TestMaybeEffect|TestTakeover|TestTakeoverIsRefused)$",
	},
	{
		guard: "uncertain sends nothing", holds: "I18", file: "approvals/takeover.go",
		old: "\tout.claim = Claim{\n\t\tLookupFirst: true,", broken: "\tout.claim = Claim{\n\t\tGo: true,",
		packages: core, tests: "^TestUncertainIsLookedUp$",
	},
	{
		guard: "one call settles once", holds: "L5", file: "approvals/transition.go",
		old: "ON old.approval_id = s.approval_id AND NOT old.settled -- the row", broken: "ON old.approval_id = s.approval_id -- the row",
		packages: core, tests: "Resume|Settle|Uncertain|Agent|Guards|TestExecuteBy|Retries",
	},
	{
		guard: "told when all calls are settled", holds: "L5 I20", file: "approvals/transition.go",
		old: "FROM pause p WHERE p.open_calls = 0", broken: "FROM pause p",
		packages: core, tests: "^TestSiblingsClosePauseOnce$", short: true,
	},
	{
		guard: "one courier a delivery", holds: "L5", file: "approvals/resume.go",
		old: "AND stopped_at IS NULL AND next_try_at <= clock_timestamp()", broken: "AND stopped_at IS NULL",
		packages: core, tests: "^(TestOneCourier|TestDeliveryIsOneMessage)$",
	},
	{
		guard: "uncertain holds the resume", holds: "L5", file: "approvals/transition.go",
		old: "settled = r.settled OR $24::boolean", broken: "settled = r.settled OR $24::boolean OR $3::text = 'uncertain'",
		packages: core, tests: "^(TestUncertainHoldsTheResume|TestUncertainIsLookedUp)$",
	},
}
