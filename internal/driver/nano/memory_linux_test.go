//go:build !race

package nano

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/driver/nano/python"
)

// TestAWorkerAtRestHoldsLittle looks at the memory that a worker has for itself when it has executed a command. It has what is needed of
// the interpreters, but nothing that their start has left, no second copy of anything, and the code and the library of Python are memory
// of the system's for files.
func TestAWorkerAtRestHoldsLittle(t *testing.T) {
	const most = 44 << 10 // KiB; it has 28 MB
	tier := openTier(t, 1)
	h := spacetest.Host{Tier: tier, Permit: issue, Place: place, IDs: id.NewSource(time.Now, rand.Reader)}
	n := newNeighbour(t, h)
	<-tier.prepared
	if err := n.alive(t.Context()); err != nil {
		t.Fatal(err)
	}
	workers := 0
	for _, pid := range children(t) {
		command, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil || !strings.Contains(string(command), "\x00serve\x00") {
			continue
		}
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "\nRssAnon:")
		line, _, _ := strings.Cut(rest, "\n")
		held, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(line, "kB")))
		if err != nil {
			t.Fatal(err)
		}
		if workers++; held > most {
			t.Errorf("it has %d KiB, want at most %d", held, most)
		}
		t.Logf("%d KiB", held)
		_, none := python.Key()
		maps, err := os.ReadFile("/proc/" + pid + "/maps")
		for _, file := range []string{codeFile, libraryFile} {
			if err == nil && none == nil && !strings.Contains(string(maps), file+"\n") { // only root may look
				t.Errorf("%s of Python is memory of its own", file)
			}
		}
	}
	if workers != 1 {
		t.Errorf("%d workers were seen", workers)
	}
}
