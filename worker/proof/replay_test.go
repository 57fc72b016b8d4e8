package proof

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
)

// An SDK runs a tool's body after an approval, and dies after the effect, before it has saved its output (the seed's lesson about
// streaming). Asked again, the claim gives the same call and output: the body is run once.

// claimed is an answer to POST /v1/operations/{id}/claim.
type claimed struct {
	State, Arguments string
	LeaseToken       string `json:"lease_token"`
	OperationKey     string `json:"operation_key"`
	Epoch            int64
	Result           json.RawMessage
}

// guard is what an adapter wraps a gated tool's body in: the claim says whether to run it at all.
func (w *world) guard(c *call, attempt string, body func(args, key string) string, dies bool) (claimed, bool) {
	w.t.Helper()
	path := "/v1/operations/" + c.id.String()
	var got claimed
	status, p := w.asked(http.MethodPost, path+"/claim", object{"attempt_id": attempt}, &got)
	if status != http.StatusOK {
		w.t.Fatalf("claim: %d %+v", status, p)
	}
	if got.State != "executing" {
		return got, false // it has been done: these are its arguments and its result
	}
	result := body(got.Arguments, got.OperationKey)
	status, p = w.asked(http.MethodPost, path+"/complete", object{"lease_token": got.LeaseToken, "epoch": got.Epoch, "result": json.RawMessage(result)}, nil)
	if status != http.StatusOK {
		w.t.Fatalf("complete: %d %+v", status, p)
	}
	if dies {
		return claimed{}, true // with the output in its memory, unsaved
	}
	got.Result = json.RawMessage(result)
	return got, true
}

// post is the effect: the agent's own request to the tool.
func (w *world) post(args, key string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.sinkURL+"/idempotent", strings.NewReader(args))
	w.must(err)
	req.Header.Set("Idempotency-Key", key)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	defer func() { _ = resp.Body.Close() }()
	var out json.RawMessage
	w.must(json.NewDecoder(resp.Body).Decode(&out))
	return string(out)
}

func TestReplayedAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.work()
	c := &call{op: "replayed", tool: "credit", plan: "ok"}
	w.propose(c)
	w.eventually("the card is posted", func() (string, bool) { return "", w.place(c.id) != "" })
	_, err := w.approve("U0ALICE", w.place(c.id))
	w.must(err)
	w.eventually("the agent is told", func() (string, bool) { return "", count(w.sunk(), "hook", c.run()) == 1 })
	runs := 0
	body := func(args, key string) string {
		runs++
		return w.post(args, key)
	}
	if _, ran := w.guard(c, "first", body, true); !ran {
		t.Fatal("the first attempt did not run")
	}
	// The run is resumed again, from its saved state, by another process: the SDK runs the body once more.
	for _, attempt := range []string{"second", "first", ""} {
		got, ran := w.guard(c, attempt, body, false)
		if ran || runs != 1 {
			t.Fatalf("the body ran %d times", runs)
		}
		var args struct{ Op, Note string }
		w.must(json.Unmarshal([]byte(got.Arguments), &args))
		if got.State != "succeeded" || args.Op != c.op || args.Note != canary || string(got.Result) != `{"receipt":"R-replayed"}` {
			t.Errorf("asked again as %q: %+v", attempt, got)
		}
	}
	w.settled()
	w.check()
}

// It dies between the effect and its report: the lease is somebody's, so another attempt is refused while it stands, and the same
// attempt gets it back, with the same operation key. The tool honours the key: one effect.
func TestReplayedAgentWithoutReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.work()
	c := &call{op: "unreported", tool: "credit", plan: "ok"}
	w.propose(c)
	w.eventually("the card is posted", func() (string, bool) { return "", w.place(c.id) != "" })
	_, err := w.approve("U0BOB", w.place(c.id))
	w.must(err)
	w.becomes(c.id, approvals.Approved)
	path := "/v1/operations/" + c.id.String()
	var first, other, same claimed
	if status, p := w.asked(http.MethodPost, path+"/claim", object{"attempt_id": "a"}, &first); status != http.StatusOK {
		t.Fatalf("claim: %d %+v", status, p)
	}
	w.post(first.Arguments, first.OperationKey) // and it dies
	if status, p := w.asked(http.MethodPost, path+"/claim", object{"attempt_id": "b"}, &other); status != http.StatusConflict || p.Code != "not_executable" || p.State != "executing" {
		t.Errorf("another attempt under a living lease: %d %+v", status, p)
	}
	if status, _ := w.asked(http.MethodPost, path+"/claim", object{"attempt_id": "a"}, &same); status != http.StatusOK || same.LeaseToken != first.LeaseToken || same.Epoch != first.Epoch {
		t.Fatalf("the same attempt did not get its lease back: %+v", same)
	}
	// A forged or an old fence changes nothing.
	if status, p := w.asked(http.MethodPost, path+"/complete", object{"lease_token": first.LeaseToken, "epoch": first.Epoch + 1, "result": 1}, nil); status != http.StatusConflict {
		t.Errorf("another epoch: %d %+v", status, p)
	}
	result := w.post(same.Arguments, same.OperationKey)
	if status, p := w.asked(http.MethodPost, path+"/complete", object{"lease_token": same.LeaseToken, "epoch": same.Epoch, "result": json.RawMessage(result)}, nil); status != http.StatusOK {
		t.Fatalf("complete: %d %+v", status, p)
	}
	w.becomes(c.id, approvals.Completed)
	w.settled()
	log := w.sunk()
	if r, e := count(log, "request", c.op), count(log, "effect", c.op); r != 2 || e != 1 {
		t.Errorf("%d requests, %d effects", r, e)
	}
	for _, f := range w.gather().faults() {
		if !strings.HasPrefix(f, "I2 I15 ") { // the second request is the agent's own, under one claim
			t.Errorf("invariant broken: %s", f)
		}
	}
}
