package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// daemon is a daemon of this program's own, on a data directory of its own.
type daemon struct {
	*caller
	bin   string
	cmd   *exec.Cmd
	said  *said
	ended chan error // receives what it ended with, once
}

// said keeps what a program writes.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// up starts a daemon on a data directory, by start or, where that is nil, as it is, and waits until it can work.
func (x *examiner) up(ctx context.Context, data string, start func(cmd *exec.Cmd, ended chan<- error) error, flags ...string) (*daemon,
	error) {
	if err := os.Remove(filepath.Join(data, "daemon.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	d := &daemon{bin: x.bin, said: &said{}, ended: make(chan error, 1)}
	d.cmd = exec.Command(x.bin, append([]string{"up", "--data", data, "--listen", "127.0.0.1:0"}, flags...)...)
	d.cmd.Stderr = d.said
	if start == nil {
		start = func(cmd *exec.Cmd, ended chan<- error) error {
			cmd.Stdout = d.said
			if err := cmd.Start(); err != nil {
				return err
			}
			go func() { ended <- cmd.Wait() }()
			return nil
		}
	}
	if err := start(d.cmd, d.ended); err != nil {
		return nil, err
	}
	x.begun(d)
	for {
		if c, err := locate(data, "", "", x.over); err == nil && c.ready(ctx) == nil {
			// A key of which a power cut has left a part holds no more: the daemon makes another one before it can work.
			d.caller, err = locate(data, "", "", x.over)
			return d, err
		}
		select {
		case err := <-d.ended:
			d.ended <- err
			return d, fmt.Errorf("the daemon on %s ended before it could work (%w): %s", data, err, strings.TrimSpace(d.said.String()))
		case <-ctx.Done():
			d.kill()
			return d, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// fresh starts a daemon on a new data directory, with a space.
func (x *examiner) fresh(ctx context.Context, flags ...string) (*daemon, string, error) {
	dir, err := x.folder()
	if err != nil {
		return nil, "", err
	}
	d, err := x.up(ctx, filepath.Join(dir, "data"), nil, flags...)
	if err != nil {
		return nil, "", err
	}
	space, err := d.newSpace(ctx, "trust")
	return d, space, err
}

// kill ends a daemon as a crash does, and waits for it.
func (d *daemon) kill() {
	if d.cmd.Process != nil {
		_ = d.cmd.Process.Kill() // it may have ended
	}
	d.ended <- <-d.ended
}

// stop ends a daemon as a person does, and waits for it.
func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	err := <-d.ended
	d.ended <- err
	if err != nil {
		return fmt.Errorf("the daemon ended with %w: %s", err, d.said)
	}
	return nil
}

// tool runs the released program and returns what it wrote and its exit code.
func (x *examiner) tool(ctx context.Context, args ...string) (out []byte, code int, err error) {
	cmd := exec.CommandContext(ctx, x.bin, args...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return text.Bytes(), exit.ExitCode(), nil
	}
	return text.Bytes(), 0, err
}

// done runs the released program, which has to succeed.
func (x *examiner) done(ctx context.Context, args ...string) ([]byte, error) {
	out, code, err := x.tool(ctx, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("agentbox %s ended with %d: %.500s", strings.Join(args, " "), code, out)
	}
	return out, err
}

// audit is the result of `agentbox audit verify --json` for one workspace.
type audit struct {
	Valid    bool   `json:"valid"`
	Checked  uint64 `json:"checked"`
	Findings []struct {
		Kind   string `json:"kind"`
		Seq    uint64 `json:"seq"`
		Detail string `json:"detail"`
	} `json:"findings"`
}

// first returns the place that the first finding names, which is where to look.
func (a audit) first() uint64 {
	if len(a.Findings) == 0 {
		return 0
	}
	return a.Findings[0].Seq
}

// audited verifies the log of a data directory offline and returns what was found about the default workspace.
func (x *examiner) audited(ctx context.Context, data string, flags ...string) (audit, error) {
	out, code, err := x.tool(ctx, append([]string{"audit", "verify", "--json", "--data", data}, flags...)...)
	if err != nil {
		return audit{}, err
	}
	var all struct {
		Valid      bool    `json:"valid"`
		Workspaces []audit `json:"workspaces"`
	}
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&all); err != nil || len(all.Workspaces) == 0 {
		return audit{}, fmt.Errorf("agentbox audit verify ended with %d: %.500s", code, out)
	}
	if all.Valid != (code == 0) {
		return audit{}, fmt.Errorf("agentbox audit verify says valid: %v and ends with %d", all.Valid, code)
	}
	found := all.Workspaces[0]
	for _, w := range all.Workspaces[1:] {
		found.Valid, found.Checked = found.Valid && w.Valid, found.Checked+w.Checked
		found.Findings = append(found.Findings, w.Findings...)
	}
	found.Valid = found.Valid && all.Valid
	return found, nil
}

// copied copies a data directory whose daemon has ended.
func (x *examiner) copied(from string) (string, error) {
	dir, err := x.folder()
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "data")
	return to, copied(from, to)
}

// copied copies a folder with the modes of its files: keys that others could read are not used.
func copied(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		under, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return os.Chmod(filepath.Join(to, under), info.Mode().Perm())
	})
}
