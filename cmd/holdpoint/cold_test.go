package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/bot/slacksim"
)

// cold is a product that has mirrored nobody yet.
func cold(t *testing.T) *product {
	t.Helper()
	p := &product{world: newWorld(t)}
	p.core = approvals.New(approvals.Options{Clicks: p.db, Intake: p.db, Work: p.db})
	p.apply(p.config)
	var err error
	p.key, _, err = p.core.CreateKey(p.ctx, "acme", "release-agent", nil, approvals.OperatorActor("test"))
	p.must(err)
	return p
}

// taken sends an intake until it is taken, as an agent that comes again does. Every other answer must be one of those that say so,
// and store nothing.
func (p *product) taken(body map[string]any) (refused []string) {
	p.t.Helper()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		var got struct{ Approvals []approvals.View }
		status, wrong := p.ask(http.MethodPost, "/v1/approvals", body, &got)
		switch status {
		case http.StatusCreated:
			if len(got.Approvals) != 1 || got.Approvals[0].Status != approvals.Pending {
				p.t.Fatalf("taken as %+v", got)
			}
			return refused
		case http.StatusServiceUnavailable:
			if wrong.Detail == "" {
				p.t.Fatalf("refused without a word: %d %+v", status, wrong)
			}
			refused = append(refused, wrong.Code)
		default:
			p.t.Fatalf("%d %+v", status, wrong)
		}
		if n := p.number(`SELECT count(*) FROM approval_request`); n != 0 {
			p.t.Fatalf("%d requests of a refused intake", n)
		}
		select {
		case <-again.C:
		case <-p.ctx.Done():
			p.t.Fatalf("never taken: %q", refused)
		}
	}
}

// The very first intake of a new installation comes before anybody was mirrored: it is taken, or told to come again and taken
// seconds later, by itself (I4).
func TestFirstIntakeOnAColdDirectory(t *testing.T) {
	t.Parallel()
	p := cold(t)
	p.serve()
	p.balance()
	p.within(10*time.Second, "the first intake", func() { p.taken(deploying()) })
}

// The same with a Slack that does not tell yet who people are: nothing is stored, and once Slack is back it works by itself.
func TestFirstIntakeWithoutSlack(t *testing.T) {
	t.Parallel()
	p := cold(t)
	for _, method := range []string{"users.info", "users.list", "usergroups.list", "usergroups.users.list"} {
		p.sim.Fault(method, slacksim.ServerError{}, 0)
	}
	p.serve()
	p.balance()
	status, wrong := p.ask(http.MethodPost, "/v1/approvals", deploying(), nil)
	if status != http.StatusServiceUnavailable || wrong.Detail == "" || wrong.Code == "internal" {
		t.Fatalf("%d %+v", status, wrong)
	}
	p.sim.ClearFaults()
	p.within(20*time.Second, "Slack is back", func() { p.taken(deploying()) })
}
