//go:build !linux

package pgcluster

// memoryBase is "": only Linux has one as a rule.
func memoryBase() string { return "" }
