package intake

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdpoint/holdpoint/approvals"
)

func TestGet(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	id := h.submitted()
	r := h.do("GET", "/v1/approvals/"+id.String(), "")
	var v approvals.View
	r.decoded(t, &v)
	if r.status != 200 || v.ApprovalID != id || v.Status != approvals.Pending || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if head := h.do("HEAD", "/v1/approvals/"+id.String(), ""); head.status != 200 || head.body != "" {
		t.Errorf("HEAD: %d %s", head.status, head.body)
	}
	if len(h.watched) != 0 {
		t.Error("a plain read waited")
	}
}

// A wait ends when there is something newer, at once when there already is, and at its end with what is there.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	id := h.submitted()
	path := "/v1/approvals/" + id.String()
	if r := h.do("GET", path+"?wait=60s", ""); r.status != 200 {
		t.Errorf("without since: %d %s", r.status, r.body)
	}
	if r := h.do("GET", path+"?wait=60s&since=0", ""); r.status != 200 || len(h.watched) != 0 {
		t.Errorf("already newer: %d %s", r.status, r.body)
	}
	if r := h.do("GET", path+"?wait=20ms&since=1", ""); r.status != 200 || !strings.Contains(r.body, `"version":1`) {
		t.Errorf("nothing new: %d %s", r.status, r.body)
	}
	<-h.watched
	done := make(chan response, 1)
	go func() { done <- h.do("GET", path+"?wait=1h&since=1", "") }()
	if wait := <-h.watched; wait != maxWait {
		t.Errorf("an hour became %s", wait)
	}
	h.set(id, func(v *approvals.View) { v.Status = approvals.Approved })
	if r := <-done; r.status != 200 || !strings.Contains(r.body, `"status":"approved"`) || !strings.Contains(r.body, `"version":2`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	parent := h.submitted()
	child := approvals.NewID()
	h.set(parent, func(v *approvals.View) {
		c := *v
		c.ApprovalID, c.ParentID = child, &parent
		h.views[child] = c
		v.Status, v.ChildID = approvals.Edited, &child
	})
	for query, want := range map[string]approvals.ID{"": parent, "?follow=child": child, "?follow=child&wait=1s&since=0": child} {
		var v approvals.View
		h.do("GET", "/v1/approvals/"+parent.String()+query, "").decoded(t, &v)
		if v.ApprovalID != want {
			t.Errorf("%q: %s, want %s", query, v.ApprovalID, want)
		}
	}
}

// A server that shuts down ends its waits with what is known, and begins no more.
func TestDrain(t *testing.T) {
	t.Parallel()
	drain := make(chan struct{})
	h := newHouse(t, Options{Drain: drain})
	id := h.submitted()
	watch, pull := make(chan response, 1), make(chan response, 1)
	go func() { watch <- h.do("GET", "/v1/approvals/"+id.String()+"?wait=60s&since=1", "") }()
	go func() { pull <- h.do("GET", "/v1/runs/run_42/resume?wait=60s", "") }()
	<-h.watched
	<-h.watched
	close(drain)
	if r := <-watch; r.status != 200 || !strings.Contains(r.body, `"version":1`) {
		t.Errorf("watch: %d %s", r.status, r.body)
	}
	if r := <-pull; r.status != 204 || r.body != "" {
		t.Errorf("pull: %d %s", r.status, r.body)
	}
	if r := h.do("GET", "/v1/approvals/"+id.String()+"?wait=60s&since=1", ""); r.status != 200 || len(h.watched) != 0 {
		t.Errorf("a wait began: %d %s", r.status, r.body)
	}
}

// One key may hold so many waits and no more; an ended wait makes room.
func TestTooManyWaits(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{MaxWaiting: 2})
	id := h.submitted()
	path := "/v1/approvals/" + id.String() + "?since=1&wait=60s"
	done := make(chan response, 2)
	for range 2 {
		go func() { done <- h.do("GET", path, "") }()
	}
	<-h.watched
	<-h.watched
	if r := h.do("GET", path, ""); r.problem(t).Code != approvals.CodeRateLimited || r.header.Get("Retry-After") != "1" {
		t.Errorf("a third: %d %s", r.status, r.body)
	}
	if r := h.do("GET", "/v1/runs/r/resume?wait=30s", ""); r.problem(t).Code != approvals.CodeRateLimited {
		t.Errorf("another kind of wait: %d %s", r.status, r.body)
	}
	if r := h.do("GET", "/v1/approvals/"+id.String(), ""); r.status != 200 {
		t.Errorf("a read: %d %s", r.status, r.body)
	}
	h.set(id, func(v *approvals.View) { v.Status = approvals.Approved })
	<-done
	<-done
	if r := h.do("GET", "/v1/approvals/"+id.String()+"?since=2&wait=10ms", ""); r.status != 200 {
		t.Errorf("after they ended: %d %s", r.status, r.body)
	}
}

func TestQueriesAreStrict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	id := h.submitted().String()
	for _, c := range []struct{ path, parameter, detail string }{
		{"/v1/approvals/ID?wait=" + canary, "wait", "duration"},
		{"/v1/approvals/ID?wait=-1s", "wait", "duration"},
		{"/v1/approvals/ID?wait=30", "wait", "duration"},
		{"/v1/approvals/ID?wait=", "wait", "duration"},
		{"/v1/approvals/ID?since=-1", "since", "whole number"},
		{"/v1/approvals/ID?since=1.5", "since", "whole number"},
		{"/v1/approvals/ID?since=" + canary, "since", "whole number"},
		{"/v1/approvals/ID?since=99999999999999999999", "since", "whole number"},
		{"/v1/approvals/ID?follow=parent", "follow", "child"},
		{"/v1/approvals/ID?wait=1s&wait=2s", "wait", "more than once"},
		{"/v1/approvals/ID?timeout=30s", "timeout", `did you mean "wait"`},
		{"/v1/approvals/ID?" + canary + "=1", "", "Known are: wait, since, follow"},
		{"/v1/approvals/ID?wait=%zz", "", "can't be read"},
		{"/v1/approvals/ID?wait=1s;since=1", "", "can't be read"},
		{"/v1/approvals/ID/events?limit=1", "", "takes no query"},
		{"/v1/approvals?status=aproved", "status", "Did you mean approved"},
		{"/v1/approvals?status=" + canary, "status", "no such status"},
		{"/v1/approvals?limit=0", "limit", "from 1 on"},
		{"/v1/approvals?run=r", "run", `did you mean "run_id"`},
		{"/v1/approvals?run_id=" + strings.Repeat("x", 257), "run_id", "256"},
		{"/v1/approvals?run_id=a%00b", "run_id", "control"},
		{"/v1/approvals?cursor=" + strings.Repeat("x", 513), "cursor", "512"},
		{"/v1/runs/r/resume?wait=abc", "wait", "duration"},
		{"/v1/runs/r/resume?since=1", "", "Known are: wait"},
	} {
		r := h.do("GET", strings.Replace(c.path, "ID", id, 1), "")
		p := r.problem(t)
		if p.Status != 400 || p.Code != approvals.CodeInvalidRequest || p.Parameter != c.parameter || !strings.Contains(p.Detail, c.detail) || strings.Contains(r.body, canary) {
			t.Errorf("%s: %s", c.path, r.body)
		}
	}
	if strings.Contains(h.log.String(), canary) {
		t.Error("a query is logged")
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.submitted()
	for _, c := range []struct {
		query string
		want  approvals.ListFilter
	}{
		{"", approvals.ListFilter{Limit: defaultLimit}},
		{"?run_id=run_42&status=pending&limit=7&cursor=abc", approvals.ListFilter{RunID: "run_42", Status: approvals.Pending, Limit: 7, Cursor: "abc"}},
		{"?limit=100000", approvals.ListFilter{Limit: maxLimit}},
	} {
		var page struct {
			Approvals  []approvals.View `json:"approvals"`
			NextCursor any              `json:"next_cursor"`
		}
		h.do("GET", "/v1/approvals"+c.query, "").decoded(t, &page)
		if diff := cmp.Diff(c.want, h.filter); diff != "" || len(page.Approvals) != 1 || page.NextCursor != nil {
			t.Errorf("%s: %s %+v", c.query, diff, page)
		}
	}
	h.do("POST", "/v1/approvals", strings.Replace(oneCall, "call_1", "call_2", 1))
	if r := h.do("GET", "/v1/approvals?limit=1", ""); !strings.HasSuffix(r.body, `"next_cursor":"more"}`+"\n") {
		t.Error(r.body)
	}
	if r := h.do("GET", "/v1/approvals?status=expired", ""); r.body != `{"approvals":[],"next_cursor":null}`+"\n" {
		t.Error(r.body)
	}
	if r := h.do("GET", "/v1/approvals", "", "Authorization", "Bearer "+otherBearer); r.body != `{"approvals":[],"next_cursor":null}`+"\n" {
		t.Errorf("another's list: %s", r.body)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	id := h.submitted()
	var trail eventsAnswer
	r := h.do("GET", "/v1/approvals/"+id.String()+"/events", "")
	r.decoded(t, &trail)
	if r.status != 200 || trail.ApprovalID != id || len(trail.Events) != 1 || trail.Events[0].Actor != "agent:release-agent" || trail.Events[0].Text == "" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestWithdrawAndRedeliver(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	id := h.submitted().String()
	r := h.do("POST", "/v1/approvals/"+id+"/revoke", `{"reason":"not needed\nany more"}`)
	if r.status != 200 || !strings.Contains(r.body, `"status":"revoked"`) || !strings.Contains(r.body, `"reason_code":"withdrawn"`) || h.reason != "not needed\nany more" {
		t.Errorf("%d %s, reason %q", r.status, r.body, h.reason)
	}
	if r = h.do("POST", "/v1/approvals/"+id+"/revoke", "", "Content-Type", ""); r.status != 200 || h.reason != "" {
		t.Errorf("without a body: %d %s", r.status, r.body)
	}
	for _, body := range []string{"", "{}"} {
		if r = h.do("POST", "/v1/approvals/"+id+"/resume", body); r.status != 202 || r.body != `{"approval_id":"`+id+`","accepted":true}`+"\n" {
			t.Errorf("%q: %d %s", body, r.status, r.body)
		}
	}
	// Nothing in the body can change what is resumed: there is no name that would be taken.
	for _, body := range []string{`{"state":{}}`, `{"decision":"approve"}`, `{"approval_id":"` + id + `"}`, `[]`, `null`} {
		if r = h.do("POST", "/v1/approvals/"+id+"/resume", body); r.problem(t).Code != approvals.CodeInvalidRequest {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if h.redialed != 2 {
		t.Errorf("%d redeliveries", h.redialed)
	}
}

// Pull gives the webhook's body to the byte, 204 when there is none, and takes the acknowledgement.
func TestPull(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	run := "a/b run_ü.."
	message := "{\"type\": \"run.resume\",  \"data\":{\"n\":5.00,\"t\":\"<&>\"}}"
	h.resume["release-agent "+run] = []byte(message)
	path := "/v1/runs/" + url.PathEscape(run) + "/resume"
	for _, query := range []string{"", "?wait=30s"} {
		if r := h.do("GET", path+query, ""); r.status != 200 || r.body != message || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s %v", r.status, r.body, r.header)
		}
	}
	for _, query := range []string{"", "?wait=30s"} {
		if r := h.do("GET", path+query, "", "Authorization", "Bearer "+otherBearer); r.problem(t).Code != approvals.CodeNotFound {
			t.Errorf("another agent's run: %d %s", r.status, r.body)
		}
	}
	h.submitted()
	if r := h.do("GET", "/v1/runs/run_42/resume", ""); r.status != 204 || r.body != "" || r.header.Get("Content-Type") != "" {
		t.Errorf("nothing to resume yet: %d %s %v", r.status, r.body, r.header)
	}
	if r := h.do("POST", path+"/ack", `{"pause":3,"agent_revision":"git:1"}`); r.status != 204 || r.body != "" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got, ok := h.acked["release-agent "+run+" 3"]; !ok || got != "git:1" {
		t.Errorf("acked: %v", h.acked)
	}
	for _, c := range []struct{ body, pointer string }{{"", ""}, {"{}", "/pause"}, {`{"pause":0}`, "/pause"}, {`{"pause":-1}`, "/pause"}, {`{"pause":1.0}`, "/pause"}, {`{"pause":1e0}`, "/pause"}, {`{"pause":"1"}`, "/pause"}, {`{"pause":99999999999999999999}`, "/pause"}} {
		if p := h.do("POST", path+"/ack", c.body).problem(t); p.Code != approvals.CodeInvalidRequest || p.Pointer != c.pointer {
			t.Errorf("%s: %+v", c.body, p)
		}
	}
	for _, bad := range []string{strings.Repeat("x", 257), "a%00b"} {
		if p := h.do("GET", "/v1/runs/"+bad+"/resume", "").problem(t); p.Status != http.StatusNotFound {
			t.Errorf("%+v", p)
		}
	}
}

// The edge has a bound of its own: a core that never answers is not waited for for ever.
func TestPollIsBounded(t *testing.T) {
	t.Parallel()
	s := &server{opts: Options{}.withDefaults(), waits: newShares(1)}
	err := s.poll(t.Context(), &call{key: approvals.Key{ID: "k"}}, time.Second, func(ctx context.Context, wait time.Duration) error {
		deadline, ok := ctx.Deadline()
		if left := time.Until(deadline); !ok || left > wait+10*time.Second {
			t.Errorf("a deadline in %s", left)
		}
		return nil
	})
	if err != nil || len(s.waits.held) != 0 {
		t.Errorf("%v, %v", err, s.waits.held)
	}
}
