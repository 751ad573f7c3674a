package jq

import (
	"math/big"
	"strings"
	"testing"
	"time"
	"unsafe"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
)

// heldBy runs a program with little memory and returns what it prints, or "killed".
func heldBy(t *testing.T, memory int64, source string) (got string) {
	t.Helper()
	q := newQuerier()
	l := q.p.Account.Limits()
	l.MemoryBytes = memory
	q.p.Account = bound.New(l, [32]byte{}, time.Unix(0, 0))
	iter, m := running(t, q, source, nil)
	q.machine = m
	defer func() {
		if killed, ok := recover().(program.Killed); ok && killed.Signal == program.SIGKILL {
			got = "killed"
		}
	}()
	for v, ok := iter.Next(); ok; v, ok = iter.Next() {
		if err, failed := v.(error); failed {
			return got + err.Error()
		}
		got += string(appendJSON(q, nil, v))
	}
	return got
}

// TestValuesThatJQHoldsAreWeighed runs programs that hold many values, none of which is large, and such that make as much but let it go.
func TestValuesThatJQHoldsAreWeighed(t *testing.T) {
	for source, want := range map[string]string{
		`[limit(4000; repeat("x" * 10000 | ascii_upcase))] | length`:                   "killed",
		`[recurse(if length < 3000 then . + ["a"] else empty end)] | length`:           "killed",
		`[limit(400; repeat([range(10000)]))] | length`:                                "killed",
		`[limit(400; repeat("[" + "1," * 3000 + "1]" | fromjson))] | length`:           "killed",
		`[range(400) | {a: [range(10000)]}] | length`:                                  "killed",
		`reduce range(400) as $i ({}; .["k\($i)"] = [range(10000)]) | length`:          "killed",
		`reduce range(400) as $i ([range(3000)]; .[1] = [., $i]) | length`:             "killed",
		`reduce range(4000) as $i (0; . + ("x" * 10000 | ascii_upcase | length))`:      "40000000",
		`reduce range(400) as $i (0; . + ([range(10000)] | length))`:                   "4000000",
		`("x" * 1000) as $s | [limit(40000; repeat($s))] | length`:                     "40000",
		`("x" * 1000000 | ascii_upcase) as $s | [range(400) as $i | $s[$i:]] | length`: "400",
		`[range(3000)] | [paths] | length`:                                             "3000",
		`"ab" * 3000 | [match("a"; "g").offset] | add`:                                 "8997000",
	} {
		if got := heldBy(t, 16<<20, source); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

// TestWhatIsReachedTwiceWeighsOnce weighs values that share their parts.
func TestWhatIsReachedTwiceWeighsOnce(t *testing.T) {
	text := strings.Repeat("x", 1000)
	list := make([]any, 100)
	number := new(big.Int).Lsh(big.NewInt(1), 8000)
	for name, x := range map[string]struct {
		v    any
		want int
	}{
		"a text":              {text, 1000},
		"parts of a text":     {[]any{text[10:20], text[15:30]}, 2*elementBytes + 20},
		"a list":              {list, 100 * elementBytes},
		"lists in a list":     {[]any{list, list[10:], list[:50:100]}, 3*elementBytes + 100*elementBytes},
		"the end comes first": {[]any{list[10:], list}, 2*elementBytes + 100*elementBytes},
		"a number":            {number, 1000},
		"an object":           {map[string]any{"a": text}, 2*entryBytes + 1 + 1000},
		"an iteration":        {[]struct{ path, value any }{{1, text}, {2, text}}, 2*int(unsafe.Sizeof([2]any{})) + 1000},
	} {
		s := scale{q: newQuerier(), lists: map[uintptr]memory{}, maps: map[uintptr]bool{}}
		for s.rest = []any{x.v}; len(s.rest) > 0; {
			v := s.rest[len(s.rest)-1]
			s.rest = s.rest[:len(s.rest)-1]
			s.put(v)
		}
		if got := s.bytes + s.texts(); got != x.want {
			t.Errorf("%s: got %d bytes, want %d", name, got, x.want)
		}
	}
}
