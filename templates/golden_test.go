package templates

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no golden %s; run with -update and look at it", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

// I27: each state has its card, and the same card gives the same bytes.
func TestGoldenCards(t *testing.T) {
	t.Parallel()
	for _, name := range galleryNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Render(gallery()[name])
			if err := Check(m.Blocks); err != nil {
				t.Error(err)
			}
			first := golden(m)
			if again := golden(Render(gallery()[name])); !bytes.Equal(first, again) {
				t.Error("the same card renders differently the second time")
			}
			compare(t, "card_"+name+".json", first)
		})
	}
}

func TestGoldenMessages(t *testing.T) {
	t.Parallel()
	g := gallery()
	events := []Event{
		{At: noon, What: "proposed", By: "agent:support-agent"}, {At: two, What: "approved", By: "U0ANA", Detail: "1 of 2"},
	}
	messages := map[string]Message{
		"fallback":         Fallback(g["pending"]),
		"fallback_hostile": Fallback(g["pending_hostile"]),
		"uncertain_thread": UncertainThread(g["uncertain"]),
		"help":             Help(),
		"list":             ListMessage([]Card{g["pending_quorum"], g["pending_high_risk"], g["pending_hostile"], g["pending_paused"]}, []Pause{{"tool", "issue_refund", "slack:U0ROOT", two, "incident 4711"}, {Scope: "tenant", By: "operator:root"}}, true),
		"list_empty":       ListMessage(nil, nil, false),
		"audit":            AuditMessage(g["completed"], events),
	}
	for name, m := range messages {
		if err := Check(m.Blocks); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		compare(t, "message_"+name+".json", golden(m))
	}
	home := HomeView(Home{Waiting: []Card{g["pending"]}, Recent: []Card{g["completed"], g["rejected"]}})
	if err := CheckHome(home); err != nil {
		t.Error(err)
	}
	compare(t, "home.json", golden(home))
}

func TestGoldenViews(t *testing.T) {
	t.Parallel()
	g := gallery()
	details := func(card string, page int) slack.ModalViewRequest {
		return DetailsModal(Details{
			Card: g[card], Digest: "sha256-proposal-v1:77ab3c9e10f2", Why: `tool == "issue_refund" && args.amount > 50`,
			Reviewers: []Reviewer{{ID: "U0ANA"}, {ID: "S0FINANCE", Name: "finance"}}, Excluded: []string{"requester", "editor"},
			Votes: []Vote{{By: "U0BO", Decision: "approve", At: two}}, Timeline: []Event{{At: noon, What: "proposed", By: "agent:support-agent"}},
			Page: page, Metadata: "opaque",
		})
	}
	edit, ok := EditModal(g["pending"], []byte(`{"order":"ORD-18472","amount":742.180,"note":"Größe <b> 🎉"}`), "opaque")
	if !ok {
		t.Error("a short JSON can't be edited")
	}
	views := map[string]slack.ModalViewRequest{
		"details": details("pending_quorum", 0), "details_hostile": details("pending_hostile", 0), "details_unreadable": details("pending_unreadable", 0),
		"details_long": details("pending_long", 0),
		"reject":       RejectModal(g["pending"], "opaque"), "respond": RespondModal(g["pending_question"], "opaque"), "edit": edit,
		"reconcile_yes": ReconcileModal(g["uncertain"], true, "opaque"), "reconcile_no": ReconcileModal(g["uncertain"], false, "opaque"),
		"reason":  ReasonModal(ReasonForm{Title: "Pause a tool", Submit: "Pause", About: compose("Nothing of ", code("issue_refund"), " runs until it is unpaused."), Metadata: "opaque"}),
		"loading": Loading("Details"), "notice": NoticeModal("Not possible", Refusal(RefuseBlocked, Facts{})),
	}
	for name, v := range views {
		if err := CheckView(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		compare(t, "view_"+name+".json", golden(v))
	}
}

func TestGoldenManifest(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]ManifestOptions{
		"manifest.json":        {BaseURL: "https://holdpoint.acme.example/"},
		"manifest_socket.json": {Name: "Holdpoint dev", SocketMode: true},
	} {
		got, err := Manifest(o)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, name, got)
	}
	for _, base := range []string{"", "http://holdpoint.acme.example", "https://", "https://u:p@acme.example", "https://acme.example/?a=b", "::"} {
		if _, err := Manifest(ManifestOptions{BaseURL: base}); !errors.Is(err, ErrManifest) {
			t.Errorf("base %q: %v, want ErrManifest", base, err)
		}
	}
	if _, err := Manifest(ManifestOptions{Name: strings.Repeat("x", 36), SocketMode: true}); !errors.Is(err, ErrManifest) {
		t.Errorf("a long name: %v, want ErrManifest", err)
	}
}

// Every file in the gallery is one that a test compares.
func TestNoStrayGoldens(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "card_*.json"))
	if err != nil {
		t.Fatal(err)
	}
	names := galleryNames()
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "card_"), ".json")
		if !slices.Contains(names, name) {
			t.Errorf("%s belongs to no card", f)
		}
	}
}
