package intake

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdpoint/holdpoint/approvals"
)

// route is one row of the API: what the server does, what the document says and what the page shows.
type route struct {
	method, path string
	id           string // operationId
	summary      string
	about        string // Markdown paragraphs
	tag          string
	query        []parameter  // the names that are taken; others are refused
	body         reflect.Type // nil: the route has no body
	bodyRequired bool
	bodyLimit    int64 // 0: Options.MaxBody
	replies      []reply
	codes        []approvals.Code // besides the ones that every route has
	serve        func(*server, context.Context, *call) (answer, error)
}

type parameter struct {
	name, about string
	schema      huma.Schema
	example     any
}

// reply is a success. Its body is a type of this package or of approvals, or raw where the content is only passed on.
type reply struct {
	status   int
	about    string
	body     reflect.Type
	location bool
}

func (r route) operation() *huma.Operation {
	return &huma.Operation{Method: r.method, Path: r.path}
}

func (r route) limit(o Options) int64 {
	if r.bodyLimit == 0 {
		return o.MaxBody
	}
	return r.bodyLimit
}

// taking makes a handler of one that takes a decoded body. A body that may be left out is then its zero value.
func taking[B any](r route, required bool, limit int64, h func(*server, context.Context, *call, *B) (answer, error)) route {
	r.method, r.body, r.bodyRequired, r.bodyLimit = http.MethodPost, typeOf[B](), required, limit
	r.serve = func(s *server, ctx context.Context, c *call) (answer, error) {
		var in B
		if c.body != nil || required {
			if p := decode(c.body, &in); p != nil {
				return answer{}, p
			}
		}
		c.body = nil // decoded: a long call into the core needn't keep it
		return h(s, ctx, c, &in)
	}
	return r
}

func reading(r route, h func(*server, context.Context, *call) (answer, error)) route {
	r.method, r.serve = http.MethodGet, h
	return r
}

var (
	waitParameter = parameter{
		name: "wait", about: "Hold the request until there is something new, at most this long: a Go duration; more than 60s is 60s.",
		schema: huma.Schema{Type: huma.TypeString}, example: "30s",
	}
	approvalReply = reply{status: http.StatusOK, about: "The approval as it is now.", body: typeOf[approvals.View]()}
)

const (
	tagApprovals  = "Approvals"
	tagRuns       = "Runs"
	tagOperations = "Operations"
)

func routes() []route {
	one := huma.Schema{Type: huma.TypeInteger, Format: "int64"}
	word := huma.Schema{Type: huma.TypeString}
	return []route{
		taking(route{
			path: "/v1/approvals", id: "submit", tag: tagApprovals, summary: "Hand in a paused run",
			about: "Holdpoint reads the waiting calls, finds the rule for each and asks the reviewers. The same intake again returns the same pause and approvals, whatever has become of them, so a retry is always safe.",
			replies: []reply{
				{status: http.StatusCreated, about: "The pause and its approvals.", body: typeOf[approvals.Pause](), location: true},
				{status: http.StatusOK, about: "The same intake was here before; what it made, as it is now.", body: typeOf[approvals.Pause](), location: true},
			},
			codes: []approvals.Code{
				approvals.CodeUnknownTool, approvals.CodeToolNotAllowed, approvals.CodeNoRule, approvals.CodeRuleError, approvals.CodeSchemaMismatch,
				approvals.CodeNoQuorumPossible, approvals.CodeRequesterRequired, approvals.CodeUnknownRequester, approvals.CodeVersionUnsupported,
				approvals.CodeIntakeClosed, approvals.CodeStateMismatch, approvals.CodeStandingApproval, approvals.CodeSecretInState,
				approvals.CodeStateTooLarge, approvals.CodeTooManyOpen, approvals.CodeDifferentArguments, approvals.CodeConflict, approvals.CodeNotFound,
			},
		}, true, 0, (*server).submit),
		reading(route{
			path: "/v1/approvals", id: "list", tag: tagApprovals, summary: "List this agent's approvals", about: "Newest first, a page at a time. A page ends at the limit, or at about 4 MiB: next_cursor says whether there is more.",
			query: []parameter{
				{name: "run_id", about: "Only this run's.", schema: word, example: "run_42"},
				{name: "status", about: "Only these.", schema: statusSchema()},
				{name: "limit", about: "At most this many: 50 unless told, 200 at most.", schema: one, example: defaultLimit},
				{name: "cursor", about: "The next_cursor of the page before.", schema: word},
			},
			replies: []reply{{status: http.StatusOK, about: "A page.", body: typeOf[pageAnswer]()}},
		}, (*server).list),
		reading(route{
			path: "/v1/approvals/{approval_id}", id: "get", tag: tagApprovals, summary: "Read or watch one approval",
			about: "With `wait` it is a long poll: it returns at once when the approval's version is newer than `since`, else when it becomes newer, else at the end of the wait with what is there. Without `since` everything is newer. With `follow=child` an approval that was edited answers at once with the newest approval that an edit made of it; go on with the answer's `approval_id` and `version`.",
			query: []parameter{
				waitParameter,
				{name: "since", about: "The version that you have, of the approval in the path.", schema: one, example: 1},
				{name: "follow", about: "child: an edited approval answers with the newest one that replaced it.", schema: huma.Schema{Type: huma.TypeString, Enum: []any{"child"}}},
			},
			replies: []reply{approvalReply},
			codes:   []approvals.Code{approvals.CodeNotFound},
		}, (*server).get),
		reading(route{
			path: "/v1/approvals/{approval_id}/events", id: "events", tag: tagApprovals, summary: "Read one approval's audit trail",
			replies: []reply{{status: http.StatusOK, about: "Every event, oldest first.", body: typeOf[eventsAnswer]()}},
			codes:   []approvals.Code{approvals.CodeNotFound},
		}, (*server).events),
		taking(route{
			path: "/v1/approvals/{approval_id}/revoke", id: "withdraw", tag: tagApprovals, summary: "Withdraw a call",
			about:   "The agent no longer wants it. What has begun can't be stopped: then the answer is still 200, with the status `executing` and `revoked_at`.",
			replies: []reply{approvalReply},
			codes:   []approvals.Code{approvals.CodeNotFound, approvals.CodeConflict},
		}, false, smallBody, (*server).withdraw),
		taking(route{
			path: "/v1/approvals/{approval_id}/resume", id: "redeliver", tag: tagApprovals, summary: "Have the resume delivered again",
			about:   "Nothing in the body can change what is resumed, so no name is taken in it.",
			replies: []reply{{status: http.StatusAccepted, about: "The delivery is queued.", body: typeOf[redeliverAnswer]()}},
			codes:   []approvals.Code{approvals.CodeNotFound, approvals.CodeConflict},
		}, false, smallBody, (*server).redeliver),
		reading(route{
			path: "/v1/runs/{run_id}/resume", id: "pull", tag: tagRuns, summary: "Pull a run's resume",
			about: "For agents that can't be called. The body is what the webhook would have carried, `run.resume` or `run.blocked`. It comes again until it is acknowledged.",
			query: []parameter{waitParameter},
			replies: []reply{
				{status: http.StatusOK, about: "The webhook's body.", body: typeOf[resumeMessage]()},
				{status: http.StatusNoContent, about: "Nothing to resume yet; ask again."},
			},
			codes: []approvals.Code{approvals.CodeNotFound},
		}, (*server).pull),
		taking(route{
			path: "/v1/runs/{run_id}/resume/ack", id: "ack", tag: tagRuns, summary: "Acknowledge a resume",
			replies: []reply{{status: http.StatusNoContent, about: "The run counts as told; its next intake opens the next pause."}},
			codes:   []approvals.Code{approvals.CodeNotFound, approvals.CodeConflict},
		}, true, smallBody, (*server).ack),
		taking(route{
			path: "/v1/operations/{approval_id}/claim", id: "claim", tag: tagOperations, summary: "Claim an approved call",
			about: "Covers every effect, whoever runs it. The answer says `executing`: run it now, with these arguments, under the lease; or `succeeded` or `responded`: take the result, run nothing. A refusal says why there is nothing to run.",
			replies: []reply{
				{status: http.StatusOK, about: "What to do.", body: typeOf[claimAnswer]()},
			},
			codes: []approvals.Code{approvals.CodeNotFound, approvals.CodeNotExecutable, approvals.CodeForbidden},
		}, false, smallBody, (*server).claim),
		taking(route{
			path: "/v1/operations/{approval_id}/renew", id: "renew", tag: tagOperations, summary: "Renew the lease",
			replies: []reply{{status: http.StatusOK, about: "The lease goes on.", body: typeOf[renewAnswer]()}},
			codes:   []approvals.Code{approvals.CodeNotFound, approvals.CodeConflict, approvals.CodeNotExecutable},
		}, true, smallBody, (*server).renew),
		taking(route{
			path: "/v1/operations/{approval_id}/complete", id: "complete", tag: tagOperations, summary: "Report that it happened",
			replies: []reply{approvalReply},
			codes:   []approvals.Code{approvals.CodeNotFound, approvals.CodeConflict, approvals.CodeNotExecutable},
		}, true, defaultMaxResult+smallBody, (*server).complete),
		taking(route{
			path: "/v1/operations/{approval_id}/fail", id: "fail", tag: tagOperations, summary: "Report that it failed",
			about:   "Say `retryable` only when nothing happened, and `uncertain` whenever it may have: an uncertain call is settled by evidence, never by a repeat.",
			replies: []reply{approvalReply},
			codes:   []approvals.Code{approvals.CodeNotFound, approvals.CodeConflict, approvals.CodeNotExecutable},
		}, true, smallBody, (*server).fail),
	}
}
