package rules

import (
	"time"
	_ "time/tzdata" // a rule's zone must load on a machine without zone files
)

// Window is the weekly time in which approved calls may run. Each listed day opens
// once, at the first instant whose wall clock in Zone reads From or later, and closes
// at the first one that reads To or later; To before From closes on the next day. So
// a time that a clock change skips counts as the change itself, and one that occurs
// twice counts as its first occurrence. A nil Window is always open.
type Window struct {
	Days     [7]bool       // by time.Weekday: the days on which it opens
	From, To time.Duration // since midnight by the wall clock, whole minutes; To up to 24h
	Zone     *time.Location
}

// Open reports whether now lies in the window.
func (w *Window) Open(now time.Time) bool {
	if w == nil {
		return true
	}
	year, month, day := now.In(w.Zone).Date()
	for _, back := range []int{0, -1} {
		from, to, ok := w.span(year, month, day+back)
		if ok && !now.Before(from) && now.Before(to) {
			return true
		}
	}
	return false
}

// NextOpening is now when the window is open, else the instant at which it opens next.
func (w *Window) NextOpening(now time.Time) time.Time {
	if w.Open(now) {
		return now
	}
	year, month, day := now.In(w.Zone).Date()
	// Two weeks: a clock change may leave one day's span empty.
	for ahead := -1; ahead <= 15; ahead++ {
		from, to, ok := w.span(year, month, day+ahead)
		if ok && from.After(now) && from.Before(to) {
			return from
		}
	}
	// Not reached: a window has a day. Far away, so that a caller fails closed.
	return now.Add(longest)
}

// span gives the opening that begins on the civil day, if that day is listed.
func (w *Window) span(year int, month time.Month, day int) (from, to time.Time, ok bool) {
	civil := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	if !w.Days[civil.Weekday()] {
		return from, to, false
	}
	end := w.To
	if w.To <= w.From {
		end += 24 * time.Hour
	}
	return firstReading(civil.Add(w.From), w.Zone), firstReading(civil.Add(end), w.Zone), true
}

// firstReading is the first instant at which zone's wall clock reads wall (given as
// if it were UTC) or, where a clock change skips it, the instant of the change.
func firstReading(wall time.Time, zone *time.Location) time.Time {
	offset := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(wall.Add(-26*time.Hour)), offset(wall.Add(26*time.Hour))
	early, late := wall.Add(-before), wall.Add(-after)
	if late.Before(early) {
		early, late = late, early
	}
	for _, t := range []time.Time{early, late} {
		if t.Add(offset(t)).Equal(wall) {
			return t
		}
	}
	// Skipped: the change lies between the two guesses; a zone begins there.
	if start, _ := late.In(zone).ZoneBounds(); !start.IsZero() && start.After(early) {
		return start.UTC()
	}
	return late
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (r *reader) window(n *node, path string) *Window {
	o := r.object(n, path, "days", "from", "to", "zone")
	w := &Window{Zone: time.UTC}
	if !o.has("days") {
		w.Days = [7]bool{true, true, true, true, true, true, true}
	} else {
		days := o.texts("days", oneOf(weekdays...))
		for i, name := range weekdays {
			w.Days[i] = contains(days, name)
		}
		if w.Days == ([7]bool{}) {
			o.fault("days", "lists no day")
		}
	}
	var ok1, ok2 bool
	w.From, ok1 = o.clock("from", 24*time.Hour-time.Minute)
	w.To, ok2 = o.clock("to", 24*time.Hour)
	if ok1 && ok2 && w.From == w.To {
		o.fault("to", "is the same as from; leave the window out to run at any time")
	}
	if s := o.needText("zone"); s != "" {
		zone, err := time.LoadLocation(s)
		if err != nil || s == "Local" {
			o.fault("zone", "must be a time zone such as Europe/Berlin or UTC")
		} else {
			w.Zone = zone
		}
	}
	return w
}

func (o *object) clock(key string, high time.Duration) (time.Duration, bool) {
	s := o.needText(key)
	if s == "" {
		return 0, false
	}
	if s == "24:00" && high == 24*time.Hour {
		return high, true
	}
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		o.fault(key, `must be a time of day such as "09:00"`)
		return 0, false
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, true
}
