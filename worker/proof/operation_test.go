package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// operation is one call of the torture, and the people around it. Everything that it does is drawn from its own random source; what
// races decides itself.
type operation struct {
	*torture
	r    *rand.Rand
	call *call
	ts   string
}

// pick draws by weight.
func pick[T any](r *rand.Rand, of map[int]T, order ...int) T {
	total := 0
	for _, w := range order {
		total += w
	}
	n := r.IntN(total)
	for _, w := range order {
		if n -= w; n < 0 {
			return of[w]
		}
	}
	panic("unreachable: the weights were summed")
}

// plans of a tool. Weights are distinct, for they are the keys.
var plans = map[int]string{
	500: "ok", 80: "after,ok", 79: "before,ok", 60: "broken,ok", 59: "5xx,ok", 58: "slow,ok", 40: "busy,ok", 39: "refuse", 38: "stuck,ok", 30: "before,after,ok", 29: "after,5xx,ok",
}

func (o *operation) plan() string {
	return pick(o.r, plans, 500, 80, 79, 60, 59, 58, 40, 39, 38, 30, 29)
}

// live is the operation from its proposal on.
func (o *operation) live(i int) {
	act := pick(o.r, acts, 100, 60, 45, 40, 35, 34, 33, 20)
	o.call = &call{
		op: fmt.Sprintf("%s-%d", act.name, i), plan: o.plan(), within: act.within,
		tool:  []string{"pay", "book", "send"}[o.r.IntN(3)],
		hooks: []string{"", "", "", "", "", "", "5xx,ok", "after,ok"}[o.r.IntN(8)],
	}
	if why := o.until(func() (string, bool) {
		status, err := o.submit(o.call) // the same intake again, until it is taken (I21)
		return fmt.Sprintf("%d %v", status, err), err == nil
	}); why != "" {
		o.t.Errorf("%s was never taken: %s", o.call.op, why)
		return
	}
	if act.people == nil {
		return
	}
	if !o.shown() {
		return
	}
	if o.r.IntN(3) == 0 {
		o.again(o.call.id, 1+o.r.IntN(3)) // before anybody has decided
	}
	act.people(o)
	for range o.r.IntN(3) {
		o.again(o.call.id, 1+o.r.IntN(2))
		o.moment(300)
	}
}

// shown waits for the card. What has ended before it could be shown gets none: false.
func (o *operation) shown() bool {
	over := false
	if why := o.until(func() (string, bool) {
		var status approvals.Status
		err := o.db.QueryRow(o.ctx, `SELECT status FROM approval_request WHERE approval_id = $1`, o.call.id).Scan(&status)
		o.ts = o.place(o.call.id)
		over = err == nil && status.Terminal()
		return fmt.Sprintf("%s, no card, %v", status, err), o.ts != "" || over
	}); why != "" {
		o.t.Errorf("%s was never shown: %s", o.call.op, why)
	}
	return o.ts != ""
}

// moment lets a random time pass, up to a number of milliseconds.
func (o *operation) moment(most int) {
	t := time.NewTimer(time.Duration(o.r.IntN(most)+1) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.ctx.Done():
	}
}

// act is what people do about a call.
type act struct {
	name   string
	within string
	people func(*operation)
}

var acts = map[int]act{
	100: {name: "one", people: (*operation).race},
	60:  {name: "two", people: (*operation).quorum},
	45:  {name: "revoked", people: (*operation).revoked},
	40:  {name: "auto"},
	35:  {name: "late", within: "3s", people: (*operation).deadline},
	34:  {name: "short", people: (*operation).race},
	33:  {name: "taken", people: (*operation).withdrawn},
	20:  {name: "edited", people: (*operation).edited},
}

// click is one person's press of Approve; a lost answer is pressed again, as people do.
func (o *operation) click(user string) {
	for range 3 {
		o.clicks.Add(1)
		if _, err := o.approve(user, o.ts); err == nil {
			return
		}
		o.lost.Add(1)
	}
}

// say is one person's decision as the handler hands it to the core.
func (o *operation) say(user string, verb approvals.Verb, args string) {
	button, err := o.button(o.call.id)
	if err != nil {
		return
	}
	o.clicks.Add(1)
	_, err = o.deciding.Decide(o.ctx, approvals.DecideRequest{
		DecisionID: approvals.NewDecisionID(), Button: button, Channel: room, MessageTS: o.ts, Verb: verb, By: approvals.Reviewer{UserID: user, TeamID: "T0ACME"},
		Surface: approvals.SurfaceModal, Reason: "not now", Arguments: []byte(args),
	})
	if err != nil {
		o.lost.Add(1)
	}
}

// together runs all at once, each after a random moment.
func (o *operation) together(all ...func()) {
	var done sync.WaitGroup
	for _, f := range all {
		after := time.Duration(o.r.IntN(40)) * time.Millisecond
		done.Go(func() {
			t := time.NewTimer(after)
			defer t.Stop()
			select {
			case <-t.C:
				f()
			case <-o.ctx.Done():
			}
		})
	}
	done.Wait()
}

func (o *operation) race() {
	o.together(
		func() { o.click("U0ALICE") }, func() { o.click("U0ALICE") }, func() { o.click("U0BOB") }, func() { o.say("U0BOB", approvals.Reject, "") },
		func() { o.click("U0MALLORY") }, func() { o.click("U0REQ") },
	)
}

func (o *operation) quorum() {
	people := []func(){func() { o.click("U0CAROL") }, func() { o.click("U0CAROL") }, func() { o.click("U0DAVE") }, func() { o.click("U0ALICE") }}
	if o.r.IntN(3) == 0 {
		people = append(people, func() { o.say("U0BOB", approvals.Reject, "") })
	}
	o.together(people...)
}

func (o *operation) revoked() {
	after := o.r.IntN(120)
	o.together(func() { o.click("U0ALICE") }, func() {
		o.wait(after)
		o.stop()
	}, func() { o.click("U0BOB") })
}

// wait is moment with its time given, for goroutines: the random source is the operation's alone.
func (o *operation) wait(ms int) {
	ctx, cancel := context.WithTimeout(o.ctx, time.Duration(ms)*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}

func (o *operation) stop() {
	_, _ = o.deciding.Revoke(o.ctx, approvals.RevokeRequest{ // whether it was in time, the checker reads
		Tenant: "acme", By: approvals.SlackActor("U0ROOT"), Surface: approvals.SurfaceCommand, Select: approvals.Selector{ID: o.call.id}, Reason: "stop that",
	})
}

func (o *operation) withdrawn() {
	o.together(func() { o.click("U0ALICE") }, func() {
		_, _, _ = o.ask(http.MethodPost, "/v1/approvals/"+o.call.id.String()+"/revoke", object{"reason": "no longer wanted"}, nil)
	})
}

// deadline clicks around decide_by.
func (o *operation) deadline() {
	o.wait(2400 + o.r.IntN(900))
	o.together(func() { o.click("U0ALICE") }, func() { o.click("U0BOB") })
}

// edited: one changes the arguments while another approves; a child is approved by somebody else.
func (o *operation) edited() {
	o.together(func() {
		o.say("U0ALICE", approvals.Edit, fmt.Sprintf(`{"op": %q, "plan": "ok,ok,ok", "note": "[redacted]"}`, o.call.op))
	}, func() { o.click("U0BOB") })
	var child approvals.ID
	if err := o.db.QueryRow(o.ctx, `SELECT child_id FROM approval_request WHERE approval_id = $1 AND child_id IS NOT NULL`, o.call.id).Scan(&child); err != nil {
		return // approved as it was
	}
	o.call.id, o.ts = child, ""
	if !o.shown() {
		return
	}
	o.together(func() { o.click("U0ALICE") }, func() { o.click("U0BOB") }, func() { o.click("U0BOB") })
}

// button is what a button of the card would say.
func (o *operation) button(id approvals.ID) (approvals.Button, error) {
	var key []byte
	var digest string
	var version int64
	err := o.db.QueryRow(o.ctx, `SELECT c.mac_key, r.digest, r.version FROM approval_request r JOIN card c USING (card_id) WHERE r.approval_id = $1`, id).Scan(&key, &digest, &version)
	if err != nil {
		return approvals.Button{}, err
	}
	return approvals.ParseButton(approvals.EncodeButton(key, room, id, digest, version))
}
