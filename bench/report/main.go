// Command report reads the output of `go test -bench`, pairs each figure of Agentbox with its yardstick, and prints a table.
//
// It copies its input to standard error, so that nothing of the run is hidden, and never fails because of a figure. Under CI it fails
// when something was left out.
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
	asked := flag.String("bench", ".", "pattern of the benchmarks that go test ran; goals of other benchmarks get no row")
	smoke := flag.Bool("smoke", false,
		"print no table, and fail where a benchmark failed or a goal has no figure; what this machine lacks is forgiven but under CI")
	flag.Parse()
	run := run
	if *smoke {
		run = runSmoke
	}
	if err := run(os.Stdin, os.Stdout, os.Stderr, *goals, *out, *asked, os.Getenv("CI") != ""); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// askedFor reads the goals of the selected benchmarks.
func askedFor(goalsFile, asked string) ([]goal, error) {
	whole, _, _ := strings.Cut(asked, "/") // the rest selects parts of a benchmark
	names, err := regexp.Compile(whole)
	if err != nil {
		return nil, fmt.Errorf("-bench: %w", err)
	}
	text, err := os.ReadFile(goalsFile)
	if err != nil {
		return nil, err
	}
	var goals []goal
	if err := json.Unmarshal(text, &goals); err != nil {
		return nil, fmt.Errorf("%s: %w", goalsFile, err)
	}
	return slices.DeleteFunc(goals, func(g goal) bool {
		name, _, _ := strings.Cut(g.Pair, "/")
		return !names.MatchString("Benchmark" + name)
	}), nil
}

// read reads what go test prints.
func read(in io.Reader, progress io.Writer) (measured figures, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(progress, lines.Text())
		measured.add(lines.Text())
	}
	return measured, lines.Err()
}

// runSmoke says whether every benchmark still runs. The figures mean nothing.
func runSmoke(in io.Reader, table, progress io.Writer, goalsFile, _, asked string, complete bool) error {
	goals, err := askedFor(goalsFile, asked)
	if err != nil {
		return err
	}
	measured, err := read(in, progress)
	if err != nil {
		return err
	}
	if lacks := measured.lacking(goals, complete); len(lacks) > 0 {
		return fmt.Errorf("%d figures are missing:\n%s", len(lacks), strings.Join(lacks, "\n"))
	}
	_, err = fmt.Fprintf(table, "every benchmark runs; %d goals have their figures or what this machine lacks for them\n", len(goals))
	return err
}

func run(in io.Reader, table, progress io.Writer, goalsFile, outFile, asked string, complete bool) error {
	goals, err := askedFor(goalsFile, asked)
	if err != nil {
		return err
	}
	measured, err := read(in, progress)
	if err != nil {
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
