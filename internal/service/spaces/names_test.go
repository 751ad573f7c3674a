package spaces_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// TestANameBelongsToOneLivingSpace gives a name to spaces one after the other: it is free again when its bearer is gone or has another
// name.
func TestANameBelongsToOneLivingSpace(t *testing.T) {
	s := open(t)
	taken := func(err error) bool {
		f, ok := err.(*fault.Error)
		return ok && f.Code == "space_name_taken" && strings.Contains(f.Suggestion, "demo-2")
	}
	create := func() (space.Space, error) {
		return s.Spaces.Creation.Create(s.Context(), s.Origin, spaces.Request{Workspace: testkit.WS, Name: "demo"})
	}
	rename := func(which id.Space, to string) error {
		_, err := s.Spaces.Settings.Update(s.Context(), s.Origin, testkit.WS, which, spaces.Change{Name: &to})
		return err
	}
	named := func(want id.Space, code string) {
		t.Helper()
		if got, err := s.Spaces.Catalog.Named(s.Context(), testkit.WS, "demo"); got != want || fault.CodeOf(err) != code {
			t.Errorf("demo is %q, %v; want %q %s", got, err, want, code)
		}
	}
	named("", "space_not_found")
	first, err := create()
	if err != nil {
		t.Fatal(err)
	}
	named(first.ID, "")
	if _, err := create(); !taken(err) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: first.ID,
		Name: "demo"}); !taken(err) {
		t.Errorf("a fork of that name: %v", err)
	}
	other := s.SpaceOf(spaces.Request{}).ID
	if err := rename(other, "demo"); !taken(err) {
		t.Errorf("another one is renamed to it: %v", err)
	}
	if err := rename(first.ID, "demo"); err != nil {
		t.Errorf("it is given the name that it has: %v", err)
	}
	for range 5 { // back and forth: each time the name is claimed anew
		if err := rename(first.ID, "was demo"); err != nil {
			t.Fatal(err)
		}
		named("", "space_not_found")
		if err := rename(other, "demo"); err != nil {
			t.Fatal(err)
		}
		named(other, "")
		if err := rename(other, string(other)); err != nil {
			t.Fatal(err)
		}
		if err := rename(first.ID, "demo"); err != nil {
			t.Fatal(err)
		}
	}
	last := first.ID
	for range 5 {
		if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, last); err != nil {
			t.Fatal(err)
		}
		named("", "space_not_found")
		next, err := create()
		if err != nil {
			t.Fatal(err)
		}
		last = next.ID
		named(last, "")
	}
}

// TestANameIsOneHoweverItIsComposed makes a space and another one whose name is written with other characters and looks the same.
func TestANameIsOneHoweverItIsComposed(t *testing.T) {
	s := open(t)
	const composed, apart = "caf\u00e9", "cafe\u0301"
	made, err := s.Spaces.Creation.Create(s.Context(), s.Origin, spaces.Request{Workspace: testkit.WS, Name: apart})
	if err != nil || made.Name != apart {
		t.Fatalf("got %+q (%v), want it as it was written", made.Name, err)
	}
	if _, err := s.Spaces.Creation.Create(s.Context(), s.Origin, spaces.Request{Workspace: testkit.WS, Name: composed}); fault.CodeOf(err) !=
		"space_name_taken" {
		t.Errorf("the other form: %v, want it taken", err)
	}
	for _, name := range []string{composed, apart} {
		if got, err := s.Spaces.Catalog.Named(s.Context(), testkit.WS, name); got != made.ID || err != nil {
			t.Errorf("%+q is %q (%v), want %q", name, got, err, made.ID)
		}
	}
}

// TestARepeatIsAnsweredWhateverHasTheName repeats the making of a space, whose name is its own and so taken.
func TestARepeatIsAnsweredWhateverHasTheName(t *testing.T) {
	s := open(t)
	q := spaces.Request{Workspace: testkit.WS, Name: "demo", Key: "k"}
	made, err := s.Spaces.Creation.Create(s.Context(), s.Origin, q)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Spaces.Creation.Create(s.Context(), s.Origin, q); err != nil || again.ID != made.ID {
		t.Errorf("a repeat: %s %v, want %s", again.ID, err, made.ID)
	}
	q.Description = "another request"
	if _, err := s.Spaces.Creation.Create(s.Context(), s.Origin, q); fault.CodeOf(err) != "idempotency_conflict" {
		t.Errorf("another request under the key: %v", err)
	}
}

// TestOfManyWhoClaimANameOneGetsIt renames spaces to one name at once: nothing but the log keeps two from getting it.
func TestOfManyWhoClaimANameOneGetsIt(t *testing.T) {
	s := open(t)
	const rivals = 8
	var all []id.Space
	for range rivals {
		all = append(all, s.SpaceOf(spaces.Request{}).ID)
	}
	for round := range 10 {
		name := fmt.Sprint("wanted ", round/2) // the second time it has been had before
		var wait sync.WaitGroup
		errs := make([]error, rivals)
		for i, one := range all {
			wait.Go(func() {
				_, errs[i] = s.Spaces.Settings.Update(s.Context(), s.Origin, testkit.WS, one, spaces.Change{Name: &name})
			})
		}
		wait.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Errorf("round %d: %d and %d got the name", round, winner, i)
			case fault.CodeOf(err) != "space_name_taken":
				t.Errorf("round %d: %v", round, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody got the name", round)
		}
		if got, err := s.Spaces.Catalog.Named(s.Context(), testkit.WS, name); err != nil || got != all[winner] {
			t.Errorf("round %d: the name is of %s, %v; want %s", round, got, err, all[winner])
		}
		free := string(all[winner])
		if _, err := s.Spaces.Settings.Update(s.Context(), s.Origin, testkit.WS, all[winner], spaces.Change{Name: &free}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOldDoublesAreReachedByTheirIdentifier records two living spaces of one name, as logs from before have them.
func TestOldDoublesAreReachedByTheirIdentifier(t *testing.T) {
	s := open(t)
	ids := []string{}
	for range 2 {
		doc := s.SpaceOf(spaces.Request{})
		ids = append(ids, string(doc.ID))
		name := "double"
		draft := event.New(space.EventUpdated, s.Origin, testkit.WS, doc.Room, space.Updated{Space: doc.ID, Name: &name}).About(space.EntityType,
			string(doc.ID))
		if _, err := s.Log.Append(s.Context(), event.Batch{Workspace: testkit.WS, Drafts: []event.Draft{draft}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Spaces.Catalog.Named(s.Context(), testkit.WS, "double")
	f, ok := err.(*fault.Error)
	if !ok || f.Code != "name_ambiguous" || f.Kind != fault.Conflict || !strings.Contains(f.Suggestion, strings.Join(ids, ", ")) {
		t.Errorf("the name of two: %v, want their identifiers", err)
	}
	for _, one := range ids {
		if got, err := s.Spaces.Catalog.Named(s.Context(), testkit.WS, one); err != nil || string(got) != one {
			t.Errorf("%s is %s, %v", one, got, err)
		}
	}
	name := "single"
	if _, err := s.Spaces.Settings.Update(s.Context(), s.Origin, testkit.WS, id.Space(ids[0]), spaces.Change{Name: &name}); err != nil {
		t.Errorf("one of them is renamed: %v", err)
	}
	if got, err := s.Spaces.Catalog.Named(s.Context(), testkit.WS, "double"); err != nil || string(got) != ids[1] {
		t.Errorf("the name is of %s, %v; want the other one", got, err)
	}
}
