// Command report reads the output of `go test -bench`, pairs each figure of ours with its yardstick, and prints a table.
//
// It copies what it reads to standard error, so that nothing of the run is hidden, and never fails because of a figure. Under CI it fails when something was left out.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	goals := flag.String("goals", "goals.json", "what is expected of which pair")
	out := flag.String("out", "bench.json", "where the rows are written as JSON")
	asked := flag.String("bench", ".", "which benchmarks were asked for, as go test was told: no row is made of the goals of others")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, os.Stderr, *goals, *out, *asked, os.Getenv("CI") != ""); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, table, progress io.Writer, goalsFile, outFile, asked string, complete bool) error {
	whole, _, _ := strings.Cut(asked, "/") // what comes after it chooses among the parts of a benchmark
	names, err := regexp.Compile(whole)
	if err != nil {
		return fmt.Errorf("-bench: %w", err)
	}
	text, err := os.ReadFile(goalsFile)
	if err != nil {
		return err
	}
	var goals []goal
	if err := json.Unmarshal(text, &goals); err != nil {
		return fmt.Errorf("%s: %w", goalsFile, err)
	}
	goals = slices.DeleteFunc(goals, func(g goal) bool {
		name, _, _ := strings.Cut(g.Pair, "/")
		return !names.MatchString("Benchmark" + name)
	})
	var measured figures
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(progress, lines.Text())
		measured.add(lines.Text())
	}
	if err := lines.Err(); err != nil {
		return err
	}
	rows := measured.rows(goals)
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(rows); err != nil {
		return err
	}
	if err := os.WriteFile(outFile, body.Bytes(), 0o644); err != nil {
		return err
	}
	if err := print(table, rows, measured.reasons()); err != nil {
		return err
	}
	if complete && len(measured.missing) > 0 {
		return fmt.Errorf("under CI nothing may be left out, and %d benchmarks were; the lines above say what to install", len(measured.missing))
	}
	return nil
}
