package wire

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/httpapi/strictjson"
)

// maxBodies is how many bytes of JSON bodies are worked on at once; four of the largest fit. Each is held several times over on its way.
const maxBodies = 256 << 20

// bodies keeps the bodies that are worked on within maxBodies.
type bodies struct{ held atomic.Int64 }

// reserve counts the body of a call: its declared length, or the largest body of its operation. It returns busy if there are maxBodies
// bytes.
func (b *bodies) reserve(c *Call, length int64) error {
	if length < 0 || length > c.route.maxBody {
		length = c.route.maxBody
	}
	if b.held.Add(length) > maxBodies {
		b.held.Add(-length)
		return fault.New(fault.Unavailable, "busy", "the daemon works on as many large requests as it can hold; send it again in a moment")
	}
	c.held = length
	return nil
}

// release frees the room of a call.
func (b *bodies) release(c *Call) { b.held.Add(-c.held) }

// readBody reads a JSON body within its limits and refuses everything except exactly one value of the operation's shape.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, rt *route) ([]byte, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, fault.New(fault.Invalid, "content_encoding_not_supported", "compressed requests are not read; send the body as it is")
	}
	if r.ContentLength > rt.maxBody {
		return nil, tooLarge(rt.maxBody)
	}
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(s.Clock.Now().Add(bodyTimeout)) // a writer without deadlines has no slow sender
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rt.maxBody))
	if err != nil {
		switch _, large := errors.AsType[*http.MaxBytesError](err); {
		case large:
			return nil, tooLarge(rt.maxBody)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fault.New(fault.Invalid, "request_timeout", "the body did not arrive within %s", bodyTimeout)
		}
		return nil, fault.Wrap(err, fault.Invalid, "body_unreadable", "the body ended before its time")
	}
	_ = deadline.SetReadDeadline(time.Time{})
	if len(body) == 0 {
		if rt.needsBody {
			return nil, fault.New(fault.Invalid, "missing_body", "the operation needs a JSON body")
		}
		return body, nil
	}
	if media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" ||
		params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		return nil, errMediaType
	}
	r.Header.Set("Content-Type", "application/json") // media types ignore case (RFC 9110 8.3.1); the router compares bytes
	return body, strictjson.Check(body, rt.shape)
}

var errMediaType = fault.New(fault.Invalid, "unsupported_media_type",
	"the body is read as JSON in UTF-8 only; send `Content-Type: application/json`")

// tooLarge refuses a body of more bytes than its operation takes.
func tooLarge(most int64) error {
	return fault.New(fault.Exhausted, "body_too_large", "the body may have %d bytes", most)
}

// discarded and discardTime are how much of a body that is too large is still taken from its sender, and for how long.
const (
	discarded   = 1 << 20
	discardTime = time.Second
)

// discard reads and throws away a little of the body of a refused request. If the server closed the connection while the client still
// sends, the connection would be reset and the client would never see the answer. A client that sent Expect waits, and sends no body.
func (s *Server) discard(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Expect") != "" {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(s.Clock.Now().Add(discardTime)) // a writer without deadlines has no slow sender
	_, _ = io.CopyN(io.Discard, r.Body, discarded)                                    // the answer is the same if this fails
}

// Patient reads a body of any length; only the sender's silence has a limit. After the end of the body there is no limit any more.
func (s *Server) Patient(w http.ResponseWriter, r *http.Request) *PatientBody {
	return &PatientBody{body: r.Body, control: http.NewResponseController(w), now: s.Clock.Now}
}

// PatientBody is the body of a request. Its sender may pause for bodyTimeout at most.
type PatientBody struct {
	body    io.Reader
	control *http.ResponseController // a writer without deadlines has no slow sender
	now     func() time.Time

	mu      sync.Mutex // guards givenUp and the order of the deadlines
	givenUp bool
}

// Read implements io.Reader.
func (p *PatientBody) Read(b []byte) (int, error) {
	if err := p.wait(); err != nil {
		return 0, err
	}
	n, err := p.body.Read(b)
	if err == io.EOF { // net/http watches the connection now, and takes a read that fails for a client that has gone
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (p *PatientBody) wait() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.givenUp {
		return os.ErrDeadlineExceeded
	}
	_ = p.control.SetReadDeadline(p.now().Add(bodyTimeout))
	return nil
}

// GiveUp ends the read that is under way, and every later one. net/http may take a connection whose read has failed for abandoned, so the
// connection has to end with the answer.
func (p *PatientBody) GiveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.givenUp = true
	_ = p.control.SetReadDeadline(time.Unix(1, 0))
}

// Boolean reads a parameter that is true or false.
func Boolean(r *http.Request, name string, standard bool) (bool, error) {
	sent := r.URL.Query().Get(name)
	if sent == "" {
		return standard, nil
	}
	v, err := strconv.ParseBool(sent)
	if err != nil {
		return false, fault.New(fault.Invalid, "invalid_parameter", "%s is true or false, not %.32q", name, sent)
	}
	return v, nil
}

// AnswerJSON sends a value.
func AnswerJSON(w http.ResponseWriter, status int, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the caller has gone
	return nil
}
