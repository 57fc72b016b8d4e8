package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Redis that is away is one line a minute, with a count of the others; nobody else's lines are held back.
func TestAsynqIsQuiet(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Date(2026, 7, 24, 12, 0, 0, 0, time.UTC)
	log := slog.New(quietly(slog.NewTextHandler(&out, nil), func() time.Time { return now })).With("process", "worker")
	asynq, relay := log.With("component", "asynq"), log.With("component", "worker")
	lines := func() []string {
		defer out.Reset()
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	storm := func() {
		for range 200 {
			asynq.Error("Dequeue error: UNKNOWN: redis eval error: dial tcp 127.0.0.1:1: connect: connection refused")
			asynq.Error("cannot subscribe to cancelation channel: UNKNOWN: redis pubsub receive error: EOF")
			asynq.Warn("recoverer: could not list lease expired tasks: i/o timeout")
		}
	}
	storm()
	got := lines()
	if len(got) != 1 || !strings.Contains(got[0], "Redis can't be reached") || !strings.Contains(got[0], "level=ERROR") || !strings.Contains(got[0], "process=worker component=asynq") {
		t.Fatalf("%d lines: %q", len(got), got)
	}
	now = now.Add(time.Minute)
	storm()
	if got = lines(); len(got) != 1 || !strings.Contains(got[0], "left_out=599") {
		t.Errorf("a minute later: %q", got)
	}
	// A line about something else is not hidden by it, and not repeated either.
	for range 3 {
		asynq.Error("Could not push task id=1 to queue")
		asynq.Info("starting")
		relay.Error("dial tcp", "error", errors.New("connection refused"))
	}
	if got = lines(); len(got) != 7 {
		t.Errorf("%d lines: %q", len(got), got)
	}
}

// A worker without its settings says in one sentence what is missing.
func TestWorkerSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := typed("worker", "--database-url=postgres://nowhere", "--redis-url=")
	if r.code != 1 || strings.Count(strings.TrimSpace(r.err), "\n") != 0 || !strings.Contains(r.err, "HOLDPOINT_REDIS_URL") || r.out != "" {
		t.Errorf("exit %d, %q %q", r.code, r.out, r.err)
	}
	r = typed("worker", "--database-url=postgres://nowhere", "--redis-url=redis://127.0.0.1:1", "--slack-bot-token=")
	if r.code != 1 || strings.Count(strings.TrimSpace(r.err), "\n") != 0 || !strings.Contains(r.err, "SLACK_BOT_TOKEN") {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
}
