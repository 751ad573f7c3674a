package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkAppend/writers=64/ours-2         	     100	  20000 ns/op	   900 events/s	  1.5 p50-ms
BenchmarkAppend/writers=64/ours-2         	     100	  40000 ns/op	  1100 events/s	  2.5 p50-ms
BenchmarkAppend/writers=64/yardstick-2    	     100	  10000 ns/op	  2000 events/s	  1.0 p50-ms
BenchmarkGate-2                           	    5000	    250 ns/op	     3 allocs/op
--- BENCH: BenchmarkGate-2
    gate_test.go:1: a note
BenchmarkPeers/ours-2                     	       1	      9 ns/op	   300 events/s
BenchmarkPeers/nats-2                     	       1	     90 ns/op	   100 events/s
left out: BenchmarkPeers/postgres-2: PostgreSQL is missing: install postgresql
PASS
ok  	agentbox/bench	1.2s
`

// TestTheTable pairs, takes medians, judges goals and keeps figures that stand alone.
func TestTheTable(t *testing.T) {
	dir := t.TempDir()
	goals := filepath.Join(dir, "goals.json")
	if err := os.WriteFile(goals, []byte(`[
		{"name": "append", "pair": "Append/writers=64", "unit": "events/s", "ratio_at_least": 0.5},
		{"name": "append p50", "pair": "Append/writers=64", "unit": "p50-ms", "ours_at_most": 1.99},
		{"name": "beside nats", "pair": "Peers", "against": "nats", "unit": "events/s"},
		{"name": "beside postgres", "pair": "Peers", "against": "postgres", "unit": "events/s"},
		{"name": "space", "pair": "Space", "unit": "ns/op", "ratio_at_most": 1.5}
	]`), 0o600); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	out := filepath.Join(dir, "bench.json")
	if err := run(strings.NewReader(output), &table, io.Discard, goals, out, ".", false); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(table.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"",
		"name ours yardstick unit ratio goal",
		"append 1000 2000 events/s 0.5 ratio >= 0.5 met",
		"append p50 2 1 p50-ms 2 ours <= 1.99 MISSED",
		"beside nats 300 100 events/s 3 -",
		"beside postgres 300 MISSING events/s - -",
		"space - - ns/op - ratio <= 1.5 MISSED",
		"Append/writers=64 30000 10000 ns/op 3 -",
		"Gate 250 - ns/op - -",
		"Gate 3 - allocs/op - -",
		"Peers 9 - ns/op - -",
		"",
		"Left out: PostgreSQL is missing: install postgresql",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	body, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	if err := json.Unmarshal(body, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 9 || rows[4].Ours != nil || *rows[4].Met || rows[5].Met != nil || rows[3].Missing == "" || !*rows[0].Met {
		t.Errorf("got %s", body)
	}
}

// TestTheGoalsCanBeRead keeps goals.json in the form that report reads.
func TestTheGoalsCanBeRead(t *testing.T) {
	if err := run(strings.NewReader(""), io.Discard, io.Discard, filepath.Join("..", "goals.json"), filepath.Join(t.TempDir(), "o"), ".",
		false); err != nil {
		t.Error(err)
	}
}

// TestOnlyWhatWasAskedFor makes no rows of the goals of benchmarks that were not to run: the name of a benchmark and the first part of
// the expression decide.
func TestOnlyWhatWasAskedFor(t *testing.T) {
	goals := filepath.Join(t.TempDir(), "goals.json")
	if err := os.WriteFile(goals,
		[]byte(`[{"name": "append", "pair": "Append/writers=64", "unit": "x"}, {"name": "gate", "pair": "Gate", "unit": "x"}]`),
		0o600); err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{".": "append gate", "(?i)app": "append", "(?i)gate/ours": "gate", "BenchmarkGate$": "gate",
		"None": ""} {
		var table strings.Builder
		if err := run(strings.NewReader(""), &table, io.Discard, goals, filepath.Join(t.TempDir(), "o"), asked, false); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(table.String()) {
			if name := strings.Fields(line); len(name) > 0 && name[0] != "name" {
				got = append(got, name[0])
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got the rows %q, want %q", asked, got, want)
		}
	}
	if err := run(strings.NewReader(""), io.Discard, io.Discard, goals, filepath.Join(t.TempDir(), "o"), "(", false); err == nil {
		t.Error("an expression that is none was taken")
	}
}

// TestNothingIsLeftOutUnderCI fails where a yardstick or what is ours was not to be had, after the table, which says why.
func TestNothingIsLeftOutUnderCI(t *testing.T) {
	goals := filepath.Join(t.TempDir(), "goals.json")
	if err := os.WriteFile(goals, []byte(`[{"name": "append", "pair": "Append", "against": "peer", "unit": "ns/op"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"BenchmarkAppend/ours-2 1 7 ns/op\nleft out: BenchmarkAppend/peer-2: it is missing\n": "append 7 MISSING ns/op - - Left out: it is " +
			"missing",
		"BenchmarkAppend/peer-2 1 7 ns/op\nleft out: BenchmarkAppend/ours-2: it is missing\n": "append MISSING 7 ns/op - - Left out: it is " +
			"missing",
		"BenchmarkAppend/peer-2 1 7 ns/op\n--- FAIL: BenchmarkAppend/ours\n": "append MISSING 7 ns/op - - Left out: " +
			"Append/ours failed;",
	} {
		for _, ci := range []bool{false, true} {
			var table strings.Builder
			err := run(strings.NewReader(text), &table, io.Discard, goals, filepath.Join(t.TempDir(), "o"), ".", ci)
			if (err != nil) != ci {
				t.Errorf("CI %v, %q: got the error %v", ci, text, err)
			}
			if got := strings.Join(strings.Fields(table.String()), " "); !strings.Contains(got, want) {
				t.Errorf("CI %v: got %s, want %s", ci, got, want)
			}
		}
	}
}

// TestTheSmokeFails names a benchmark that failed and a goal without its figures. A missing program of the machine is forgiven, but not
// under CI.
func TestTheSmokeFails(t *testing.T) {
	goals := filepath.Join(t.TempDir(), "goals.json")
	if err := os.WriteFile(goals, []byte(`[
		{"name": "append", "pair": "Append", "against": "peer", "unit": "ns/op"},
		{"name": "idle", "pair": "Idle", "unit": "RSS-MB", "ours_at_most": 60}
	]`), 0o600); err != nil {
		t.Fatal(err)
	}
	const idle, ours, peer = "BenchmarkIdle/ours-2 1 7 RSS-MB\n", "BenchmarkAppend/ours-2 1 7 ns/op\n", "BenchmarkAppend/peer-2 1 9 ns/op\n"
	for text, want := range map[string]struct{ here, ci string }{
		idle + ours + peer: {},
		ours + peer:        {"idle: BenchmarkIdle gives no RSS-MB", "idle: BenchmarkIdle gives no RSS-MB"},
		idle + ours:        {"append: BenchmarkAppend gives no ns/op", "append: BenchmarkAppend gives no ns/op"},
		idle + ours + "left out: BenchmarkAppend/peer-2: install it\n": {"",
			"append: BenchmarkAppend gives no ns/op install it"},
		idle + ours + peer + "--- FAIL: BenchmarkOther/ours-2\n":                        {"Other/ours-2 failed", "Other/ours-2 failed"},
		idle + ours + peer + "    --- FAIL: BenchmarkOther/ours-2 (0.01s)\n":            {"Other/ours-2 failed", "Other/ours-2 failed"},
		idle + ours + "--- FAIL: BenchmarkAppend/peer\n    space_test.go:1: no bwrap\n": {"Append/peer failed", "Append/peer failed"},
	} {
		for ci, want := range map[bool]string{false: want.here, true: want.ci} {
			err := runSmoke(strings.NewReader(text), io.Discard, io.Discard, goals, "", ".", ci)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("CI %v, %q: got %v, want %q", ci, text, err, want)
			}
		}
	}
}
