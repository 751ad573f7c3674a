package python

import (
	"encoding/json"
	"errors"
	"time"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// request is a request of the guest to the host beside WASI: about modes of files, and commands that a program starts.
type request struct {
	Op      string   `json:"op"`
	Args    []string `json:"args"` // of a command, or a path
	Mode    uint32   `json:"mode"`
	FD      int      `json:"fd"`
	Cwd     string   `json:"cwd"`
	Env     []string `json:"env"`
	Stdin   *[]byte  `json:"stdin"`  // nil for the program's own
	Stdout  string   `json:"stdout"` // inherit, capture or null
	Stderr  string   `json:"stderr"` // and stdout
	Timeout *float64 `json:"timeout"`

	Value  json.RawMessage `json:"value"`  // of a cell, that is shown
	Result bool            `json:"result"` // it is that of its last expression
}

// reply is the answer.
type reply struct {
	Errno    int    `json:"errno,omitempty"`
	PID      int    `json:"pid,omitempty"`
	Code     int    `json:"code"` // negative for a signal
	Stdout   []byte `json:"stdout"`
	Stderr   []byte `json:"stderr"`
	TimedOut bool   `json:"timed_out,omitempty"`
}

// maxRequest bounds a request, with the input of its command.
const maxRequest = 64 << 20

// ask answers a request of the guest. Below zero it has no answer.
func ask(in *wasm.Instance, stack []uint64) {
	s := in.State.(*state)
	at, n := uint32(stack[0]), uint32(stack[1])
	stack[0] = uint64(1<<32 - 1)
	b, ok := in.Bytes(at, n)
	if !ok || n > maxRequest || s.process == nil || s.process.Host == nil {
		return
	}
	s.process.Charge(int(n) / bytesPerGas)
	var r request
	if json.Unmarshal(b, &r) != nil || len(r.Args) == 0 && takesPaths(r.Op) {
		return
	}
	var a reply
	switch r.Op {
	case "show":
		if s.showing == nil {
			return
		}
		s.showing.Show(r.Value, r.Result)
	case "chmod":
		err := s.process.FS.Chmod(vfs.At{Dir: s.process.FS.Root()}, r.Args[0], r.Mode, true)
		a.Errno = number(err)
	case "fchmod":
		h := s.wasi.Handle(r.FD)
		if h == nil || h.Node() == nil {
			a.Errno = numbers[vfs.EBADF]
			break
		}
		a.Errno = number(h.Node().Chmod(r.Mode))
	case "umask":
		a.Code = int(s.process.Umask)
		s.process.Umask = r.Mode & 0o777
		s.wasi.SetUmask(r.Mode)
	case "create":
		s.wasi.SetCreates(r.Mode)
	case "created":
		s.wasi.ForgetCreates()
	case "opened":
		a.Code = s.wasi.Descriptors() - s.begun
	case "find":
		a = find(s.process, &r)
	case "execute":
		a = run(s.process, &r)
	default:
		return
	}
	s.answer, _ = json.Marshal(a) // of numbers, bytes and truth values
	s.process.Charge(len(s.answer) / bytesPerGas)
	stack[0] = uint64(uint32(len(s.answer)))
}

// takesPaths reports whether a request names something.
func takesPaths(op string) bool {
	switch op {
	case "show", "fchmod", "umask", "create", "created":
		return false
	}
	return true
}

// take copies the answer into memory that the guest has for it.
func take(in *wasm.Instance, stack []uint64) {
	s := in.State.(*state)
	if to, ok := in.Bytes(uint32(stack[0]), uint32(len(s.answer))); ok {
		copy(to, s.answer)
	}
	s.answer = nil
}

// command is the command that a request starts.
func (r *request) command() program.Subprocess {
	c := program.Subprocess{Args: r.Args, Env: r.Env, Cwd: r.Cwd, Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr}
	if r.Timeout != nil { // a time of nothing is over at once
		c.Timeout = max(time.Duration(min(max(*r.Timeout, 0), 1e9)*float64(time.Second)), 1)
	}
	return c
}

func find(p *program.Process, r *request) reply {
	err := r.command().Find(p)
	if errors.Is(err, vfs.ENOENT) {
		p.Host.Report(program.Lack{Kind: program.LackCommand, Name: r.Args[0]})
	}
	return reply{Errno: number(err), PID: p.PID + 1}
}

// run runs a command to its end.
func run(p *program.Process, r *request) reply {
	ended, err := r.command().Run(p)
	if err != nil {
		return reply{Errno: number(err)}
	}
	a := reply{Code: ended.Status.Code, Stdout: ended.Stdout, Stderr: ended.Stderr, TimedOut: ended.TimedOut}
	if ended.Status.Signal != 0 {
		a.Code = -ended.Status.Signal
	}
	return a
}

// numbers are Linux's, which programs know errors by.
var numbers = map[vfs.Errno]int{
	vfs.EPERM: 1, vfs.ENOENT: 2, vfs.EIO: 5, vfs.EBADF: 9, vfs.EAGAIN: 11, vfs.ENOMEM: 12, vfs.EACCES: 13, vfs.EBUSY: 16, vfs.EEXIST: 17,
	vfs.EXDEV:   18,
	vfs.ENOTDIR: 20, vfs.EISDIR: 21, vfs.EINVAL: 22, vfs.EMFILE: 24, vfs.ETXTBSY: 26, vfs.EFBIG: 27, vfs.ENOSPC: 28, vfs.ESPIPE: 29,
	vfs.EROFS:  30,
	vfs.EMLINK: 31, vfs.EPIPE: 32, vfs.ENAMETOOLONG: 36, vfs.ENOTEMPTY: 39, vfs.ELOOP: 40, vfs.ENOTSUP: 95,
}

// number returns the number of an error, 0 for none. It throws an error that ends the execution.
func number(err error) int {
	if err == nil {
		return 0
	}
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
	if errors.Is(err, bound.ErrMemory) {
		return numbers[vfs.ENOMEM]
	}
	if errors.Is(err, bound.ErrDepth) {
		return numbers[vfs.EAGAIN]
	}
	if e, ok := errors.AsType[vfs.Errno](err); ok && numbers[e] != 0 {
		return numbers[e]
	}
	return numbers[vfs.EIO]
}
