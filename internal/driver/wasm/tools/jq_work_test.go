package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"agentbox/internal/driver/wasm/bound"
	"agentbox/internal/driver/wasm/posix"
	"agentbox/internal/driver/wasm/program"
)

func newQuerier() *querier {
	l := bound.Limits{Gas: 1 << 40, Time: time.Hour, MemoryBytes: 1 << 30, OutputBytes: 1 << 20, FileBytes: 1 << 20, OpenFiles: 16, Depth: 16}
	return &querier{p: &program.Process{Args: []string{"jq"}, Account: bound.New(l, [32]byte{}, time.Unix(0, 0))}, regexps: map[string]*posix.Machine{}}
}

// results runs a program of jq on a value, metered or as the library does it.
func results(t *testing.T, source string, v any, metered bool) string {
	t.Helper()
	parsed, err := gojq.Parse(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	if metered {
		if err := newQuerier().meter(code); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for iter := code.Run(v); ; {
		v, ok := iter.Next()
		if !ok {
			return all.String()
		}
		if err, failed := v.(error); failed {
			fmt.Fprintln(&all, "error:", err)
			return all.String()
		}
		raw, err := gojq.Marshal(v)
		fmt.Fprintln(&all, string(raw), err)
	}
}

// TestMeteredFunctionsOfJQDoTheSame runs programs with the functions of the library, and with ours in front of them.
func TestMeteredFunctionsOfJQDoTheSame(t *testing.T) {
	long := strings.Repeat("aäb,\n\"\\\x01", bound.Piece/4)
	values := []any{
		nil, true, 7, 2.5, "", "abcabc", "aäb x", long, []any{}, []any{1, 2, 3, 2}, []any{"b", "a", nil, "c"}, []any{nil, nil}, []any{"x", 1, true, 2.5}, []any{[]any{1}, []any{2, 3}},
		[]any{map[string]any{"a": 1}, map[string]any{"a": 2, "b": 3}}, map[string]any{"a": 1, "b": "x"}, []any{long, "x", long},
	}
	many := make([]any, 300)
	for i := range many {
		many[i] = []any{i * 7919 % 31, fmt.Sprint(i * 31 % 17), map[string]any{"k": i % 5}}[i%3]
	}
	values = append(values, many)
	for _, source := range []string{
		`. + .`, `. + "x"`, `"x" + .`, `. + [1]`, `. + {"z": 1}`, `. * 3`, `3 * .`, `. * 0.5`, `. * 70000`, `. * -1`, `. * .`, `. - .`, `. - [2]`, `. - 1`, `add`, `add(.[]?)`, `join(",")`, `join("")`,
		`join(1)`, `contains("b")`, `contains(.)`, `contains([2])`, `contains({a: 1})`, `inside(.)`, `indices("b")`, `indices(2)`, `indices([2, 3])`, `index("b")`, `rindex("b")`, `sort`, `sort_by(tostring)`,
		`unique`, `unique_by(type)`, `group_by(type)`, `min_by(type)`, `setpath([3]; 1)`, `setpath(["a"]; 1)`, `.[5] = 1`, `.a |= 1`, `tojson`, `tostring`, `explode | length`, `explode | implode`, `split(",")`, `split("")`, `[., .] | map(tostring) | add | split(",") | length`,
		`split(", *"; null)`, `test("B"; "i")`, `[match("a*"; "g")]`, `[match("(?<n>a)(x)?"; "g")]`, `[match("b|"; "g")] | length`, `capture("(?<x>[a-z]+)")`, `[scan("[ab]")] | length`, `sub("b"; "<\(.)>") | length`,
		`gsub("(?<x>a)"; "\(.x)\(.x)") | length`, `gsub("^"; ">") | length`, `gsub("\\b"; "|") | length`, `[splits("b")] | length`, `test("(")`, `test("a"; "q")`, `test(1)`, `ascii_downcase`, `ltrimstr("a")`, `@base64`, `@json`, `@text`,
		`"\(.)\(.)"`, `length`, `keys`, `to_entries`, `walk(.)`, `paths`, `[limit(3; .[]?)]`, `tojson | fromjson`, `any`, `flatten`, `flatten(1)`, `flatten(-1)`, `flatten("a")`, `flatten(infinite)`, `transpose`, `.[3] |= 1`, `.[2] += 1`, `reverse`,
	} {
		for _, v := range values {
			if s, ok := v.(string); ok && len(s) > 100 && (strings.Contains(source, `"g"`) || strings.Contains(source, "sub(") || strings.Contains(source, "scan") || strings.Contains(source, "split")) {
				v = s[:400] // the library takes the square of its length
			}
			got, want := results(t, source, v, true), results(t, source, v, false)
			if got != want {
				t.Errorf("%s of %.60v: got %.200q, want %.200q", source, v, got, want)
			}
		}
	}
}

// TestJQMakesNoArrayBeyondItsMemory runs programs that the library would make an array for which is larger than the execution's memory.
func TestJQMakesNoArrayBeyondItsMemory(t *testing.T) {
	for _, source := range []string{
		`setpath([400000000]; 1)`, `.[400000000] = 1`, `.[400000000] |= 1`, `.[400000000] += 1`, `.[400000000] //= 1`, `{} | .a[400000000] |= 1`,
		`[[range(100000)], (range(1000) | [])] | transpose`, `reduce range(27) as $i ([1]; [., .]) | flatten`, `reduce range(27) as $i ([1]; [., .]) | {a: .} | flatten(30)`,
		`reduce range(27) as $i ([1]; [., .]) | flatten(0.5)`,
	} {
		func() {
			defer func() {
				if killed, ok := recover().(program.Killed); !ok || killed.Signal != program.SIGKILL {
					t.Errorf("%s goes on", source)
				}
			}()
			results(t, source+" | length", nil, true)
		}()
	}
}

// TestLargeNumbersOfJQAreFractions bounds how long a whole number may become: the library has no bound.
func TestLargeNumbersOfJQAreFractions(t *testing.T) {
	got := results(t, `reduce range(40) as $i (9; . * .)`, nil, true)
	if got != "1.7976931348623157e+308 <nil>\n" {
		t.Errorf("got %q", got)
	}
	if got := results(t, `reduce range(10) as $i (9; . * .) | tostring | length`, nil, true); got != "978 <nil>\n" {
		t.Errorf("got %q", got)
	}
}

// TestLongTextsOfJSON reads texts that are read piece by piece.
func TestLongTextsOfJSON(t *testing.T) {
	for _, unit := range []string{`a`, `\n`, `\\`, `\"`, `ä`, `\u00e4`, `\ud83d\ude00`, `x\ud83d`, `\ud83d\ud83d\ude00`, "\xff", `\\\\u0041`} {
		for shift := range 14 {
			raw := []byte(`"` + strings.Repeat("x", shift) + strings.Repeat(unit, bound.Piece/len(unit)+10) + `"`)
			var want string
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			all, err := newQuerier().all(raw)
			if err != nil || len(all) != 1 || all[0] != want {
				t.Fatalf("%q after %d: %v, %d values", unit, shift, err, len(all))
			}
		}
	}
	if _, err := newQuerier().all([]byte(`"` + strings.Repeat("x", bound.Piece) + `\q"`)); err == nil {
		t.Error("an escape that is none is taken")
	}
}
