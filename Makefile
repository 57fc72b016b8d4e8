# Holdpoint's chores. `make check` is what CI runs; it needs Go, git and a C
# compiler, and installs the rest where it may.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_VERSION := v2.15.0
GOLANGCI := .bin/golangci-lint-$(GOLANGCI_VERSION)

# go.sum is enforced: nothing here changes go.mod or go.sum.
export GOFLAGS := $(filter-out -mod=%,$(shell go env GOFLAGS)) -mod=readonly

# Packages and further flags for the tests: make test PKG=./approvals/... TESTFLAGS='-run I7'
PKG ?= ./...
TESTFLAGS ?=

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 16

.PHONY: check
check: fmt-check vet lint race proof ## all that CI checks: format, vet, lint, tests under the race detector, the proof in short

.PHONY: test
test: services ## all tests
	go test $(TESTFLAGS) $(PKG)

.PHONY: race
race: services ## all tests under the race detector
	go test -race $(TESTFLAGS) $(PKG)

# The whole proof: every cell of the crash matrix and a thousand operations under the race detector; then that many operations with
# everything breaking, without it (it takes five times as long). An hour, on two cores.
OPERATIONS ?= 10000

.PHONY: proof
proof: services ## the proof of "exactly one effect" in a bounded form: crashes, zombies, a forgetful Redis, a small torture
	HOLDPOINT_PROOF=1 go test -race -count=1 -timeout=20m $(TESTFLAGS) ./worker/proof

.PHONY: torture
torture: services ## the proof of "exactly one effect" in full (see worker/proof; OPERATIONS=10000)
	HOLDPOINT_PROOF=1 HOLDPOINT_TORTURE=1000 go test -race -count=1 -timeout=2h -v $(TESTFLAGS) ./worker/proof
	HOLDPOINT_PROOF=1 HOLDPOINT_TORTURE=$(OPERATIONS) go test -count=1 -timeout=2h -v -run '^TestTorture$$' ./worker/proof

# Minimising is cut short: on inputs of many KiB it would take the time that is meant for looking.
FUZZTIME ?= 60s

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (60s): the argument gate, state readers, buttons, Slack's payloads, configuration, ...
	for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9]*' $$dir/*_test.go | cut -c6-); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x $$dir; \
		done; \
	done

# Random lives of approvals against an oracle, many times what the ordinary tests live.
SCHEDULES ?= 5000

.PHONY: lives
lives: services ## random lives of approvals against an oracle (SCHEDULES=5000)
	HOLDPOINT_SCHEDULES=$(SCHEDULES) go test -count=1 -timeout=1h -run '^TestLifeAgainstTheOracle$$' -v ./approvals

.PHONY: mutants
mutants: services ## take each guard out and see a test fail; writes docs/mutants.md
	go run ./worker/proof/mutants

.PHONY: bench
bench: services ## all benchmarks
	go test -run '^$$' -bench . -benchmem $(TESTFLAGS) $(PKG)

.PHONY: vet
vet: ## go vet
	go vet $(PKG)

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint
	$(GOLANGCI) run $(PKG)

.PHONY: fmt
fmt: $(GOLANGCI) ## format all Go files (gofumpt)
	$(GOLANGCI) fmt

.PHONY: fmt-check
fmt-check: $(GOLANGCI) ## show what is not formatted, and fail
	$(GOLANGCI) fmt --diff

.PHONY: services
services: ## install what the tests run (redis-server, postgresql, chromium), where that is allowed
	@.ci/install-services

.PHONY: clean
clean: ## remove the tools built here
	rm -rf .bin

# Its own version in its name: a new version is a new file. The linter has a
# module of its own, so that its dependencies stay out of go.sum; it is built
# once, in about two minutes.
$(GOLANGCI):
	@mkdir -p .bin/new
	GOBIN=$(CURDIR)/.bin/new go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv .bin/new/golangci-lint $@ && rmdir .bin/new
