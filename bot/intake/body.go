package intake

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/holdpoint/holdpoint/approvals"
)

// readBody takes a request's body to its end, within a size and a time. After a problem the connection is closed: what is still on it
// can't be told from a next request.
//
// A whole body has one deadline, so that a sender who dribbles can't hold the request for longer than one who is quick.
func (s *server) readBody(w http.ResponseWriter, r *http.Request, limit int64, required bool) ([]byte, *Problem) {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		if required {
			return nil, invalid("", "The body is empty; send a JSON object.")
		}
		return nil, nil
	}
	if p := contentType(r.Header); p != nil {
		return nil, p
	}
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(s.opts.ReadTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, cutOff()
	}
	body, err := readAll(http.MaxBytesReader(bare(w), r.Body, limit), min(max(r.ContentLength, 512), limit, 1<<20)+1)
	var large *http.MaxBytesError
	var network net.Error
	switch {
	case err == nil:
	case errors.As(err, &large):
		return body, oversize(body, limit)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		p := problem(approvals.CodeInvalidRequest, "The body did not end within %s.", s.opts.ReadTimeout).as(http.StatusRequestTimeout)
		p.hangUp = true
		return nil, p
	default:
		return nil, cutOff()
	}
	// A wait that follows must not be ended by the deadline of the body.
	if err := conn.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, cutOff()
	}
	if len(body) == 0 && !required {
		return nil, nil
	}
	return body, nil
}

// bare is net/http's own writer: MaxBytesReader tells it, and no wrapper, that the connection is to be closed with grace.
func bare(w http.ResponseWriter) http.ResponseWriter {
	for {
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = wrapper.Unwrap()
	}
}

func cutOff() *Problem {
	p := problem(approvals.CodeInvalidRequest, "The body broke off before its end.")
	p.hangUp = true
	return p
}

// readAll grows with what has really come, whatever length was announced.
func readAll(r io.Reader, first int64) ([]byte, error) {
	body := make([]byte, 0, first)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return body, err
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
}

// oversize tells a state that is too large from another body that is: by where the part that came breaks off.
func oversize(head []byte, limit int64) *Problem {
	var p *Problem
	if at := check(head, typeOf[intakeBody]()); at != nil && at.Pointer == "/run/state/value" {
		p = problem(approvals.CodeStateTooLarge, "The body is over %d bytes, and the state is most of it. Keep a smaller state, or keep it yourself and send the format none.", limit)
		p.Pointer = at.Pointer
	} else {
		p = tooLarge("", "The body is over %d bytes.", limit)
	}
	p.hangUp = true
	return p
}

func contentType(h http.Header) *Problem {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" || len(h.Values("Content-Type")) != 1 {
		return invalid("", "Send the body as Content-Type: application/json.").as(http.StatusUnsupportedMediaType)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return invalid("", "JSON is UTF-8; send no other charset.").as(http.StatusUnsupportedMediaType)
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return invalid("", "Send the body without a content encoding.").as(http.StatusUnsupportedMediaType)
	}
	return nil
}
