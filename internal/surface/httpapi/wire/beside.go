package wire

import "net/http"

// Beside answers a request of another protocol that is served on the same listener, and returns false for one that is not of it. It calls
// operations of the server for everything that it does, with the key of its own caller. So nothing is admitted or judged in two ways.
type Beside func(w http.ResponseWriter, r *http.Request) bool

// besides lets the other protocol answer. Pages of other origins and other names of the host get nowhere there either.
func (s *Server) besides(w http.ResponseWriter, r *http.Request) bool {
	return s.Beside != nil && s.checkHost(r) == nil && s.Beside(w, r)
}

// Previews sets what answers at the hosts and paths of ports of spaces. The server calls it before it checks the host of a request, so it
// judges that itself. It is called once, before the server runs.
func Previews(s *Server, b Beside) { s.previews = b }

// Answer has a request answered that is not an operation of the server's: with the time limits, the log and the refusals of one. The
// headers of the server that would bind a page are not set.
func Answer(s *Server, w http.ResponseWriter, r *http.Request, do func(w http.ResponseWriter, r *http.Request) error) {
	c := s.call(r)
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w), now: s.Clock.Now}
	a.patience()
	s.present(a.Header(), c)
	defer s.finish(a, r, &c)
	if err := do(a, r); err != nil {
		s.refuse(a, r, c, err)
	}
}
