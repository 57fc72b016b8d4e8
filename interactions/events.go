package interactions

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"

	"github.com/holdpoint/holdpoint/bot"
)

// event takes a verified event. It is acknowledged at once; what it is about is read again afterwards, so a repeat costs at
// most a look-up that others share, and one that is lost is made good by the directory's own rounds.
func (h *Handler) event(_ context.Context, _ signature, raw []byte) answer {
	e, err := parseEvent(raw, h.appID)
	if err != nil {
		return answer{status: http.StatusBadRequest}
	}
	if e.Type == "url_verification" {
		return answer{body: map[string]string{"challenge": e.Challenge}}
	}
	return h.happened(e)
}

func (h *Handler) happened(e event) answer {
	home := e.Event.Type == eventHome
	if !home && !slices.Contains(bot.EventTypes, e.Event.Type) {
		return answer{}
	}
	// Slack repeats an event under its id, with a new signature.
	if e.ID != "" && !h.events.fresh(sha256.Sum256([]byte(e.ID)), h.now()) {
		return answer{}
	}
	if home {
		return h.homeOpened(e)
	}
	about := bot.Event{Type: e.Event.Type, Team: e.TeamID, Group: e.Event.SubteamID, User: e.user(), People: append(e.Event.Added, e.Event.Removed...)}
	if about.Group == "" && e.Event.Subteam != nil {
		about.Group = e.Event.Subteam.ID
	}
	return answer{after: []func(context.Context){func(ctx context.Context) {
		if err := h.directory.OnEvent(ctx, about); err != nil {
			h.log.Warn("an event about people could not be followed; the next round will", "type", about.Type, "class", string(bot.ClassOf(err)), "error", err)
		}
	}}}
}
