package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
)

// AuthenticateEngine returns the engine whose id and token were sent.
type AuthenticateEngine func(ctx context.Context, e id.Principal, token string) (principal.Caller, error)

// The headers by which an engine is known.
const (
	engineHeader      = "X-Engine-Id"
	engineTokenHeader = "X-Engine-Token"
)

// engine returns the engine that makes a request of an operation which is open to engines; false where the request names none.
func (s *Server) engine(w http.ResponseWriter, r *http.Request, c *Call) (principal.Caller, bool, error) {
	rt := c.route
	if !rt.engines || s.AuthenticateEngine == nil || len(r.Header.Values("Authorization")) > 0 {
		return principal.Caller{}, false, nil
	}
	names, tokens := r.Header.Values(engineHeader), r.Header.Values(engineTokenHeader)
	if len(names)+len(tokens) == 0 && rt.json {
		if err := s.bodies.reserve(c, r.ContentLength); err != nil {
			return principal.Caller{}, true, err
		}
		name, token, err := s.engineInBody(w, r, rt.maxBody)
		if err != nil {
			return principal.Caller{}, true, err
		}
		names, tokens = append(names, name...), append(tokens, token...)
	}
	if len(names)+len(tokens) == 0 {
		return principal.Caller{}, false, nil
	}
	if len(names) != 1 || len(tokens) != 1 {
		return principal.Caller{}, true, engine.ErrMissing
	}
	authenticate := func() (principal.Caller, error) {
		caller, err := s.AuthenticateEngine(r.Context(), id.Principal(names[0]), tokens[0])
		if err == nil {
			caller, err = s.narrowed(r, caller)
		}
		return caller, err
	}
	c.again = func() error { _, err := authenticate(); return err }
	caller, err := authenticate()
	return caller, true, err
}

// engineInBody reads engine_id and engine_token from a JSON body of at most so many bytes, if there is room among the bodies in progress.
// It leaves an unreadable body to the code that reads the body.
func (s *Server) engineInBody(w http.ResponseWriter, r *http.Request, most int64) (names, tokens []string, err error) {
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(s.Clock.Now().Add(bodyTimeout))
	raw, unread := io.ReadAll(io.LimitReader(r.Body, most+1))
	_ = deadline.SetReadDeadline(time.Time{})
	if int64(len(raw)) > most {
		return nil, nil, tooLarge(most)
	}
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(raw), rest), rest}
	var fields map[string]json.RawMessage
	if unread != nil || json.Unmarshal(raw, &fields) != nil {
		return nil, nil, nil
	}
	for name, to := range map[string]*[]string{"engine_id": &names, "engine_token": &tokens} {
		var text string
		if field, ok := fields[name]; ok && json.Unmarshal(field, &text) == nil {
			*to = []string{text}
			delete(fields, name)
		}
	}
	if left, err := json.Marshal(fields); err == nil && len(names)+len(tokens) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(left)), int64(len(left))
	}
	return names, tokens, nil
}
