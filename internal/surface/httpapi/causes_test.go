package httpapi_test

import (
	"slices"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// follows are the types of events that always follow from another one.
var follows = []string{
	"run.started", "run.claimed", "run.renewed", "run.released", "run.suspended", "run.resumed", "run.completed", "run.failed",
	"run.cancelled", "run.retained", "run.forgotten",
	"step.created", "tool.invoked", "tool.succeeded", "tool.failed", "tool.unknown", "artifact.created", "artifact.stored",
	"approval.assented", "approval.decided", "approval.used", "approval.expired", "approval.withdrawn", "standing.granted", "standing.used",
	"standing.revoked",
	"space.started", "space.ready", "space.updated", "space.extended", "space.destroyed", "space.rewind_begun", "space.rewound",
	"space.rewind_failed", "space.forked",
	"space.promoted", "space.paused", "space.resumed", "space.port.closed", "file.ended", "event.redacted", "kill_switch.lifted",
	"secret.leaked.detected",
}

// checkCauses holds what every log promises of causes against the logs of all workspaces: an event that follows from another names it;
// the cause is there and earlier, so that there is no cycle; both have one correlation; and each is found among the effects of the other.
func (d *daemon) checkCauses(t *testing.T) {
	t.Helper()
	workspaces, err := d.app.Log.Workspaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logs := map[id.Workspace][]event.Event{}
	at := map[id.Event]event.Event{}
	for _, ws := range workspaces {
		for from := uint64(1); ; {
			found, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: ws, From: from, Limit: journal.MaxRead})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range found {
				at[e.ID] = e
			}
			logs[ws] = append(logs[ws], found...)
			if len(found) < journal.MaxRead {
				break
			}
			from = found[len(found)-1].Seq + 1
		}
	}
	for ws, log := range logs {
		effects := map[id.Event][]id.Event{}
		for _, e := range log {
			effects[e.Causation] = append(effects[e.Causation], e.ID)
			cause, known := at[e.Causation]
			switch {
			case e.Causation == "" && slices.Contains(follows, e.Type):
				t.Errorf("%s %d %s names no cause", ws, e.Seq, e.Type)
			case e.Causation == "":
			case !known:
				t.Errorf("%s %d %s names a cause that is not there", ws, e.Seq, e.Type)
			case cause.Workspace != ws: // what the installation ordered in its own workspace
				if cause.Workspace != id.DefaultWorkspace {
					t.Errorf("%s %d %s names a cause in %s", ws, e.Seq, e.Type, cause.Workspace)
				}
			case cause.Seq >= e.Seq:
				t.Errorf("%s %d %s names the later event %d as its cause", ws, e.Seq, e.Type, cause.Seq)
			case cause.Correlation != e.Correlation && !crosses(e, cause):
				t.Errorf("%s %d %s has the correlation %s, and its cause %d %s has %s", ws, e.Seq, e.Type, e.Correlation, cause.Seq, cause.Type,
					cause.Correlation)
			}
		}
		for cause, want := range effects {
			if cause == "" || len(want) > journal.MaxRead {
				continue
			}
			found, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: ws, Causation: cause, Limit: journal.MaxRead})
			if err != nil {
				t.Fatal(err)
			}
			var got []id.Event
			for _, e := range found {
				if e.Seq <= log[len(log)-1].Seq { // the rest was recorded after the log was read: the manifest of a run that has ended, for example
					got = append(got, e.ID)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s caused %v by the index, %v by the log", ws, cause, got, want)
			}
		}
	}
}

// crosses reports whether an event ties two stories together: it keeps the correlation of its own and names a cause of another one.
func crosses(e, cause event.Event) bool {
	return e.Run != "" && cause.EntityType == "approval" || // a run goes on with an answer that was given elsewhere
		e.Run != "" && cause.Type == "kill_switch.thrown" || // an effect of a run ends
		e.Run != cause.Run && e.EntityType == cause.EntityType // a space that follows from what somebody did in another one
}
