package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/worker/redistest"
	"github.com/holdpoint/holdpoint/worker/tools"
)

// A tool that ignores its context outlasts the shutdown of its worker. Asynq gives the task back, another worker takes it while the
// first still runs, and the lease keeps it from acting: one request. What the first then learns is still its to record.
func TestCutOffToolActsOnce(t *testing.T) {
	t.Parallel()
	c, redis := newCore(), redistest.Start(t)
	begun, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f := newTool(func(context.Context, tools.Call) approvals.Outcome {
		once.Do(func() { close(begun) })
		<-release // not the context's end
		return succeeded
	})
	first := New(c, cards(nil), open(t, redis.URL()), Options{Tool: f, ShutdownTimeout: 50 * time.Millisecond, NoSweep: true})
	first.words = 50 * time.Millisecond
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	id, _ := c.approve()
	<-begun
	stop()
	if err := <-ended; !errors.Is(err, ErrCutOff) {
		t.Fatalf("the worker ended with %v", err)
	}

	// Only what Redis holds brings the second to it: nobody relays or sweeps.
	second := New(c, cards(nil), open(t, redis.URL()), Options{Tool: f, NoRelay: true, NoSweep: true})
	ctx, stop = context.WithCancel(context.Background())
	defer stop()
	go func() { ended <- second.Run(ctx) }()
	c.eventually(t, "the second worker asks for the operation", func() bool { return c.claims >= 2 })
	if n := f.total(); n != 1 {
		t.Fatalf("%d requests", n)
	}
	close(release)
	c.eventually(t, "the first one's outcome", c.isDone(id))
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the second worker ended with %v", err)
	}
	if n := f.total(); n != 1 || c.ops[id].outcome.Class != approvals.OutcomeSucceeded || c.ops[id].epoch != 1 {
		t.Errorf("%d requests, %+v", n, c.ops[id])
	}
}

// The lines of a worker name what they are about under the core's names; no argument is among them.
func TestLinesNameTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := newCore(), newTool(nil)
		id, _ := c.approve()
		x, log := execution(c, f)
		if err := x.run(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"approval": id.String(), "run": "run_42", "tool_call": "call_1", "operation": "key-" + id.String()}
		for name, value := range want {
			if line := lineOf(t, log, "executed"); line[name] != value {
				t.Errorf("executed: %s is %v", name, line[name])
			}
		}
		log.Reset()
		courier := &courier{core: c, log: x.log, metrics: x.metrics, now: time.Now}
		pause := uuid.New()
		c.delivery[pause] = approvals.Delivery{Send: true, RunID: "run_42", Agent: "release-agent", Attempt: 1, Calls: []approvals.DeliveryCall{{Approval: id, ToolCallID: "call_1", OperationKey: "key"}}}
		if err := courier.run(t.Context(), pause); err != nil {
			t.Fatal(err)
		}
		line := lineOf(t, log, "the run was not told") // there is no secret to sign with
		if line["run"] != "run_42" || line["pause"] != pause.String() {
			t.Errorf("%v", line)
		}
		for name, value := range map[string]string{"approval": id.String(), "tool_call": "call_1", "operation": "key"} {
			if list, ok := line[name].([]any); !ok || len(list) != 1 || list[0] != value {
				t.Errorf("%s is %v", name, line[name])
			}
		}
		noCanary(t, log.String())
	})
}

func lineOf(t *testing.T, log *bytes.Buffer, msg string) map[string]any {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(log.Bytes())); ; {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatalf("no line %q in %s", msg, log)
		}
		if line[slog.MessageKey] == msg {
			return line
		}
	}
}

// Pauses of the retries in this process double to their longest and stay there; a reset begins again.
func TestBackoffDoublesToItsCap(t *testing.T) {
	t.Parallel()
	b := backoff{first: 50 * time.Millisecond, longest: 2 * time.Second}
	want := 50 * time.Millisecond
	for n := range 100 {
		if got := b.next(); got != want {
			t.Fatalf("pause %d is %s, want %s", n, got, want)
		}
		want = min(2*want, 2*time.Second)
	}
	b.reset()
	if got := b.next(); got != 50*time.Millisecond {
		t.Errorf("after a reset: %s", got)
	}
}
