package wire

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// Needs holds an operation's requirements on its caller. Each operation declares it, for two reasons. The server checks a capability token
// against it before it reads the request, so that no service can forget to. And the matrix of rights is tested with it. An operation
// without it is closed to callers under a token.
type Needs struct {
	Action string         `json:"action,omitempty"` // the type of the action that it is, a name of the registry
	Reads  string         `json:"reads,omitempty"`  // for a read: the type of the shown resource
	Of     []string       `json:"of,omitempty"`     // the parameters that say whose room counts; where none is sent, the whole workspace's
	Judged bool           `json:"judged,omitempty"` // the body names the room, and the gate judges it
	Least  principal.Role `json:"least,omitempty"`  // of people, where the registry does not say it
	// The operation is about the callers themselves, or the gate judges the action that its body names.
	Own bool `json:"own,omitempty"`

	// Unlabelled says that the labels of the named resources do not hold: the operation shows nothing of them, or withholds by itself.
	Unlabelled bool `json:"unlabelled,omitempty"`
}

// Shows is the need of an operation that only shows a resource of a type, in the room of the parameters.
func Shows(typ string, of ...string) Needs { return Needs{Reads: typ, Of: of} }

// Does is the need of an operation that is an action, in the room of the parameters.
func Does(action string, of ...string) Needs { return Needs{Action: action, Of: of} }

// DoesThere is the need of an operation that is an action in a room which its body names, so that only the gate can judge it.
func DoesThere(action string) Needs { return Needs{Action: action, Judged: true} }

// Own is the need of an operation that is about the callers themselves, so that no token bounds it. It is also the need of an operation
// whose body names the action; then the gate checks the token.
func Own() Needs { return Needs{Own: true} }

// From returns the need with the least role that a person must have.
func (n Needs) From(least principal.Role) Needs {
	n.Least = least
	return n
}

// PastLabels returns the need of an operation at which the labels of what its parameters name do not hold: because it answers with
// nothing of that, because it ends something, or because it withholds by itself.
func (n Needs) PastLabels() Needs {
	n.Unlabelled = true
	return n
}

func (n Needs) said() bool { return n.Own || (n.Action != "") != (n.Reads != "") }

// Bound refuses a request that the capability token of a caller does not permit. About are the parameters of the need that were sent.
type Bound func(ctx context.Context, c Call, n Needs, about map[string]string) error

// Barred refuses a request that the kind or the role of a caller rules out with every body. About are the parameters of the need that were
// sent.
type Barred func(ctx context.Context, c Call, n Needs, about map[string]string) error

// Labels refuses what labels keep from a caller. About are the parameters of the need that were sent.
type Labels func(ctx context.Context, c Call, about map[string]string) error

var errNotForTokens = fault.New(fault.Denied, policy.ReasonScopeAction,
	"this operation is not open to whoever acts under a capability token").
	With("Act without one.")

// bound checks the capability token of a caller for an operation, the labels of the things that it names, and then the caller's role. All
// of it comes before the body is read.
func (s *Server) bound(r *http.Request, c Call) error {
	n := c.route.needs
	if n.Own {
		return nil
	}
	if c.Caller.Token != "" {
		if !n.said() || s.Bound == nil {
			return errNotForTokens
		}
		if err := s.Bound(r.Context(), c, n, about(r, c.route)); err != nil {
			return err
		}
	}
	if !n.Unlabelled && len(n.Of) > 0 && s.Labels != nil {
		if err := s.Labels(r.Context(), c, about(r, c.route)); err != nil {
			return err
		}
	}
	if n.Action == "" || s.Barred == nil {
		return nil
	}
	return s.Barred(r.Context(), c, n, about(r, c.route))
}

// about returns the parameters of a route's need that were sent.
func about(r *http.Request, rt *route) map[string]string {
	n := rt.needs
	about := map[string]string{}
	query := r.URL.Query()
	for _, name := range n.Of {
		value, ok := pathValue(rt.pattern, r.URL.EscapedPath(), name)
		if !ok {
			value, ok = query.Get(name), query.Has(name)
		}
		if ok {
			about[name] = value
		}
	}
	return about
}

// pathValue returns a parameter of a path, before the router has read it.
func pathValue(pattern, path, name string) (string, bool) {
	if _, rest, ok := strings.Cut(pattern, " "); ok { // else it is of every method
		pattern = rest
	}
	parts := strings.Split(path, "/")
	for i, part := range strings.Split(pattern, "/") {
		if part == "{"+name+"}" && i < len(parts) {
			value, err := url.PathUnescape(parts[i])
			return value, err == nil
		}
	}
	return "", false
}

// narrowHeader names a capability token that narrows the rights of the caller.
const narrowHeader = "X-Capability-Token"
