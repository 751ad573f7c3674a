package run_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/run"
)

// The values that an operation may have, at each edge: an encoding, the name of a variable.
func TestTheEdgesOfAnOperation(t *testing.T) {
	for encoding, ok := range map[string]bool{"": true, "utf-8": true, "base64": true, "utf-16": false, "UTF-8": false, "x": false} {
		for _, typ := range []string{run.OpCreateFile, run.OpReadFile} {
			if err := (run.Operation{Type: typ, ID: "a", Path: "a", Encoding: encoding}).Check(); (err == nil) != ok {
				t.Errorf("%s in the encoding %q: got %v", typ, encoding, err)
			}
		}
	}
	if err := (run.Operation{Type: run.OpDeleteFile, ID: "a", Path: "a"}).Check(); err != nil {
		t.Errorf("what has no limits: got %v", err)
	}
	for name, ok := range map[string]bool{
		"_": true, "a": true, "z": true, "A": true, "Z": true, "a0": true, "a9": true, "_0": true, "aZ_9": true,
		"": false, "0": false, "9a": false, "a-b": false, "a b": false, "`": false, "{": false, "@": false, "[": false, "a/": false, "a:": false,
		"é": false, strings.Repeat("a", 256): true, strings.Repeat("a", 257): false,
	} {
		op := run.Operation{Type: run.OpShell, ID: "a", Command: "ls", Env: map[string]string{name: "x"}}
		if err := op.Check(); (err == nil) != ok {
			t.Errorf("the variable %.20q: got %v", name, err)
		}
	}
}

// A summary is the command, the text or the path, cut where it is long.
func TestTheSummaryOfAnOperation(t *testing.T) {
	op := run.Operation{Path: "a/b", Content: "hello", Command: "ls"}
	for typ, want := range map[string]string{run.OpShell: "ls", run.OpMessage: "hello", run.OpCreateFile: "a/b", run.OpDeleteFile: "a/b"} {
		if op.Type = typ; op.Summary() != want {
			t.Errorf("%s: got %q, want %q", typ, op.Summary(), want)
		}
	}
	for n, want := range map[int]string{120: strings.Repeat("é", 120), 121: strings.Repeat("é", 120) + "…", 0: ""} {
		if got := (run.Operation{Type: run.OpShell, Command: strings.Repeat("é", n)}).Summary(); got != want {
			t.Errorf("%d characters: got %q", n, got)
		}
	}
	if got := (run.Operation{Type: run.OpReadFile, Path: strings.Repeat("x", 256)}).Summary(); got != strings.Repeat("x", 255)+"…" {
		t.Errorf("a path: got %q", got)
	}
}

// Each type says whether it is done in a space, whether it needs all files of it, and which of its fields it needs.
func TestTheTableOfOperations(t *testing.T) {
	for _, c := range []struct {
		typ            string
		inSpace, whole bool
		needed, others string
	}{
		{run.OpMessage, false, false, "content", ""},
		{run.OpCreateFile, true, false, "path content", "encoding overwrite"},
		{run.OpReadFile, true, false, "path", "encoding"},
		{run.OpEditFile, true, false, "path edits", ""},
		{run.OpDeleteFile, true, false, "path", ""},
		{run.OpShell, true, true, "command", "cwd timeout env stdin pty tag"},
	} {
		spec, ok := run.SpecOf(c.typ)
		if !ok || spec.InSpace() != c.inSpace || spec.Whole() != c.whole || strings.Join(spec.Needed(), " ") != c.needed ||
			strings.Join(spec.Optional(), " ") != c.others {
			t.Errorf("%s: got %+v, in a space: %t, whole: %t", c.typ, spec, spec.InSpace(), spec.Whole())
		}
	}
	if !(run.Spec{}).Whole() {
		t.Error("a type that makes no statement does not need all files")
	}
}
