package journaltest

import (
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// leading folds the events about an entity type into documents that know their causes. The type "x.quiet" moves none.
func leading(entity string) projection.Definition {
	return projection.Define(entity+"s", 1, func(e event.Event) []string {
		if e.EntityType != entity && (entity != event.RunSubject || e.Run == "") {
			return nil
		}
		if entity == event.RunSubject {
			return []string{string(e.Run)}
		}
		return []string{e.EntityID}
	}, func(doc struct {
		N int `json:"n"`
	}, _ string, _ event.Event) (struct {
		N int `json:"n"`
	}, error,
	) {
		doc.N++
		return doc, nil
	}, nil).Leads(entity, func(e event.Event) bool { return e.Type == "x.quiet" })
}

// causes checks that a log fills in the causes of events, in one batch, over batches, and when it is opened again.
func causes(t *testing.T, d Driver) {
	setup := NewSetup(leading("thing"), leading(event.RunSubject))
	l := d.Open(t, setup)
	draft := func(typ, thing string, run id.Run) event.Draft {
		d := event.New(typ, event.Origin{Principal: User, Correlation: id.Correlation("cor_of_" + typ)}, Workspace, "", Note{})
		if thing != "" {
			d = d.About("thing", thing)
		}
		return d.In(run, "")
	}
	after := func(d event.Draft, typ, key string) event.Draft {
		d.Follows = event.Subject{Type: typ, ID: key}
		return d
	}
	check := func(what string, e event.Event, cause id.Event, cor id.Correlation) {
		t.Helper()
		if e.Causation != cause || e.Correlation != cor {
			t.Errorf("%s: caused by %q with correlation %q, want %q with %q", what, e.Causation, e.Correlation, cause, cor)
		}
	}
	first := appendAll(t, l, Batch(draft("x.made", "a", "")))[0]
	check("the first event about a thing", first, "", "cor_of_x.made")
	second := appendAll(t, l, Batch(draft("x.changed", "a", "")))[0]
	check("the second one", second, first.ID, first.Correlation)
	quiet := appendAll(t, l, Batch(draft("x.quiet", "a", "")))[0]
	check("a quiet one", quiet, second.ID, first.Correlation)
	if d.Reopen != nil {
		l = d.Reopen(t, l, setup)
	}
	third := appendAll(t, l, Batch(draft("x.changed", "a", "")))[0]
	check("one after a quiet one, when the log was opened again", third, second.ID, first.Correlation)

	run := appendAll(t, l, Batch(after(draft("x.run", "", "run_1"), "thing", "a")))[0]
	check("a run that follows a thing", run, third.ID, first.Correlation)
	batch := appendAll(t, l, Batch(draft("x.step", "b", "run_1"), draft("x.changed", "b", "run_1"), draft("x.done", "", "run_1")))
	check("a new thing of a run", batch[0], run.ID, first.Correlation)
	check("what follows it in its batch", batch[1], batch[0].ID, first.Correlation)
	check("what the run does behind it", batch[2], run.ID, first.Correlation)
	answer := appendAll(t, l, Batch(draft("x.made", "c", "")))[0]
	resumed := appendAll(t, l, Batch(after(draft("x.resumed", "", "run_1"), "thing", "c")))[0]
	check("a run that follows another thing keeps its correlation", resumed, answer.ID, first.Correlation)
	began := appendAll(t, l, Batch(after(draft("x.began", "a", ""), event.Beginning.Type, event.Beginning.ID)))[0]
	check("what begins something", began, "", "cor_of_x.began")
	alone := appendAll(t, l, Batch(draft("x.alone", "", ""), draft("x.beside", "", "")))
	check("an event about nothing", alone[0], "", "cor_of_x.alone")
	check("one beside it", alone[1], alone[0].ID, "cor_of_x.beside")
	held, told := draft("x.changed", "a", ""), draft("x.told", "", "")
	held.ID = id.NewEvent(setup.IDs)
	told.Causation = held.ID
	behind := appendAll(t, l, Batch(held, told))
	check("one that names a cause in its batch", behind[1], held.ID, behind[0].Correlation)
	if behind[0].Correlation != began.Correlation {
		t.Errorf("its cause has the correlation %s, want %s", behind[0].Correlation, began.Correlation)
	}
	other := Of(OtherWorkspace, draft("x.changed", "a", ""))
	check("another workspace's thing of the same name", appendAll(t, l, Batch(other))[0], "", "cor_of_x.changed")

	for of, want := range map[id.Event][]id.Event{first.ID: {second.ID}, second.ID: {quiet.ID, third.ID}, run.ID: {batch[0].ID, batch[2].ID},
		resumed.ID: {}} {
		got := []id.Event{}
		for _, e := range read(t, l, journal.Query{Causation: of}) {
			got = append(got, e.ID)
		}
		if len(got) != len(want) {
			t.Errorf("%s caused %v, want %v", of, got, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s caused %v, want %v", of, got, want)
			}
		}
	}
}
