package approvals

import (
	"slices"
	"testing"
	"time"
)

// I3, I4: an answer is as old as its question. A question that was asked earlier and answered later undoes nothing that was asked for
// since, unless Slack dates its answer later; and an answer from before the mirror's own date changes nothing.
func TestMirrorKeepsTheNewerTruth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := func(ago time.Duration) time.Time {
		now, err := w.s.Clock(w.ctx)
		w.must(err)
		return now.Add(-ago)
	}
	group := func(ago time.Duration, changed int64, enabled bool, members ...string) {
		w.must(w.s.SaveGroup(w.ctx, "acme", DirectoryGroup{GroupID: "S0NEW", Enabled: enabled, Members: members, UpdatedAt: changed, AskedAt: asked(ago)}))
	}
	members := func() []string {
		return one[[]string](w, `SELECT coalesce(array_agg(user_id ORDER BY user_id), '{}') FROM slack_group_member WHERE group_id = 'S0NEW'`)
	}
	age := func(table, column, id string) time.Duration {
		return time.Duration(one[float64](w, `SELECT extract(epoch FROM clock_timestamp() - synced_at)::float8 FROM `+table+` WHERE `+column+` = $1`, id) * float64(time.Second))
	}
	holds := func(when string, want ...string) {
		t.Helper()
		if got := members(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	group(40*time.Second, 100, true, alice, bob)
	holds("first", alice, bob)
	if a := age("slack_group", "group_id", "S0NEW"); a < 40*time.Second || a > 50*time.Second {
		t.Errorf("asked 40 s ago, and %s old", a)
	}
	group(20*time.Second, 101, true, alice) // an event's reading: bob was removed
	group(30*time.Second, 101, true, alice, bob)
	holds("an older question, dated in the same second", alice)
	group(30*time.Second, 0, true, alice, bob)
	holds("an older question without a date", alice)
	group(10*time.Second, 100, true, alice, bob)
	holds("an older answer to a newer question", alice)
	if a := age("slack_group", "group_id", "S0NEW"); a < 20*time.Second {
		t.Errorf("an answer that was not taken made it %s old", a)
	}
	group(25*time.Second, 102, true, carol)
	holds("a newer answer to an older question", carol)
	group(5*time.Second, 0, false) // disabled
	group(6*time.Second, 102, true, carol)
	holds("older than the end")
	group(0, 102, true, carol)
	holds("enabled again", carol)

	person := func(ago time.Duration, changed int64, deleted bool) {
		w.must(w.s.SaveUsers(w.ctx, "acme", []DirectoryUser{{UserID: "U0NEW", TeamID: team, Deleted: deleted, UpdatedAt: changed, AskedAt: asked(ago)}}))
	}
	gone := func(when string, want bool) {
		t.Helper()
		if one[bool](w, `SELECT deleted FROM slack_user WHERE user_id = 'U0NEW'`) != want {
			t.Errorf("%s: deleted %v", when, !want)
		}
	}
	person(40*time.Second, 100, false)
	if a := age("slack_user", "user_id", "U0NEW"); a < 40*time.Second || a > 50*time.Second {
		t.Errorf("asked 40 s ago, and %s old", a)
	}
	person(20*time.Second, 0, true) // Slack knows nobody of that id
	person(30*time.Second, 100, false)
	gone("an older question", true)
	person(10*time.Second, 99, false)
	gone("an older answer", true)
	person(5*time.Second, 100, false)
	gone("asked again later", false)
	person(-time.Hour, 100, false)
	if a := age("slack_user", "user_id", "U0NEW"); a < 0 {
		t.Errorf("read in the future: %s", a)
	}
}
