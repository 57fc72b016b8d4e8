package slacksim

import (
	"math"
	"time"
)

// Rate is a token bucket: Burst calls at once, refilled at PerMinute. PerChannel keeps one bucket a channel.
type Rate struct {
	PerMinute  float64
	Burst      int
	PerChannel bool
}

// Slack's tiers (https://docs.slack.dev/apis/web-api/rate-limits): tier 2 20+, tier 3 50+, tier 4 100+ a minute;
// chat.postMessage one a second and channel, with short bursts.
var (
	tier2    = Rate{PerMinute: 20, Burst: 20}
	tier3    = Rate{PerMinute: 50, Burst: 50}
	tier4    = Rate{PerMinute: 100, Burst: 100}
	posting  = Rate{PerMinute: 60, Burst: 5, PerChannel: true}
	defaults = map[string]Rate{
		"chat.postMessage": posting, "chat.postEphemeral": tier4, "chat.update": tier3, "chat.delete": tier3, "chat.getPermalink": tier4,
		"conversations.history": tier3, "conversations.replies": tier3, "conversations.info": tier3, "conversations.open": tier3,
		"users.info": tier4, "users.list": tier2, "usergroups.list": tier2, "usergroups.users.list": tier2,
		"views.open": tier4, "views.push": tier4, "views.update": tier4, "views.publish": tier4, "team.info": tier3,
	}
)

type bucket struct {
	tokens float64
	at     time.Time
}

// spend takes a token for a call and returns 0, or the whole seconds to wait. Held: mu.
func (s *Sim) spend(method string, a args) time.Duration {
	rate, ok := s.opts.Limits[method]
	if !ok {
		rate, ok = defaults[method]
	}
	if s.opts.Unlimited || !ok || rate.PerMinute <= 0 {
		return 0
	}
	key := method
	if rate.PerChannel {
		key += " " + a.str("channel")
	}
	now := s.opts.Now()
	b := s.buckets[key]
	if b == nil {
		b = &bucket{tokens: float64(rate.Burst), at: now}
		s.buckets[key] = b
	}
	b.tokens = min(float64(rate.Burst), b.tokens+now.Sub(b.at).Minutes()*rate.PerMinute)
	b.at = now
	if b.tokens < 1 {
		return time.Duration(max(1, math.Ceil((1-b.tokens)/rate.PerMinute*60))) * time.Second
	}
	b.tokens--
	return 0
}
