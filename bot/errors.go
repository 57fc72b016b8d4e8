package bot

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// Class says what a failed call means for whoever made it. It is also a metric's label.
type Class string

// The classes. Only Ambiguous may have had an effect.
const (
	ClassOK          Class = "ok"
	ClassCard        Class = "card"         // this message can never be changed again
	ClassContent     Class = "content"      // Slack refuses what we wrote; the same bytes will be refused again
	ClassChannel     Class = "channel"      // nothing can be posted there
	ClassInstall     Class = "install"      // the token, the app or a scope is gone: nothing works
	ClassRateLimited Class = "rate_limited" // not carried out; RetryAfter says when to come back
	ClassUnsent      Class = "unsent"       // no connection: not carried out
	ClassRefused     Class = "refused"      // any other definite no
	ClassAmbiguous   Class = "ambiguous"    // nobody knows whether it was carried out
)

// Classes lists all of them.
var Classes = []Class{ClassOK, ClassCard, ClassContent, ClassChannel, ClassInstall, ClassRateLimited, ClassUnsent, ClassRefused, ClassAmbiguous}

// APIError is a failed call to Slack. Its text is the method, Slack's own error code and the class: nothing that was sent.
type APIError struct {
	Method     string
	Code       string // Slack's code, `http_503`, or a word for a transport failure
	Class      Class
	RetryAfter time.Duration // rate_limited
	Pointers   []string      // content: the JSON pointers that Slack complains about
	cause      error         // context.Canceled or context.DeadlineExceeded, else nil
}

func (e *APIError) Error() string {
	s := "slack " + e.Method + ": " + e.Code + " (" + string(e.Class) + ")"
	if len(e.Pointers) > 0 {
		s += " at " + strings.Join(e.Pointers, ", ")
	}
	return s
}

// Unwrap gives the end of the caller's context, where that was the cause.
func (e *APIError) Unwrap() error { return e.cause }

// ClassOf gives the class of an error of this package; ClassOK for nil, ClassRefused for errors that are not Slack's.
func ClassOf(err error) Class {
	var e *APIError
	switch {
	case err == nil:
		return ClassOK
	case errors.As(err, &e):
		return e.Class
	}
	return ClassRefused
}

// RetryAfter says how long to leave Slack alone after an error; 0 when it did not ask for it.
func RetryAfter(err error) time.Duration {
	var e *APIError
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// codes sorts Slack's error codes (docs.slack.dev/reference/methods, chat.postMessage and chat.update above all). A code
// that is not here is a definite refusal.
var codes = map[string]Class{
	"message_not_found": ClassCard, "cant_update_message": ClassCard, "edit_window_closed": ClassCard, "is_inactive": ClassCard,
	"thread_not_found": ClassCard,

	"invalid_blocks": ClassContent, "invalid_blocks_format": ClassContent, "msg_blocks_too_long": ClassContent, "msg_too_long": ClassContent,
	"invalid_attachments": ClassContent, "invalid_arguments": ClassContent, "invalid_metadata_format": ClassContent,
	"invalid_metadata_schema": ClassContent, "metadata_too_large": ClassContent, "block_mismatch": ClassContent, "no_text": ClassContent,
	"markdown_text_conflict": ClassContent, "view_too_large": ClassContent,

	"channel_not_found": ClassChannel, "is_archived": ClassChannel, "not_in_channel": ClassChannel, "restricted_action": ClassChannel,
	"restricted_action_read_only_channel": ClassChannel, "restricted_action_thread_only_channel": ClassChannel,
	"restricted_action_non_threadable_channel": ClassChannel, "cannot_reply_to_message": ClassChannel, "messages_tab_disabled": ClassChannel,

	"token_revoked": ClassInstall, "token_expired": ClassInstall, "account_inactive": ClassInstall, "invalid_auth": ClassInstall,
	"not_authed": ClassInstall, "missing_scope": ClassInstall, "no_permission": ClassInstall, "access_denied": ClassInstall,
	"org_login_required": ClassInstall, "ekm_access_denied": ClassInstall, "team_access_not_granted": ClassInstall,
	"not_allowed_token_type": ClassInstall, "enterprise_is_restricted": ClassInstall, "two_factor_setup_required": ClassInstall,

	"ratelimited": ClassRateLimited, "rate_limited": ClassRateLimited,

	"internal_error": ClassAmbiguous, "fatal_error": ClassAmbiguous, "service_unavailable": ClassAmbiguous, "request_timeout": ClassAmbiguous,
	"team_added_to_org": ClassAmbiguous,
}

// defaultRetry is for a 429 that does not say when to come back.
const defaultRetry = 5 * time.Second

var pointer = regexp.MustCompile(`\[json-pointer:(/[A-Za-z0-9_/-]*)\]`)

// classify turns what slack-go or net/http gave into an APIError. The original is dropped on purpose: a *url.Error holds
// the address (a response_url is a credential) and Slack's longer messages may repeat what was sent.
func classify(method string, err error) *APIError {
	e := &APIError{Method: method, Code: "transport", Class: ClassAmbiguous}
	var (
		limited *slack.RateLimitedError
		status  slack.StatusCodeError
		answer  slack.SlackErrorResponse
		known   *APIError
		dial    *net.OpError
		dns     *net.DNSError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &limited):
		e.Code, e.Class, e.RetryAfter = "ratelimited", ClassRateLimited, max(limited.RetryAfter, time.Second)
	case errors.As(err, &status):
		e.Code = "http_" + strconv.Itoa(status.Code)
		switch {
		case status.Code == http.StatusTooManyRequests:
			e.Class, e.RetryAfter = ClassRateLimited, defaultRetry
		case status.Code >= 300 && status.Code < 500:
			e.Class = ClassRefused
		}
	case errors.As(err, &answer):
		e.Code, e.Class = safeCode(answer.Err), ClassRefused
		if c, ok := codes[answer.Err]; ok {
			e.Class = c
		}
		if e.Class == ClassRateLimited {
			e.RetryAfter = defaultRetry
		}
		for _, m := range answer.ResponseMetadata.Messages {
			if p := pointer.FindStringSubmatch(m); p != nil && len(e.Pointers) < 5 {
				e.Pointers = append(e.Pointers, p[1])
			}
		}
	case errors.Is(err, context.Canceled):
		e.Code, e.cause = "cancelled", context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		e.Code, e.cause = "timeout", context.DeadlineExceeded
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		e.Code, e.Class = "no_connection", ClassUnsent
	case errors.Is(err, slack.ErrParametersMissing), errors.Is(err, slack.ErrBlockIDNotUnique):
		e.Code, e.Class = "invalid_call", ClassRefused
	}
	return e
}

var codeForm = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// safeCode keeps Slack's code when it looks like one, so that a proxy's page never ends in a log.
func safeCode(s string) string {
	if codeForm.MatchString(s) {
		return s
	}
	return "unknown"
}
