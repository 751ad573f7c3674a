package wire

import (
	"encoding/json"
	"net/http"

	"agentbox/internal/domain/fault"
)

// Starting answers while the daemon is not yet able to work: /healthz says that it lives, /readyz what it waits for, and everything else
// that it is to be asked again in a moment. Health and ready are the bodies of the two.
func Starting(c Config, health func() any, ready func() any, phase func() string) http.Handler {
	s := New(c)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := s.call(r)
		s.present(w.Header(), call)
		if err := s.checkHost(r); err != nil {
			ProblemOf(err, call.Request).write(w)
			return
		}
		status, body := http.StatusOK, any(nil)
		switch r.Method + " " + r.URL.Path {
		case "GET /healthz":
			body = health()
		case "GET /readyz":
			status, body = http.StatusServiceUnavailable, ready()
		default:
			w.Header().Set("Connection", "close") // a body that nobody reads is on its way
			ProblemOf(fault.New(fault.Unavailable, "starting", "the daemon is starting: it %s; ask again in a moment", phase()),
				call.Request).write(w)
			return
		}
		raw, err := json.Marshal(body)
		if err != nil {
			ProblemOf(err, call.Request).write(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(append(raw, '\n')) // the caller has gone
	})
}
