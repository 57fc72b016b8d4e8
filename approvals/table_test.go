package approvals

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// pairs is a transition table as a set of "from → to".
type pairs map[string]bool

func (p pairs) add(from, to string) { p[from+" → "+to] = true }

// same tells where two tables differ.
func (p pairs) same(t *testing.T, what string, other pairs) {
	t.Helper()
	for k := range p {
		if !other[k] {
			t.Errorf("%s lacks %s", what, k)
		}
	}
	for k := range other {
		if !p[k] {
			t.Errorf("%s allows %s", what, k)
		}
	}
}

// diagrams reads the two state diagrams of the package's documentation. Ends ("--> [*]") are the states without a way out.
func diagrams(t *testing.T) (out []pairs, ends [][]string) {
	t.Helper()
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	arrow := regexp.MustCompile(`^//\t    (\S+) --> ([^\s:]+)(: .+)?$`)
	for _, line := range strings.Split(string(source), "\n") {
		if line == "//\tstateDiagram-v2" {
			out, ends = append(out, pairs{}), append(ends, nil)
			continue
		}
		m := arrow.FindStringSubmatch(line)
		switch {
		case m == nil:
		case m[2] == "[*]":
			ends[len(ends)-1] = append(ends[len(ends)-1], m[1])
		case m[1] == "[*]":
			out[len(out)-1].add("", m[2])
		default:
			out[len(out)-1].add(m[1], m[2])
		}
	}
	if len(out) != 2 {
		t.Fatalf("%d diagrams in the package's documentation", len(out))
	}
	return out, ends
}

// I9: the code's table, the database's trigger and the diagram allow the same (from, to) pairs; each pair is tried on a real row.
func TestStatusTableTriggerAndDiagramAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code, terminal := pairs{}, []string(nil)
	for _, from := range append([]Status{begin}, Statuses...) {
		for _, to := range Statuses {
			if from.CanBecome(to) {
				code.add(string(from), string(to))
			}
		}
		if from.Terminal() {
			terminal = append(terminal, string(from))
		}
	}
	drawn, ends := diagrams(t)
	code.same(t, "the diagram", drawn[0])
	slices.Sort(terminal)
	slices.Sort(ends[0])
	if !slices.Equal(terminal, ends[0]) {
		t.Errorf("the diagram ends at %v, the code at %v", ends[0], terminal)
	}

	id := w.propose("send_mail", mail).ApprovalID
	guarded := pairs{}
	for _, to := range Statuses {
		if w.tried(func(tx pgx.Tx) error { // a copy of the row, in another status
			_, err := tx.Exec(w.ctx, `INSERT INTO approval_request SELECT (jsonb_populate_record(r, jsonb_build_object('approval_id', $2::text, 'status', $3::text))).* FROM approval_request r WHERE approval_id = $1`, id, uuid.NewString(), string(to))
			return err
		}) {
			guarded.add("", string(to))
		}
		for _, from := range Statuses {
			w.exec(`UPDATE approval_request SET status = $2 WHERE approval_id = $1`, id, string(from))
			if w.tried(func(tx pgx.Tx) error {
				_, err := tx.Exec(w.ctx, `UPDATE approval_request SET status = $2, version = version + 1 WHERE approval_id = $1`, id, string(to))
				return err
			}) {
				guarded.add(string(from), string(to))
			}
		}
	}
	code.same(t, "the trigger", guarded)
	w.exec(`UPDATE approval_request SET status = 'pending' WHERE approval_id = $1`, id)
	if w.tried(func(tx pgx.Tx) error {
		_, err := tx.Exec(w.ctx, `UPDATE approval_request SET status = 'approved' WHERE approval_id = $1`, id)
		return err
	}) {
		t.Error("a transition without a new version passes the trigger")
	}
}

// tried runs a change in a transaction that is rolled back, and says whether the guards let it pass. Any error but theirs ends the test.
func (w *world) tried(change func(pgx.Tx) error) bool {
	w.t.Helper()
	tx, err := w.db.Begin(w.ctx)
	w.must(err)
	defer func() { w.must(tx.Rollback(w.ctx)) }()
	err = change(tx)
	if err != nil && !strings.Contains(err.Error(), "SQLSTATE HP00") {
		w.t.Fatal(err)
	}
	return err == nil
}

func TestLedgerTableTriggerAndDiagramAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := pairs{}
	code.add("", string(Reserved))
	for _, from := range LedgerStates {
		for _, to := range LedgerStates {
			if from.CanBecome(to) {
				code.add(string(from), string(to))
			}
		}
	}
	drawn, ends := diagrams(t)
	code.same(t, "the diagram", drawn[1])
	if !slices.Equal(ends[1], []string{"failed_terminal"}) {
		t.Errorf("the ledger's diagram ends at %v", ends[1])
	}
	id := w.approved("send_mail")
	w.claim(id)
	guarded := pairs{}
	guarded.add("", string(Reserved)) // an insert is not guarded by a trigger: sqlReserve has the state in its text
	if !strings.Contains(sqlReserve, "'reserved', $4") {
		t.Error("sqlReserve begins in another state")
	}
	for _, from := range LedgerStates {
		for _, to := range LedgerStates {
			w.exec(`UPDATE idempotency_ledger SET state = $1`, string(from))
			if w.tried(func(tx pgx.Tx) error {
				_, err := tx.Exec(w.ctx, `UPDATE idempotency_ledger SET state = $1`, string(to))
				return err
			}) {
				guarded.add(string(from), string(to))
			}
		}
	}
	code.same(t, "the ledger's trigger", guarded)
	// The fence (I16): the epoch only grows, and a new token is a new epoch.
	for change, want := range map[string]bool{
		"epoch = epoch - 1": false, "token = gen_random_uuid()": false, "token = gen_random_uuid(), epoch = epoch + 1": true, "epoch = epoch + 1": true,
	} {
		w.exec(`UPDATE idempotency_ledger SET state = 'executing'`)
		if got := w.tried(func(tx pgx.Tx) error {
			_, err := tx.Exec(w.ctx, `UPDATE idempotency_ledger SET `+change)
			return err
		}); got != want {
			t.Errorf("%s passes: %v", change, got)
		}
	}
}

// Evidence is not changed and not deleted: proposals, votes, audit, configuration, ledger.
func TestEvidenceIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.approved("deploy_release")
	w.done(id)
	for _, sql := range []string{
		`DELETE FROM approval_request`, `DELETE FROM approval_decision`, `DELETE FROM audit_event`, `DELETE FROM config_revision`, `DELETE FROM idempotency_ledger`,
		`UPDATE approval_decision SET reason = 'other'`, `UPDATE audit_event SET actor = 'other'`, `UPDATE config_revision SET author = 'other'`,
		`UPDATE approval_request SET snapshot = '{"title":"other"}'`, `UPDATE approval_request SET arguments_digest = 'x'`, `UPDATE approval_request SET digest = 'x'`,
		`UPDATE approval_request SET target = 'x'`, `UPDATE approval_request SET requester = 'x'`, `UPDATE approval_request SET rule = 'x'`, `UPDATE approval_request SET editors = '{x}'`,
		`UPDATE approval_request SET operation_key = 'x'`, `UPDATE approval_request SET decide_by = now()`, `UPDATE approval_request SET tool_name = 'x'`, `UPDATE approval_request SET operator_scope = '{}'`,
		`UPDATE approval_request SET tool_revision = 'x'`, `UPDATE approval_request SET tenant_id = 'x'`, `UPDATE approval_request SET execute_within = '1 year'`,
		`UPDATE approval_request SET sdk_version = 'x'`, `UPDATE approval_request SET api_key_id = 'x'`, `UPDATE approval_request SET rule_why = 'x'`, `UPDATE approval_request SET card_id = gen_random_uuid()`,
		`UPDATE approval_request SET edit_diff = 'x'`, `UPDATE approval_request SET created_at = now()`, `UPDATE approval_request SET replaces_id = gen_random_uuid()`,
	} {
		if w.tried(func(tx pgx.Tx) error {
			_, err := tx.Exec(w.ctx, sql)
			return err
		}) {
			t.Errorf("passes: %s", sql)
		}
	}
	for _, sql := range []string{`UPDATE approval_request SET snapshot = NULL, edit_diff = ''`} { // erasure
		if !w.tried(func(tx pgx.Tx) error {
			_, err := tx.Exec(w.ctx, sql)
			return err
		}) {
			t.Errorf("is refused: %s", sql)
		}
	}
}

// One door: one statement of the whole program writes a status of an approval, and one the state of an operation.
func TestOneDoor(t *testing.T) {
	t.Parallel()
	status := regexp.MustCompile(`(?is)UPDATE\s+approval_request\b[^` + "`" + `]*?\bSET\b[^` + "`" + `]*?\bstatus\s*=`)
	state := regexp.MustCompile(`(?is)UPDATE\s+idempotency_ledger\b[^` + "`" + `]*?\bSET\s+state\s*=`)
	count := map[string][]string{}
	err := walkSources("..", func(name, text string) {
		for what, re := range map[string]*regexp.Regexp{"status": status, "state": state} {
			for range re.FindAllString(text, -1) {
				count[what] = append(count[what], name)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, files := range count {
		if len(files) != 1 || !strings.HasSuffix(files[0], "approvals/transition.go") {
			t.Errorf("a %s is written in %v", what, files)
		}
	}
	if len(count) != 2 {
		t.Errorf("found %v", count)
	}
}

// walkSources reads the program's Go files, without its tests.
func walkSources(root string, see func(name, text string)) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := root + "/" + e.Name()
		switch {
		case strings.HasPrefix(e.Name(), "."), strings.HasSuffix(e.Name(), "_test.go"):
		case e.IsDir():
			if err := walkSources(name, see); err != nil {
				return err
			}
		case strings.HasSuffix(e.Name(), ".go"):
			b, err := os.ReadFile(name)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			see(name, string(b))
		}
	}
	return nil
}
