package gate_test

import (
	"context"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
)

// Keys of others than owners are revoked to the last. A key of another owner counts as one more.
func TestWhichKeysOfOwnersCount(t *testing.T) {
	ctx := context.Background()
	issue := func(h *house, p id.Principal) id.Key {
		_, key, err := h.IssueKey(ctx, h.origin(p), ws, p, "key")
		if err != nil {
			t.Fatal(err)
		}
		return key.ID
	}
	refused := func(h *house, key id.Key) bool {
		err := h.RevokeKey(ctx, h.origin(h.owner), ws, key, "", false)
		if err != nil && fault.CodeOf(err) != "last_owner_key" {
			t.Fatal(err)
		}
		return err != nil
	}
	for _, c := range []struct {
		name          string
		first, second bool // who has a key
		want          bool // the key of the first who has one is refused
	}{
		{"both have one", true, true, false},
		{"only the first", true, false, true},
		{"only the second", false, true, true},
	} {
		h := build(t, nil)
		member := issue(h, h.person("Mia", principal.Admin))
		if refused(h, member) {
			t.Errorf("%s: the last key of an admin is refused", c.name)
		}
		second := h.person("Ola", principal.Overlord)
		var keys []id.Key
		if c.first {
			keys = append(keys, issue(h, h.owner))
		}
		if c.second {
			keys = append(keys, issue(h, second))
		}
		if got := refused(h, keys[0]); got != c.want {
			t.Errorf("%s: refused %t, want %t", c.name, got, c.want)
		}
	}
}

// A key in force counts though a hundred keys that were revoked stand before it, and one of an owner counts though a hundred owners
// without a key do.
func TestTheOtherKeyOfAnOwnerIsFoundBehindManyPages(t *testing.T) {
	revoke := func(g *grants, key id.Key) error {
		return g.RevokeKey(t.Context(), g.origin(g.owner), ws, key, "", false)
	}
	for _, before := range []int{98, 99, 100, 101, 200} {
		g := newGrants(t)
		_, oldest := g.key(g.owner, g.owner)
		for range before {
			_, k := g.key(g.owner, g.owner)
			g.record(ws, principal.KeyRevokedType, principal.KeyEntity, string(k), principal.KeyRevoked{Key: k})
		}
		_, newest := g.key(g.owner, g.owner)
		if err := revoke(g, newest); err != nil {
			t.Errorf("%d keys before the other one: %v", before, err)
		}
		if err := revoke(g, oldest); fault.CodeOf(err) != "last_owner_key" {
			t.Errorf("the last of %d: %v", before+2, err)
		}
	}
	for _, owners := range []int{98, 99, 100, 101} {
		g := newGrants(t)
		owner := func() (p id.Principal) {
			p = id.NewPrincipal(g.ids, id.User)
			g.record(ws, principal.RegisteredType, principal.Entity, string(p), principal.Registered{Principal: p, Kind: id.User,
				Role: principal.Overlord, Name: "o"})
			return p
		}
		_, first := g.key(g.owner, g.owner)
		for range owners {
			owner()
		}
		last := owner()
		_, second := g.key(last, last)
		if err := revoke(g, first); err != nil {
			t.Errorf("%d owners between: %v", owners, err)
		}
		if err := revoke(g, second); fault.CodeOf(err) != "last_owner_key" {
			t.Errorf("the last key of %d owners: %v", owners+2, err)
		}
	}
}

// The key of an owner who is quarantined opens nothing, and does not count as another one.
func TestTheKeyOfAQuarantinedOwnerDoesNotCount(t *testing.T) {
	g := newGrants(t)
	for range 2 { // whichever of them comes first
		ola := id.NewPrincipal(g.ids, id.User)
		g.record(ws, principal.RegisteredType, principal.Entity, string(ola), principal.Registered{Principal: ola, Kind: id.User,
			Role: principal.Overlord, Name: "Ola"})
		g.key(ola, ola)
		g.quarantine(ola)
	}
	_, own := g.key(g.owner, g.owner)
	if err := g.RevokeKey(t.Context(), g.origin(g.owner), ws, own, "", false); fault.CodeOf(err) != "last_owner_key" {
		t.Errorf("got %v", err)
	}
	if err := g.RevokeKey(t.Context(), g.origin(g.owner), ws, own, "", true); err != nil {
		t.Errorf("meant so: %v", err)
	}
}
