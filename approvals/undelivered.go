package approvals

import "context"

// Undelivered counts the dead letters that somebody could still redrive, over all tenants.
type Undelivered struct {
	Unheard int // nobody took the message for 24 h
	Stopped int // the agent answered that it is not to be sent again
}

// A pause whose run went on with a later intake is told no more, so it is nobody's to redrive.
var sqlUndelivered = statement(`SELECT count(*) FILTER (WHERE p.stopped_at IS NULL), count(*) FILTER (WHERE p.stopped_at IS NOT NULL) FROM run_pause p
	WHERE (p.dead_at IS NOT NULL OR p.stopped_at IS NOT NULL) AND p.told_at IS NULL AND p.superseded_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM run_pause q WHERE q.tenant_id = p.tenant_id AND q.agent = p.agent AND q.run_id = p.run_id AND q.pause > p.pause)`)

// Undelivered reads how many runs wait for somebody to mend their delivery. It looks at every pause: once a minute, not at every sweep.
func (s *Service) Undelivered(ctx context.Context) (Undelivered, error) {
	var u Undelivered
	err := s.work.QueryRow(ctx, sqlUndelivered).Scan(&u.Unheard, &u.Stopped)
	return u, unavailable(err)
}
