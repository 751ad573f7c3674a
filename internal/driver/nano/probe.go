package nano

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/worker"
)

// trials are the commands of a probe with their expected output.
var trials = []struct{ name, command, want, detail string }{
	{"shell", `printf 'b\na\n' | sort | head -n 1`, "a\n", "a pipe of the virtual shell"},
	{"files", `mkdir -p d && echo kept >d/f && cat d/f`, "kept\n", "files in memory, written back at the end"},
	{"clock", `a=$(date +%s); sleep 3600; echo $(( $(date +%s) - a ))`, "3600\n", "an hour on the virtual clock"},
}

// interpreters are the interpreters that a build may have.
var interpreters = []struct{ name, command, want, detail, mend string }{
	{"javascript", "js -p 6*7", "42\n", "QuickJS-ng, with TypeScript", "make build"},
	{"sqlite", "sqlite3 :memory: 'select 6*7'", "42\n", "SQLite 3.53", "make nano, then make build"},
	{"python", "python3 -c 'print(6*7)'", "42\n", "CPython 3.13", "make nano, then make build"},
}

// Probe runs commands in a worker and says what this build and host have.
func (t *Tier) Probe(ctx context.Context) space.Report {
	offer := t.Offer()
	r := space.Report{Tier: Name, OK: true, Offer: &offer}
	check := func(name, detail, mend string, err error) {
		c := space.Check{Name: name, OK: err == nil, Detail: detail}
		if err != nil {
			c.Detail, c.Mend, r.OK = err.Error(), mend, false
		}
		r.Checks = append(r.Checks, c)
	}
	t.warm()
	err := t.Try(ctx) // the first one waits for the worker
	began := t.o.Clock.Now()
	if err == nil {
		err = t.Try(ctx)
	}
	r.Start = t.o.Clock.Now().Sub(began)
	check("worker", fmt.Sprintf("a worker process started and ran a command (%s/%s)", runtime.GOOS, runtime.GOARCH),
		"look into the daemon's own log", err)
	if err != nil {
		return r
	}
	for _, x := range trials {
		got, err := t.try(ctx, t.pool, x.command)
		if err == nil && got != x.want {
			err = fmt.Errorf("%s printed %.100q, not %q", x.command, got, x.want)
		}
		check(x.name, x.detail, "", err)
	}
	select {
	case <-t.prepared:
	case <-ctx.Done():
	}
	for _, x := range interpreters { // a build may be without; no promise hangs on it
		c := space.Check{Name: x.name, Detail: x.detail}
		got, err := t.try(ctx, t.pool, x.command)
		if c.OK = err == nil && got == x.want; !c.OK {
			c.Detail, c.Mend = "not in this build", x.mend
		}
		r.Checks = append(r.Checks, c)
	}
	return r
}

// Try runs a command in a worker. As long as nobody has made a space, that is a worker of its own which loads no interpreter and ends
// with it: a daemon whose spaces are all of another tier starts as fast, and takes as little memory, as one without this tier.
func (t *Tier) Try(ctx context.Context) (err error) {
	defer t.prepare() // beside the try it would only take the processors
	pool := t.pool
	if !t.warmed.Load() {
		pool = t.workers(tries, 1)
		ended := context.AfterFunc(t.base, func() { _ = pool.Close() })
		defer func() { ended(); err = errors.Join(err, pool.Close()) }()
	}
	got, err := t.try(ctx, pool, "echo up")
	if err == nil && got != "up\n" {
		err = fmt.Errorf("echo printed %.100q", got)
	}
	return err
}

// try runs a known command in a folder of its own.
func (t *Tier) try(ctx context.Context, pool *worker.Pool, command string) (string, error) {
	dir, err := os.MkdirTemp(t.o.Scratch, "probe-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files, tmp := filepath.Join(dir, "files"), filepath.Join(dir, "tmp")
	for _, d := range []string{files, tmp} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return "", err
		}
	}
	s := &instance{tier: t, spec: space.Spec{Dir: files, Limits: space.DefaultLimits()}}
	env, _, start, err := s.environment(map[string]string{seedName: "probe"})
	if err != nil {
		return "", err
	}
	order := s.sized([]string{"/bin/bash", "-c", command}, env, workspace, nil, 2*time.Hour)
	order.Start = start
	over, workspaceFiles := &folder{path: tmp, bytes: 1 << 20}, &folder{path: files, bytes: 1 << 20}
	defer over.close()
	defer workspaceFiles.close()
	var out strings.Builder
	outcome, err := pool.Execute(ctx, order, []worker.Files{workspaceFiles, over}, func(_ string, p []byte) error {
		out.Write(p)
		return nil
	})
	if err == nil && outcome.Refused != "" {
		err = fmt.Errorf("%s", outcome.Refused)
	}
	return out.String(), err
}
