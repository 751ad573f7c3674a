package token

import (
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Grant is the command that makes a token.
type Grant struct {
	IssuedTo   id.Principal
	Parent     id.Token // "" for a root
	Scopes     Scopes
	ValidUntil time.Time // zero: as long as the parent
}

// Root returns the data of a token that is derived from none. It does not judge who grants it; the identity service does.
func (g Grant) Root(by id.Principal, now time.Time) (Granted, error) {
	if err := g.check(now); err != nil {
		return Granted{}, err
	}
	return Granted{IssuedTo: g.IssuedTo, GrantedBy: by, Scopes: g.Scopes.Within(All()), ValidUntil: g.ValidUntil}, nil
}

// Delegate returns the data of a token that is derived from the first of a chain. The chain is that token and those that it was derived
// from, up to the root. The new token permits no more, and ends no later, than any of them.
func (g Grant) Delegate(chain []Token, by id.Principal, now time.Time) (Granted, error) {
	if err := g.check(now); err != nil {
		return Granted{}, err
	}
	if !whole(chain) || chain[0].ID != g.Parent {
		return Granted{}, ErrParentNotFound
	}
	d := Granted{IssuedTo: g.IssuedTo, GrantedBy: by, Parent: g.Parent, Depth: chain[0].Depth + 1, Scopes: g.Scopes, ValidUntil: g.ValidUntil}
	if chain[0].IssuedTo != by {
		return Granted{}, ErrParentNotYours
	}
	for _, t := range chain {
		switch {
		case !t.RevokedAt.IsZero():
			return Granted{}, ErrParentRevoked
		case t.Expired(now):
			return Granted{}, ErrParentExpired
		}
		d.Scopes = d.Scopes.Within(t.Scopes)
		if !t.ValidUntil.IsZero() && (d.ValidUntil.IsZero() || t.ValidUntil.Before(d.ValidUntil)) {
			d.ValidUntil = t.ValidUntil
		}
	}
	if d.Depth > MaxDepth {
		return Granted{}, ErrTooDeep
	}
	return d, nil
}

func (g Grant) check(now time.Time) error {
	if !g.ValidUntil.IsZero() && !g.ValidUntil.After(now) {
		return ErrInvalidUntil
	}
	return g.Scopes.Check()
}

// Useful refuses to grant a token that would permit nothing:
//   - its action is not in the registry, and no workspace can declare it;
//   - it has no action and nothing to see;
//   - it has none of the requested rooms, because the tokens above do not permit them or nobody asked for one.
//
// Otherwise the token grants what both permit, and Without lists the rest.
func (g Grant) Useful(d Granted) error {
	for _, action := range g.Scopes.Actions {
		if _, known := policy.KindOf(action); !known && action != Any && policy.Declarable(action) != nil {
			return UnknownAction(action)
		}
	}
	if (len(d.Scopes.Rooms) > 0 || len(g.Scopes.Rooms) == 0) && len(d.Scopes.Actions)+len(d.Scopes.Data.Read) > 0 {
		return nil
	}
	if dropped := g.Scopes.Without(d.Scopes); len(dropped) > 0 {
		return fault.New(ErrPermitsNothing.Kind, ErrPermitsNothing.Code,
			"this token would permit nothing, because the parent does not permit what you request: %s", strings.Join(dropped, ", ")).
			With("Ask for what the parent permits: `agentbox token ls` shows it.")
	}
	return ErrPermitsNothing
}

// UnknownAction refuses an action that is not in the registry and that the workspace has not declared.
func UnknownAction(action string) error {
	var names []string
	for _, k := range policy.Registry() {
		names = append(names, k.Type)
	}
	near := policy.TypeOf(action)
	if near == action {
		near = policy.Nearest(action, names)
	}
	return fault.New(ErrUnknownAction.Kind, ErrUnknownAction.Code,
		"there is no action %s, so that a token for it permits nothing; did you mean %s?", policy.Escape(action), near).
		With("`agentbox policy actions` lists those that there are.")
}

// Without returns the requested scopes that are not granted, or not in full, each entry with its kind, as "action_types run.start".
func (s Scopes) Without(granted Scopes) (dropped []string) {
	mine, left := s.lists(), granted.lists()
	for n, l := range mine {
		for _, e := range l.entries {
			if !permits(left[n], e) {
				dropped = append(dropped, kinds[n]+" "+e)
			}
		}
	}
	return dropped
}

// Chain reads a token and those that it was derived from, up to the root. ErrNotFound where one of them is not there.
func Chain(t id.Token, read func(id.Token) (Token, error)) ([]Token, error) {
	var chain []Token
	for len(chain) <= MaxDepth {
		doc, err := read(t)
		if err == nil && doc.ID != t {
			err = ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		if chain = append(chain, doc); doc.Parent == "" {
			return chain, nil
		}
		t = doc.Parent
	}
	return nil, ErrNotFound
}

// Within reports whether a token is one of a chain.
func Within(chain []Token, t id.Token) bool {
	return slices.ContainsFunc(chain, func(doc Token) bool { return doc.ID == t })
}

// whole reports whether a chain goes up to a root without a gap.
func whole(chain []Token) bool {
	if len(chain) == 0 || len(chain) > MaxDepth+1 {
		return false
	}
	for n, t := range chain {
		if n > 0 && chain[n-1].Parent != t.ID || t.ID == "" {
			return false
		}
	}
	return chain[len(chain)-1].Parent == ""
}

// Holds returns the reason code, with a sentence, of what keeps the first token of a chain from being in force; "" where nothing does.
func Holds(chain []Token, now time.Time) (code, reason string) {
	if !whole(chain) {
		return policy.ReasonTokenNotFound, "there is no such capability token in this workspace"
	}
	for _, t := range chain {
		switch {
		case !t.RevokedAt.IsZero():
			return policy.ReasonTokenRevoked, "the capability token, or one that it was derived from, was revoked"
		case t.Expired(now):
			return policy.ReasonTokenExpired, "the time of the capability token, or of one that it was derived from, is over"
		}
	}
	return "", ""
}

// Delegates reports whether every token of a chain names an action by its type. An entry * is not enough: a grant that narrows a holder
// must not become a right that the holder did not have.
func Delegates(chain []Token, action string) bool {
	if !whole(chain) {
		return false
	}
	return !slices.ContainsFunc(chain, func(t Token) bool { return !slices.Contains(t.Scopes.Actions, action) })
}

// Permits returns the reason code, with a sentence, of what keeps a use from being permitted by the first token of a chain; "" where
// nothing does. Every token of the chain has to permit it.
func Permits(chain []Token, u Use, now time.Time) (code, reason string) {
	if code, reason = Holds(chain, now); code != "" {
		return code, reason
	}
	for _, t := range chain {
		if code, reason = t.Scopes.Refuses(u); code != "" {
			return code, reason
		}
	}
	return "", ""
}
