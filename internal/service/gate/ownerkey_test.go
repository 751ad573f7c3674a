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
