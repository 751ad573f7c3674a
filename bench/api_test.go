package bench

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/httpapi/wire"
)

// overAPI starts a whole daemon on a fresh data directory and returns a client of it with the owner's key.
func overAPI(b *testing.B) *client.Client {
	b.Helper()
	c := app.Default(b.TempDir())
	c.Listen = "127.0.0.1:0"
	c.MaxSpaces = 1000
	c.Rates = wire.Rates{Spaces: 1e6, Runs: 1e6, Files: 1e6, Claims: 1e6, General: 1e6, Failures: 1e6, Streams: 32}
	a, err := app.Open(b.Context(), c, app.Clock{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan app.State, 1)
	go func() { ended <- a.Run(ctx, func(s app.State) { ready <- s }) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	select {
	case state := <-ready:
		key, err := os.ReadFile(filepath.Join(c.DataDir, "owner.key"))
		if err != nil {
			b.Fatal(err)
		}
		found := client.New("http://"+strings.TrimPrefix(state.Address, "http://"), strings.TrimSpace(string(key)))
		b.Cleanup(found.Close)
		return found
	case err := <-ended:
		b.Fatal(err)
		return nil
	}
}

// shell is a run of one command, which is waited for.
func shell(tb testing.TB, c *client.Client, s id.Space, text string) string {
	tb.Helper()
	op, err := json.Marshal(map[string]string{"type": "shell", "command": text})
	if err != nil {
		tb.Fatal(err)
	}
	m, err := client.ParseMessage([]byte(`{"protocolVersion":"1.0","operations":[` + string(op) + `]}`))
	if err != nil {
		tb.Fatal(err)
	}
	events, err := c.CreateRun(tb.Context(), s, client.RunRequest{Message: m, WaitSeconds: 30})
	if err != nil {
		tb.Fatal(err)
	}
	if len(events.Events) != 1 || !events.Events[0].OK() {
		tb.Fatalf("got %+v", events)
	}
	return *events.Events[0].Stdout
}

// BenchmarkAPISpaceCreate is what BenchmarkSpaceCreate measures over the API: two requests, with gate and log, to the whole output.
func BenchmarkAPISpaceCreate(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		c := overAPI(b)
		for b.Loop() {
			s, err := c.CreateSpace(b.Context(), client.SpaceRequest{})
			if err != nil {
				b.Fatal(err)
			}
			if out := shell(b, c, s.ID, "echo hello"); out != "hello\n" {
				b.Fatalf("printed %q", out)
			}
			b.StopTimer()
			if _, err := c.DestroySpace(b.Context(), s.ID); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("yardstick", func(b *testing.B) {
		needBubblewrap(b)
		for b.Loop() {
			b.StopTimer()
			cmd := wrapped(b, "bash", "-c", "echo hello")
			out, err := cmd.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(out); err != nil {
				b.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkAPISpaceExec is what BenchmarkSpaceExec measures over the API: one request, with gate, log and result event.
func BenchmarkAPISpaceExec(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		c := overAPI(b)
		s, err := c.CreateSpace(b.Context(), client.SpaceRequest{})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			shell(b, c, s.ID, "true")
		}
	})
	b.Run("yardstick", func(b *testing.B) {
		needBubblewrap(b)
		for b.Loop() {
			b.StopTimer()
			cmd := wrapped(b, "bash", "-c", "true")
			b.StartTimer()
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
