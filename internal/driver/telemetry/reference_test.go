package telemetry_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"agentbox/internal/driver/telemetry"
)

var update = flag.Bool("update", false, "write docs/METRICS.md")

// TestTheReferenceIsCurrent compares docs/METRICS.md with the metrics that there are; -update writes it anew.
func TestTheReferenceIsCurrent(t *testing.T) {
	const file = "../../../docs/METRICS.md"
	var b strings.Builder
	b.WriteString("# Metrics\n\n`GET /metrics` answers in Prometheus's text format to the key of an operator, an admin or the owner; " +
		"[OBSERVABILITY.md](OBSERVABILITY.md) shows how to\nscrape it. Times are in seconds, sizes in bytes; a moment is a Unix time, so that " +
		"an age is `time() - x`. " +
		"The metrics of the Go runtime (`go_*`)\nand of the process (`process_*`) come besides.\n\n" +
		"No label has a value that a caller chose: each has a short list of values, and what is not on it is `other`.\n\n" +
		"| metric | type | labels | what it says |\n|---|---|---|---|\n")
	for _, d := range telemetry.NewMetrics("").Definitions() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.Join(d.Labels, ", "), d.Help)
	}
	want := b.String()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s describes other metrics than there are; run make generate", file)
	}
}
