package runs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/audit"
	"agentbox/internal/testkit"
)

// Content that the log names by its hash, the operations of a run and a long result, is proved with the log.
func TestVerificationNamesContentThatWasChanged(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	doc := s.Ended(s.Start(s.Space().ID, `[{"type":"createFile","path":"f","content":"`+strings.Repeat("x", 4<<10)+
		`"},{"type":"shell","command":"seq 1 40000"}]`).ID)
	var stored event.Digest
	for _, e := range s.Events(0) {
		if e.Type == run.EventSucceeded {
			ended, err := event.Decode[run.Ended](e)
			if err != nil {
				t.Fatal(err)
			}
			if ended.Stored != nil {
				stored = ended.Stored.Digest
			}
		}
	}
	file := func(d event.Digest) string { return filepath.Join(s.Dir, "blobs", d.Hex()[:2], d.Hex()[2:]+".sealed") }
	verify := func() audit.ContentsReport {
		t.Helper()
		report, err := audit.VerifyContents(t.Context(), s.Log, s.Blobs, testkit.WS)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if r := verify(); !r.OK || r.Contents != 2 {
		t.Fatalf("the contents of an untouched log: %+v, want 2 and nothing found", r)
	}
	raw, err := os.ReadFile(file(stored))
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(file(stored), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file(doc.Input.Digest)); err != nil {
		t.Fatal(err)
	}
	r := verify()
	if r.OK || r.Count != 2 || len(r.Findings) != 2 {
		t.Fatalf("found %+v, want two", r)
	}
	if got := r.Findings[0]; got.Kind != audit.ContentMissing || got.Expected != doc.Input.Digest || got.Event == "" {
		t.Errorf("first got %+v, want the missing operations", got)
	}
	if got := r.Findings[1]; got.Kind != audit.ContentCorrupt || got.Expected != stored || got.Event == "" {
		t.Errorf("then got %+v, want the changed result", got)
	}
}
