package interactions

import (
	"errors"
	"net/url"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// errPayload says that a signed body is not one of ours. It carries nothing of the body.
var errPayload = errors.New("not a payload of this app")

// payload is as much of an interaction as authority needs. The whole of it is not decoded: one element that a library does
// not know would fail every click on that message, and nothing else in it may decide anything.
type payload struct {
	Type        string    `json:"type"`
	AppID       string    `json:"api_app_id"`
	Trigger     string    `json:"trigger_id"`
	ResponseURL string    `json:"response_url"`
	User        actor     `json:"user"`
	Container   container `json:"container"`
	Actions     []action  `json:"actions"`
	View        *view     `json:"view"`
}

type actor struct {
	ID     string `json:"id"`
	TeamID string `json:"team_id"`
}

type container struct {
	Type      string `json:"type"`
	Channel   string `json:"channel_id"`
	Message   string `json:"message_ts"`
	View      string `json:"view_id"`
	Ephemeral bool   `json:"is_ephemeral"`
}

type action struct {
	ID     string `json:"action_id"`
	Value  string `json:"value"`
	Option *struct {
		Value string `json:"value"`
	} `json:"selected_option"`
}

type view struct {
	ID       string `json:"id"`
	Hash     string `json:"hash"`
	Callback string `json:"callback_id"`
	Metadata string `json:"private_metadata"`
	State    struct {
		Values map[string]map[string]struct {
			Value *string `json:"value"`
		} `json:"values"`
	} `json:"state"`
}

// decode reads JSON strictly where it matters: names are matched as they are written and none may occur twice, so that no
// two readers see different payloads. Broken characters in a text are somebody else's, and pass.
func decode(raw []byte, out any) error {
	if err := json.Unmarshal(raw, out, jsontext.AllowInvalidUTF8(true)); err != nil {
		return errPayload
	}
	return nil
}

var (
	userForm    = regexp.MustCompile(`^[UW][A-Z0-9]{2,20}$`)
	teamForm    = regexp.MustCompile(`^[TE][A-Z0-9]{2,20}$`)
	channelForm = regexp.MustCompile(`^[CDG][A-Z0-9]{2,20}$`)
	stampForm   = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{1,6}$`)
)

// readInteraction takes an interaction out of its form: exactly one payload, of this app, with somebody behind it.
func readInteraction(body []byte, appID string) (payload, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return payload{}, errPayload
	}
	return parseInteraction([]byte(form["payload"][0]), appID)
}

// parseInteraction is readInteraction without the form, as it comes over Socket Mode.
func parseInteraction(raw []byte, appID string) (payload, error) {
	var p payload
	if err := decode(raw, &p); err != nil {
		return payload{}, err
	}
	if p.AppID != appID || !userForm.MatchString(p.User.ID) || !teamForm.MatchString(p.User.TeamID) {
		return payload{}, errPayload
	}
	switch p.Type {
	case "block_actions":
		return p, p.checkAction()
	case "view_submission":
		if p.View == nil || p.View.ID == "" {
			return payload{}, errPayload
		}
		return p, nil
	case "view_closed", "shortcut", "message_action", "block_suggestion":
		return p, nil // nothing of ours; acknowledged and forgotten
	}
	return payload{}, errPayload
}

// checkAction wants exactly one action, in exactly one place: a message that is named in full, or a view.
func (p payload) checkAction() error {
	if len(p.Actions) != 1 || p.Actions[0].ID == "" {
		return errPayload
	}
	switch p.Container.Type {
	case "message":
		if p.View != nil || !channelForm.MatchString(p.Container.Channel) || !stampForm.MatchString(p.Container.Message) {
			return errPayload
		}
	case "view":
		if p.View == nil || p.View.ID == "" || p.View.ID != p.Container.View {
			return errPayload
		}
	default:
		return errPayload
	}
	return nil
}

// value is what the pressed thing carries.
func (a action) value() string {
	if a.Option != nil {
		return a.Option.Value
	}
	return a.Value
}

// input is the text in one of a view's inputs.
func (v *view) input(block, action string) string {
	if s := v.State.Values[block][action].Value; s != nil {
		return *s
	}
	return ""
}

// command is a slash command's form.
type command struct {
	AppID, TeamID, UserID, Channel, Text, ResponseURL, Trigger string
}

func readCommand(body []byte, appID string) (command, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return command{}, errPayload
	}
	for _, k := range []string{"api_app_id", "team_id", "user_id", "channel_id", "text", "response_url", "trigger_id"} {
		if len(form[k]) > 1 {
			return command{}, errPayload
		}
	}
	return command{
		AppID: form.Get("api_app_id"), TeamID: form.Get("team_id"), UserID: form.Get("user_id"), Channel: form.Get("channel_id"),
		Text: form.Get("text"), ResponseURL: form.Get("response_url"), Trigger: form.Get("trigger_id"),
	}.check(appID)
}

// parseCommand is readCommand for Socket Mode, where the form is an object.
func parseCommand(raw []byte, appID string) (command, error) {
	var o struct {
		AppID       string `json:"api_app_id"`
		TeamID      string `json:"team_id"`
		UserID      string `json:"user_id"`
		Channel     string `json:"channel_id"`
		Text        string `json:"text"`
		ResponseURL string `json:"response_url"`
		Trigger     string `json:"trigger_id"`
	}
	if err := decode(raw, &o); err != nil {
		return command{}, err
	}
	return command(o).check(appID)
}

func (c command) check(appID string) (command, error) {
	if c.AppID != appID || !userForm.MatchString(c.UserID) || !teamForm.MatchString(c.TeamID) {
		return command{}, errPayload
	}
	return c, nil
}

// event is as much of an event as says what to read again.
type event struct {
	Type      string `json:"type"`
	Challenge string `json:"challenge"`
	AppID     string `json:"api_app_id"`
	TeamID    string `json:"team_id"`
	ID        string `json:"event_id"`
	Event     struct {
		Type      string         `json:"type"`
		SubteamID string         `json:"subteam_id"`
		Added     []string       `json:"added_users"`
		Removed   []string       `json:"removed_users"`
		Subteam   *subteam       `json:"subteam"`
		User      jsontext.Value `json:"user"` // an object, or an id
		Tab       string         `json:"tab"`  // app_home_opened
	} `json:"event"`
}

type subteam struct {
	ID string `json:"id"`
}

func parseEvent(raw []byte, appID string) (event, error) {
	var e event
	if err := decode(raw, &e); err != nil {
		return event{}, err
	}
	switch e.Type {
	case "url_verification": // has no app id
		return e, nil
	case "event_callback":
		if e.AppID == appID && teamForm.MatchString(e.TeamID) {
			return e, nil
		}
	case "app_rate_limited":
		return e, nil
	}
	return event{}, errPayload
}

// user is the id of whom the event is about.
func (e event) user() string {
	var id string
	if decode(e.Event.User, &id) == nil {
		return id
	}
	var o actor
	if decode(e.Event.User, &o) == nil {
		return o.ID
	}
	return ""
}
