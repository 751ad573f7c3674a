package app_test

import (
	"context"
	"os"
	"testing"

	"agentbox/internal/app"
)

// worker is the argument that makes this program a worker of the nano tier.
const worker = "nano-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker {
		if err := app.Worker(context.Background(), os.Args[2:]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// withNano starts the daemon anew, with the nano tier.
func withNano(t *testing.T) func(*played) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(p *played) {
		p.config.Worker = []string{self, worker}
		p.d.stop()
		p.begin()
	}
}
