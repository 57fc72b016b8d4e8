package slacksim

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reply is the body of a successful call; "ok" is added.
type reply = map[string]any

// failure is an error answer: {"ok": false, "error": code, "response_metadata": {"messages": […]}}.
type failure struct {
	code     string
	messages []string
	extra    reply
	wait     time.Duration // of a spent rate limit: answered as 429
}

func fail(code string, messages ...string) *failure { return &failure{code: code, messages: messages} }

// methods is the Web API that the simulator knows; each runs with mu held.
var methods = map[string]func(*Sim, args) (reply, *failure){
	"auth.test":             (*Sim).authTest,
	"team.info":             (*Sim).teamInfo,
	"chat.postMessage":      (*Sim).postMessage,
	"chat.postEphemeral":    (*Sim).postEphemeral,
	"chat.update":           (*Sim).updateMessage,
	"chat.delete":           (*Sim).deleteMessage,
	"chat.getPermalink":     (*Sim).permalink,
	"conversations.history": (*Sim).history,
	"conversations.replies": (*Sim).replies,
	"conversations.info":    (*Sim).conversationInfo,
	"conversations.open":    (*Sim).openConversation,
	"users.info":            (*Sim).userInfo,
	"users.list":            (*Sim).userList,
	"usergroups.list":       (*Sim).groupList,
	"usergroups.users.list": (*Sim).groupUsers,
	"views.open":            (*Sim).openView,
	"views.push":            (*Sim).pushView,
	"views.update":          (*Sim).updateView,
	"views.publish":         (*Sim).publishView,
}

// Handler serves the Web API under /api/, response URLs under /response/, and the web page at /.
func (s *Sim) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("POST /response/{id}", s.serveResponseURL)
	s.pageRoutes(mux)
	return mux
}

func (s *Sim) serveAPI(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	a, bad := readArgs(r)
	s.mu.Lock()
	s.calls[name]++
	fault := s.takeFault(name)
	s.touch() // waiters may wait for a call
	s.mu.Unlock()
	if fault != nil && !fault.before(s, w, r) {
		return
	}
	body, bad := s.call(name, a, bad)
	if fault != nil {
		fault.after()
	}
	w.Header().Set("X-OAuth-Scopes", strings.Join(s.opts.Scopes, ","))
	if bad != nil && bad.wait > 0 {
		writeLimited(w, bad.code, bad.wait)
		return
	}
	writeJSON(w, http.StatusOK, answer(body, bad))
}

// call authenticates, spends the rate limit and runs one method.
func (s *Sim) call(name string, a args, bad *failure) (reply, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run, known := methods[name]
	switch {
	case !known:
		return nil, fail("unknown_method")
	case bad != nil:
		return nil, bad
	case a.token == "":
		return nil, fail("not_authed")
	case subtle.ConstantTimeCompare([]byte(a.token), []byte(s.opts.BotToken)) != 1:
		return nil, fail("invalid_auth")
	}
	if wait := s.spend(name, a); wait > 0 {
		return nil, &failure{code: "ratelimited", wait: wait}
	}
	return run(s, a)
}

func answer(body reply, bad *failure) reply {
	if bad == nil {
		out := reply{"ok": true}
		for k, v := range body {
			out[k] = v
		}
		return out
	}
	out := reply{"ok": false, "error": bad.code}
	for k, v := range bad.extra {
		out[k] = v
	}
	if len(bad.messages) > 0 {
		out["response_metadata"] = reply{"messages": bad.messages}
		if strings.HasPrefix(bad.code, "invalid_blocks") {
			out["errors"] = plainMessages(bad.messages)
		}
	}
	return out
}

// plainMessages is the older form of the same complaints, which Slack sends beside the newer one.
func plainMessages(messages []string) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = strings.TrimPrefix(m, "[ERROR] ")
	}
	return out
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(body) // the peer may be gone
}

// writeLimited answers 429; a zero wait leaves Retry-After out, as some of Slack's edges do.
func writeLimited(w http.ResponseWriter, code string, wait time.Duration) {
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
	writeJSON(w, http.StatusTooManyRequests, reply{"ok": false, "error": code})
}

// Calls says how often a Web API method was called, failed calls included.
func (s *Sim) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

func (s *Sim) authTest(args) (reply, *failure) {
	bot := s.user(s.opts.BotUserID)
	return reply{
		"url": "https://" + s.opts.TeamDomain + ".slack.com/", "team": s.opts.TeamName, "user": bot.Name,
		"team_id": s.opts.Team, "user_id": s.opts.BotUserID, "bot_id": s.opts.BotID, "is_enterprise_install": false,
	}, nil
}

func (s *Sim) teamInfo(a args) (reply, *failure) {
	if t := a.str("team"); t != "" && t != s.opts.Team {
		return nil, fail("team_not_found")
	}
	return reply{"team": reply{"id": s.opts.Team, "name": s.opts.TeamName, "domain": s.opts.TeamDomain, "email_domain": ""}}, nil
}
