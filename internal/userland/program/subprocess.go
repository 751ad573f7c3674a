package program

import (
	"io"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// Destinations of the output of a Subprocess.
const (
	Inherit  = "inherit" // where the starter's own goes; the zero value too
	Captured = "capture" // into the answer
	Null     = "null"    // nowhere
	ToStdout = "stdout"  // of the standard error: where the standard output goes
)

// Subprocess is a command that the program of an interpreter starts and waits for.
type Subprocess struct {
	Args    []string
	Env     []string
	Cwd     string
	Stdin   *[]byte       // nil for the starter's own
	Stdout  string        // Inherit, Captured or Null
	Stderr  string        // the same, or ToStdout
	Timeout time.Duration // 0 means without limit
}

// Ended is how a Subprocess ended.
type Ended struct {
	Status   Status
	Stdout   []byte
	Stderr   []byte
	TimedOut bool // by its own Timeout
}

// child returns the process of a subprocess, which has not begun.
func (s Subprocess) child(p *Process) (*Process, error) {
	c := p.Child(s.Args...)
	c.Env = s.Env
	cwd, err := p.FS.Lookup(vfs.At{Dir: p.FS.Root()}, s.Cwd, true)
	if err == nil && cwd.Kind() != vfs.Directory {
		err = vfs.ENOTDIR
	}
	c.Cwd = cwd
	return c, err
}

// Find returns an error where the command of a subprocess is not there or cannot be executed.
func (s Subprocess) Find(p *Process) error {
	c, err := s.child(p)
	if err == nil {
		_, err = p.Host.Find(c, s.Args[0])
	}
	return err
}

// Run runs the command to its end. An error means that it could not be started. Captured output counts to the account of p while Run
// lasts.
func (s Subprocess) Run(p *Process) (Ended, error) {
	c, err := s.child(p)
	if err != nil {
		return Ended{}, err
	}
	out, errs := capture{account: p.Account}, capture{account: p.Account}
	defer out.release()
	defer errs.release()
	var opened []*vfs.Handle
	defer func() {
		for _, h := range opened {
			_ = h.Close()
		}
	}()
	open := func(s vfs.Stream, flags vfs.Flags) *vfs.Handle {
		h := p.FS.Stream(s, flags)
		opened = append(opened, h)
		return h
	}
	if s.Stdin != nil {
		c.Stdin = open(&given{rest: *s.Stdin}, vfs.Read)
	}
	to := func(where string, inherited *vfs.Handle, captured *capture) *vfs.Handle {
		switch where {
		case Captured:
			return open(captured, vfs.Write)
		case Null:
			return open(&capture{drops: true}, vfs.Write)
		}
		return inherited
	}
	c.Stdout = to(s.Stdout, c.Stdout, &out)
	if s.Stderr == ToStdout {
		c.Stderr = c.Stdout
	} else {
		c.Stderr = to(s.Stderr, c.Stderr, &errs)
	}
	if s.Timeout > 0 {
		if at := p.Now().Add(s.Timeout); c.Deadline.IsZero() || at.Before(c.Deadline) {
			c.Deadline = at
		}
	}
	status, err := p.Execute(c)
	if err != nil {
		return Ended{}, err
	}
	return Ended{
		Status: status, Stdout: out.data, Stderr: errs.data,
		TimedOut: s.Timeout > 0 && status.Signal == SIGTERM && !p.Now().Before(c.Deadline),
	}, nil
}

// given is what a command reads that its starter had ready.
type given struct{ rest []byte }

func (g *given) Read(to []byte) (int, error) {
	if len(g.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(to, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

func (g *given) Write([]byte) (int, error) { return 0, vfs.EBADF }

// capture is what a command prints that its starter reads.
type capture struct {
	account *bound.Account
	data    []byte
	held    int64
	drops   bool
}

func (c *capture) Read([]byte) (int, error) { return 0, vfs.EBADF }

func (c *capture) Write(p []byte) (int, error) {
	if c.drops {
		return len(p), nil
	}
	n := int64(3 * len(p)) // it is held here, as text of an answer, and by the guest
	if err := c.account.Allocate(n); err != nil {
		return 0, vfs.ENOSPC
	}
	c.held += n
	c.data = append(c.data, p...)
	return len(p), nil
}

func (c *capture) release() {
	if c.account != nil {
		c.account.Release(c.held)
	}
}
