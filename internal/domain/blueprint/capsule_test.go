package blueprint_test

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
)

// TestWhichRelativesMayRead holds the table of scopes: each one lets exactly one kind of relative read, but descendants two.
func TestWhichRelativesMayRead(t *testing.T) {
	for scopes, want := range map[string]string{
		"": "parent sibling child", "parent": "child", "children": "parent", "siblings": "sibling", "descendants": "parent ancestor",
		"parent,descendants": "parent ancestor child", "project": "", "workspace": "",
	} {
		c := blueprint.Comms{}
		if scopes != "" {
			c.Scopes = strings.Split(scopes, ",")
		}
		var got []string
		for _, kin := range []blueprint.Kin{blueprint.Parent, blueprint.Ancestor, blueprint.Sibling, blueprint.Child, "stranger", ""} {
			if c.Reaches(kin) {
				got = append(got, string(kin))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the scopes %q let read what is %q, want %q", scopes, got, want)
		}
	}
}

// TestWhichCapsulesAreShown holds that the writer gives, the reader takes, and the scopes permit.
func TestWhichCapsulesAreShown(t *testing.T) {
	every := []string{"status_capsules", "plan_capsules", "decision_capsules", "artifact_manifests"}
	for name, c := range map[string]struct {
		gives, scopes, takes []string
		want                 []string
	}{
		"everything":     {[]string{"risk", "manifest", "decision", "plan", "status"}, nil, every, blueprint.CapsuleTypes()},
		"nothing given":  {nil, nil, every, nil},
		"nothing taken":  {blueprint.CapsuleTypes(), nil, nil, nil},
		"no scope":       {blueprint.CapsuleTypes(), []string{"children", "siblings", "descendants"}, every, nil},
		"the scope":      {[]string{"plan"}, []string{"parent"}, every, []string{"plan"}},
		"risk by status": {blueprint.CapsuleTypes(), nil, every[:1], []string{"status", "risk"}},
		"a plan":         {blueprint.CapsuleTypes(), nil, every[1:2], []string{"plan"}},
		"decisions":      {blueprint.CapsuleTypes(), nil, every[2:3], []string{"decision"}},
		"a list":         {blueprint.CapsuleTypes(), nil, every[3:], []string{"manifest"}},
		"not in common":  {[]string{"plan"}, nil, every[:1], nil},
	} {
		reader := blueprint.Blueprint{Context: blueprint.Context{Sources: c.takes}}
		writer := blueprint.Blueprint{Comms: blueprint.Comms{Capsule: c.gives, Scopes: c.scopes}}
		if got := blueprint.Shown(reader, writer, blueprint.Child); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if got := blueprint.Shown(reader, writer, "stranger"); got != nil {
			t.Errorf("%s: a stranger is shown %v", name, got)
		}
	}
	if got := (blueprint.Comms{Capsule: []string{"manifest", "risk", "status"}}).Writes(); !slices.Equal(got, []string{"status", "risk"}) {
		t.Errorf("it writes %v", got)
	}
}

// TestBudgetsOfCapsules holds the defaults, and that a type without a budget has no room.
func TestBudgetsOfCapsules(t *testing.T) {
	c := blueprint.Blueprint{}.Effective().Context
	for typ, want := range map[string]int{"status": 1500, "risk": 1500, "plan": 3000, "decision": 3000, "manifest": 2000, "thought": 0} {
		if got := c.Budget(typ); got != want {
			t.Errorf("%s: got %d, want %d", typ, got, want)
		}
		if c.Takes(typ) {
			t.Errorf("without sources it is shown %s", typ)
		}
	}
	if blueprint.SourceOf("risk") != "status_capsules" || blueprint.SourceOf("thought") != "" {
		t.Error("another source")
	}
}
