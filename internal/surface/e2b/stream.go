package e2b

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

const (
	streamType = "application/connect+json"
	endOfFrame = 2
	maxFrame   = 8 << 20
)

// isCall reports whether a path is that of a call of Connect: a service, whose name has a dot, and a method, as in /process.Process/Start.
// It is one, too, where there is no such service: the packages read the word of its refusal.
func isCall(path string) bool {
	service, method, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return ok && strings.Contains(service, ".") && method != "" && !strings.Contains(method, "/")
}

func isStream(r *http.Request) bool {
	return isCall(r.URL.Path) && strings.HasPrefix(r.Header.Get("Content-Type"), streamType)
}

// stream is the answer of a streaming call of Connect. It may be used from several goroutines.
type stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	ended bool
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", streamType)
	w.WriteHeader(http.StatusOK)
	return &stream{w: w}
}

// send sends a message and flushes it: the packages wait for the first one.
func (s *stream) send(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.frame(0, raw)
}

func (s *stream) frame(flag byte, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	s.ended = flag == endOfFrame
	if _, err := s.w.Write(framed(flag, raw)); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// end ends the stream, with an error or without.
func (s *stream) end(err error) {
	end := map[string]any{}
	if err != nil {
		e, ok := errors.AsType[*refusal](err)
		if !ok {
			e = &refusal{Code: "internal", Message: "something broke inside the daemon"}
		}
		end["error"] = map[string]string{"code": e.Code, "message": e.Message}
	}
	raw, _ := json.Marshal(end)  // strings only
	_ = s.frame(endOfFrame, raw) // the caller has gone; there is nobody left to tell
}

// first reads the one message of a streaming call.
func first(r *http.Request, into any) error {
	raw, err := nextFrame(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return invalid("the body is not one message of Connect")
	}
	return nil
}

// nextFrame reads a message of a client's stream.
func nextFrame(body io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if head[0]&1 != 0 || n > maxFrame {
		return nil, invalid("a message is compressed, or has more than %d bytes", maxFrame)
	}
	raw := make([]byte, n)
	_, err := io.ReadFull(body, raw)
	return raw, err
}
