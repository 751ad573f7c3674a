package identity_test

import (
	"slices"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/token"
)

// TestEverybodyMayBindThemselves holds what comes of a token that a principal is given to do less than they may: it is theirs, has no
// bearer, permits no more than the token above it, and delegates no right.
func TestEverybodyMayBindThemselves(t *testing.T) {
	o := open(t)
	scopes := token.All()
	scopes.Rooms = []string{string(room)}
	until := o.clock.Now().Add(time.Hour)
	for name, who := range map[string]id.Principal{"a member": o.member, "an agent": o.agent, "the owner": o.owner} {
		origin := o.as(who)
		origin.Key, origin.Command = name, event.DigestOf([]byte("narrow"))
		made, err := o.Narrow(t.Context(), origin, ws, scopes, until)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if made.IssuedTo != who || made.GrantedBy != who || made.Parent != "" || made.Hash != (event.Digest{}) || made.ValidUntil != until ||
			!slices.Equal(made.Scopes.Rooms, scopes.Rooms) {
			t.Errorf("%s: got %+v", name, made)
		}
		if again, err := o.Narrow(t.Context(), origin, ws, scopes, until.Add(time.Minute)); err != nil || again.ID != made.ID {
			t.Errorf("%s, sent again: %s, %v; want %s", name, again.ID, err, made.ID)
		}
		if token.Delegates([]token.Token{made}, "run.start") {
			t.Errorf("%s: the token gives a right", name)
		}
		under := o.as(who)
		for depth := 1; depth <= token.MaxDepth; depth++ {
			under.Token = made.ID
			if made, err = o.Narrow(t.Context(), under, ws, token.All(), time.Time{}); err != nil || made.Depth != depth ||
				made.Parent != under.Token || made.ValidUntil != until || !slices.Equal(made.Scopes.Rooms, scopes.Rooms) {
				t.Fatalf("%s, %d below: got %+v, %v", name, depth, made, err)
			}
		}
		under.Token = made.ID
		_, err = o.Narrow(t.Context(), under, ws, token.All(), time.Time{})
		o.want(name+", too deep", err, token.ErrTooDeep.Code)
	}
	_, err := o.Narrow(t.Context(), o.as(o.viewer), ws, scopes, until)
	if err == nil {
		t.Error("a viewer, who may record nothing, made a token")
	}
	_, err = o.Narrow(t.Context(), o.as("usr_00000000000000000000000009"), ws, scopes, until)
	o.want("nobody", err, token.ErrGrantorNotFound.Code)
}
