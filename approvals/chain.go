package approvals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The audit chain (I26): each event's seal covers the event's bytes and the seal before it, per tenant, numbered without gaps. Sealing
// runs after the events' commit, one tenant at a time, so that transitions never wait for each other; audit_unsealed names what the
// chain does not cover yet, in the transaction that wrote it.
var (
	sqlUnsealedTenants = statement(`SELECT DISTINCT tenant_id FROM audit_unsealed`)
	sqlChainLock       = statement(`SELECT pg_try_advisory_xact_lock($1)`)
	sqlChainHead       = statement(`SELECT seq, hash FROM audit_seal WHERE tenant_id = $1 ORDER BY seq DESC LIMIT 1`)
	sqlUnsealedEvents  = statement(`SELECT ` + chainColumns + ` FROM audit_unsealed u JOIN audit_event e ON e.event_id = u.event_id WHERE u.tenant_id = $1 ORDER BY e.event_id LIMIT $2`)
	sqlInsertSeal      = statement(`INSERT INTO audit_seal (tenant_id, seq, event_id, prev, hash) VALUES ($1, $2, $3, $4, $5)`)
	sqlDropUnsealed    = statement(`DELETE FROM audit_unsealed WHERE event_id = ANY ($1)`)
	sqlWalkChain       = statement(`SELECT s.seq, s.event_id, s.prev, s.hash, ` + chainColumns + ` FROM audit_seal s LEFT JOIN audit_event e ON e.event_id = s.event_id WHERE s.tenant_id = $1 AND s.seq > $2 ORDER BY s.seq LIMIT $3`)
	sqlUnchained       = statement(`SELECT e.event_id::text FROM audit_event e WHERE e.tenant_id = $1 AND NOT EXISTS (SELECT 1 FROM audit_seal s WHERE s.event_id = e.event_id)
		AND NOT EXISTS (SELECT 1 FROM audit_unsealed u WHERE u.event_id = e.event_id) ORDER BY e.event_id LIMIT 1`)
)

const chainColumns = `e.event_id, e.tenant_id, e.approval_id, e.pause_id, e.kind, e.from_status, e.to_status, e.actor, e.surface, e.detail::text, e.at`

// chained is an audit event as its seal covers it. Pointers, because a removed event reads as NULLs.
type chained struct {
	id, approval, pause                            *uuid.UUID
	tenant, kind, from, to, actor, surface, detail *string
	at                                             *time.Time
}

func (e *chained) targets() []any {
	return []any{&e.id, &e.tenant, &e.approval, &e.pause, &e.kind, &e.from, &e.to, &e.actor, &e.surface, &e.detail, &e.at}
}

// seal is the hash of an event at a place in the chain.
func (e *chained) seal(seq int64, prev []byte) []byte {
	f := newFields("holdpoint audit v1")
	f.number(seq)
	f.bytes(prev)
	for _, u := range []*uuid.UUID{e.id, e.approval, e.pause} {
		if u == nil {
			f.text("")
			continue
		}
		f.text(u.String())
	}
	for _, s := range []*string{e.tenant, e.kind, e.from, e.to, e.actor, e.surface, e.detail} {
		if s == nil {
			f.number(0)
			continue
		}
		f.number(1)
		f.text(*s)
	}
	f.number(e.at.UnixMicro())
	return f.h.Sum(nil)
}

// SealAudit extends the chains by up to limit events a tenant. Any number of workers may run it: a tenant's chain is one worker's at a
// time. A kill in it leaves the events unsealed for the next.
func (s *Service) SealAudit(ctx context.Context, limit int) (sealed int, err error) {
	rows, err := s.work.Query(ctx, sqlUnsealedTenants)
	if err != nil {
		return 0, unavailable(err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, unavailable(err)
	}
	var errs []error
	for _, tenant := range tenants {
		n, err := s.sealTenant(ctx, tenant, limit)
		sealed += n
		errs = append(errs, unavailable(err))
	}
	return sealed, errors.Join(errs...)
}

func (s *Service) sealTenant(ctx context.Context, tenant string, limit int) (n int, err error) {
	err = pgx.BeginFunc(ctx, s.work, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, sqlChainLock, lockKey("audit chain", tenant, "")).Scan(&mine); err != nil || !mine {
			return err
		}
		var seq int64
		prev := []byte{}
		if err := tx.QueryRow(ctx, sqlChainHead, tenant).Scan(&seq, &prev); noRows(err) != nil {
			return err
		}
		rows, err := tx.Query(ctx, sqlUnsealedEvents, tenant, limit)
		if err != nil {
			return err
		}
		events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e chained, err error) { return e, row.Scan(e.targets()...) })
		if err != nil || len(events) == 0 {
			return err
		}
		b := &pgx.Batch{}
		ids := make([]uuid.UUID, len(events))
		for i := range events {
			seq++
			hash := events[i].seal(seq, prev)
			b.Queue(sqlInsertSeal, tenant, seq, *events[i].id, prev, hash)
			prev, ids[i] = hash, *events[i].id
		}
		b.Queue(sqlDropUnsealed, ids)
		n = len(events)
		return tx.SendBatch(ctx, b).Close()
	})
	return n, err
}

// ChainReport is what a walk of a tenant's chain found. Bad is empty when it is whole.
type ChainReport struct {
	Sealed   int64
	Unsealed int64
	Head     []byte // the newest seal's hash: keep it elsewhere to prove that no tail was cut off
	Bad      string // the first bad row, in words
}

// VerifyAudit walks the chain from its beginning: numbers without a gap, each seal over the one before and over the event's bytes,
// and no event outside of the chain.
func (s *Service) VerifyAudit(ctx context.Context, tenant string) (ChainReport, error) {
	var rep ChainReport
	prev := []byte{}
	for {
		rows, err := s.work.Query(ctx, sqlWalkChain, tenant, rep.Sealed, 1000)
		if err != nil {
			return rep, unavailable(err)
		}
		before := rep.Sealed
		for rows.Next() && rep.Bad == "" {
			var seq int64
			var id uuid.UUID
			var linked, hash []byte
			var e chained
			if err := rows.Scan(append([]any{&seq, &id, &linked, &hash}, e.targets()...)...); err != nil {
				rows.Close()
				return rep, err
			}
			switch {
			case seq != rep.Sealed+1:
				rep.Bad = fmt.Sprintf("seal %d is missing", rep.Sealed+1)
			case !bytes.Equal(linked, prev):
				rep.Bad = fmt.Sprintf("seal %d does not follow the one before it", seq)
			case e.id == nil:
				rep.Bad = fmt.Sprintf("seal %d: its event %s was removed", seq, id)
			case !bytes.Equal(e.seal(seq, prev), hash):
				rep.Bad = fmt.Sprintf("seal %d: its event %s was changed", seq, id)
			default:
				rep.Sealed, prev = seq, hash
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return rep, unavailable(err)
		}
		if rep.Bad != "" || rep.Sealed == before {
			break
		}
	}
	rep.Head = prev
	if rep.Bad != "" {
		return rep, nil
	}
	var id string
	err := s.work.QueryRow(ctx, sqlUnchained, tenant).Scan(&id)
	if err == nil {
		rep.Bad = "event " + id + " is in no seal and not waiting for one"
	}
	if noRows(err) != nil {
		return rep, unavailable(err)
	}
	return rep, unavailable(s.work.QueryRow(ctx, `SELECT count(*) FROM audit_unsealed WHERE tenant_id = $1`, tenant).Scan(&rep.Unsealed))
}
