package run

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// told is a run with everything that a transcript can hold; every text that a class takes out holds its own word.
func told(t testing.TB, redact ...string) []byte {
	t.Helper()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	yes, zero, stdout, content := true, 0, "OUTPUT-one\n", "OUTPUT-two"
	r := Run{ID: "run_1", Workspace: "ws_dev", Space: "spc_1", Status: Succeeded, CreatedAt: at, Operations: []Progress{
		{ID: "say", Type: OpMessage, Summary: "CONTENT-hello", State: Done, OK: true},
		{ID: "make", Type: OpShell, Summary: "COMMAND-make", State: Done, OK: true, Step: "stp_1", BegunAt: at, EndedAt: at.Add(time.Second)},
		{ID: "look", Type: OpReadFile, Summary: "a", State: Done},
		{ID: "mend", Type: OpEditFile, Summary: "a", State: Waiting},
	}}
	ops := []Operation{
		{Type: OpMessage, ID: "say", Content: "CONTENT-hello"},
		{Type: OpShell, ID: "make", Command: "COMMAND-make", Env: map[string]string{"TOKEN": "ENV-secret"}},
		{Type: OpReadFile, ID: "look", Path: "a"},
		{Type: OpEditFile, ID: "mend", Path: "a", Edits: []Edit{{Old: "CONTENT-old", New: "CONTENT-new"}}},
	}
	results := []Result{
		{Type: OpMessage, OperationID: "say", Success: &yes},
		{Type: OpShell, OperationID: "make", Success: &yes, ExitCode: &zero, Stdout: &stdout, Command: "COMMAND-make"},
		{Type: OpReadFile, OperationID: "look", Success: &yes, Content: &content},
	}
	var b bytes.Buffer
	w, err := NewTranscriptWriter(&b, redact)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	check(w.Header(TranscriptHeader{Exported: at, Head: 9, Run: r, Place: Place{ID: "spc_1", Limits: json.RawMessage(`{}`),
		Env: map[string]string{"KEY": "ENV-key"}}}))
	for i, op := range ops {
		check(w.Asked(i, op))
	}
	for i, result := range results {
		check(w.Outcome(OutcomeOf(i, r.Operations[i], result)))
	}
	check(w.Event(event.Event{Header: event.Header{Type: EventInvoked, Run: "run_1"}, Seq: 7,
		Data: json.RawMessage(`{"input":"ENV-secret CONTENT-x OUTPUT-y"}`)}))
	check(w.End())
	return b.Bytes()
}

// TestTranscriptIsReadAsItWasWritten writes, reads, and finds everything again.
func TestTranscriptIsReadAsItWasWritten(t *testing.T) {
	got, err := ReadTranscript(bytes.NewReader(told(t)))
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.Version != TranscriptVersion || len(got.Header.Redacted) != 0 || got.Header.Place.Env["KEY"] != "ENV-key" {
		t.Errorf("header: %+v", got.Header)
	}
	if len(got.Asked) != 4 || got.Asked[1].Operation.Env["TOKEN"] != "ENV-secret" || got.Asked[3].Operation.Edits[0].New != "CONTENT-new" {
		t.Errorf("operations: %+v", got.Asked)
	}
	if len(got.Outcomes) != 3 || *got.Outcomes[1].Result.Stdout != "OUTPUT-one\n" {
		t.Errorf("outcomes: %+v", got.Outcomes)
	}
	if len(got.Events) != 1 || !strings.Contains(string(got.Events[0].Data), "ENV-secret") {
		t.Errorf("events: %+v", got.Events)
	}
}

// TestWhatIsRedactedIsNotThere takes each class out: its words are gone, the others stay, and the operations that lack a text say which.
func TestWhatIsRedactedIsNotThere(t *testing.T) {
	words := map[string]string{RedactEnv: "ENV-", RedactContent: "CONTENT-", RedactOutput: "OUTPUT-", RedactCommands: "COMMAND-"}
	for class, word := range words {
		raw := string(told(t, class))
		if strings.Contains(raw, word) {
			t.Errorf("%s: %s is still there", class, word)
		}
		for other, kept := range words {
			if other != class && !strings.Contains(raw, kept) {
				t.Errorf("%s: %s is gone as well", class, kept)
			}
		}
		got, err := ReadTranscript(strings.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		var removed []string
		for _, a := range got.Asked {
			for name := range a.Removed {
				removed = append(removed, a.Operation.ID+" "+name)
			}
		}
		for _, o := range got.Outcomes {
			for name, r := range o.Removed {
				removed = append(removed, o.ID+" "+name)
				if want := event.DigestOf([]byte("OUTPUT-one\n")); name == "stdout" && (r.Digest != want || r.Size != 11) {
					t.Errorf("stdout: got %+v", r)
				}
			}
		}
		want := map[string]int{RedactEnv: 1, RedactContent: 3, RedactOutput: 2, RedactCommands: 2}[class]
		if len(removed) != want {
			t.Errorf("%s: got %q, want %d", class, removed, want)
		}
	}
	if _, err := NewTranscriptWriter(nil, []string{"names"}); fault.CodeOf(err) != "redaction_unknown" {
		t.Errorf("an unknown class: got %v", err)
	}
}

// TestDamagedTranscripts cuts, changes, moves and adds: nothing of it is taken.
func TestDamagedTranscripts(t *testing.T) {
	whole := told(t)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	join := func(l ...[]byte) []byte { return bytes.Join(l, nil) }
	cases := map[string][]byte{
		"empty": nil,
		"more":  append(bytes.Clone(whole), '\n'),
		"twice": join(whole, whole),
	}
	for n := range lines {
		cases["cut before line "+strconv.Itoa(n)] = join(lines[:n]...)
		cases["without line "+strconv.Itoa(n)] = join(join(lines[:n]...), join(lines[n+1:]...))
		cases["half of line "+strconv.Itoa(n)] = join(join(lines[:n]...), lines[n][:len(lines[n])/2])
		changed := bytes.Clone(lines[n])
		at := bytes.IndexByte(changed, ':') + 2
		changed[at] ^= 1
		cases["changed line "+strconv.Itoa(n)] = join(join(lines[:n]...), changed, join(lines[n+1:]...))
		if n > 0 {
			cases["line moved up "+strconv.Itoa(n)] = join(join(lines[:n-1]...), lines[n], lines[n-1], join(lines[n+1:]...))
		}
	}
	for name, raw := range cases {
		if _, err := ReadTranscript(bytes.NewReader(raw)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
	newer := bytes.Replace(whole, []byte(`"transcript_version":2`), []byte(`"transcript_version":3`), 1)
	if _, err := ReadTranscript(bytes.NewReader(newer)); fault.CodeOf(err) != "transcript_version" {
		t.Errorf("a newer one: got %v", err)
	}
}

// TestATranscriptHasABound reads one of the largest size and refuses one that has a byte more.
func TestATranscriptHasABound(t *testing.T) {
	whole := told(t)
	if _, err := readTranscript(bytes.NewReader(whole), int64(len(whole))); err != nil {
		t.Errorf("as many bytes as it may have: %v", err)
	}
	if _, err := readTranscript(bytes.NewReader(whole), int64(len(whole))-1); fault.CodeOf(err) != "transcript_too_large" {
		t.Errorf("one more: got %v", err)
	}
}

// TestCarriedFiles writes an archive in pieces and reads it, up to its bound and not beyond, and refuses a piece out of place.
func TestCarriedFiles(t *testing.T) {
	whole, err := ReadTranscript(bytes.NewReader(told(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, filesPiece - 1, filesPiece, filesPiece + 1, MaxCarriedArchive} {
		archive := bytes.Repeat([]byte{7}, n)
		var b bytes.Buffer
		w, err := NewTranscriptWriter(&b, nil)
		if err != nil {
			t.Fatal(err)
		}
		with := whole
		with.Files, with.Omitted = archive, 3
		if err := w.Copy(with); err != nil {
			t.Fatal(err)
		}
		got, err := ReadTranscript(&b)
		if err != nil || !bytes.Equal(got.Files, archive) || got.Omitted != 3 {
			t.Errorf("%d bytes: got %d, %d omitted, %v", n, len(got.Files), got.Omitted, err)
		}
	}
	full := Transcript{Files: make([]byte, MaxCarriedArchive-1)}
	if err := full.piece(FilesPiece{Offset: MaxCarriedArchive - 1, Data: []byte{1, 2}}); err == nil {
		t.Error("an archive beyond the bound was taken")
	}
	if err := full.piece(FilesPiece{Offset: 5, Data: []byte{1}}); err == nil {
		t.Error("a piece out of place was taken")
	}
}

// TestCopyTakesOutMore copies a transcript and takes more out of it. Earlier removals stay noted.
func TestCopyTakesOutMore(t *testing.T) {
	before, err := ReadTranscript(bytes.NewReader(told(t, RedactEnv)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := NewTranscriptWriter(&b, []string{RedactOutput, RedactContent, RedactCommands})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Copy(before); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "OUTPUT-") || strings.Contains(b.String(), "CONTENT-") {
		t.Errorf("not taken out:\n%s", &b)
	}
	got, err := ReadTranscript(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Redactions(), got.Header.Redacted, cmp.Transformer("sort", func(s []string) map[string]bool {
		m := map[string]bool{}
		for _, x := range s {
			m[x] = true
		}
		return m
	})); diff != "" {
		t.Errorf("redacted: %s", diff)
	}
	if _, ok := got.Asked[1].Removed["env.TOKEN"]; !ok {
		t.Errorf("the variable that was taken out before is forgotten: %+v", got.Asked[1])
	}
}

// TestALineHasABound reads a line of the largest size and refuses a longer one before it is kept.
func TestALineHasABound(t *testing.T) {
	for extra, want := range map[int]string{0: "its first line is not a header", 1: "a line has more than"} {
		line := bytes.Repeat([]byte{' '}, MaxTranscriptLine+extra)
		line[len(line)-1] = '\n'
		if _, err := ReadTranscript(bytes.NewReader(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d more: got %v, want %q", extra, err, want)
		}
	}
}

// FuzzReadTranscript reads what it likes: a transcript that is taken is written and read again without a change.
func FuzzReadTranscript(f *testing.F) {
	f.Add(told(f))
	f.Add(told(f, Redactions()...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := ReadTranscript(bytes.NewReader(raw))
		if err != nil {
			return
		}
		if len(got.Asked) == 0 || len(got.Outcomes) > len(got.Asked) {
			t.Errorf("%d operations, %d outcomes", len(got.Asked), len(got.Outcomes))
		}
	})
}

// TestCompare finds the first difference, and where it is.
func TestCompare(t *testing.T) {
	read := func(redact ...string) []Outcome {
		got, err := ReadTranscript(bytes.NewReader(told(t, redact...)))
		if err != nil {
			t.Fatal(err)
		}
		return got.Outcomes
	}
	text := func(s string) *string { return &s }
	offset := func(n int64) *int64 { return &n }
	one, no := 1, false
	shown := func(artifact id.Artifact, content string) []Outcome {
		o := read()
		o[1].Result.Displays = []Display{{Artifact: artifact, Value: 1, Type: "int", Media: "text/plain",
			Digest: event.DigestOf([]byte(content))}}
		return o
	}
	for _, c := range []struct {
		name     string
		recorded []Outcome
		change   func(o []Outcome) []Outcome
		want     *Divergence
	}{
		{"nothing", read(), func(o []Outcome) []Outcome { return o }, nil},
		{"times", read(), func(o []Outcome) []Outcome {
			o[1].EndedAt, o[1].Result.DurationMS, o[1].Result.Timestamp = time.Time{}, offset(4), time.Now()
			return o
		}, nil},
		{"a decision", read(), func(o []Outcome) []Outcome { o[0].Decision = "deny"; return o },
			&Divergence{Index: 0, Operation: "say", Field: "decision", Replayed: "deny"}},
		{"an exit code", read(), func(o []Outcome) []Outcome { o[1].Result.ExitCode = &one; return o },
			&Divergence{Index: 1, Operation: "make", Field: "exitCode", Recorded: "0", Replayed: "1"}},
		{"before the text", read(), func(o []Outcome) []Outcome { o[1].Result.Success, o[1].Result.Stdout = &no, text(""); return o },
			&Divergence{Index: 1, Operation: "make", Field: "success", Recorded: "true", Replayed: "false", Text: &Divergence{Index: 1,
				Operation: "make", Field: "stdout", Offset: offset(0), Recorded: "OUTPUT-one\n"}}},
		{"a byte", read(), func(o []Outcome) []Outcome { o[1].Result.Stdout = text("OUTPUT-two\n"); return o },
			&Divergence{Index: 1, Operation: "make", Field: "stdout", Offset: offset(7), Recorded: "OUTPUT-one\n", Replayed: "OUTPUT-two\n"}},
		{"what was shown, as other artifacts", shown("art_1", "4"), func([]Outcome) []Outcome { return shown("art_2", "4") }, nil},
		{"something else that was shown", shown("art_1", "4"), func([]Outcome) []Outcome { return shown("art_1", "5") },
			&Divergence{Index: 1, Operation: "make", Field: "displays", Offset: offset(30),
				Recorded: around(displaysText(shown("", "4")[1].Result.Displays), 30), Replayed: around(displaysText(shown("", "5")[1].Result.Displays),
					30)}},
		{"an end", read(), func(o []Outcome) []Outcome { o[1].Result.Stdout = text("OUTPUT-one\nmore"); return o },
			&Divergence{Index: 1, Operation: "make", Field: "stdout", Offset: offset(11), Recorded: "OUTPUT-one\n", Replayed: "OUTPUT-one\nmore"}},
		{"what was redacted", read(RedactOutput), func([]Outcome) []Outcome { return read() }, nil},
		{"what was redacted and differs", read(RedactOutput), func(o []Outcome) []Outcome { o[2].Result.Content = text("x"); return o },
			&Divergence{Index: 2, Operation: "look", Field: "content", Recorded: event.DigestOf([]byte("OUTPUT-two")).String(),
				Replayed: event.DigestOf([]byte("x")).String()}},
		{"fewer", read(), func(o []Outcome) []Outcome { return o[:2] }, &Divergence{Index: 2, Operation: "look", Field: "outcome",
			Recorded: OpReadFile, Replayed: "none"}},
		{"more", read()[:2], func([]Outcome) []Outcome { return read() }, &Divergence{Index: 2, Operation: "look", Field: "outcome",
			Recorded: "none", Replayed: OpReadFile}},
	} {
		if diff := cmp.Diff(c.want, Compare(c.recorded, c.change(read()))); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// TestCompareTheExact compares what was counted and what it left, of operations that do the same again.
func TestCompareTheExact(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	outcome := func() Outcome {
		code, ok, out := 0, true, "one\ntwo\n"
		return Outcome{
			ID: "a", Snapshot: event.DigestOf([]byte("files")),
			Result: Result{Type: OpShell, Success: &ok, ExitCode: &code, Stdout: &out, Stderr: new(string), Tier: "nano", Gas: 1000, Seed: "s",
				Clock: &noon},
		}
	}
	three, zero, other, changed := 3, int64(4), "one\nTWO\n", event.DigestOf([]byte("others"))
	gas := func(n int64) *Metered { return &Metered{1000, n} }
	for name, c := range map[string]struct {
		change func(o *Outcome)
		want   *Divergence
	}{
		"nothing": {func(*Outcome) {}, nil},
		"gas": {func(o *Outcome) { o.Result.Gas++ }, &Divergence{Operation: "a", Field: "gas", Recorded: "1000", Replayed: "1001",
			Gas: gas(1001)}},
		"the tier": {func(o *Outcome) { o.Result.Tier, o.Result.Gas = "namespace", 0 }, &Divergence{Operation: "a", Field: "tier",
			Recorded: "nano", Replayed: "namespace", Gas: gas(0)}},
		"files": {func(o *Outcome) { o.Snapshot = changed }, &Divergence{Operation: "a", Field: "files",
			Recorded: outcome().Snapshot.String(), Replayed: changed.String(), Gas: gas(1000)}},
		"files, not known": {func(o *Outcome) { o.Snapshot = event.Digest{} }, nil},
		"a byte": {func(o *Outcome) { o.Result.Stdout = &other }, &Divergence{Operation: "a", Field: "stdout", Offset: &zero,
			Recorded: "one\ntwo\n", Replayed: other, Gas: gas(1000)}},
		"a code, and a byte": {func(o *Outcome) { o.Result.ExitCode, o.Result.Stdout = &three, &other }, &Divergence{Operation: "a",
			Field: "exitCode", Recorded: "0", Replayed: "3", Gas: gas(1000), Text: &Divergence{Operation: "a", Field: "stdout", Offset: &zero,
				Recorded: "one\ntwo\n", Replayed: other}}},
	} {
		now := outcome()
		c.change(&now)
		if diff := cmp.Diff(c.want, Compare([]Outcome{outcome()}, []Outcome{now})); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	loose, now := outcome(), outcome()
	loose.Result.Clock, now.Result.Gas, now.Snapshot = nil, 7, changed
	if d := Compare([]Outcome{loose}, []Outcome{now}); d != nil {
		t.Errorf("what chance decided is compared: %+v", d)
	}
}

// TestTheFilesBehindAnOutcomeAreThoseOfItsEvent reads them from the events, where their data are there.
func TestTheFilesBehindAnOutcomeAreThoseOfItsEvent(t *testing.T) {
	root := event.DigestOf([]byte("files"))
	data, err := json.Marshal(Ended{Index: 1, Kept: Kept{Snapshot: &Snapshot{Root: root}}})
	if err != nil {
		t.Fatal(err)
	}
	of := func(kind string, data []byte) event.Event {
		return event.Event{Header: event.Header{Type: kind}, Data: data}
	}
	told := Transcript{Outcomes: []Outcome{{Index: 0}, {Index: 1}}, Events: []event.Event{of(EventSucceeded, data), of(EventSucceeded, nil),
		of(EventStarted, data)}}
	if told.snapshots(); !told.Outcomes[0].Snapshot.IsZero() || told.Outcomes[1].Snapshot != root {
		t.Errorf("got %s and %s, want none and %s", told.Outcomes[0].Snapshot, told.Outcomes[1].Snapshot, root)
	}
}

// TestSpans tells when a run was queued, worked and waited.
func TestSpans(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC) }
	r := Run{ID: "run_1", Operations: []Progress{{ID: "a", Step: "stp_a"}, {ID: "b", Step: "stp_b"}, {ID: "c", Step: "stp_c"}, {ID: "d"}}}
	e := func(typ string, step id.Step, s int) event.Event {
		return event.Event{Header: event.Header{Type: typ, Run: r.ID, Step: step, OccurredAt: at(s)}}
	}
	events := []event.Event{
		e(EventCreated, "", 0), e(EventStarted, "", 2), e(EventInvoked, "stp_a", 3), e(EventSucceeded, "stp_a", 5),
		e(EventErred, "stp_b", 6), e(EventSuspended, "stp_c", 7), e(EventResumed, "stp_c", 17), e(EventInvoked, "stp_c", 18),
	}
	want := []Span{
		{Index: -1, Kind: SpanQueued, From: at(0), To: at(2)}, {Index: 0, Kind: SpanWorking, From: at(3), To: at(5)},
		{Index: 1, Kind: SpanWorking, From: at(6), To: at(6)},
		{Index: 2, Kind: SpanWaiting, From: at(7), To: at(17)}, {Index: 2, Kind: SpanWorking, From: at(18), To: at(18)},
	}
	if diff := cmp.Diff(want, Spans(r, events)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestSpansOfAnEngine tells of a run that one engine gave back and another one ended, with its steps and its tool calls.
func TestSpansOfAnEngine(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC) }
	r := Run{ID: "run_1", Order: Order{Engine: true}}
	e := func(typ, entity, about string, step id.Step, s int, data string) event.Event {
		return event.Event{Header: event.Header{Type: typ, Run: r.ID, Step: step, EntityType: entity, EntityID: about, OccurredAt: at(s)},
			Data: json.RawMessage(data)}
	}
	events := []event.Event{
		e(EventCreated, EntityType, "run_1", "", 0, "{}"),
		e(EventClaimed, EntityType, "run_1", "", 2, `{"attempt_id":"rat_1"}`), e(EventStarted, EntityType, "run_1", "", 2, "{}"),
		e("step.created", "step", "step_1", "step_1", 3, `{"kind":"plan","title":"look around"}`),
		e(EventInvoked, CallEntity, "tc_1", "step_1", 4, `{"tool_name":"web.search"}`), e(EventErred, CallEntity, "tc_1", "step_1", 9, "{}"),
		e(EventReleased, EntityType, "run_1", "", 10, "{}"),
		e(EventClaimed, EntityType, "run_1", "", 20, `{"attempt_id":"rat_2"}`),
		e("step.created", "step", "step_2", "step_2", 21, `{"kind":"write"}`),
		e(EventInvoked, CallEntity, "tc_2", "step_2", 22, ""), e(EventSucceeded, CallEntity, "tc_2", "step_2", 50, ""), e("artifact.created",
			"artifact", "art_1", "step_2", 51, ""),
		e(EventRenewed, EntityType, "run_1", "", 60, "{}"), e(EventCompleted, EntityType, "run_1", "", 63, "{}"),
		e("evidence.manifest.created", "evidence", "run_1", "", 90, "{}"),
	}
	want := []Span{
		{Index: -1, Kind: SpanQueued, From: at(0), To: at(2)},
		{Index: 0, Kind: SpanWorking, From: at(2), To: at(10), Part: PartAttempt, ID: "rat_1", Failed: true},
		{Index: 1, Kind: SpanWorking, From: at(3), To: at(9), Part: PartStep, ID: "step_1", Name: "look around"},
		{Index: 2, Kind: SpanWorking, From: at(4), To: at(9), Part: PartCall, ID: "tc_1", Name: "web.search", Failed: true},
		{Index: -1, Kind: SpanQueued, From: at(10), To: at(20)},
		{Index: 3, Kind: SpanWorking, From: at(20), To: at(63), Part: PartAttempt, ID: "rat_2"},
		{Index: 4, Kind: SpanWorking, From: at(21), To: at(51), Part: PartStep, ID: "step_2", Name: "write"},
		{Index: 5, Kind: SpanWorking, From: at(22), To: at(50), Part: PartCall, ID: "tc_2"},
	}
	if diff := cmp.Diff(want, Spans(r, events)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	goesOn := Spans(r, events[:len(events)-2])
	if got := goesOn[5].To; got != at(60) {
		t.Errorf("an attempt that goes on was last heard of at %s, want its heartbeat", got)
	}
}
