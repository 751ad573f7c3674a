package userland_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/userland"
	"agentbox/internal/userland/bound"
)

// The userland is used as a library: files go in, a script runs, output and files come out.
func Example() {
	r, err := userland.Run(`
		jq -r '.[] | [.name, .size] | @tsv' sizes.json | sort -k2 -n >sorted.txt
		awk '{ sum += $2 } END { print NR " files, " sum " bytes" }' sorted.txt
		head -1 sorted.txt`,
		userland.Options{Files: map[string]string{"sizes.json": `[{"name":"b","size":20},{"name":"a","size":7}]`}})
	fmt.Print(r.Stdout)
	fmt.Printf("exit %d, %v\n%q\n", r.Code, err, r.Files["sorted.txt"])
	// Output:
	// 2 files, 27 bytes
	// a	7
	// exit 0, <nil>
	// "a\t7\nb\t20\n"
}

// A bound ends a script that would never end by itself.
func Example_bounds() {
	limits := userland.Defaults
	limits.Gas = 1_000_000
	_, err := userland.Run(`while true; do :; done`, userland.Options{Limits: limits})
	stopped, ok := errors.AsType[*bound.Stopped](err)
	fmt.Println(ok, stopped.Limit)
	// Output: true gas
}

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		options      userland.Options
		out, errs    string
		code         int
	}{
		{name: "input", script: "cat; pwd", options: userland.Options{Stdin: "given\n"}, out: "given\n/workspace\n"},
		{name: "folders", script: "cat a/b/c", options: userland.Options{Files: map[string]string{"a/b/c": "deep", "a/d": ""}}, out: "deep"},
		{name: "environment", script: `echo "$X $HOME"`, options: userland.Options{Env: []string{"X=1"}}, out: "1 /workspace\n"},
		{name: "exit", script: "echo no >&2; exit 3", errs: "no\n", code: 3},
		{name: "outside", script: "cat /etc/passwd", errs: "cat: /etc/passwd: No such file or directory\n", code: 1},
		{name: "above home", script: "cat x", options: userland.Options{Files: map[string]string{"../../x": "below home"}}, out: "below home"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := userland.Run(tt.script, tt.options)
			if err != nil || r.Stdout != tt.out || r.Stderr != tt.errs || r.Code != tt.code {
				t.Errorf("printed %q, %q, exit %d, %v; want %q, %q, %d", r.Stdout, r.Stderr, r.Code, err, tt.out, tt.errs, tt.code)
			}
		})
	}
}

// TestRunIsTheSameAgain shows that clock and chance are arguments.
func TestRunIsTheSameAgain(t *testing.T) {
	script := `echo $RANDOM $RANDOM; head -c 8 /dev/urandom | od -An -tx1; date +%s; sleep 5; date +%s`
	first, err := userland.Run(script, userland.Options{Seed: [32]byte{1}})
	again, errAgain := userland.Run(script, userland.Options{Seed: [32]byte{1}})
	other, errOther := userland.Run(script, userland.Options{Seed: [32]byte{2}})
	if err := errors.Join(err, errAgain, errOther); err != nil {
		t.Fatal(err)
	}
	if first.Stdout != again.Stdout || first.Gas != again.Gas {
		t.Errorf("the same seed gave %q and %q, %d and %d of gas", first.Stdout, again.Stdout, first.Gas, again.Gas)
	}
	if first.Stdout == other.Stdout {
		t.Errorf("another seed gave the same: %q", first.Stdout)
	}
	if !strings.Contains(first.Stdout, "\n946684800\n946684805\n") {
		t.Errorf("the clock begins elsewhere: %q", first.Stdout)
	}
}
