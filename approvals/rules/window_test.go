package rules

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func days(list ...time.Weekday) (out [7]bool) {
	for _, d := range list {
		out[d] = true
	}
	return out
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Berlin: forward at 2026-03-29T01:00Z (02:00 → 03:00), back at 2026-10-25T01:00Z
// (03:00 → 02:00). All are Sundays.
func TestWindow(t *testing.T) {
	t.Parallel()
	berlin := mustZone(t, "Europe/Berlin")
	all := days(0, 1, 2, 3, 4, 5, 6)
	office := &Window{Days: days(1, 2, 3, 4, 5), From: 9 * time.Hour, To: 17 * time.Hour, Zone: berlin}
	night := &Window{Days: days(5), From: 22 * time.Hour, To: 4 * time.Hour, Zone: berlin}
	half := &Window{Days: all, From: 150 * time.Minute, To: 210 * time.Minute, Zone: berlin}       // 02:30–03:30
	early := &Window{Days: all, From: time.Hour, To: 150 * time.Minute, Zone: berlin}              // 01:00–02:30
	inside := &Window{Days: days(0), From: 130 * time.Minute, To: 170 * time.Minute, Zone: berlin} // 02:10–02:50
	whole := &Window{Days: days(6), From: 0, To: 24 * time.Hour, Zone: berlin}
	acrossNight := &Window{Days: days(6), From: 23 * time.Hour, To: 150 * time.Minute, Zone: berlin} // Sat 23:00 – Sun 02:30
	kolkata := &Window{Days: days(1), From: 9 * time.Hour, To: 10 * time.Hour, Zone: mustZone(t, "Asia/Kolkata")}
	apia := &Window{Days: days(5), From: 9 * time.Hour, To: 10 * time.Hour, Zone: mustZone(t, "Pacific/Apia")}

	for _, c := range []struct {
		name  string
		w     *Window
		now   string
		open  bool
		opens string // the next opening; now when open
	}{
		{"winter, before", office, "2026-01-09T07:59:59Z", false, "2026-01-09T08:00:00Z"},
		{"winter, opens", office, "2026-01-09T08:00:00Z", true, ""},
		{"winter, last second", office, "2026-01-09T15:59:59Z", true, ""},
		{"winter, closes; the weekend", office, "2026-01-09T16:00:00Z", false, "2026-01-12T08:00:00Z"},
		{"summer is an hour earlier", office, "2026-07-10T07:00:00Z", true, ""},
		{"over the change to summer", office, "2026-03-27T16:00:00Z", false, "2026-03-30T07:00:00Z"},
		{"over the change to winter", office, "2026-10-23T15:00:00Z", false, "2026-10-26T08:00:00Z"},
		{"the local day counts", office, "2026-01-11T23:30:00Z", false, "2026-01-12T08:00:00Z"},
		{"night, evening", night, "2026-01-09T21:00:00Z", true, ""},
		{"night, next morning", night, "2026-01-10T02:59:59Z", true, ""},
		{"night, over", night, "2026-01-10T03:00:00Z", false, "2026-01-16T21:00:00Z"},
		{"night, the day after isn't listed", night, "2026-01-10T21:00:00Z", false, "2026-01-16T21:00:00Z"},
		{"skipped from: not yet", half, "2026-03-29T00:59:59Z", false, "2026-03-29T01:00:00Z"},
		{"skipped from: the change opens", half, "2026-03-29T01:00:00Z", true, ""},
		{"skipped from: closes on time", half, "2026-03-29T01:30:00Z", false, "2026-03-30T00:30:00Z"},
		{"skipped to: open before", early, "2026-03-29T00:59:59Z", true, ""},
		{"skipped to: the change closes", early, "2026-03-29T01:00:00Z", false, "2026-03-29T23:00:00Z"},
		{"skipped whole: not at all", inside, "2026-03-29T01:00:00Z", false, "2026-04-05T00:10:00Z"},
		{"twice from: opens at the first", half, "2026-10-25T00:30:00Z", true, ""},
		{"twice from: through the second", half, "2026-10-25T01:15:00Z", true, ""},
		{"twice from: closes once", half, "2026-10-25T02:30:00Z", false, "2026-10-26T01:30:00Z"},
		{"twice to: closes at the first", early, "2026-10-25T00:30:00Z", false, "2026-10-26T00:00:00Z"},
		{"twice to: stays closed", early, "2026-10-25T01:15:00Z", false, "2026-10-26T00:00:00Z"},
		{"twice inside: the first only", inside, "2026-10-25T00:10:00Z", true, ""},
		{"twice inside: not the second", inside, "2026-10-25T01:20:00Z", false, "2026-11-01T01:10:00Z"},
		{"a whole day", whole, "2026-10-24T21:59:59Z", true, ""},
		{"a whole day ends", whole, "2026-10-24T22:00:00Z", false, "2026-10-30T23:00:00Z"},
		{"overnight into the change", acrossNight, "2026-03-29T00:59:59Z", true, ""},
		{"overnight into the change, over", acrossNight, "2026-03-29T01:00:00Z", false, "2026-04-04T21:00:00Z"},
		{"half-hour zone", kolkata, "2026-01-12T03:30:00Z", true, ""},
		{"a day that never was (2011-12-30)", apia, "2011-12-30T09:59:59Z", false, "2012-01-05T19:00:00Z"},
	} {
		now := at(t, c.now)
		want := now
		if c.opens != "" {
			want = at(t, c.opens)
		}
		if got := c.w.Open(now); got != c.open {
			t.Errorf("%s: open = %v, want %v", c.name, got, c.open)
		}
		got := c.w.NextOpening(now)
		if !got.Equal(want) {
			t.Errorf("%s: next opening %s, want %s", c.name, got.UTC().Format(time.RFC3339), want.UTC().Format(time.RFC3339))
		}
		if !c.w.Open(got) {
			t.Errorf("%s: closed at its own next opening", c.name)
		}
	}
	var always *Window
	if now := at(t, "2026-01-09T08:00:00Z"); !always.Open(now) || !always.NextOpening(now).Equal(now) {
		t.Error("no window must mean always open")
	}
}

// In every zone and on every day of a year, an opening exists within two weeks, lies
// in the window, and nothing between now and it does.
func TestNextOpeningHolds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Chatham", "Africa/Casablanca", "Asia/Kathmandu", "UTC"} {
		for _, w := range []*Window{
			{Days: days(1, 2, 3, 4, 5), From: 9 * time.Hour, To: 17 * time.Hour, Zone: mustZone(t, name)},
			{Days: days(0, 6), From: 23 * time.Hour, To: 150 * time.Minute, Zone: mustZone(t, name)},
			{Days: days(0), From: 125 * time.Minute, To: 24 * time.Hour, Zone: mustZone(t, name)},
		} {
			for now := at(t, "2026-01-01T00:17:00Z"); now.Year() == 2026; now = now.Add(5*time.Hour + 13*time.Minute) {
				next := w.NextOpening(now)
				if !w.Open(next) || next.Before(now) || next.After(now.Add(14*24*time.Hour)) {
					t.Fatalf("%s: from %s the next opening is %s", name, now, next)
				}
				if next.After(now) && w.Open(next.Add(-time.Nanosecond)) {
					t.Fatalf("%s: from %s it opens before %s", name, now, next)
				}
			}
		}
	}
}
