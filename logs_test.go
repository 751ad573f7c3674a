package agentbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"agentbox/internal/driver/telemetry"
	"agentbox/internal/testkit/arch"
)

// TestEveryLineOfTheLogHasACode reads the source for lines of the daemon's own log, and compares docs/LOGS.md with them; -update writes it.
func TestEveryLineOfTheLogHasACode(t *testing.T) {
	const file = "docs/LOGS.md"
	lines, found := arch.Logs(load(t), []string{"internal/driver/telemetry", "internal/testkit/**"})
	report(t, found)
	var b strings.Builder
	b.WriteString("# Lines of the log\n\n`agentbox up` writes its own log to standard error, with `--log-format json` as one JSON object a " +
		"line. Warnings and errors are written; " +
		"`--verbose`\nadds the rest. Each line has a `code`, which stays what it is; the message may be worded anew. Keys besides, where they " +
		"apply: `request_id`,\n`trace_id`, `span_id`, " +
		"`route`, `status`, `run`, `operation`, `space`, `principal`, `error`. Bodies, commands, output and keys are never logged.\n\n" +
		"| code | level | message | where |\n|---|---|---|---|\n")
	for _, l := range lines {
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", l.Code, l.Level, l.Message, l.Package)
	}
	b.WriteString("\nThe daemon also writes the events of spaces, runs, questions and the kill switch, at level info. The " +
		"code is that of the event:\n\n")
	for _, e := range telemetry.ToldEvents() {
		fmt.Fprintf(&b, "- `%s`\n", telemetry.CodeOf(e))
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s lists other lines than there are; run make generate", file)
	}
}
