//go:build linux

package namespace

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

func TestProbe(t *testing.T) {
	h := host(t)
	r := h.Tier.Probe(t.Context())
	if r.Tier != Name || !r.Limited || r.OK != (len(h.Unenforced) == 0) || r.Start <= 0 {
		t.Errorf("got %+v, want a space that starts, and every bound enforced unless it is among %v", r, h.Unenforced)
	}
	programs := []string{"bun", "node", "npm", "python3"} // the host need not have them
	for _, c := range r.Checks {
		t.Logf("%+v", c)
		want := !slices.Contains(h.Unenforced, c.Bound)
		if c.OK != want && !slices.Contains(programs, c.Name) {
			t.Errorf("%s: got %+v", c.Name, c)
		}
		if !c.OK && c.Mend == "" {
			t.Errorf("%s: it does not say how to mend it", c.Name)
		}
	}
	for _, bound := range []string{"memory_bytes", "cpu_millis", "pids"} {
		if !slices.ContainsFunc(r.Checks, func(c space.Check) bool { return c.OK || c.Bound == bound }) {
			t.Errorf("no check of %s", bound)
		}
	}
	if groups := h.Tier.(*Tier).leftGroups(); len(groups) != 0 {
		t.Errorf("the probe left %q", groups)
	}
}

// TestTry finds that a space stands here, leaves nothing of it, and does not say so where it could not find out.
func TestTry(t *testing.T) {
	h := host(t)
	tier := h.Tier.(*Tier)
	if err := tier.Try(t.Context()); err != nil {
		t.Error(err)
	}
	if groups := tier.leftGroups(); len(groups) != 0 {
		t.Errorf("the try left %q", groups)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := tier.Try(ended); err == nil {
		t.Error("a try that was called off found that a space stands")
	}
}

// TestASpaceThatCannotStartIsNone makes a space whose folder is not there. No space may come back beside the error, because the caller
// would close it later.
func TestASpaceThatCannotStartIsNone(t *testing.T) {
	tier := openTier(t)
	dir, uid := place(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	limits := space.DefaultLimits()
	raw, err := json.Marshal(limits)
	if err != nil {
		t.Fatal(err)
	}
	s := id.New[id.Space](id.NewSource(time.Now, rand.Reader))
	permit := issue(policy.Action{Type: policy.SpaceStart, Workspace: id.DefaultWorkspace, Space: s, Limits: raw})
	made, err := tier.Create(t.Context(), permit, space.Spec{ID: s, Dir: dir, UID: uid, Limits: limits, BestEffort: true})
	if err == nil || made != nil {
		t.Errorf("got a space %v and the error %v, want no space and an error", made, err)
	}
}
