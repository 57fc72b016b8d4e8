package approvals

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A page ends after its bytes, whatever its limit, and its cursor goes on: large arguments can't make one answer hold hundreds of
// megabytes. Lists without pages name what is large by its title.
func TestPagesAreBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.check()
	var all []ID
	for i := range 12 {
		size := 10
		if i%2 == 0 {
			size = 900 << 10
		}
		v := w.propose("ask_user", fmt.Sprintf(`{"question":"Which?","more":%q}`, strings.Repeat("x ", size/2)))
		all = append([]ID{v.ApprovalID}, all...)
	}
	var got []ID
	pages, cursor := 0, ""
	for {
		views, next, err := w.s.List(w.ctx, w.key, ListFilter{Limit: 200, Cursor: cursor})
		w.must(err)
		bytes := 0
		for _, v := range views {
			bytes += len(v.Snapshot)
			got = append(got, v.ApprovalID)
		}
		if bytes > pageBytes+1<<20 {
			t.Errorf("a page of %d bytes", bytes)
		}
		if pages++; next == "" {
			break
		}
		cursor = next
	}
	if fmt.Sprint(got) != fmt.Sprint(all) || pages != 2 {
		t.Errorf("%d pages with %d of %d approvals", pages, len(got), len(all))
	}
	open, err := w.s.Open(w.ctx, "acme", 200)
	w.must(err)
	if len(open) != len(all) {
		t.Fatalf("%d open of %d", len(open), len(all))
	}
	bytes := 0
	for _, v := range open {
		var s Snapshot
		w.must(json.Unmarshal(v.Snapshot, &s))
		if s.Title != "Which?" {
			t.Errorf("title %q", s.Title)
		}
		bytes += len(v.Snapshot)
	}
	if bytes > 64<<10 {
		t.Errorf("an open list of %d bytes", bytes)
	}
}
