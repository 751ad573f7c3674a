package blueprint_test

import (
	"reflect"
	"testing"

	"agentbox/internal/domain/blueprint"
)

type (
	kind   = blueprint.Blueprint
	change = blueprint.Change
)

// TestDiffNamesEachValueThatDiffers compares blueprints that differ in one value of each type.
func TestDiffNamesEachValueThatDiffers(t *testing.T) {
	base := blueprint.Blueprint{APIVersion: 1, Name: "a", Models: map[string]string{"default": "x", "code": "y"}}
	base.Tools.Allow = []string{"shell"}
	tests := map[string]struct {
		change func(*blueprint.Blueprint)
		want   change
	}{
		"a text":        {func(b *kind) { b.Name = "b" }, change{Path: "name", From: "a", To: "b"}},
		"a number":      {func(b *kind) { b.Limits.Steps = 7 }, change{Path: "limits.steps", To: "7"}},
		"a truth":       {func(b *kind) { b.Context.Transcript = true }, change{Path: "context.transcript", To: "true"}},
		"money":         {func(b *kind) { b.Limits.Cost = "2.50" }, change{Path: "limits.cost", To: "2.50"}},
		"an entry more": {func(b *kind) { b.Tools.Allow = []string{"shell", "code"} }, change{Path: "tools.allow[1]", To: "code"}},
		"an entry less": {func(b *kind) { b.Tools.Allow = nil }, change{Path: "tools.allow[0]", From: "shell"}},
		"a key less":    {func(b *kind) { b.Models = map[string]string{"default": "x"} }, change{Path: "models.code", From: "y"}},
		"a key's value": {func(b *kind) { b.Models = map[string]string{"default": "x", "code": "z"} },
			change{Path: "models.code", From: "y", To: "z"}},
		"deep in an object": {func(b *kind) { b.Space.Network.Allow = []string{"h"} }, change{Path: "space.network.allow_domains[0]", To: "h"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			next := base
			tt.change(&next)
			if got := blueprint.Diff(base, next); !reflect.DeepEqual(got, []change{tt.want}) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if got := blueprint.Diff(next, next); len(got) != 0 {
				t.Errorf("a blueprint differs from itself: %+v", got)
			}
		})
	}
}
