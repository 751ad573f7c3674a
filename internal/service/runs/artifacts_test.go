package runs_test

import (
	"io"
	"slices"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
	"agentbox/internal/service/runs"
	"agentbox/internal/testkit"
)

const cell = `[{"id":"cell","type":"shell","command":"python3 --context=c -c 42"}]`

func TestWhatACommandShowsIsKeptAsArtifacts(t *testing.T) {
	t.Parallel()
	s := light(t)
	r := s.Rest(s.Start(s.Space().ID, cell).ID)
	shown := s.Results(r.ID)[0].Displays
	if len(shown) != 3 {
		t.Fatalf("%+v", shown)
	}
	for i, want := range []struct{ media, data string }{{space.DisplayText, "42"}, {space.DisplayHTML, "<table><tr><td>42</td></tr></table>"},
		{space.DisplayPNG, "a picture"}} {
		d := shown[i]
		if d.Media != want.media || d.Size != int64(len(want.data)) || d.Digest != event.DigestOf([]byte(want.data)) || !d.Result ||
			d.Value != 1 {
			t.Errorf("%+v, want %+v", d, want)
		}
		made := told[step.ArtifactCreated](t, s, step.EventArtifactCreated)[i]
		if made.Artifact != d.Artifact || made.Run != r.ID || made.Operation != "cell" || made.Digest != d.Digest {
			t.Errorf("%+v", made)
		}
		if raw, here := made.Content.Bytes(); here && string(raw) != want.data || here != (i < 2) {
			t.Errorf("%s stands in its event: %t, %q", d.Media, here, raw)
		}
	}
	stored := told[step.ArtifactStored](t, s, step.EventArtifactStored)
	if len(stored) != 1 || stored[0].Artifact != shown[2].Artifact {
		t.Fatalf("%+v", stored)
	}
	content, err := s.Blobs.Open(t.Context(), stored[0].Content.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if raw, err := io.ReadAll(content); err != nil || string(raw) != "a picture" {
		t.Errorf("%q, %v", raw, err)
	}
	doc, err := step.Artifact{}.Evolve(s.Events(0)[slices.IndexFunc(s.Events(0), func(e event.Event) bool {
		return e.Type == step.EventArtifactCreated
	})])
	if err != nil || doc.As != policy.Permitted || doc.Step == "" || doc.Operation != "cell" {
		t.Errorf("%+v, %v", doc, err)
	}
}

// TestWhatCannotBeKeptIsLeftOut has no room for a picture: the effect has happened, and its outcome is recorded.
func TestWhatCannotBeKeptIsLeftOut(t *testing.T) {
	t.Parallel()
	for room, want := range map[int64]int{9: 3, 8: 2} {
		s := testkit.Open(t, testkit.Options{Program: program, Light: &testkit.Light{}, Content: room})
		r := s.Rest(s.Start(s.Space().ID, cell).ID)
		got := s.Results(r.ID)[0]
		if !got.OK() || r.Status != run.Succeeded || len(got.Displays) != want || slices.Contains(got.Omitted, "displays") == (want == 3) ||
			len(told[step.ArtifactCreated](t, s, step.EventArtifactCreated)) != want {
			t.Errorf("with room for %d bytes: %+v", room, got)
		}
	}
}

// TestARunThatIsRefusedByItsSpaceIsGivenAgain is about the same request, sent once more when the space has become another one.
func TestARunThatIsRefusedByItsSpaceIsGivenAgain(t *testing.T) {
	t.Parallel()
	s := light(t)
	made := s.Space()
	message, err := runs.Cell{Context: "c", Language: space.Python, Code: "1"}.Message()
	if err != nil {
		t.Fatal(err)
	}
	q := runs.Request{Workspace: made.Workspace, Space: made.ID, Message: message, Key: "once", Unless: s.Spaces.Contexts.Has}
	origin := event.Origin{Principal: made.CreatedBy}
	first, err := s.Runs.Start(t.Context(), origin, q)
	if err != nil {
		t.Fatal(err)
	}
	s.Rest(first.ID)
	if _, err := s.Spaces.Routing.Promote(t.Context(), origin, made.Workspace, made.ID, "", space.Why{Code: space.WhyRequested}); err != nil {
		t.Fatal(err)
	}
	if again, err := s.Runs.Start(t.Context(), origin, q); err != nil || again.ID != first.ID {
		t.Errorf("the same request again: %s, %v", again.ID, err)
	}
	q.Key = "another"
	if _, err := s.Runs.Start(t.Context(), origin, q); fault.CodeOf(err) != "contexts_not_here" {
		t.Errorf("another one: %v", err)
	}
}
