package runs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/testkit"
)

// transcript exports a run.
func transcript(t *testing.T, s *testkit.Stack, r id.Run, redact ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Runs.Transcripts.Write(s.Context(), testkit.WS, r, runs.Export{Redact: redact}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// resealed writes the end of a transcript anew, as somebody would who has changed it.
func resealed(t *testing.T, raw []byte) []byte {
	t.Helper()
	at := bytes.LastIndexByte(raw[:len(raw)-1], '\n') + 1
	var end run.TranscriptLine
	if err := json.Unmarshal(raw[at:], &end); err != nil {
		t.Fatal(err)
	}
	end.End.Digest = event.Digest(sha256.Sum256(raw[:at]))
	last, err := json.Marshal(end)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(bytes.Clone(raw[:at]), last...), '\n')
}

// attested reads a transcript and holds it against itself.
func attested(raw []byte) (run.Transcript, run.Attestation, error) {
	t, err := run.ReadTranscript(bytes.NewReader(raw))
	if err != nil {
		return t, run.Attestation{}, err
	}
	a, err := audit.Attest(&t)
	return t, a, err
}

// A transcript whose end was written anew after a change contradicts its events.
func TestAChangedTranscriptIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID,
		`[{"type":"shell","id":"greet","command":"echo hello; echo there >> f"},{"type":"readFile","id":"read","path":"f"}]`)
	s.Ended(doc.ID)
	whole := transcript(t, s, doc.ID)
	told, a, err := attested(resealed(t, whole))
	if err != nil || a.Whole != a.Events || a.Events < 5 || a.Bound != 2 {
		t.Fatalf("as it was written: %+v, %v", a, err)
	}
	if told.Header.Start == nil {
		t.Fatal("it does not say what the run began with")
	}
	other := event.DigestOf([]byte("other")).String()
	for name, change := range map[string][2]string{
		"an output":               {`"stdout":"hello\n"`, `"stdout":"hullo\n"`},
		"a file's content":        {`"content":"there\n"`, `"content":"where\n"`},
		"a command":               {`"command":"echo hello; echo there >> f"`, `"command":"echo hello; echo where >> f"`},
		"how it ended":            {`"status":"succeeded"`, `"status":"failed"`},
		"a decision":              {`"decision":"allow"`, `"decision":"deny"`},
		"who asked":               {`"requested_by":"usr_`, `"requested_by":"agt_`},
		"an event's type":         {`"event_type":"run.completed"`, `"event_type":"run.failed"`},
		"an event's place":        {`"stream_seq":`, `"stream_seq":1`},
		"an event's hash":         {`"event_hash":"sha256:`, `"event_hash":"` + other + `","was":"`},
		"an event's data":         {`"index":0,"tool_name":"shell"`, `"index":0,"tool_name":"other"`},
		"what the run began with": {told.Header.Start.Root.String(), other},
	} {
		changed := bytes.Replace(whole, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, whole) {
			t.Errorf("%s: nothing was changed", name)
			continue
		}
		if _, _, err := attested(resealed(t, changed)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for i, line := range lines {
		if !bytes.HasPrefix(line, []byte(`{"event"`)) || bytes.Contains(line, []byte(`"run.`)) == false {
			continue
		}
		var less []byte
		for j := range lines {
			if j != i {
				less = append(less, lines[j]...)
			}
		}
		less = bytes.Replace(less, []byte(`"end":{"lines":`), []byte(`"end":{"sha256":"`+other+`","lines":`), 1)
		if _, _, err := attested(less); err == nil {
			t.Errorf("without line %d it was taken", i)
		}
	}
}

// A redacted transcript holds no salt, by which what was taken out could be found by trying, and its events still have their hashes.
func TestARedactedTranscriptIsStillHeldAgainstItsHashes(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID, `[{"type":"shell","id":"greet","command":"echo hello"}]`)
	s.Ended(doc.ID)
	raw := transcript(t, s, doc.ID, run.RedactOutput)
	if strings.Contains(string(raw), `"salt"`) {
		t.Error("it holds salts")
	}
	if _, a, err := attested(raw); err != nil || a.Events < 4 || a.Whole != 0 || a.Bound != 0 {
		t.Errorf("got %+v, %v", a, err)
	}
	failed := bytes.Replace(raw, []byte(`"status":"succeeded"`), []byte(`"status":"failed"`), 1)
	if _, _, err := attested(resealed(t, failed)); fault.CodeOf(err) != "transcript_forged" {
		t.Errorf("another end: got %v", err)
	}
}

// An imported run is a record of its own, once, under every hand that may start runs, and after a restart.
func TestImport(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	doc := s.Start(in, `[{"type":"shell","id":"greet","command":"echo hello"},{"type":"readFile","id":"read","path":"none"}]`)
	doc = s.Ended(doc.ID)
	raw := transcript(t, s, doc.ID)
	told, a, err := attested(raw)
	if err != nil {
		t.Fatal(err)
	}
	file := run.Input{Digest: event.DigestOf(raw), Size: int64(len(raw))}
	made, err := s.Runs.Transcripts.Import(s.Context(), s.Origin, testkit.WS, told, file, bytes.NewReader(raw), a, "")
	if err != nil {
		t.Fatal(err)
	}
	if made.ID == doc.ID || made.Imported == nil || made.Imported.Run != doc.ID || made.Status != run.Succeeded ||
		made.Imported.Attested != a {
		t.Errorf("got %+v", made)
	}
	again, err := s.Runs.Transcripts.Import(s.Context(), s.Origin, testkit.WS, told, file, bytes.NewReader(raw), a, "another key")
	if err != nil || again.ID != made.ID {
		t.Errorf("again: %s, %v; want %s", again.ID, err, made.ID)
	}
	of, err := s.Runs.History.List(s.Context(), testkit.WS, history.Filter{Space: in}, "", 10)
	if err != nil || len(of) != 1 || of[0].ID != doc.ID {
		t.Errorf("the space has runs %v (%v), want its own alone", of, err)
	}
	s.Restart()
	events, err := s.Runs.History.Events(s.Context(), s.Find(made.ID))
	if err != nil || len(events.Events) != 2 || *events.Events[0].Stdout != "hello\n" {
		t.Errorf("results: %+v, %v", events, err)
	}
	last := ""
	for f, err := range s.Runs.Frames.Follow(s.Context(), testkit.WS, made.ID, 1) {
		if err != nil {
			t.Fatal(err)
		}
		last = f.Kind
	}
	if last != "complete" {
		t.Errorf("its stream ends with %q", last)
	}
	if diff := bytes.Compare(transcript(t, s, made.ID), raw); diff != 0 {
		t.Error("it is exported otherwise than it came")
	}
	if err := s.Runs.Transcripts.Write(s.Context(), testkit.WS, made.ID, runs.Export{Redact: []string{"names"}},
		io.Discard); fault.CodeOf(err) != "redaction_unknown" {
		t.Errorf("an unknown class: %v", err)
	}

	open := told
	open.Header.Run.Status = run.Running
	if _, err := s.Runs.Transcripts.Import(s.Context(), s.Origin, testkit.WS, open,
		run.Input{Digest: event.DigestOf([]byte("x"))}, strings.NewReader("x"),
		a, ""); fault.CodeOf(err) != "run_not_ended" {
		t.Errorf("a run that has not ended: %v", err)
	}
	agent := s.Origin
	agent.Principal = doc.Agent
	if _, err := s.Runs.Transcripts.Import(s.Context(), agent, testkit.WS, told,
		run.Input{Digest: event.DigestOf([]byte("y"))}, strings.NewReader("y"), a,
		""); fault.KindOf(err) != fault.Denied {
		t.Errorf("an agent imports: %v", err)
	}
}
