package main

import "slices"

// The guards. Where a second guard stands behind one, the test is the one that can tell them apart.
const (
	core   = "./approvals"
	hands  = "./worker/tools"
	slack  = "./interactions"
	worker = "./worker"
	proof  = "./worker/proof"
)

// mutants are all of them, in the order of the report.
var mutants = slices.Concat(transitions, authority, edges)
