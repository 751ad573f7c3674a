package wire

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"agentbox/internal/domain/fault"
)

// Resolve returns the identifier of the resource that a parameter names, such as the space of that name for space_id. It returns the value
// itself for a parameter whose values are no names, for an identifier, and for a name that nothing has; a name of several things is a fault
// of the kind Conflict.
type Resolve func(ctx context.Context, c Call, parameter, value string) (string, error)

// resolved returns a request whose path and query name things by their identifiers, so that everything behind it, tokens, labels, other
// daemons and the operation itself, sees identifiers only. A name that several things have is left as it is, and unclear says so.
func (s *Server) resolved(r *http.Request, c Call) (resolved *http.Request, unclear, err error) {
	if s.Resolve == nil {
		return r, nil, nil
	}
	query, malformed := url.ParseQuery(r.URL.RawQuery)
	if malformed != nil {
		return r, nil, nil //nolint:nilerr // the operation says what is wrong with the query
	}
	path := r.URL.EscapedPath()
	_, pattern, _ := strings.Cut(c.route.pattern, " ")
	parts, names := strings.Split(path, "/"), strings.Split(pattern, "/")
	changed := false
	look := func(parameter, value string) (string, error) {
		to, err := s.Resolve(r.Context(), c, parameter, value)
		if fault.KindOf(err) == fault.Conflict {
			unclear, err = err, nil
			return value, err
		}
		changed = changed || err == nil && to != value
		return to, err
	}
	for i, part := range names {
		name, isParameter := strings.CutPrefix(part, "{")
		if !isParameter || i >= len(parts) || strings.HasSuffix(name, "...}") {
			continue
		}
		value, bad := url.PathUnescape(parts[i])
		if bad != nil {
			continue
		}
		to, err := look(strings.TrimSuffix(name, "}"), value)
		if err != nil {
			return r, nil, err
		}
		if to != value {
			parts[i] = url.PathEscape(to)
		}
	}
	for name, values := range query {
		for i, value := range values {
			to, err := look(name, value)
			if err != nil {
				return r, nil, err
			}
			values[i] = to
		}
	}
	if !changed {
		return r, unclear, nil
	}
	to := *r.URL
	to.RawPath = strings.Join(parts, "/")
	if to.Path, err = url.PathUnescape(to.RawPath); err != nil {
		return r, unclear, nil //nolint:nilerr // the router says what is wrong with the path
	}
	to.RawQuery = query.Encode()
	r = r.WithContext(r.Context())
	r.URL = &to
	return r, unclear, nil
}
