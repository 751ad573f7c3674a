package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// daemon is the program under load, on a data directory and a port of its own.
type daemon struct {
	program string
	dir     string   // its data directory
	address string   // host:port, the same after each start
	store   []string // flags that name the store; none for SQLite
	said    bytes.Buffer
	cmd     *exec.Cmd
	ended   chan error // what its Wait returned; nil while it is not started
}

// newDaemon returns a daemon that has not started, on a free port.
func newDaemon(program, dir string, store ...string) (*daemon, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &daemon{program: program, dir: dir, address: listener.Addr().String(), store: store}, listener.Close()
}

// start starts the daemon and waits until it answers. The rate limits are so high that one principal never meets them.
func (d *daemon) start(ctx context.Context) error {
	args := []string{"up", "--data", d.dir, "--listen", d.address}
	for _, class := range []string{"spaces", "runs", "files", "claims", "general", "failures", "streams"} {
		args = append(args, "--rate", class+"=1000000")
	}
	d.cmd = exec.Command(d.program, append(args, d.store...)...)
	d.cmd.Stderr = &d.said
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // Ctrl-C is ours to answer
	if err := d.cmd.Start(); err != nil {
		return err
	}
	d.ended = make(chan error, 1)
	go func(cmd *exec.Cmd) { d.ended <- cmd.Wait() }(d.cmd)
	started := time.Now()
	for {
		if c, err := d.client(); err == nil && c.do(ctx, "GET", "/v1/events?limit=1", "", nil, nil) == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case err := <-d.ended:
			d.ended = nil
			return fmt.Errorf("the daemon ended instead of serving: %w: %s", err, d.said.String())
		case <-time.After(again):
		}
		if time.Since(started) > time.Minute {
			return errors.Join(errors.New("the daemon does not answer after a minute"), d.kill())
		}
	}
}

// client returns a client with the owner's key.
func (d *daemon) client() (*client, error) {
	key, err := os.ReadFile(filepath.Join(d.dir, "owner.key"))
	return newClient(d.address, strings.TrimSpace(string(key))), err
}

// kill ends the daemon as a power cut of the process would.
func (d *daemon) kill() error {
	err := d.cmd.Process.Kill()
	<-d.ended
	d.ended = nil
	return err
}

// stop ends the daemon in order, and tells what it had to complain of.
func (d *daemon) stop() error {
	if d.ended == nil {
		return nil
	}
	err := errors.Join(d.cmd.Process.Signal(syscall.SIGTERM), <-d.ended)
	d.ended = nil
	if err != nil {
		err = fmt.Errorf("the daemon ended with %w: %s", err, d.said.String())
	}
	return err
}

// audit lets the program prove the log of the daemon, which has stopped, from what it left behind: every hash, and every document against
// the fold of the events.
func (d *daemon) audit(ctx context.Context) (events, documents int, err error) {
	cmd := exec.CommandContext(ctx, d.program, append([]string{"audit", "verify", "--json", "--data", d.dir}, d.store...)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	raw, err := cmd.Output()
	var report struct {
		Valid      bool `json:"valid"`
		Workspaces []struct {
			Checked   int               `json:"checked"`
			Documents int               `json:"documents"`
			Findings  []json.RawMessage `json:"findings"`
		} `json:"workspaces"`
	}
	if broken := json.Unmarshal(raw, &report); broken != nil {
		return 0, 0, fmt.Errorf("audit verify: %w: %s", errors.Join(err, broken), complaint.String())
	}
	for _, w := range report.Workspaces {
		events, documents = events+w.Checked, documents+w.Documents
		for _, f := range w.Findings {
			err = errors.Join(err, fmt.Errorf("audit verify found %s", f))
		}
	}
	if !report.Valid && err == nil {
		err = errors.New("audit verify: the log is not valid")
	}
	return events, documents, err
}
