package slacksim

import (
	"time"
)

const (
	triggerLife = 3 * time.Second
	answerLife  = 30 * time.Minute
	answerUses  = 5
)

// trigger lets the app open one view for one person, soon.
type trigger struct {
	user    string
	view    *View // the view that it was clicked in, if any
	expires time.Time
	used    bool
}

// newTrigger issues a trigger id. Held: mu.
func (s *Sim) newTrigger(user string, view *View) string {
	now := s.opts.Now()
	if len(s.triggers) > 1000 { // spent ones are forgotten an hour later; till then they are told apart
		for id, t := range s.triggers {
			if now.Sub(t.expires) > time.Hour {
				delete(s.triggers, id)
			}
		}
	}
	id := secretID()
	s.triggers[id] = &trigger{user: user, view: view, expires: now.Add(triggerLife)}
	return id
}

// redeem spends a trigger id. A failed views.open spends it as well, as at Slack. Held: mu.
func (s *Sim) redeem(id string) (*trigger, *failure) {
	t := s.triggers[id]
	switch {
	case t == nil:
		return nil, fail("invalid_trigger_id")
	case t.used:
		return nil, fail("exchanged_trigger_id")
	case s.opts.Now().After(t.expires):
		return nil, fail("expired_trigger_id")
	}
	t.used = true
	return t, nil
}

// answerURL is a response_url: five answers within half an hour.
type answerURL struct {
	channel string
	user    string
	source  *Message // the message that was clicked; nil after a slash command
	expires time.Time
	left    int
}

// newAnswerURL issues a response_url. Held: mu.
func (s *Sim) newAnswerURL(channel, user string, source *Message) string {
	now := s.opts.Now()
	if len(s.answers) > 1000 {
		for id, u := range s.answers {
			if now.After(u.expires) {
				delete(s.answers, id)
			}
		}
	}
	id := secretID()
	s.answers[id] = &answerURL{channel: channel, user: user, source: source, expires: now.Add(answerLife), left: answerUses}
	return s.opts.URL + "/response/" + id
}
