package wire

import "net/http"

// Beside answers a request of another protocol that is served on the same listener, and returns false for one that is not of it. It calls
// operations of the server for everything that it does, with the key of its own caller. So nothing is admitted or judged in two ways.
type Beside func(w http.ResponseWriter, r *http.Request) bool

// besides lets the other protocol answer. Pages of other origins and other names of the host get nowhere there either.
func (s *Server) besides(w http.ResponseWriter, r *http.Request) bool {
	return s.Beside != nil && s.checkHost(r) == nil && s.Beside(w, r)
}
