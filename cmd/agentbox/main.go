// Command agentbox is the daemon and every tool to steer it, in one binary.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	agent "agentbox/examples/weather-agent"
	weather "agentbox/examples/weather-report"
	"agentbox/internal/app"
	"agentbox/internal/client"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/host"
	"agentbox/internal/surface/cli"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/mcpserver"
)

// workerArgument makes this program a worker of the nano tier; the daemon starts it so.
const workerArgument = "nano-worker"

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		if err := app.Worker(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // else it is to outlive its terminal
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	code := cli.Main(ctx, process(), os.Args[1:])
	stop()
	os.Exit(code)
}

// isset reports whether a variable of the environment is set, even to nothing.
func isset(name string) bool {
	_, set := os.LookupEnv(name)
	return set
}

// process is this process as the command line sees it.
func process() cmdline.Host {
	width, outIsTerminal := terminal(os.Stdout)
	_, inIsTerminal := terminal(os.Stdin)
	return cmdline.Host{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Isset: isset, Terminal: outIsTerminal, Asks: inIsTerminal, Width: width,
		Screen: screen, Keys: func() (func(), error) { return host.KeyByKey(os.Stdin) }, Edit: func() (func(), error) {
			return host.ByteByByte(os.Stdin)
		}, Forget: func() error { return host.Forget(os.Stdin) }, Entropy: rand.Reader,
		Clock: app.Clock{}, Version: app.Version, Example: weather.Operations, Up: up,
		Agent: cmdline.Example{Blueprint: agent.Blueprint, Task: agent.Task, Cassette: agent.Cassette},
		Engine: func(ctx context.Context, desk client.Desk, e cmdline.Engine) error {
			logger := slog.New(told(e))
			logger.Info("the engine waits for runs", "code", "engine_waits", "daemon", e.Daemon, "room", cmp.Or(string(desk.Room), "any"), "work",
				errand.Operations, "hands", e.Hands)
			return app.Engine(ctx, desk, desk, app.Clock{}, logger, e.Hands, e.Once)
		},
		ModelContext: func(ctx context.Context, c cmdline.ModelContext, in io.ReadCloser, out io.WriteCloser) error {
			return mcpserver.Serve(ctx, mcpserver.Config{
				API: c.API, Agent: c.Agent, Space: c.Space, Runtime: c.Runtime, Policy: c.Policy, TTL: c.TTL, Elicit: c.Elicit,
				Version: app.Version, Logger: slog.New(slog.DiscardHandler), Clock: app.Clock{}, Entropy: rand.Reader,
			}, in, out)
		},
		Doctor: func(ctx context.Context, d cmdline.Daemon) ([]space.Report, error) {
			return app.Doctor(ctx, config(d), slog.New(slog.DiscardHandler)), nil
		},
		Problems:  func(d cmdline.Daemon) []string { return app.FileProblems(config(d)) },
		RunModule: runModule,
		Audit:     audit(),
		Backup: func(ctx context.Context, d cmdline.Daemon, file string, keys bool, progress func(int, int64)) (cmdline.Kept, error) {
			sum, err := app.Backup(ctx, config(d), file, keys, func(s app.Kept) { progress(s.Files, s.Bytes) })
			return kept(sum), err
		},
		Restore: func(ctx context.Context, d cmdline.Daemon, file, keys string, progress func(int, int64)) (cmdline.Kept, []cmdline.Proof,
			error) {
			if file == "" {
				audits, err := app.BringKeys(ctx, config(d), keys)
				return cmdline.Kept{}, found(audits), err
			}
			sum, audits, err := app.Restore(ctx, config(d), file, keys, func(s app.Kept) { progress(s.Files, s.Bytes) })
			return kept(sum), found(audits), err
		},
		ExportWorkspace: func(ctx context.Context, d cmdline.Daemon, ws id.Workspace, file string) (cmdline.Moved, error) {
			done, err := app.ExportWorkspace(ctx, config(d), ws, file)
			return moved(done, 0), err
		},
		ImportWorkspace: func(ctx context.Context, d cmdline.Daemon, file, key string) (cmdline.Moved, error) {
			done, ended, err := app.ImportWorkspace(ctx, config(d), file, key)
			return moved(done, ended), err
		},
	}
}

// runModule runs a WebAssembly module.
func runModule(ctx context.Context, m cmdline.Module) (cmdline.ModuleEnd, error) {
	folders := make([]app.ModuleFolder, len(m.Folders))
	for i, f := range m.Folders {
		folders[i] = app.ModuleFolder(f)
	}
	var terminals [3]bool
	for i, stream := range []any{m.In, m.Out, m.Err} {
		if file, ok := stream.(*os.File); ok {
			_, terminals[i] = terminal(file)
		}
	}
	end, err := app.RunModule(ctx, app.Module{
		File: m.File, Args: m.Args, Env: m.Env, Folders: folders, In: m.In, Out: m.Out, Err: m.Err, Terminal: terminals, Gas: m.Gas, Time: m.Time,
		Memory: m.Memory, Seed: m.Seed,
		Start: m.Start, Cache: m.Cache,
	})
	return cmdline.ModuleEnd{ExitCode: end.ExitCode, Gas: end.Gas, MemoryPeak: end.MemoryPeak, SleptMS: end.Slept.Milliseconds(),
		Changes: end.Changes}, err
}

func moved(m app.Moved, ended int) cmdline.Moved {
	return cmdline.Moved{
		Workspace: m.Workspace, Events: m.Events, Contents: m.Contents, Missing: m.Missing, Root: m.Root, Size: m.Size,
		PublicKey: string(m.PublicKey), Ended: ended,
	}
}

func kept(s app.Kept) cmdline.Kept {
	return cmdline.Kept{
		MadeAt: s.Made, Program: s.Program, Keys: s.Keys, Files: s.Files, Bytes: s.Bytes, Skipped: s.Skipped, Changed: s.Changed,
	}
}

// at is the default configuration of a daemon that keeps what it has there.
func at(p cmdline.Place) app.Config {
	c := app.Default(p.DataDir)
	c.Store, c.Shared = p.Store, p.Shared
	return c
}

func config(d cmdline.Daemon) app.Config {
	c := at(d.Place)
	if d.Listen != "" {
		c.Listen = d.Listen
	}
	if self, err := os.Executable(); err == nil { // without itself there is no nano tier
		c.Worker = []string{self, workerArgument}
	}
	c.Engine, c.Advertise = d.Engine, d.Advertise
	c.RootFS, c.Sources, c.Shadow, c.EffectsPerHour = d.RootFS, d.Sources, d.Shadow, d.EffectsPerHour
	c.Floating = d.Floating
	c.ApprovalTime, c.ClaimTime, c.SigningKey, c.Witnesses, c.Traces = d.ApprovalTime, d.ClaimTime, d.SigningKey, d.Witnesses, d.Traces
	c.RuntimeRules = d.Runtimes
	c.Retention, c.RateRules = d.Retention, d.Rates
	c.KeepSnapshots, c.KeepSnapshotsFor = d.KeepSnapshots, d.KeepSnapshotsFor
	switch {
	case d.ContentQuota < 0:
		c.ContentQuota = 0
	case d.ContentQuota > 0:
		c.ContentQuota = d.ContentQuota
	}
	return c
}

// up runs a daemon until ctx ends.
func up(ctx context.Context, d cmdline.Daemon, ready func(addr string, cold bool)) error {
	app.Tune()
	logger := slog.New(lines(d))
	return app.Up(ctx, config(d), app.Clock{}, logger, func(s app.State) { ready(s.Address, s.Cold) })
}

// told writes an engine's reports for the person who started it: a line for each, without a level below Warn.
func told(e cmdline.Engine) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if e.Verbose {
		options.Level = slog.LevelDebug
	}
	if e.JSONLog {
		return slog.NewJSONHandler(os.Stderr, options)
	}
	return slog.NewTextHandler(os.Stderr, options)
}

// lines writes the daemon's own log as the operator wants it.
func lines(d cmdline.Daemon) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	if d.Verbose {
		options.Level = slog.LevelDebug
	}
	if d.JSONLog {
		return slog.NewJSONHandler(os.Stderr, options)
	}
	return slog.NewTextHandler(os.Stderr, options)
}

// screen returns the size of the terminal that is written to.
func screen() (width, height int) {
	width, height, ok := host.Size(os.Stdout)
	if !ok || width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// terminal returns the width of a terminal's lines, and whether the file is one.
func terminal(f *os.File) (int, bool) {
	width, _, ok := host.Size(f)
	return width, ok
}
