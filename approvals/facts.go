package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdpoint/holdpoint/approvals/rules"
)

// The facts of a transition: everything that the pure functions decide from, read in one pipelined batch of one transaction.
//
// Order matters. The locking statements stand alone and first (request, then ledger, then the FOR SHARE rows), because a predicate
// or a join is evaluated before its lock is granted; what is read for a judgement is read after them, in statements of their own,
// and the database's clock last (measured traps of the invariants).
var (
	// Locks the request. Returns its row, or none.
	sqlLockRequest = statement(`SELECT ` + requestColumns + ` FROM approval_request r WHERE r.approval_id = $1 FOR UPDATE`)
	// Locks the operation of the lineage. Returns its row, or none before the first claim.
	sqlLockLedger = statement(`SELECT ` + ledgerColumns + ` FROM idempotency_ledger l
		WHERE l.lineage_id = (SELECT lineage_id FROM approval_request WHERE approval_id = $1) FOR UPDATE`)
	// Stands in line with whoever changes an authority of the tenant: row locks let new sharers overtake a waiting writer, so that one
	// busy key could starve the kill switch; advisory locks are granted in order.
	sqlShareLine = statement(`SELECT pg_advisory_xact_lock_shared(hashtextextended((SELECT tenant_id FROM approval_request WHERE approval_id = $1), 7))`)
	// Locks the active configuration FOR SHARE: writers of revisions, suspensions, blocks and keys take it FOR UPDATE first.
	sqlShareActive = statement(`SELECT c.revision FROM config_active c
		WHERE c.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1) FOR SHARE`)
	// Locks the people that matter: $2, the requester and everyone who voted. Returns them as they are now.
	sqlShareUsers = statement(`SELECT u.user_id, u.team_id, u.name, u.deleted, u.restricted, u.ultra_restricted, u.bot, u.invited, u.stranger, u.synced_at
		FROM slack_user u WHERE u.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1) AND (u.user_id = ANY ($2)
			OR u.user_id = (SELECT substr(requester, 7) FROM approval_request WHERE approval_id = $1)
			OR u.user_id IN (SELECT substr(reviewer, 7) FROM approval_decision WHERE approval_id = $1))
		ORDER BY u.user_id FOR SHARE`)
	// Locks the groups that those people are in. Only a group locked here can grant anything.
	sqlShareGroups = statement(`SELECT g.group_id FROM slack_group g
		WHERE g.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1) AND g.group_id IN (
			SELECT m.group_id FROM slack_group_member m WHERE m.tenant_id = g.tenant_id AND (m.user_id = ANY ($2)
				OR m.user_id = (SELECT substr(requester, 7) FROM approval_request WHERE approval_id = $1)
				OR m.user_id IN (SELECT substr(reviewer, 7) FROM approval_decision WHERE approval_id = $1)))
		ORDER BY g.group_id FOR SHARE`)
	sqlReadGroups = statement(`SELECT g.group_id, g.handle, g.enabled, g.synced_at FROM slack_group g
		WHERE g.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1)`)
	// Locks the groups that conditions ask for, whether or not the requester is in them: "not in it" must not change either.
	sqlShareNamed  = statement(`SELECT g.group_id FROM slack_group g WHERE g.tenant_id = $1 AND g.group_id = ANY ($2) ORDER BY g.group_id FOR SHARE`)
	sqlReadMembers = statement(`SELECT m.group_id, m.user_id FROM slack_group_member m
		WHERE m.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1) AND (m.user_id = ANY ($2)
			OR m.user_id = (SELECT substr(requester, 7) FROM approval_request WHERE approval_id = $1)
			OR m.user_id IN (SELECT substr(reviewer, 7) FROM approval_decision WHERE approval_id = $1))`)
	sqlReadVotes = statement(`SELECT d.reviewer, d.decision, d.digest, d.reason, d.decided_at, ` + voidVote + ` FROM approval_decision d WHERE d.approval_id = $1 ORDER BY d.decided_at, d.reviewer`)
	sqlReadCard  = statement(`SELECT channel, coalesce(message_ts, ''), mac_key FROM card WHERE card_id = (SELECT card_id FROM approval_request WHERE approval_id = $1)`)
	sqlReadStops = statement(`SELECT 'block', b.user_id FROM blocked_user b WHERE b.active AND b.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1)
		UNION ALL SELECT s.scope, s.name FROM suspension s WHERE s.active AND s.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1)
		UNION ALL SELECT 'key', k.id FROM api_key k WHERE k.id = (SELECT api_key_id FROM approval_request WHERE approval_id = $1) AND k.revoked_at IS NULL
			AND (k.tools IS NULL OR (SELECT tool_name FROM approval_request WHERE approval_id = $1) = ANY (k.tools))`)
	// The key that calls, which may be another one than the request was made with: is it alive, and does it cover the tool?
	sqlReadCaller  = statement(`SELECT k.revoked_at IS NULL, k.tools IS NULL OR (SELECT tool_name FROM approval_request WHERE approval_id = $1) = ANY (k.tools) FROM api_key k WHERE k.id = $2`)
	sqlReadPayload = statement(`SELECT arguments, result FROM approval_payload WHERE approval_id = $1`)
	// The latest decide_by of the pause's other calls that still wait for a person: an agent can run its own tool only after them.
	sqlReadSiblings = statement(`SELECT max(o.due_at) FROM approval_request s JOIN approval_open o ON o.approval_id = s.approval_id AND o.wait = 'decision'
		WHERE s.pause_id = (SELECT pause_id FROM approval_request WHERE approval_id = $1) AND s.approval_id <> $1`)
	sqlReadBlob = statement(`SELECT b.format, b.sealed, root.arguments_digest, b.pause_id::text FROM approval_request r
		JOIN run_pause p ON p.pause_id = r.pause_id JOIN run_state_blob b ON b.blob_id = p.blob_id
		JOIN approval_request root ON root.approval_id = r.lineage_id WHERE r.approval_id = $1`)
	sqlReadPool = statement(`SELECT m.group_id, m.user_id, coalesce(u.team_id, ''), coalesce(u.synced_at, 'epoch') FROM slack_group_member m LEFT JOIN slack_user u ON u.tenant_id = m.tenant_id AND u.user_id = m.user_id
		WHERE m.tenant_id = (SELECT tenant_id FROM approval_request WHERE approval_id = $1)
			AND NOT coalesce(u.deleted OR u.restricted OR u.ultra_restricted OR u.bot OR u.invited OR u.stranger, false) LIMIT 2000`)
	sqlClock = statement(`SELECT clock_timestamp()`)
)

// voidVote says of a decision d that a block voided it: its person is blocked, or was after it. A lifted block revives no vote.
const voidVote = `EXISTS (SELECT 1 FROM blocked_user b JOIN approval_request q ON q.tenant_id = b.tenant_id
	WHERE q.approval_id = d.approval_id AND d.reviewer = 'slack:' || b.user_id AND (b.active OR d.decided_at <= b.at))`

// person is one mirrored Slack user.
type person struct {
	id, team, name                                       string
	deleted, restricted, ultra, bot, invited, isStranger bool
	syncedAt                                             time.Time
}

// group is one mirrored Slack user group. locked says that this transaction holds it FOR SHARE.
type group struct {
	handle          string
	enabled, locked bool
	syncedAt        time.Time
}

type membership struct{ group, user string }

type cardRow struct {
	channel, messageTS string
	macKey             []byte
}

type blobRow struct {
	format, rootDigest, pauseID string
	sealed                      []byte
}

// facts are what one transaction has locked and read.
type facts struct {
	req                      *requestRow
	ledger                   *ledgerRow
	card                     *cardRow
	tenant                   *rules.Tenant
	revision                 int64
	users                    map[string]person
	groups                   map[string]group
	members                  map[membership]bool
	votes                    []Vote
	blocked                  map[string]bool
	blockedAt                map[string]time.Time // by want.blocks
	stops                    map[string]bool      // "tenant:", "agent:NAME", "tool:NAME"
	keyLive                  bool                 // the key that the request was made with is unrevoked and still covers the tool
	callerLive, callerCovers bool                 // the same of the key that calls now
	payload                  []byte
	result                   []byte
	blob                     *blobRow
	siblings                 *time.Time
	pool                     map[membership]person // of whom only the team and the age are read; no team: not mirrored
	now                      time.Time
}

// want says which of the dearer facts a transition needs.
type want struct {
	people  []string // Slack users beside the requester and the voters
	payload bool
	blob    bool
	key     string // the key that calls
	blocks  bool   // when those people were last blocked, also where the block is lifted
	pool    bool   // the full members of the tenant's groups: who could decide an edited call
}

// begin opens a transaction on c and reads the facts of an approval in one round trip. Whoever gets a nil error must end the
// transaction; on an error the connection is to be released, which destroys it when a transaction is still open.
func (s *Service) begin(ctx context.Context, c *pgx.Conn, id ID, w want) (*facts, error) {
	f := &facts{users: map[string]person{}, groups: map[string]group{}, members: map[membership]bool{}, blocked: map[string]bool{}, stops: map[string]bool{}}
	people := w.people
	if people == nil {
		people = []string{}
	}
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	b.Queue(sqlLockRequest, id).QueryRow(func(row pgx.Row) (err error) { f.req, err = scanRequest(row); return err })
	b.Queue(sqlLockLedger, id).QueryRow(func(row pgx.Row) (err error) {
		f.ledger, err = scanLedger(row)
		return noRows(err)
	})
	b.Queue(sqlShareLine, id)
	b.Queue(sqlShareActive, id).QueryRow(func(row pgx.Row) error { return row.Scan(&f.revision) })
	b.Queue(sqlShareUsers, id, people).Query(f.scanUsers)
	b.Queue(sqlShareGroups, id, people).Query(f.scanLocked)
	b.Queue(sqlReadGroups, id).Query(f.scanGroups)
	b.Queue(sqlReadMembers, id, people).Query(f.scanMembers)
	b.Queue(sqlReadVotes, id).Query(f.scanVotes)
	b.Queue(sqlReadCard, id).QueryRow(func(row pgx.Row) error {
		var k cardRow
		err := row.Scan(&k.channel, &k.messageTS, &k.macKey)
		if err == nil {
			f.card = &k
		}
		return noRows(err)
	})
	b.Queue(sqlReadStops, id).Query(f.scanStops)
	b.Queue(sqlReadSiblings, id).QueryRow(func(row pgx.Row) error { return row.Scan(&f.siblings) })
	if w.key != "" {
		b.Queue(sqlReadCaller, id, w.key).QueryRow(f.scanCaller)
	}
	if w.payload {
		b.Queue(sqlReadPayload, id).QueryRow(func(row pgx.Row) error { return row.Scan(&f.payload, &f.result) })
	}
	if w.blob {
		b.Queue(sqlReadBlob, id).QueryRow(func(row pgx.Row) error {
			var k blobRow
			err := row.Scan(&k.format, &k.sealed, &k.rootDigest, &k.pauseID)
			if err == nil {
				f.blob = &k
			}
			return noRows(err)
		})
	}
	if w.blocks {
		b.Queue(sqlReadBlocks, id, people).Query(f.scanBlocks)
	}
	if w.pool {
		f.pool = map[membership]person{}
		b.Queue(sqlReadPool, id).Query(f.scanPool)
	}
	b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&f.now) })
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		if errors.Is(err, pgx.ErrNoRows) && f.req == nil {
			return nil, ErrNotFound
		}
		if errors.Is(err, pgx.ErrNoRows) && f.revision == 0 {
			return nil, ErrNoConfig
		}
		return nil, unavailable(err)
	}
	tenant, err := s.tenantAt(ctx, c, f.req.tenant, f.revision)
	if err != nil {
		return nil, err
	}
	f.tenant = tenant
	s.active.Store(f.req.tenant, f.revision)
	return f, f.shareConditions(ctx, c, people)
}

// shareConditions locks what only the configuration names: the groups of conditions over the requester's. It is one more round trip
// for tenants that have such conditions, and reads the memberships and the clock again after the locks.
func (f *facts) shareConditions(ctx context.Context, c *pgx.Conn, people []string) error {
	asked := slices.DeleteFunc(conditionGroups(f.tenant), func(id string) bool { return f.groups[id].locked })
	if len(asked) == 0 || slackUser(f.req.requester) == "" {
		return nil
	}
	f.members = map[membership]bool{}
	b := &pgx.Batch{}
	b.Queue(sqlShareNamed, f.req.tenant, asked).Query(f.scanLocked)
	b.Queue(sqlReadGroups, f.req.id).Query(f.scanGroups)
	b.Queue(sqlReadMembers, f.req.id, people).Query(f.scanMembers)
	b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&f.now) })
	return unavailable(c.SendBatch(ctx, b).Close())
}

func (f *facts) scanCaller(row pgx.Row) error {
	return noRows(row.Scan(&f.callerLive, &f.callerCovers))
}

func (f *facts) scanUsers(rows pgx.Rows) error {
	for rows.Next() {
		var p person
		if err := rows.Scan(&p.id, &p.team, &p.name, &p.deleted, &p.restricted, &p.ultra, &p.bot, &p.invited, &p.isStranger, &p.syncedAt); err != nil {
			return err
		}
		f.users[p.id] = p
	}
	return rows.Err()
}

func (f *facts) scanLocked(rows pgx.Rows) error {
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		f.groups[id] = group{locked: true}
	}
	return rows.Err()
}

func (f *facts) scanGroups(rows pgx.Rows) error {
	for rows.Next() {
		var id string
		var g group
		if err := rows.Scan(&id, &g.handle, &g.enabled, &g.syncedAt); err != nil {
			return err
		}
		g.locked = f.groups[id].locked
		f.groups[id] = g
	}
	return rows.Err()
}

func (f *facts) scanMembers(rows pgx.Rows) error { return scanMemberships(rows, f.members) }

func scanMemberships(rows pgx.Rows, into map[membership]bool) error {
	for rows.Next() {
		var m membership
		if err := rows.Scan(&m.group, &m.user); err != nil {
			return err
		}
		into[m] = true
	}
	return rows.Err()
}

func (f *facts) scanPool(rows pgx.Rows) error {
	for rows.Next() {
		var m membership
		p := person{}
		if err := rows.Scan(&m.group, &m.user, &p.team, &p.syncedAt); err != nil {
			return err
		}
		f.pool[m] = p
	}
	return rows.Err()
}

func (f *facts) scanVotes(rows pgx.Rows) error {
	for rows.Next() {
		var v Vote
		if err := rows.Scan(&v.By, &v.Decision, &v.Digest, &v.Reason, &v.At, &v.Void); err != nil {
			return err
		}
		f.votes = append(f.votes, v)
	}
	return rows.Err()
}

func (f *facts) scanStops(rows pgx.Rows) error {
	for rows.Next() {
		var kind, name string
		if err := rows.Scan(&kind, &name); err != nil {
			return err
		}
		switch kind {
		case "block":
			f.blocked[name] = true
		case "key":
			f.keyLive = true
		default:
			f.stops[kind+":"+name] = true
		}
	}
	return rows.Err()
}

// noRows makes an absent optional row no error.
func noRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// unavailable names a failure of the database in which nothing is known to have changed; other errors pass through.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	var no *Refusal
	switch {
	case errors.Is(err, ErrNoConfig) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrListChanged) || errors.Is(err, ErrNotAdmin) || errors.As(err, &no):
		return err
	case errors.As(err, &pg):
		switch pg.Code {
		case "55P03", "57014", "40P01", "25P03", "57P01", "57P02", "57P03", "53300", "40001": // lock_timeout, cancelled, deadlock, shutdown, too many connections
			return fmt.Errorf("%w (%s)", ErrUnavailable, pg.Code)
		}
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// definite says that the server itself refused a statement, so that the transaction certainly did not commit.
func definite(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code != "57P01" && pg.Code != "57P02" && pg.Code != "57P03" && pg.Code != "25P03"
}
