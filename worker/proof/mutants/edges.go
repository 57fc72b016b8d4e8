package main

// edges are the guards outside of the core: Slack's signatures, the tools' requests, Redis, leases.
var edges = []mutant{
	{
		guard: "freshness of a signature", holds: "I22", file: "interactions/signature.go",
		old: "age > window || age < -window", broken: "false && age > window",
		packages: slack, tests: "^TestWhatIsNotSigned$",
	},
	{
		guard: "the signature itself", holds: "I22", file: "interactions/signature.go",
		old: "if !match {", broken: "if false {",
		packages: slack, tests: "^(TestWhatIsNotSigned|TestRouteWalk)$",
	},
	{
		guard: "nothing opens for a forged press", holds: "I27", file: "interactions/modals.go",
		old: "if d := f.Bound(press); d != \"\" {", broken: "if d := f.Bound(press); d == \"nothing\" {",
		packages: slack, tests: "^TestNothingOpensForAForgedPress$",
	},
	{
		guard: "a form is its opener's", holds: "I27", file: "interactions/submit.go",
		old: "if m.User != c.by.UserID {", broken: "if false {",
		packages: slack, tests: "^TestFormsAreBoundToTheirCardAndPerson$",
	},
	{
		guard: "nothing is written after the lease", holds: "I16", file: "worker/tools/egress.go",
		old: "if !c.live() {", broken: "if false {",
		packages: hands, tests: "^TestFence$",
	},
	{
		guard: "HTTP/1 only", holds: "I13", file: "worker/tools/egress.go",
		old: "protocols.SetHTTP1(true)", broken: "protocols.SetHTTP1(true)\n\tprotocols.SetHTTP2(true)",
		packages: hands, tests: "^TestNoHTTP2$",
	},
	{
		guard: "no redirects", holds: "I13", file: "worker/tools/egress.go",
		old: "return http.ErrUseLastResponse", broken: "return nil",
		packages: hands, tests: "^TestRedirectsAreNotFollowed$",
	},
	{
		guard: "private addresses are closed", holds: "I24", file: "worker/tools/egress.go",
		old: "Control:  guard(allow).Safe,", broken: "",
		packages: hands, tests: "^(TestForbiddenAddresses|TestRebinding)$",
	},
	{
		guard: "unsent is only what had no connection", holds: "I17", file: "worker/tools/http.go",
		old: "case !connected:", broken: "case !connected || limit > 0:",
		packages: hands, tests: "^TestOneEffectHoweverItBreaks$",
	},
	{
		guard: "a broken-off success is not believed", holds: "I17", file: "worker/tools/answer.go",
		old: "if !got.whole && !got.tooMuch {", broken: "if false {",
		packages: hands, tests: "^(TestOneEffectHoweverItBreaks|TestEveryStatus)$",
	},
	{
		guard: "a 5xx is unknown", holds: "I17", file: "worker/tools/answer.go",
		old: "case got.status >= 400 && got.status < 500:", broken: "case got.status >= 400:",
		packages: hands, tests: "^TestEveryStatus$",
	},
	{
		guard: "a conflict in Redis is delivered", holds: "I28", file: "worker/tasks.go",
		old: "if errors.Is(err, asynq.ErrTaskIDConflict) {", broken: "if false {",
		packages: worker, tests: "^TestConflictIsDelivered$",
	},
	{
		guard: "a lost lease ends the tool", holds: "I16", file: "worker/lease.go",
		old: "case errors.Is(err, approvals.ErrStale), errors.Is(err, approvals.ErrNotFound):\n\t\t\tk.lose()\n\t\t\treturn", broken: "case false && errors.Is(err, approvals.ErrStale):\n\t\t\tk.lose()\n\t\t\treturn",
		packages: worker, tests: "^TestLostLeaseStopsTheTool$",
	},
	{
		guard: "a stopped process is not live", holds: "I16", file: "worker/lease.go",
		old: "if !k.lost && !time.Now().Before(k.ends) {", broken: "if false {",
		packages: worker, tests: "^(TestNotLiveAfterAStop|TestLostLeaseStopsTheTool)$",
	},
}
