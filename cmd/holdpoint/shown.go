package main

import (
	"context"
	"slices"

	"github.com/holdpoint/holdpoint/approvals"
)

// shown is the core as cards see it: what waits for people under a switch says so, as what is held does. Approving it is allowed;
// whoever does should know that it won't start now.
type shown struct{ *approvals.Service }

// CardFacts reads an approval with its card, and the widest switch that it is under.
func (s shown) CardFacts(ctx context.Context, id approvals.ID) (approvals.CardFacts, error) {
	f, err := s.Service.CardFacts(ctx, id)
	if err != nil || f.Status != approvals.Pending && f.Held != approvals.ReasonPaused {
		return f, err
	}
	thrown, err := s.Switches(ctx, f.Tenant)
	if err != nil {
		return f, err
	}
	if i := slices.IndexFunc(thrown, func(w approvals.Switch) bool { return w.Covers(f.View) }); i >= 0 {
		f.HeldBy, f.HeldDetail = thrown[i].By, thrown[i].String()
	}
	return f, nil
}
