package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"agentbox/internal/app"
)

// TestMain measures under the daemon's own settings; the yardsticks run in the same process and have them too, where they say nothing else.
func TestMain(m *testing.M) {
	app.Tune()
	code := m.Run()
	for _, dir := range []string{made, builtNano} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// smallEnv makes each benchmark do a small part of its work, which measures nothing and shows that it runs (make bench-smoke).
const smallEnv = "AGENTBOX_BENCH_SMALL"

// sized returns how much a benchmark does.
func sized(full, small int) int {
	if os.Getenv(smallEnv) != "" {
		return small
	}
	return full
}

// leaveOut ends a benchmark whose yardstick is not to be had here, and says so in the line that report looks for.
func leaveOut(b *testing.B, why string) {
	b.Helper()
	fmt.Printf("left out: %s: %s\n", b.Name(), strings.Join(strings.Fields(why), " "))
	b.SkipNow()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
