package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// maxAnswer is how much of an answer is read and kept, in bytes.
const maxAnswer = 1 << 20

// send makes the one request of an attempt.
func (e *Executor) send(ctx context.Context, call Call) approvals.Outcome {
	spec := call.Tool.HTTP
	if spec.IfMatch && call.TargetVersion == "" {
		// Leaving out the version must not be a way around the condition.
		return unfitting("the tool has if_match and the call names no target_version")
	}
	built, err := spec.Request(call.Arguments.Raw, call.OperationKey)
	if err != nil {
		return unfitting(reasonOf(err))
	}
	headers, hidden, err := e.headers(call)
	if err != nil {
		return unsent(reasonOf(err))
	}
	if spec.KeyHeader != "" {
		headers.Set(spec.KeyHeader, call.OperationKey)
	}
	if spec.IfMatch {
		headers.Set("If-Match", call.TargetVersion)
	}
	if built.Body != nil && headers.Get("Content-Type") == "" {
		headers.Set("Content-Type", "application/json")
	}
	got, outcome := e.exchange(ctx, call, built, headers)
	if outcome != nil {
		return *outcome
	}
	return read(call, got, newScreen(call, hidden))
}

// headers resolves the tool's headers now, so that a rotated secret counts at once. hidden
// are the resolved values: an answer that repeats one is not shown.
func (e *Executor) headers(call Call) (headers http.Header, hidden []string, err error) {
	headers = http.Header{"User-Agent": {"holdpoint"}, "Accept": {"application/json, */*;q=0.5"}}
	for name, ref := range call.Tool.HTTP.Headers {
		if e.Secrets == nil && ref.Scheme != rules.LiteralScheme {
			return nil, nil, errors.New("references can't be resolved here")
		}
		value := ref.Name
		if ref.Scheme != rules.LiteralScheme {
			if value, err = e.Secrets.Resolve(call.Tenant.Name, ref); err != nil {
				return nil, nil, err
			}
			if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
				// The transport would say so too, and name the header.
				return nil, nil, fmt.Errorf("%w: the value of header %s can't stand in a header", rules.ErrReference, name)
			}
			hidden = append(hidden, value)
		}
		headers.Set(name, value)
	}
	return headers, hidden, nil
}

// answer is what came back; whole says that the body was read to its end.
type answer struct {
	status  int
	body    []byte
	whole   bool
	tooMuch bool // more than maxAnswer; body is empty
}

// exchange sends the request once and reads the answer. Without an answer the outcome says
// what that means.
func (e *Executor) exchange(ctx context.Context, call Call, built rules.Request, headers http.Header) (*answer, *approvals.Outcome) {
	limit := call.Tool.HTTP.Timeout
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// Whether the connection was handed over decides between "unsent" and "unknown". The hook
	// runs in this goroutine, before a byte of the request is written.
	connected := false
	f := call.fence()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected = true
		f.handOver()
	}})

	var body io.Reader
	if built.Body != nil {
		body = bytes.NewReader(built.Body)
	}
	req, err := http.NewRequestWithContext(ctx, built.Method, built.URL, body)
	if err != nil {
		out := unfitting("the request can't be built") // the error would quote the URL, and arguments in it
		return nil, &out
	}
	req.GetBody = nil
	req.Header = headers
	if call.Live != nil && !call.Live() {
		out := unsent("the lease may be over")
		return nil, &out
	}
	resp, err := e.Egress.client(call.Tenant.Egress, f).Do(req)
	if err != nil {
		kept := f.shut() // nothing leaves any more from here on
		out := failed(err, connected, kept, limit)
		return nil, &out
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	got := &answer{status: resp.StatusCode, body: data, whole: err == nil}
	if len(data) > maxAnswer {
		got.body, got.tooMuch = nil, true
	}
	return got, nil
}

// failed reads a request without an answer. kept says that the fence let no byte of it out.
func failed(err error, connected, kept bool, limit time.Duration) approvals.Outcome {
	switch {
	case !connected:
		return unsent(Why(err))
	case kept:
		return unsent("it could not leave in time")
	case isTimeout(err):
		return unknown(fmt.Sprintf("no answer within %s", limit))
	}
	return unknown("no whole answer: " + Why(err))
}

// Why says in fixed words why a request through [Egress.Client] got no answer. The error
// itself quotes the URL and the address, and must not be stored or logged.
func Why(err error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
		return "the address is private or special, and egress.allow doesn't open it"
	case errors.As(err, &dns):
		return "the host's name can't be resolved"
	case errors.Is(err, errFenced):
		return "it could not leave in time"
	case isTimeout(err):
		return "it took too long"
	case errors.Is(err, context.Canceled):
		return "it was stopped"
	}
	return "the connection failed or broke"
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// reasonOf lets through the texts that are known to hold no value.
func reasonOf(err error) string {
	var render *rules.RenderError
	if errors.As(err, &render) || errors.Is(err, rules.ErrReference) {
		return err.Error()
	}
	return "the request can't be built"
}
