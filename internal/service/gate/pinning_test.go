package gate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/bundles"
)

// strict is an evaluator that takes no bundle whose text has a word in it.
type strict struct {
	policy.Evaluator
	word string
}

var errStrict = errors.New("the policy has the word in it")

func (s *strict) Validate(b policy.Bundle) error {
	if s.word != "" && strings.Contains(b.Cedar, s.word) {
		return errStrict
	}
	return s.Evaluator.Validate(b)
}

// A bundle is pinned once, by the first caller, with the time of the gate's clock. Its hash has to fit, and the evaluator has to take it.
func TestWhatIsPinned(t *testing.T) {
	ctx := t.Context()
	check := &strict{}
	h := build(t, func(p *gate.Parts) { check.Evaluator, p.Evaluator = p.Evaluator, check })
	late := &clock{now: h.clock.Now().Add(time.Hour)}
	h.parts.Clock = late
	log := &rivalled{Journal: h.log}
	h.parts.Log = log
	other, err := gate.New(h.parts)
	if err != nil {
		t.Fatal(err)
	}
	h.restart()
	mine, err := h.Bundles.ReadPolicy([]byte("preset: standard\ndeny: {commands: ['moon']}\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	forged := mine
	forged.Cedar += " "
	check.word = "moon"
	before := h.count(policy.BundlePinnedType)
	if err := h.Bundles.PinBundle(ctx, h.origin(h.owner), ws, mine); !errors.Is(err, errStrict) {
		t.Errorf("what the evaluator does not take: got %v", err)
	}
	for what, text := range map[string]string{"short form": "deny: {commands: ['moon']}\n", "unreadable": "deny: ["} {
		if _, err := h.Bundles.ReadPolicy([]byte(text), false); err == nil || (what == "short form") != errors.Is(err, errStrict) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for what, text := range map[string]string{"Cedar": `@id("moon") permit (principal, action, resource);`, "unreadable Cedar": "permit ("} {
		if _, err := h.Bundles.ReadPolicy([]byte(text), true); err == nil || (what == "Cedar") != errors.Is(err, errStrict) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for what, over := range map[string]string{"overrides": `{"deny":{"commands":["moon"]}}`, "unreadable": "{"} {
		if _, err := h.Bundles.Pin(ctx, h.origin(h.owner), ws, "standard", []byte(over)); err == nil ||
			(what == "overrides") != errors.Is(err, errStrict) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := h.Bundles.Resolve("standard", []byte(`{"deny":{"commands":["moon"]}}`)); !errors.Is(err, errStrict) {
		t.Errorf("resolved with overrides: got %v", err)
	}
	check.word = ""
	if err := h.Bundles.PinBundle(ctx, h.origin(h.owner), ws, forged); err == nil {
		t.Error("a bundle that is not what its hash says was pinned")
	}
	if n := h.count(policy.BundlePinnedType) - before; n != 0 {
		t.Errorf("%d bundles were pinned that could not be", n)
	}
	log.before = func() {
		if err := other.Bundles.PinBundle(ctx, h.origin(h.owner), ws, mine); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := h.Bundles.PinBundle(ctx, h.origin(h.owner), ws, mine); err != nil {
			t.Errorf("pinned behind another one: %v", err)
		}
	}
	if n := h.count(policy.BundlePinnedType) - before; n != 1 || !h.last(policy.BundlePinnedType).OccurredAt.Equal(late.Now()) {
		t.Errorf("it was pinned %d times, at %s", n, h.last(policy.BundlePinnedType).OccurredAt)
	}
	h.restart()
	if got, err := h.Bundles.Bundle(ctx, ws, mine.Hash); err != nil || got.Hash != mine.Hash || got.Cedar != mine.Cedar {
		t.Errorf("got %+v, %v", got, err)
	}
	check.word = "permit"
	if err := h.Warm(); !errors.Is(err, errStrict) {
		t.Errorf("warmed with a policy that the evaluator does not take: got %v", err)
	}
	if _, err := h.Bundles.Resolve("", nil); !errors.Is(err, errStrict) {
		t.Errorf("resolved: got %v", err)
	}
}

// A bundle is found by its hash only where it is what the hash says.
func TestWhatIsFoundByItsHash(t *testing.T) {
	g := newGrants(t)
	mine := g.bundle("preset: standard\ndeny: {commands: ['moon']}\n", false)
	forged := mine
	forged.Cedar += " "
	swapped, altered := event.DigestOf([]byte("swapped")), event.DigestOf([]byte("altered"))
	g.record(ws, policy.BundlePinnedType, policy.BundleEntity, swapped.String(), policy.BundlePinned{Bundle: mine})
	forged.Hash = altered
	g.record(ws, policy.BundlePinnedType, policy.BundleEntity, altered.String(), policy.BundlePinned{Bundle: forged})
	for range 2 {
		if _, err := g.Bundles.Bundle(t.Context(), ws, swapped); !errors.Is(err, bundles.ErrNotFound) {
			t.Errorf("under the name of another one: got %v", err)
		}
		if _, err := g.Bundles.Bundle(t.Context(), ws, altered); err == nil || !strings.Contains(err.Error(), "its hash says") {
			t.Errorf("altered: got %v", err)
		}
		if _, err := g.Bundles.Bundle(t.Context(), otherWS, mine.Hash); !errors.Is(err, bundles.ErrNotFound) {
			t.Errorf("in another workspace: got %v", err)
		}
		if _, err := g.Bundles.Bundle(t.Context(), ws, mine.Hash); err != nil {
			t.Error(err)
		}
	}
}

// Bundles are read once, also where they take turns; one that is too large is none.
func TestBundlesAreReadOnce(t *testing.T) {
	f := &frail{}
	g := newGrantsOver(t, func(p *gate.Parts) {
		*f = frail{Journal: p.Log, docs: p.Docs}
		p.Log, p.Docs = f, f
	})
	g.restart()
	for round := range 2 {
		f.calls = 0
		for _, name := range []string{"restrictive", "permissive"} {
			if b, err := g.Bundles.Bundle(t.Context(), ws, g.bundles[name].Hash); err != nil || b.Hash != g.bundles[name].Hash {
				t.Errorf("%s: got %s, %v", name, b.Name, err)
			}
		}
		if want := 2 * (1 - round); f.calls != want {
			t.Errorf("round %d: %d calls of the store, want %d", round, f.calls, want)
		}
	}
	large := `@id("a") permit (principal, action, resource);` + strings.Repeat(" ", policy.MaxBundleBytes)
	if b, err := g.Bundles.ReadPolicy([]byte(large), true); fault.CodeOf(err) != "policy_too_large" || b.Cedar != "" {
		t.Errorf("got %v", err)
	}
}

// The kind of a preset, a policy's names that nobody has declared, and the changes that its space's variables make.
func TestPresetsAndTheirWarnings(t *testing.T) {
	h := build(t, nil)
	presets, err := h.Bundles.Presets()
	if err != nil || len(presets) != 3 {
		t.Fatalf("got %d presets, %v", len(presets), err)
	}
	for i, name := range []string{"restrictive", "standard", "permissive"} {
		if presets[i].Hash != h.bundles[name].Hash {
			t.Errorf("preset %d is %s, want %s", i, presets[i].Name, name)
		}
	}
	for _, name := range []string{"", "standard"} {
		if b, err := h.Bundles.Resolve(name, nil); err != nil || b.Hash != h.Bundles.Standard().Hash {
			t.Errorf("the preset %q is %s, %v", name, b.Name, err)
		}
	}
	if b, err := h.Bundles.Resolve("", []byte(`{"deny":{"commands":["moon"]}}`)); err != nil || b.Hash == h.Bundles.Standard().Hash {
		t.Errorf("with overrides: got %s, %v", b.Name, err)
	}
	if _, err := h.Bundles.Resolve("moon", nil); err == nil {
		t.Error("a preset that there is not")
	}
	own := h.bundle("preset: standard\nallow: {actions: ['deploy.production', 'run.start']}\n", false)
	for _, declared := range []bool{false, true} {
		if declared {
			h.declare(nil)
		}
		said, err := h.Bundles.Warnings(t.Context(), ws, own)
		if err != nil || (len(said) == 0) != declared || !declared && !strings.Contains(said[0], "deploy.production") {
			t.Errorf("declared %t: got %q, %v", declared, said, err)
		}
	}
	if said := h.Bundles.EnvironmentWarnings(map[string]string{"PATH": "x", "LANG": "C"}); len(said) != 1 {
		t.Errorf("of the environment: got %q", said)
	}
}

// TestAdjust makes the bundle of a preset with an adjustment, and the overrides by which Resolve makes the same one.
func TestAdjust(t *testing.T) {
	h := build(t, nil)
	b, overrides, err := h.Bundles.Adjust("standard", policy.Adjustment{Deny: []string{"plans/**"}})
	if err != nil || b.Hash == h.Bundles.Standard().Hash || !strings.Contains(string(overrides), "plans/**") {
		t.Fatalf("got %+v, %s, %v", b, overrides, err)
	}
	if same, err := h.Bundles.Resolve("standard", overrides); err != nil || same.Hash != b.Hash {
		t.Errorf("by its overrides: got %s, %v, want %s", same.Hash, err, b.Hash)
	}
	if b, overrides, err := h.Bundles.Adjust("standard", policy.Adjustment{}); err != nil || overrides != nil ||
		b.Hash != h.Bundles.Standard().Hash {
		t.Errorf("nothing adjusted: got %s, %s, %v", b.Hash, overrides, err)
	}
	if b, overrides, err := h.Bundles.Adjust("nobody", policy.Adjustment{}); err == nil || overrides != nil || !b.Hash.IsZero() {
		t.Errorf("a preset that is not there: got %+v, %s, %v", b, overrides, err)
	}
	if _, _, err := h.Bundles.Adjust("standard", policy.Adjustment{Withhold: []string{"["}}); err == nil {
		t.Error("a pattern that is none was taken")
	}
}
