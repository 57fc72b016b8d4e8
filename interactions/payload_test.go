package interactions

import (
	"net/url"
	"strings"
	"testing"
)

const clicked = `{"type":"block_actions","api_app_id":"A0HOLDPOINT","team":null,"user":{"id":"U0ALICE","team_id":"T0ACME","name":"x"},
	"container":{"type":"message","channel_id":"C0APPROVALS","message_ts":"1700000000.000100"},"trigger_id":"t","response_url":"https://hooks.slack.com/x",
	"message":{"text":"\ud83d cut in two","blocks":[{"type":"from_the_future","x":7,"is":"true"}]},
	"actions":[{"action_id":"hp_approve","value":"v","type":"button"}]}`

func formOf(payload string) []byte { return []byte(url.Values{"payload": {payload}}.Encode()) }

func TestPayloadIsTaken(t *testing.T) {
	t.Parallel()
	p, err := readInteraction(formOf(clicked), appID)
	if err != nil || p.Actions[0].value() != "v" || p.User.TeamID != "T0ACME" || p.Container.Channel != home {
		t.Errorf("%+v %v", p, err)
	}
}

func TestPayloadIsRefused(t *testing.T) {
	t.Parallel()
	swap := func(old, now string) []byte {
		if !strings.Contains(clicked, old) {
			t.Fatalf("%q is not in the payload", old)
		}
		return formOf(strings.Replace(clicked, old, now, 1))
	}
	action := `{"action_id":"hp_approve","value":"v","type":"button"}`
	for name, body := range map[string][]byte{
		"another app":           swap(`A0HOLDPOINT`, `A0OTHER`),
		"no app":                swap(`"api_app_id":"A0HOLDPOINT",`, ``),
		"two actions":           swap(action, action+","+action),
		"no action":             swap(action, ``),
		"no person":             swap(`"id":"U0ALICE",`, ``),
		"no team":               swap(`"team_id":"T0ACME",`, ``),
		"a name for an id":      swap(`U0ALICE`, `alice`),
		"the key in capitals":   swap(`"id":"U0ALICE"`, `"ID":"U0ALICE"`),
		"a key twice":           swap(`"id":"U0ALICE"`, `"id":"U0BOB","id":"U0ALICE"`),
		"the container twice":   swap(`"trigger_id"`, `"container":{},"trigger_id"`),
		"no channel":            swap(`"channel_id":"C0APPROVALS",`, ``),
		"no message":            swap(`,"message_ts":"1700000000.000100"`, ``),
		"an odd message":        swap(`1700000000.000100`, `1700000000.0001'--`),
		"an odd container":      swap(`"type":"message"`, `"type":"message_attachment"`),
		"a view in a message":   swap(`"trigger_id":"t"`, `"view":{"id":"V1"},"trigger_id":"t"`),
		"a number for a string": swap(`"value":"v"`, `"value":7`),
		"an unknown type":       swap(`block_actions`, `workflow_step_execute`),
		"trailing data":         formOf(clicked + "{}"),
		"no JSON":               formOf("payload"),
		"two payloads":          []byte(string(formOf(clicked)) + "&" + string(formOf(clicked))),
		"no payload":            []byte("a=1"),
		"bare JSON":             []byte(clicked),
		"a broken form":         []byte("payload=%zz"),
		"empty":                 nil,
	} {
		if p, err := readInteraction(body, appID); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestViewMustBeTheContainers(t *testing.T) {
	t.Parallel()
	const in = `{"type":"block_actions","api_app_id":"A0HOLDPOINT","user":{"id":"U0ALICE","team_id":"T0ACME"},"container":{"type":"view","view_id":"V1"},"view":{"id":"%"},"actions":[{"action_id":"x"}]}`
	if _, err := parseInteraction([]byte(strings.Replace(in, "%", "V1", 1)), appID); err != nil {
		t.Error(err)
	}
	if _, err := parseInteraction([]byte(strings.Replace(in, "%", "V2", 1)), appID); err == nil {
		t.Error("two views")
	}
}

func TestEventNamesItsUser(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`"U0BOB"`: "U0BOB", `{"id":"U0BOB","profile":{"x":1}}`: "U0BOB", `7`: "", `null`: ""} {
		e, err := parseEvent([]byte(`{"type":"event_callback","api_app_id":"A0HOLDPOINT","team_id":"T0ACME","event":{"type":"user_change","user":`+in+`}}`), appID)
		if err != nil || e.user() != want {
			t.Errorf("%s: %q %v", in, e.user(), err)
		}
	}
}

// Nothing that is signed and broken may panic, and whatever is taken has one action, one person and one place.
func FuzzInteraction(f *testing.F) {
	f.Add(clicked)
	f.Add(`{"type":"view_submission","api_app_id":"A0HOLDPOINT","user":{"id":"U0ALICE","team_id":"T0ACME"},"view":{"id":"V1","callback_id":"hp_view_reject","private_metadata":"{}","state":{"values":{"reason":{"text":{"value":"no"}}}}}}`)
	f.Add(`{"type":"block_actions","user":null,"actions":[null]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, in string) {
		p, err := readInteraction(formOf(in), appID)
		if err != nil {
			return
		}
		if p.AppID != appID || !userForm.MatchString(p.User.ID) || !teamForm.MatchString(p.User.TeamID) {
			t.Errorf("%+v", p)
		}
		if p.Type == "block_actions" && (len(p.Actions) != 1 || (p.View == nil) != (p.Container.Type == "message")) {
			t.Errorf("%+v", p)
		}
		if p.Type == "view_submission" && p.View == nil {
			t.Errorf("%+v", p)
		}
		if p.View != nil {
			_ = p.View.input("reason", "text")
			_, _ = readMetadata(p.View.Metadata)
		}
	})
}

func FuzzCommand(f *testing.F) {
	for _, s := range []string{"list", "revoke run:“a b” because", "block <@U0BOB|bob> \"why\"", "pause tool x y", `"`, "<", "revoke by:<@U0BOB> x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		a, wrong := parseAsk(in)
		if wrong != nil {
			return
		}
		switch a.verb {
		case "revoke", "pause", "unpause", "block", "unblock", "reconcile":
			if a.reason == "" {
				t.Errorf("%q needs no reason", in)
			}
		}
		if (a.verb == "block" || a.verb == "unblock") && !userForm.MatchString(a.user) {
			t.Errorf("%q blocks %q", in, a.user)
		}
	})
}
