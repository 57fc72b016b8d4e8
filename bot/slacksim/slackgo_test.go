package slacksim_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdpoint/holdpoint/bot/slacksim"
	"github.com/slack-go/slack"
)

func header(text string) slack.Block {
	return slack.NewHeaderBlock(slack.NewTextBlockObject(slack.PlainTextType, text, false, false))
}

// The production client against the simulator: posting, changing, finding again.
func TestSlackGoMessages(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	api := client(s)
	auth, err := api.AuthTestContext(ctx(t))
	if err != nil || auth.TeamID != "T0ACME" || auth.UserID != "U0HOLDPOINT" || auth.BotID != "B0HOLDPOINT" {
		t.Fatalf("%+v %v", auth, err)
	}
	meta := slack.SlackMetadata{EventType: "holdpoint_card", EventPayload: map[string]any{"card": "crd_1", "big": 9007199254740993}}
	button := slack.NewButtonBlockElement("approve", "v", slack.NewTextBlockObject(slack.PlainTextType, "Approve", false, false)).WithStyle(slack.StylePrimary)
	channel, ts, err := api.PostMessageContext(ctx(t), "C0APP", slack.MsgOptionText("Deploy & more 🚀 <@U0ANA>", false), slack.MsgOptionBlocks(header("Deploy"), slack.NewActionBlock("decide", button)), slack.MsgOptionMetadata(meta))
	if err != nil || channel != "C0APP" {
		t.Fatal(channel, err)
	}
	_, reply, err := api.PostMessageContext(ctx(t), "C0APP", slack.MsgOptionText("in the thread", false), slack.MsgOptionTS(ts))
	if err != nil {
		t.Fatal(err)
	}
	history, err := api.GetConversationHistoryContext(ctx(t), &slack.GetConversationHistoryParameters{ChannelID: "C0APP", IncludeAllMetadata: true})
	if err != nil || len(history.Messages) != 1 {
		t.Fatalf("%+v %v", history, err)
	}
	m := history.Messages[0]
	if m.Timestamp != ts || m.Text != "Deploy &amp; more :rocket: <@U0ANA>" || m.ReplyCount != 1 || m.Metadata.EventPayload["card"] != "crd_1" {
		t.Errorf("%+v", m.Msg)
	}
	if big := fmt.Sprintf("%.0f", m.Metadata.EventPayload["big"]); big == "9007199254740993" {
		t.Error("a big integer survived in metadata; at Slack it does not")
	}
	plain, err := api.GetConversationHistoryContext(ctx(t), &slack.GetConversationHistoryParameters{ChannelID: "C0APP"})
	if err != nil || plain.Messages[0].Metadata.EventType != "" {
		t.Errorf("metadata without being asked for: %v %v", plain.Messages[0].Metadata, err)
	}
	thread, _, _, err := api.GetConversationRepliesContext(ctx(t), &slack.GetConversationRepliesParameters{ChannelID: "C0APP", Timestamp: ts})
	if err != nil || len(thread) != 2 || thread[1].Timestamp != reply || thread[1].ThreadTimestamp != ts {
		t.Errorf("%+v %v", thread, err)
	}
	if _, _, _, err := api.UpdateMessageContext(ctx(t), "C0APP", ts, slack.MsgOptionText("Done", false), slack.MsgOptionBlocks(header("Done"))); err != nil {
		t.Fatal(err)
	}
	after, _ := s.Message("C0APP", ts)
	if after.PlainText() != "Done" || len(after.Actions()) != 0 || after.Metadata == nil || after.Updates != 1 {
		t.Errorf("after the update: %+v", after)
	}
	if _, _, _, err := api.UpdateMessageContext(ctx(t), "C0APP", ts, slack.MsgOptionText("Only text", false)); err != nil {
		t.Fatal(err)
	}
	if kept, _ := s.Message("C0APP", ts); kept.Text != "Only text" || kept.PlainText() != "Done" {
		t.Errorf("an update without blocks must not drop them: %+v", kept)
	}
	link, err := api.GetPermalinkContext(ctx(t), &slack.PermalinkParameters{Channel: "C0APP", Ts: ts})
	if err != nil || !strings.HasSuffix(link, "/archives/C0APP/p"+strings.ReplaceAll(ts, ".", "")) {
		t.Error(link, err)
	}
	if _, _, err := api.DeleteMessageContext(ctx(t), "C0APP", ts); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Message("C0APP", ts); ok {
		t.Error("deleted, yet there")
	}
}

func TestSlackGoErrors(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	_, _, err := client(s).PostMessageContext(ctx(t), "C0APP", slack.MsgOptionText("x", false), slack.MsgOptionBlocks(header(strings.Repeat("x", 151))))
	var refused slack.SlackErrorResponse
	if !errors.As(err, &refused) || refused.Err != "invalid_blocks" || !slices.Contains(refused.ResponseMetadata.Messages, "[ERROR] must be less than 151 characters [json-pointer:/blocks/0/text/text]") {
		t.Errorf("%v %+v", err, refused)
	}
	for token, want := range map[string]string{"xoxb-wrong": "invalid_auth", "": "not_authed"} {
		if _, err := slack.New(token, slack.OptionAPIURL(s.URL()+"/api/")).AuthTestContext(ctx(t)); err == nil || err.Error() != want {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestSlackGoHistoryPages(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	api := client(s)
	var sent []string
	for range 7 {
		_, ts, err := api.PostMessageContext(ctx(t), "C0APP", slack.MsgOptionText("x", false))
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, ts)
	}
	var got []string
	p := slack.GetConversationHistoryParameters{ChannelID: "C0APP", Limit: 3}
	for {
		h, err := api.GetConversationHistoryContext(ctx(t), &p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range h.Messages {
			got = append(got, m.Timestamp)
		}
		if p.Cursor = h.ResponseMetaData.NextCursor; p.Cursor == "" {
			break
		}
	}
	slices.Reverse(got)
	if !slices.Equal(got, sent) {
		t.Errorf("pages give %v, want %v", got, sent)
	}
	for inclusive, want := range map[bool]int{false: 1, true: 3} {
		h, err := api.GetConversationHistoryContext(ctx(t), &slack.GetConversationHistoryParameters{ChannelID: "C0APP", Oldest: sent[2], Latest: sent[4], Inclusive: inclusive})
		if err != nil || len(h.Messages) != want {
			t.Errorf("inclusive %v: %d messages, %v", inclusive, len(h.Messages), err)
		}
	}
}

func TestSlackGoPeople(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	s.AddUser(slacksim.User{ID: "U0GUEST", Name: "gus", IsRestricted: true, IsInvited: true})
	api := client(s)
	u, err := api.GetUserInfoContext(ctx(t), "U0GUEST")
	if err != nil || !u.IsRestricted || !u.IsInvitedUser || u.TeamID != "T0ACME" {
		t.Errorf("%+v %v", u, err)
	}
	if _, err := api.GetUserInfoContext(ctx(t), "U0NOPE"); err == nil || err.Error() != "user_not_found" {
		t.Errorf("nobody: %v", err)
	}
	all, err := api.GetUsersContext(ctx(t), slack.GetUsersOptionLimit(2))
	if err != nil || len(all) != 6 {
		t.Errorf("%d users, %v", len(all), err)
	}
	members, err := api.GetUserGroupMembersContext(ctx(t), "S0REL")
	if err != nil || !slices.Equal(members, []string{"U0ANA"}) {
		t.Errorf("%v %v", members, err)
	}
	if err := s.SetGroupMembers(ctx(t), "S0REL", nil, false); err != nil {
		t.Fatal(err)
	}
	if members, err := api.GetUserGroupMembersContext(ctx(t), "S0REL"); err != nil || len(members) != 0 {
		t.Errorf("after the removal: %v %v", members, err)
	}
	if _, err := api.GetUserGroupMembersContext(ctx(t), "S0OLD"); err == nil || err.Error() != "no_such_subteam" {
		t.Errorf("a disabled group: %v", err)
	}
	for disabled, want := range map[bool]int{false: 1, true: 2} {
		groups, err := api.GetUserGroupsContext(ctx(t), slack.GetUserGroupsOptionIncludeDisabled(disabled), slack.GetUserGroupsOptionIncludeUsers(true))
		if err != nil || len(groups) != want {
			t.Errorf("disabled %v: %d groups, %v", disabled, len(groups), err)
		}
	}
	team, err := api.GetTeamInfoContext(ctx(t))
	if err != nil || team.ID != "T0ACME" {
		t.Errorf("%+v %v", team, err)
	}
}

func TestSlackGoDirectMessagesAndEphemerals(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	api := client(s)
	dm, _, _, err := api.OpenConversationContext(ctx(t), &slack.OpenConversationParameters{Users: []string{"U0ANA"}})
	if err != nil || !strings.HasPrefix(dm.ID, "D") {
		t.Fatal(dm, err)
	}
	channel, _, err := api.PostMessageContext(ctx(t), "U0ANA", slack.MsgOptionText("hello", false))
	if err != nil || channel != dm.ID {
		t.Errorf("a post to a person goes to %s, want %s: %v", channel, dm.ID, err)
	}
	if _, _, _, err := api.OpenConversationContext(ctx(t), &slack.OpenConversationParameters{Users: []string{"U0GONE"}}); err == nil {
		t.Error("a conversation with somebody who left")
	}
	if _, err := api.PostEphemeralContext(ctx(t), "C0APP", "U0ANA", slack.MsgOptionText("psst", false)); err != nil {
		t.Fatal(err)
	}
	if got := s.Ephemerals("U0ANA"); len(got) != 1 || got[0].Text != "psst" || len(s.Messages("C0APP")) != 0 {
		t.Errorf("%v", got)
	}
	info, err := api.GetConversationInfoContext(ctx(t), &slack.GetConversationInfoInput{ChannelID: "C0OUT"})
	if err != nil || info.IsMember {
		t.Errorf("%+v %v", info, err)
	}
}

// A view by the production client, which sends JSON.
func TestSlackGoViews(t *testing.T) {
	t.Parallel()
	s := newSim(t, slacksim.Options{Unlimited: true})
	a := newApp(t, s)
	api := client(s)
	ts := post(t, s, approveCard)
	text := func(v string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, v, false, false)
	}
	view := slack.ModalViewRequest{Type: slack.VTModal, Title: text("Loading"), Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewSectionBlock(text("…"), nil, nil)}}}
	opened, err := api.OpenViewContext(ctx(t), click(t, s, a, ts), view)
	if err != nil || opened.Hash == "" {
		t.Fatal(opened, err)
	}
	view.Title = text("Reject")
	view.Submit = text("Send")
	view.Blocks.BlockSet = []slack.Block{slack.NewInputBlock("why", text("Reason"), nil, slack.NewPlainTextInputBlockElement(nil, "reason"))}
	if _, err := api.UpdateViewContext(ctx(t), view, "", opened.Hash, opened.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := api.UpdateViewContext(ctx(t), view, "", opened.Hash, opened.ID); err == nil || err.Error() != "hash_conflict" {
		t.Errorf("the old hash: %v", err)
	}
	seen, err := s.WaitView(ctx(t), "U0ANA", nil)
	if err != nil || seen.Title() != "Reject" {
		t.Errorf("%v %v", seen, err)
	}
	home := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{header("Home")}}}
	if _, err := api.PublishViewContext(ctx(t), slack.PublishViewContextRequest{UserID: "U0ANA", View: home}); err != nil {
		t.Error(err)
	}
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := newSim(t, slacksim.Options{Now: c.now})
	api := client(s)
	send := func(channel string) error {
		_, _, err := api.PostMessageContext(ctx(t), channel, slack.MsgOptionText("x", false))
		return err
	}
	for i := range 5 {
		if err := send("C0APP"); err != nil {
			t.Fatalf("post %d of the burst: %v", i, err)
		}
	}
	var limited *slack.RateLimitedError
	if err := send("C0APP"); !errors.As(err, &limited) || limited.RetryAfter != time.Second {
		t.Fatalf("the sixth post at once: %v", err)
	}
	if err := send("C0SHARED"); err != nil {
		t.Errorf("another channel has its own allowance: %v", err)
	}
	c.advance(time.Second)
	if err := send("C0APP"); err != nil {
		t.Errorf("after Retry-After: %v", err)
	}
	if err := send("C0APP"); err == nil {
		t.Error("two posts in one second")
	}
	if n := s.Calls("chat.postMessage"); n != 9 {
		t.Errorf("%d calls counted", n)
	}
}
