package replaycmd

import (
	"flag"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// someTranscript is a transcript whose texts would like to be more than text.
func someTranscript() run.Transcript {
	yes, zero, stdout := true, 0, "```\n# owned\x1b[2J\n"
	return run.Transcript{
		Header: run.TranscriptHeader{
			Version: 1, Exported: termtest.Noon(), Head: 9, Redacted: []string{"env"},
			Place: run.Place{ID: "spc_1", Tier: "namespace", Policy: "standard"},
			Run: run.Run{ID: "run_1", Title: "a | b `c`", Status: run.Succeeded, StartedAt: termtest.Noon(),
				EndedAt: termtest.Noon().Add(time.Second), Agent: "agt_1", CreatedBy: "usr_1"},
		},
		Asked: []run.Asked{
			{Index: 0, Operation: run.Operation{Type: run.OpEditFile, ID: "a", Path: "x.txt", Edits: []run.Edit{{Old: "one\ntwo", New: "three"}}}},
			{Index: 1, Operation: run.Operation{Type: run.OpShell, ID: "b", Command: "cat x", Env: map[string]string{"K": ""}},
				Removed: map[string]run.Removed{"env.K": {}}},
			{Index: 2, Operation: run.Operation{Type: run.OpMessage, ID: "c", Content: "bye"}},
		},
		Outcomes: []run.Outcome{
			{Index: 0, ID: "a", Decision: "allow", Result: run.Result{Type: run.OpEditFile, Success: &yes, EditsApplied: &zero}},
			{Index: 1, ID: "b", Decision: "require_approval", Reason: "policy_requires_approval", Answer: "approved", BegunAt: termtest.Noon(),
				EndedAt: termtest.Noon().Add(time.Second),
				Result:  run.Result{Type: run.OpShell, Success: &yes, ExitCode: &zero, Stdout: &stdout}},
		},
	}
}

// TestTranscriptDrawings compares how transcripts look with golden files.
func TestTranscriptDrawings(t *testing.T) {
	digest := event.DigestOf([]byte("x"))
	termtest.Drawings(t, map[string]func(*term.Printer){
		"markdown": func(p *term.Printer) { p.Line("%s", markdown(someTranscript())) },
		"replay": func(p *term.Printer) {
			t := someTranscript()
			writeReplayed(p, replayed{Recorded: "run_1", Run: "run_2", Compared: 2, Same: true, Start: start{From: "snapshot", Snapshot: digest,
				Exact: true}}, t, t)
			at := int64(3)
			writeReplayed(p, replayed{
				Recorded: "run_1", Run: "run_2", Compared: 2, Start: start{From: "empty"}, Notes: []string{"another policy\x1b[2J"},
				Divergence: &run.Divergence{Index: 1, Operation: "b", Field: "stdout", Offset: &at, Recorded: "one\n", Replayed: "on\x1b[2J"},
			}, t, t)
		},
	})
}
