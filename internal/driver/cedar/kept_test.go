package cedar

import (
	"fmt"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// TestBundlesAreKept holds what is kept compiled to its number, and validating to what is kept.
func TestBundlesAreKept(t *testing.T) {
	e := New()
	made := func(n int) policy.Bundle {
		b, err := policy.NewBundle("test", fmt.Sprintf("permit (principal, action, resource) when { context.size_bytes == %d };", n),
			policy.Limits{FileBytes: 1, CommandMS: 1})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for n := range maxCompiled {
		if err := e.Validate(made(n)); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.compiled) != maxCompiled {
		t.Fatalf("%d are kept, want %d", len(e.compiled), maxCompiled)
	}
	first := e.compiled[made(0).Hash]
	if v, err := e.Evaluate(made(0), policy.Facts{Size: 0}); err != nil || v.Outcome != policy.Allow || e.compiled[made(0).Hash] != first {
		t.Errorf("what was validated was compiled again: %v, %v", v, err)
	}
	if err := e.Validate(made(0)); err != nil || e.compiled[made(0).Hash] != first {
		t.Errorf("what was validated was compiled again: %v", err)
	}
	if err := e.Validate(made(maxCompiled)); err != nil || len(e.compiled) != maxCompiled || e.compiled[made(maxCompiled).Hash] == nil {
		t.Errorf("beyond the bound: %d are kept, %v, want %d with the last", len(e.compiled), err, maxCompiled)
	}
	strange := made(maxCompiled + 1)
	strange.Hash = event.Digest{1}
	if err := e.Validate(strange); err != nil || e.compiled[strange.Hash] != nil {
		t.Errorf("a bundle under another's hash: %v, kept %t", err, e.compiled[strange.Hash] != nil)
	}
	broken, err := policy.NewBundle("test", "permit (", policy.Limits{FileBytes: 1, CommandMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Validate(broken); err == nil || e.compiled[broken.Hash] != nil {
			t.Error("a broken bundle is valid, or kept")
		}
	}
}
