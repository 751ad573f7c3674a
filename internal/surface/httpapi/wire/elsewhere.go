package wire

import (
	"context"
	"io"
	"net/http"
)

// Home says which of several daemons of one log answers an operation.
type Home string

// The homes of operations.
const (
	AtAny    Home = ""       // the log has everything that it needs
	AtSpace  Home = "space"  // it needs the files or the processes of the space that its path names
	AtRun    Home = "run"    // it needs those of the space of the run that its path names
	AtLeader Home = "leader" // only one daemon may do it
)

// parameters are the parameters of a path that name the home.
var parameters = map[Home]string{AtSpace: "space_id", AtRun: "run_id"}

// Elsewhere returns what answers a request that another daemon has to answer, nil for one that this daemon answers.
type Elsewhere func(ctx context.Context, r *http.Request, c Call, home Home, value string) (http.Handler, error)

// elsewhere forwards a request to the daemon that can answer it. This daemon admits the caller; the other one reads the body.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request, c Call) (answered bool, err error) {
	if s.Elsewhere == nil || c.route.home == AtAny {
		return false, nil
	}
	value := ""
	if name, ok := parameters[c.route.home]; ok {
		if value, ok = pathValue(c.route.pattern, r.URL.EscapedPath(), name); !ok {
			return false, nil
		}
	}
	handler, err := s.Elsewhere(r.Context(), r, c, c.route.home, value)
	if err != nil || handler == nil {
		return false, err
	}
	if r.Body != nil && r.ContentLength != 0 {
		r.Body = struct {
			io.Reader
			io.Closer
		}{s.Patient(w, r), r.Body}
	}
	handler.ServeHTTP(w, r)
	return true, nil
}

// Refuse answers a call with the problem that an error is.
func Refuse(w http.ResponseWriter, c Call, err error) { ProblemOf(err, c.Request).write(w) }
