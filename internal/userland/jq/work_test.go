package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
)

func newQuerier() *querier {
	l := bound.Limits{Gas: 1 << 40, Time: time.Hour, MemoryBytes: 128 << 20, OutputBytes: 1 << 20, FileBytes: 1 << 20, OpenFiles: 16,
		Depth: 16}
	return &querier{p: &program.Process{Args: []string{"jq"}, Account: bound.New(l, [32]byte{}, time.Unix(0, 0))},
		regexps: map[string]jqExpression{}}
}

// results runs a program of jq on a value, metered or as the library does it.
func results(t *testing.T, source string, v any, metered bool) string {
	t.Helper()
	if metered {
		return resultsOf(t, newQuerier(), source, v)
	}
	return resultsOf(t, nil, source, v)
}

func resultsOf(t *testing.T, q *querier, source string, v any) string {
	t.Helper()
	code := compiled(t, source)
	if q != nil {
		if err := meterFunctions(q, code); err != nil {
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
		nil, true, 7, 2.5, "", "abcabc", "aäb x", long, []any{}, []any{1, 2, 3, 2}, []any{"b", "a", nil, "c"}, []any{nil, nil},
		[]any{"x", 1, true, 2.5}, []any{[]any{1}, []any{2, 3}},
		[]any{map[string]any{"a": 1}, map[string]any{"a": 2, "b": 3}}, map[string]any{"a": 1, "b": "x"}, []any{long, "x", long},
	}
	many := make([]any, 300)
	for i := range many {
		many[i] = []any{i * 7919 % 31, fmt.Sprint(i * 31 % 17), map[string]any{"k": i % 5}}[i%3]
	}
	values = append(values, many)
	for _, source := range []string{
		`. + .`, `. + "x"`, `"x" + .`, `. + [1]`, `. + {"z": 1}`, `. * 3`, `3 * .`, `. * 0.5`, `. * 70000`, `. * -1`, `. * .`, `. - .`, `. - [2]`,
		`. - 1`, `add`, `add(.[]?)`, `join(",")`, `join("")`,
		`join(1)`, `contains("b")`, `contains(.)`, `contains([2])`, `contains({a: 1})`, `inside(.)`, `indices("b")`, `indices(2)`,
		`indices([2, 3])`, `index("b")`, `rindex("b")`, `sort`, `sort_by(tostring)`,
		`unique`, `unique_by(type)`, `group_by(type)`, `min_by(type)`, `setpath([3]; 1)`, `setpath(["a"]; 1)`, `.[5] = 1`, `.a |= 1`, `tojson`,
		`tostring`, `explode | length`, `explode | implode`, `split(",")`, `split("")`, `[., .] | map(tostring) | add | split(",") | length`,
		`split(", *"; null)`, `test("B"; "i")`, `[match("a*"; "g")]`, `[match("(?<n>a)(x)?"; "g")]`, `[match("b|"; "g")] | length`,
		`capture("(?<x>[a-z]+)")`, `[scan("[ab]")] | length`, `sub("b"; "<\(.)>") | length`,
		`gsub("(?<x>a)"; "\(.x)\(.x)") | length`, `gsub("^"; ">") | length`, `gsub("\\b"; "|") | length`, `[splits("b")] | length`, `test("(")`,
		`test("a"; "q")`, `test(1)`, `ascii_downcase`, `ltrimstr("a")`, `@base64`, `@json`, `@text`,
		`"\(.)\(.)"`, `length`, `keys`, `to_entries`, `walk(.)`, `paths`, `[limit(3; .[]?)]`, `tojson | fromjson`, `any`, `flatten`, `flatten(1)`,
		`flatten(-1)`, `flatten("a")`, `flatten(infinite)`, `transpose`, `flatten("a")`, `flatten(null)`, `[range(5000)] | add`,
		`[range(5000) | {a: .}] | add`, `[range(5000), "x"] | add`, `[range(5000) | if . == 4999 then "x" else {(tostring): .} end] | add`,
		`[{a: 1}, null, {b: 2}] | add`,
		`[[range(5000)] | .[] | tostring | [.]] | add`, `[[range(3)][] | {a: [.]}] | flatten`, `@base64 | length`, `. == .`, `. != [1, 2, 3, 2]`,
		`. < "b"`, `[.[]? < 2]`, `. > [1, 2]`, `. >= {a: 1}`, `. <= {a: 1, b: "y"}`, `{b: 1} < {a: 2}`, `{a: 1} < {a: [2]}`, `nan < nan`,
		`[nan] == [nan]`, `[1.0] == [1]`,
		`min`, `max`, `max_by(type)`, `[.[]? | type] | min, max`, `unique_by(length?)`, `sort_by(nan)`, `[., .] | unique`, `.[[2]]`, `.[[2, 3]]`,
		`.[[]]`, `indices([])`, `index([3, 2])`, `rindex([2])`,
		`rindex(2)`, `index("")`, `rindex("")`, `indices("")`, `indices("ab", "ä")`, `index(["x"])`, `del(.[0]?)`, `delpaths([["a"], [0]])`,
		`delpaths(1)`, `ascii_upcase`, `@html`, `@uri`, `_sort_by(1)`, `_sort_by([])`, `_group_by([range(300)])`, `.[3] |= 1`, `.[2] += 1`,
		`reverse`,
	} {
		for _, v := range values {
			if s, ok := v.(string); ok && len(s) > 100 && (strings.Contains(source, `"g"`) || strings.Contains(source, "sub(") ||
				strings.Contains(source, "scan") || strings.Contains(source, "split")) {
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
		`[[range(100000)], (range(1000) | [])] | transpose`, `reduce range(27) as $i ([1]; [., .]) | flatten`,
		`reduce range(27) as $i ([1]; [., .]) | {a: .} | flatten(30)`,
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
	if got := results(t, `reduce range(10) as $i (9; . * .) | tostring | length`, nil, true); got != "23 <nil>\n" {
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
			all, err := allValues(newQuerier(), raw)
			if err != nil || len(all) != 1 || all[0] != want {
				t.Fatalf("%q after %d: %v, %d values", unit, shift, err, len(all))
			}
		}
	}
	if _, err := allValues(newQuerier(), []byte(`"`+strings.Repeat("x", bound.Piece)+`\q"`)); err == nil {
		t.Error("an escape that is none is taken")
	}
}

// shared is a list of little that holds more than anybody can look at: each part is there twice.
const shared = `reduce range(80) as $i ([1]; [., .]) | `

// TestWhatIsSharedIsStoppedByItsGas has jq look at all of such lists.
func TestWhatIsSharedIsStoppedByItsGas(t *testing.T) {
	for _, source := range []string{
		`. == [.[0], .[1]]`, `. as $x | [[$x], [$x]] | .[0] < .[1]`, `{a: .} >= {a: [.[0], .[1]]}`, `[., [.[0], .[1]]] | sort`,
		`[., [.[0], .[1]]] | unique`, `[., [.[0], .[1]]] | group_by(.)`,
		`[., [.[0], .[1]]] | min`, `[., [.[0], .[1]]] | max_by(.)`, `[.] - [[.[0], .[1]]]`, `[.] | index([[.[0][0], .[0][1]]])`,
		`[.] | .[[[.[0][0], .[0][1]]]]`, `contains([.[0], .[1]])`, `tojson`,
		`flatten`, `"\(.)"`,
	} {
		ended := func() (ended any) {
			defer func() { ended = recover() }()
			q := newQuerier()
			l := q.p.Account.Limits()
			l.Gas, l.MemoryBytes = 50_000_000, 32<<20
			q.p.Account = bound.New(l, [32]byte{}, time.Unix(0, 0))
			resultsOf(t, q, shared+source, nil)
			return nil
		}()
		stopped, isStopped := ended.(*bound.Stopped)
		killed, isKilled := ended.(program.Killed)
		if !(isStopped && stopped.Limit == bound.Gas || isKilled && killed.Signal == program.SIGKILL) {
			t.Errorf("%s: got %v, want an end by a bound", source, ended)
		}
	}
	if got := results(t, shared+`try delpaths([[.], [.]]) catch .`, nil, true); !strings.Contains(got, "4096 parts") {
		t.Errorf("paths that hold all of it: got %.200s", got)
	}
}

// TestValuesOfManySmallPartsAreWrittenPieceByPiece holds that a large value of many short lists is not written in one step.
func TestValuesOfManySmallPartsAreWrittenPieceByPiece(t *testing.T) {
	q := newQuerier()
	for depth, want := range map[int]bool{4: false, 8: true} {
		var v any = 1
		for range depth {
			v = []any{v, map[string]any{"x": v}}
		}
		if got := isLarge(q, v, &work{q: q}); got != want {
			t.Errorf("a tree of depth %d is large: %t", depth, got)
		}
	}
	if !isLarge(q, []any{map[string]any{strings.Repeat("k", bound.Piece): 1}}, &work{q: q}) {
		t.Error("a long key is not large")
	}
}

// codesOf are the instructions of a compiled program: for each its number, its name, and its operand.
func codesOf(t *testing.T, code *gojq.Code) (ops []int, names []string, operands []*any) {
	t.Helper()
	list := reflect.ValueOf(code).Elem().FieldByName("codes")
	for i := range list.Len() {
		op, v := list.Index(i).Elem().FieldByName("op"), list.Index(i).Elem().FieldByName("v")
		ops = append(ops, int(op.Int()))
		names = append(names, reflect.NewAt(op.Type(), unsafe.Pointer(op.UnsafeAddr())).Elem().Interface().(fmt.Stringer).String())
		operands = append(operands, reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Interface().(*any))
	}
	return ops, names, operands
}

func compiled(t *testing.T, source string) *gojq.Code {
	t.Helper()
	parsed, err := gojq.Parse(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	code, err := gojq.Compile(parsed, gojq.WithInputIter(gojq.NewIter[any](1)))
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return code
}

// every is a program with every kind of instruction that the library has.
const every = `def f($x; g): if $x > 0 then f($x - 1; g) else g end; [f(2; .a?, "x") // 1] | {a: .[0], ("b" + "c"): [.[]?]} | try error("x") catch . | label $out | first(.[]?, 1) | .[1:2]? |
	. as [$p, {q: $q}] ?// $p | path(.) | reduce range(3) as $i (0; . + $i) | foreach range(2) as $j (0; . + $j) | limit(1; repeat(1)) | .. | .a |= 1 | .b = 2 | del(.c) | [1, 2, [3]] | input | 0 | (def g: . as $y | if $y > 3 then $y else $y + 1 | g end; g) | isempty(empty) | null, true, [.[]?]`

// TestEveryInstructionOfJQIsKnown goes through the instructions of the library's version. One that is new, or that has another number,
// needs a look: can it take long, or call what does?
func TestEveryInstructionOfJQIsKnown(t *testing.T) {
	known := strings.Fields(
		`nop push pop dup const load store object append fork forktrybegin forktryend forkalt forklabel backtrack jump jumpifnot index indexarray call callrec pushpc callpc
		scope ret iter expbegin expend pathbegin pathend`)
	code := compiled(t, every)
	ops, names, _ := codesOf(t, code)
	seen := map[string]bool{}
	for i, name := range names {
		seen[name] = true
		if ops[i] >= len(known) || known[ops[i]] != name {
			t.Errorf("the instruction %d is %s", ops[i], name)
		}
	}
	for i, name := range known {
		if !seen[name] && name != "nop" { // which the compiler takes out
			t.Errorf("no program here has the instruction %s", name)
		}
		if (name == "call") != (i == opCall) {
			t.Errorf("the instruction %s has number %d", name, i)
		}
	}
	number := reflect.ValueOf(code).Elem().FieldByName("codes").Index(0).Elem().FieldByName("op")
	next := reflect.New(number.Type()).Elem()
	next.SetInt(int64(len(known)))
	func() {
		defer func() { _ = recover() }()
		t.Errorf("there is an instruction more: %s", next.Interface().(fmt.Stringer).String())
	}()
}

// TestEveryFunctionOfJQIsMetered compiles every function of the library: no call is left as it was.
func TestEveryFunctionOfJQIsMetered(t *testing.T) {
	var all []string
	iter := compiled(t, `builtins[]`).Run(nil)
	for v, ok := iter.Next(); ok; v, ok = iter.Next() {
		name, arity, _ := strings.Cut(v.(string), "/")
		if n, _ := strconv.Atoi(arity); n > 0 {
			name += "(." + strings.Repeat("; .", n-1) + ")"
		}
		all = append(all, name)
	}
	if len(all) < 150 {
		t.Fatalf("there are %d functions", len(all))
	}
	calls := 0
	for _, source := range append(all, every, `. + 1 - 2 * 3 / 4 % 5 == 6 and . < 7 or . >= -8`, `@csv "\(.)", @sh, @base64d`) {
		if name, _, _ := strings.Cut(source, "("); slices.Contains([]string{"debug", "stderr", "input_filename"}, name) { // which are ours
			continue
		}
		code := compiled(t, source)
		before := map[int]uintptr{}
		_, _, operands := codesOf(t, code)
		for i, v := range operands {
			if call, ok := (*v).([3]any); ok {
				before[i] = reflect.ValueOf(call[0]).Pointer()
			}
		}
		if err := meterFunctions(newQuerier(), code); err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		for i, f := range before {
			if calls++; reflect.ValueOf((*operands[i]).([3]any)[0]).Pointer() == f {
				t.Errorf("%s: a call was left as it was: %v", source, (*operands[i]).([3]any)[2])
			}
		}
	}
	if calls < 300 {
		t.Errorf("%d calls were looked at", calls)
	}
}

// TestWhatJQDoesNotSayIsNotRun puts operands into a program that the library of today does not have.
func TestWhatJQDoesNotSayIsNotRun(t *testing.T) {
	f := native(func(any, []any) any { return nil })
	for name, spoil := range map[string]func(name string, operand *any) bool{
		"a call of another shape":           func(name string, v *any) bool { return name == "call" && set(v, []any{f, 1, "length"}) },
		"a call of a function alone":        func(name string, v *any) bool { return name == "call" && set(v, f) },
		"a call without its name":           func(name string, v *any) bool { return name == "call" && set(v, [3]any{f, 1, 2}) },
		"a call of another type":            func(name string, v *any) bool { return name == "call" && set(v, [3]any{func() {}, 1, "length"}) },
		"a call by another instruction":     func(name string, v *any) bool { return name == "const" && set(v, [3]any{f, 1, "length"}) },
		"a function in another instruction": func(name string, v *any) bool { return name == "const" && set(v, f) },
		"what is not known":                 func(name string, v *any) bool { return name == "const" && set(v, struct{ f native }{f}) },
	} {
		code := compiled(t, `1 | length`)
		_, names, operands := codesOf(t, code)
		spoiled := false
		for i := range names {
			spoiled = spoiled || spoil(names[i], operands[i])
		}
		if err := meterFunctions(newQuerier(), code); !spoiled || !errors.Is(err, errJQ) {
			t.Errorf("%s (%t): got %v", name, spoiled, err)
		}
	}
}

func set(at *any, v any) bool {
	*at = v
	return true
}

// running is a program on its way, and the machine that runs it.
func running(t *testing.T, q *querier, source string, v any) (gojq.Iter, *machine) {
	t.Helper()
	code := compiled(t, source)
	if err := meterFunctions(q, code); err != nil {
		t.Fatal(err)
	}
	s := &steps{Context: context.Background(), p: q.p}
	iter := code.RunWithContext(s, v)
	m, err := machineFor(q, code, iter)
	if err != nil {
		t.Fatal(err)
	}
	s.machine = m
	return iter, m
}

// TestWhatJQCollectsDoesTheSameWhenItGrows runs programs whose lists and stacks become so large that they are copied by us.
func TestWhatJQCollectsDoesTheSameWhenItGrows(t *testing.T) {
	for source, want := range map[string]string{
		`[range(200000)] | length, .[199999], add`:                                                     "200000 199999 19999900000",
		`[range(100000)] | .[5] |= 7 | .[5], length`:                                                   "7 100000",
		`[range(100000)] | (.[5], .[99999]) |= . + 1 | .[5], .[99999]`:                                 "6 100000",
		`[range(100000)] | del(.[10:]) | length`:                                                       "10",
		`[range(100000)] | . as $x | path($x[3])[0], ([paths] | length)`:                               "3 100000",
		`[range(100000)] | [.[] | [., 1]] | map(.[0]) | length`:                                        "100000",
		`[range(70000)] | .[70000, 70001, 70002] = 1 | length`:                                         "70003",
		`def f: if . > 0 then . - 1 | 1 + f else 0 end; 60000 | f`:                                     "60000",
		`[recurse(if . < 60000 then . + 1 else empty end)] | length`:                                   "60001",
		`def f($n): if $n > 0 then [f($n - 1)[], $n] else [range(70000)] end; f(3) | length, .[70002]`: "70003 3",
		`[range(80000)] as $a | [range(80000)] as $b | [$a[], $b[]] | length, .[80000]`:                "160000 0",
		`[[range(70000)], [range(70000) | [.]], [limit(70000; repeat(1))]] | map(length) | tostring`:   "\"[70000,70000,70000]\"",
		`def g: [range(70000) | select(. % 2 == 0)]; [g, g] | map(length) | tostring`:                  "\"[35000,35000]\"",
		`[range(70000)] | map(. + 1) | .[69999]`:                                                       "70000",
		`[foreach range(70000) as $i (0; . + $i)] | length, .[69999]`:                                  "70000 2449965000",
		`try ([range(70000)] | [.[], error("x")]) catch .`:                                             "\"x\"",
		`[range(70000)] | first(.[] | select(. > 69990)), isempty(.[])`:                                "69991 false",
		`[range(70000) | tostring] | group_by(length) | map(length) | tostring`:                        "\"[10,90,900,9000,60000]\"",
	} {
		iter, _ := running(t, newQuerier(), source, nil)
		var got []string
		for v, ok := iter.Next(); ok; v, ok = iter.Next() {
			if err, failed := v.(error); failed {
				got = append(got, err.Error())
				break
			}
			raw, _ := gojq.Marshal(v)
			got = append(got, string(raw))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %.200q, want %s", source, got, want)
		}
	}
}

// TestJQIsLookedAtWhileItsListsGrow stops a machine that is about to copy what has become large: it is not copied to its end.
func TestJQIsLookedAtWhileItsListsGrow(t *testing.T) {
	for source, at := range map[string]int{`def f: 1 + f; f`: 0, `[range(1e9)]`: 1} {
		q := newQuerier()
		iter, m := running(t, q, source, nil)
		size := func() int {
			if at == 0 {
				return m.scopes.Cap() * int(m.scopes.Type().Elem().Size())
			}
			for _, v := range *m.values {
				if list, ok := v.([]any); ok && len(list) > 0 {
					return cap(list) * elementBytes
				}
			}
			return 0
		}
		most := 0
		q.p.Account.SetPace(func() {
			if most = max(most, size()); most > 8*growAt {
				q.p.Account.Stop(&bound.Stopped{Canceled: true})
			}
		})
		ended := func() (ended any) {
			defer func() { ended = recover() }()
			iter.Next()
			return nil
		}()
		if stopped, ok := ended.(*bound.Stopped); !ok || !stopped.Canceled || size() > 20*growAt {
			t.Errorf("%s: got %v with %d bytes", source, ended, size())
		}
		before := m.scopes.Cap()
		if at == 0 {
			func() {
				defer func() { _ = recover() }()
				m.scopes.Set(m.scopes.Slice3(0, m.scopes.Len(), m.scopes.Len()))
				before = m.scopes.Cap()
				m.grow()
			}()
			if m.scopes.Cap() != before {
				t.Errorf("%s: what was stopped has grown", source)
			}
		}
		q = newQuerier()
		l := q.p.Account.Limits()
		l.MemoryBytes = 16 << 20
		q.p.Account = bound.New(l, [32]byte{}, time.Unix(0, 0))
		iter, _ = running(t, q, source, nil)
		ended = func() (ended any) {
			defer func() { ended = recover() }()
			iter.Next()
			return nil
		}()
		if killed, ok := ended.(program.Killed); !ok || killed.Signal != program.SIGKILL {
			t.Errorf("%s with little memory: got %v", source, ended)
		}
	}
}
