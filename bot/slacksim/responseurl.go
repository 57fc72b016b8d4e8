package slacksim

import (
	"encoding/json"
	"io"
	"net/http"
)

// serveResponseURL takes what the app posts to a response_url: text, blocks, response_type (ephemeral by default),
// replace_original, delete_original, thread_ts. No token: the address is the authority.
func (s *Sim) serveResponseURL(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	a := args{}
	if err != nil || json.Unmarshal(body, &a.object) != nil || a.object == nil {
		writeJSON(w, http.StatusBadRequest, answer(nil, fail("invalid_payload")))
		return
	}
	s.mu.Lock()
	fault := s.takeFault("response_url")
	s.calls["response_url"]++
	s.touch()
	s.mu.Unlock()
	if fault != nil && !fault.before(s, w, r) {
		return
	}
	s.mu.Lock()
	bad := s.answerTo(r.PathValue("id"), a)
	s.mu.Unlock()
	if fault != nil {
		fault.after()
	}
	switch {
	case bad == nil:
		_, _ = io.WriteString(w, "ok")
	case bad.code == "expired_url", bad.code == "used_url":
		writeJSON(w, http.StatusNotFound, answer(nil, bad))
	default:
		writeJSON(w, http.StatusBadRequest, answer(nil, bad))
	}
}

// answerTo spends one use of a response_url. Held: mu.
func (s *Sim) answerTo(id string, a args) *failure {
	u := s.answers[id]
	switch {
	case u == nil || s.opts.Now().After(u.expires):
		return fail("expired_url")
	case u.left <= 0:
		return fail("used_url")
	}
	u.left--
	return s.answerAs(u, a)
}

// answerAs applies an answer: a response_url's, or the body of a slash command's acknowledgement. Held: mu.
func (s *Sim) answerAs(u *answerURL, a args) *failure {
	if a.boolean("delete_original") {
		if u.source == nil || u.source.Deleted {
			return fail("no_original")
		}
		u.source.Deleted = true
		s.touch()
		return nil
	}
	body, bad := readContent(a)
	switch {
	case bad != nil:
		return bad
	case body.text == "" && body.blocks == nil:
		return fail("no_text")
	}
	if a.boolean("replace_original") && u.source != nil && !u.source.Deleted {
		s.change(u.source, body)
		return nil
	}
	m := Message{Channel: u.channel, ThreadTS: a.str("thread_ts"), User: s.opts.BotUserID, Bot: true, Text: body.text, Blocks: body.blocks}
	if a.str("response_type") != "in_channel" {
		m.Ephemeral, m.To = true, u.user
	}
	s.add(m)
	return nil
}
