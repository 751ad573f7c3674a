package run_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
)

func wrap(ops string) string { return `{"protocolVersion":"1.0","operations":[` + ops + `]}` }

func TestMessagesThatAreRefusedAsAWhole(t *testing.T) {
	cases := []struct{ name, raw, code, says string }{
		{"no JSON", `{"protocolVersion":`, "operation_invalid", "not an operations message"},
		{"an array", `[]`, "operation_invalid", "not an operations message"},
		{"something behind it", wrap(`{"type":"message","content":""}`) + `{}`, "operation_invalid", "more behind"},
		{"an unknown field", `{"protocolVersion":"1.0","operations":[],"x":1}`, "operation_invalid", `"x"`},
		{"no version", `{"operations":[]}`, "operation_invalid", "protocolVersion is missing"},
		{"another version", `{"protocolVersion":"1.1","operations":[{}]}`, "unsupported_version", `send "1.0"`},
		{"a number as version", `{"protocolVersion":1,"operations":[]}`, "operation_invalid", "protocolVersion"},
		{"no operations", wrap(``), "operation_invalid", "empty"},
		{"too many operations", wrap(strings.TrimSuffix(strings.Repeat(`{"type":"message","content":"x"},`, run.MaxOperations+1), ",")), "operation_invalid", "1000"},
		{"an operation that is no object", wrap(`1`), "operation_invalid", "operations[0]: an operation is a JSON object"},
		{"null", wrap(`null`), "operation_invalid", "operations[0]: an operation is a JSON object"},
		{"no type", wrap(`{"path":"a"}`), "operation_invalid", "type is missing"},
		{"an unknown type", wrap(`{"type":"http"}`), "operation_invalid", `"http" is unknown`},
		{"a field of another type", wrap(`{"type":"message","content":"","path":"a"}`), "operation_invalid", `no field "path"`},
		{"a field that only the daemon sets", wrap(`{"type":"readFile","path":"a","context":true}`), "operation_invalid", `no field "context"`},
		{"a missing field", wrap(`{"type":"createFile","path":"a"}`), "operation_invalid", `needs the field "content"`},
		{"a wrong JSON type", wrap(`{"type":"shell","command":7}`), "operation_invalid", "command"},
		{"a timeout with a fraction", wrap(`{"type":"shell","command":"ls","timeout":1.5}`), "operation_invalid", "timeout"},
		{"an unknown field of an edit", wrap(`{"type":"editFile","path":"a","edits":[{"oldContent":"a","newContent":"b","n":1}]}`), "operation_invalid", `"n"`},
		{"the same id twice", wrap(`{"type":"message","id":"a","content":""},{"type":"message","id":"a","content":""}`), "operation_invalid", "operations[1]"},
		{"a long id", wrap(`{"type":"message","id":"` + strings.Repeat("a", run.MaxOperationID+1) + `","content":""}`), "operation_invalid", "129"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := run.ParseMessage([]byte(c.raw))
			if fault.CodeOf(err) != c.code || fault.KindOf(err) != fault.Invalid || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %s: %v; want %s saying %q", fault.CodeOf(err), err, c.code, c.says)
			}
		})
	}
}

func TestOperationsWithoutAnIDGetOne(t *testing.T) {
	m, err := run.ParseMessage([]byte(wrap(`{"type":"message","content":"a"},{"type":"message","id":"op-1","content":"b"},{"type":"message","content":"c"}`)))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, op := range m.Operations {
		if op.ID == "" || seen[op.ID] {
			t.Errorf("id %q is empty or was used before", op.ID)
		}
		seen[op.ID] = true
	}
	if m.Operations[1].ID != "op-1" {
		t.Errorf("the agent's own id became %q", m.Operations[1].ID)
	}
}

func TestLimitsAtTheirEdges(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	edits := func(n int) []run.Edit {
		list := make([]run.Edit, n)
		for i := range list {
			list[i] = run.Edit{Old: "a"}
		}
		return list
	}
	env := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("V%d", i)] = ""
		}
		return m
	}
	cases := []struct {
		name string
		op   run.Operation
		ok   bool
	}{
		{"message of 100,000 characters", run.Operation{Type: run.OpMessage, Content: strings.Repeat("é", run.MaxMessageRunes)}, true},
		{"message of one more", run.Operation{Type: run.OpMessage, Content: strings.Repeat("é", run.MaxMessageRunes+1)}, false},
		{"command of 4,096 characters", run.Operation{Type: run.OpShell, Command: strings.Repeat("é", run.MaxCommandRunes)}, true},
		{"command of one more", run.Operation{Type: run.OpShell, Command: strings.Repeat("é", run.MaxCommandRunes+1)}, false},
		{"empty command", run.Operation{Type: run.OpShell, Command: " \n"}, false},
		{"command with NUL", run.Operation{Type: run.OpShell, Command: "ls\x00"}, false},
		{"timeout of 0 ms", run.Operation{Type: run.OpShell, Command: "ls", TimeoutMS: ms(0)}, false},
		{"timeout of 1 ms", run.Operation{Type: run.OpShell, Command: "ls", TimeoutMS: ms(1)}, true},
		{"timeout of an hour", run.Operation{Type: run.OpShell, Command: "ls", TimeoutMS: ms(3_600_000)}, true},
		{"timeout of more", run.Operation{Type: run.OpShell, Command: "ls", TimeoutMS: ms(3_600_001)}, false},
		{"100 variables", run.Operation{Type: run.OpShell, Command: "ls", Env: env(run.MaxEnv)}, true},
		{"101 variables", run.Operation{Type: run.OpShell, Command: "ls", Env: env(run.MaxEnv + 1)}, false},
		{"a variable of 32 KiB", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"V": strings.Repeat("x", run.MaxEnvBytes-1)}}, true},
		{"a variable of one more", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"V": strings.Repeat("x", run.MaxEnvBytes)}}, false},
		{"a variable with a bad name", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"A=B": ""}}, false},
		{"a variable that begins with a digit", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"1A": ""}}, false},
		{"a variable with NUL", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"A": "\x00"}}, false},
		{"no edits", run.Operation{Type: run.OpEditFile}, false},
		{"1,000 edits", run.Operation{Type: run.OpEditFile, Edits: edits(run.MaxEdits)}, true},
		{"1,001 edits", run.Operation{Type: run.OpEditFile, Edits: edits(run.MaxEdits + 1)}, false},
		{"an edit of nothing", run.Operation{Type: run.OpEditFile, Edits: []run.Edit{{New: "x"}}}, false},
		{"edits of 10 MiB", run.Operation{Type: run.OpEditFile, Edits: []run.Edit{{Old: "a", New: strings.Repeat("x", run.MaxContentBytes-1)}}}, true},
		{"edits of more", run.Operation{Type: run.OpEditFile, Edits: []run.Edit{{Old: "a", New: strings.Repeat("x", run.MaxContentBytes)}}}, false},
		{"an unknown encoding", run.Operation{Type: run.OpReadFile, Encoding: "latin1"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.op.Check(); (err == nil) != c.ok {
				t.Errorf("got %v, want ok %v", err, c.ok)
			}
		})
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(wrap(`{"type":"shell","command":"ls","timeout":1000,"env":{"A":"b"}}`)))
	f.Add([]byte(wrap(`{"type":"createFile","path":"a","content":"","encoding":"base64","overwrite":true}`)))
	f.Add([]byte(wrap(`{"type":"editFile","path":"a","edits":[{"oldContent":"a","newContent":"b"}]}`)))
	f.Add([]byte(`{"protocolVersion":"1.0","operations":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := run.ParseMessage(raw)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("kind %v for %q", fault.KindOf(err), raw)
			}
			return
		}
		stored, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var again run.Message
		if err := json.Unmarshal(stored, &again); err != nil || len(again.Operations) != len(m.Operations) {
			t.Errorf("stored as %s and not read back: %v", stored, err)
		}
	})
}
