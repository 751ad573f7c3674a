// Command report reads the output of `go test -bench`, pairs each figure of ours with its yardstick, and prints a table.
//
// It copies what it reads to standard error, so that nothing of the run is hidden, and never fails because of a figure.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	goals := flag.String("goals", "goals.json", "what is expected of which pair")
	out := flag.String("out", "bench.json", "where the rows are written as JSON")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, os.Stderr, *goals, *out); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, table, progress io.Writer, goalsFile, outFile string) error {
	text, err := os.ReadFile(goalsFile)
	if err != nil {
		return err
	}
	var goals []goal
	if err := json.Unmarshal(text, &goals); err != nil {
		return fmt.Errorf("%s: %w", goalsFile, err)
	}
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
	return print(table, rows)
}
