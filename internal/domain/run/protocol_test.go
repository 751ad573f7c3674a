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
		{"too many operations", wrap(strings.TrimSuffix(strings.Repeat(`{"type":"message","content":"x"},`, run.MaxOperations+1), ",")),
			"operation_invalid", "1000"},
		{"the same id twice", wrap(`{"type":"message","id":"a","content":""},{"type":"message","id":"a","content":""}`), "operation_invalid",
			"operations[1]"},
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

// A malformed operation stands for itself: the others keep their places and their ids.
func TestMalformedOperations(t *testing.T) {
	for _, c := range []struct{ name, raw, says string }{
		{"an operation that is not an object", `1`, "operations[0]: an operation is a JSON object"},
		{"null", `null`, "operations[0]: an operation is a JSON object"},
		{"no type", `{"path":"a"}`, "type is missing"},
		{"an unknown type", `{"type":"http"}`, `"http" is unknown`},
		{"a field of another type", `{"type":"message","content":"","path":"a"}`, `no field "path"`},
		{"a field that only the daemon sets", `{"type":"readFile","path":"a","context":true}`, `no field "context"`},
		{"a missing field", `{"type":"createFile","path":"a"}`, `needs the field "content"`},
		{"a wrong JSON type", `{"type":"shell","command":7}`, "command"},
		{"a timeout with a fraction", `{"type":"shell","command":"ls","timeout":1.5}`, "timeout"},
		{"an unknown field of an edit", `{"type":"editFile","path":"a","edits":[{"oldContent":"a","newContent":"b","n":1}]}`, `"n"`},
		{"a long id", `{"type":"message","id":"` + strings.Repeat("a", run.MaxOperationID+1) + `","content":""}`, "129"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := run.ParseMessage([]byte(wrap(`{"type":"message","id":"first","content":"a"},` + c.raw +
				`,{"type":"message","id":"last","content":"b"}`)))
			if err != nil || len(m.Operations) != 3 {
				t.Fatalf("%d operations, %v; want 3", len(m.Operations), err)
			}
			if first, last := m.Operations[0], m.Operations[2]; first.ID != "first" || first.Check() != nil || last.ID != "last" ||
				last.Check() != nil {
				t.Errorf("the others are %+v and %+v", first, last)
			}
			op := m.Operations[1]
			says := strings.Replace(c.says, "operations[0]", "operations[1]", 1)
			if err := op.Check(); op.Type != run.OpMalformed || op.ID == "" || len(op.ID) > run.MaxOperationID ||
				fault.CodeOf(err) != "operation_invalid" || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("got %+v, %v; want one that says %q", op, err, says)
			}
			if err := m.Refused(); fault.CodeOf(err) != "operation_invalid" || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("who takes no part of it is told %v, want %q", err, says)
			}
			sent, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := run.ParseMessage(sent); err != nil || again.Operations[1].Type != run.OpMalformed {
				t.Errorf("sent as it is kept it is %+v, %v; nobody can send the field malformed", again, err)
			}
		})
	}
	m, err := run.ParseMessage([]byte(wrap(`{"type":"http","id":"mine"}`)))
	if err != nil || m.Operations[0].ID != "mine" {
		t.Errorf("its own id became %+v, %v", m, err)
	}
	if m, err = run.ParseMessage([]byte(wrap(`{"type":"` + strings.Repeat("é", 1000) + `"}`))); err != nil ||
		len(m.Operations[0].Malformed) > 500 {
		t.Errorf("a long type makes %d bytes, %v", len(m.Operations[0].Malformed), err)
	}
}

func TestOperationsWithoutAnIDGetOne(t *testing.T) {
	m, err := run.ParseMessage(
		[]byte(wrap(`{"type":"message","content":"a"},{"type":"message","id":"op-1","content":"b"},{"type":"message","content":"c"}`)))
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
		{"a variable of 32 KiB", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"V": strings.Repeat("x",
			run.MaxEnvBytes-1)}}, true},
		{"a variable of one more", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"V": strings.Repeat("x",
			run.MaxEnvBytes)}}, false},
		{"a variable with a bad name", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"A=B": ""}}, false},
		{"a variable that begins with a digit", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"1A": ""}}, false},
		{"a variable with NUL", run.Operation{Type: run.OpShell, Command: "ls", Env: map[string]string{"A": "\x00"}}, false},
		{"no edits", run.Operation{Type: run.OpEditFile}, false},
		{"1,000 edits", run.Operation{Type: run.OpEditFile, Edits: edits(run.MaxEdits)}, true},
		{"1,001 edits", run.Operation{Type: run.OpEditFile, Edits: edits(run.MaxEdits + 1)}, false},
		{"an edit of nothing", run.Operation{Type: run.OpEditFile, Edits: []run.Edit{{New: "x"}}}, false},
		{"edits of 10 MiB", run.Operation{Type: run.OpEditFile, Edits: []run.Edit{{Old: "a", New: strings.Repeat("x", run.MaxContentBytes-1)}}},
			true},
		{"edits of more", run.Operation{Type: run.OpEditFile, Edits: []run.Edit{{Old: "a", New: strings.Repeat("x", run.MaxContentBytes)}}},
			false},
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

// TestWrongValuesNameTheirField holds what the agent reads of a value of the wrong JSON type.
func TestWrongValuesNameTheirField(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"shell","command":7}`:                  `operations[0]: the field "command" has a JSON number where a JSON string is expected`,
		`{"type":"shell","command":"a","env":{"A":1}}`:  `operations[0]: the field "env" has a JSON number where a JSON string is expected`,
		`{"type":"shell","command":"a","env":[]}`:       `operations[0]: the field "env" has a JSON array where a JSON object is expected`,
		`{"type":"shell","command":"a","stdin":"yes"}`:  `operations[0]: the field "stdin" has a JSON string where a JSON boolean is expected`,
		`{"type":"shell","command":"a","timeout":true}`: `operations[0]: the field "timeout" has a JSON boolean where a JSON number is expected`,
		`{"type":"editFile","path":"a","edits":{}}`:     `operations[0]: the field "edits" has a JSON object where a JSON array is expected`,
		`{"type":"editFile","path":"a","edits":[{"oldContent":1,"newContent":"b"}]}`: `operations[0]: the field "edits.oldContent" has a ` +
			`JSON number where a JSON string is expected`,
	} {
		m, err := run.ParseMessage([]byte(wrap(raw)))
		if err != nil || m.Operations[0].Malformed != want {
			t.Errorf("%s: got %q, %v; want %q", raw, m.Operations[0].Malformed, err, want)
		}
	}
}

// BenchmarkParse reads a message with a long file.
func BenchmarkParse(b *testing.B) {
	raw := []byte(wrap(`{"type":"createFile","path":"a","content":"` + strings.Repeat("abcdefghij", 200_000) + `"}`))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := run.ParseMessage(raw); err != nil {
			b.Fatal(err)
		}
	}
}
