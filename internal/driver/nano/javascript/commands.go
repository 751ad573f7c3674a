package javascript

import (
	"encoding/json"
	"errors"
	"time"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// order is a command that a program starts.
type order struct {
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	Cwd     string   `json:"cwd"`
	Stdout  string   `json:"stdout"`
	Stderr  string   `json:"stderr"`
	Feeds   bool     `json:"feeds"`   // what stands behind the order is its standard input
	Timeout float64  `json:"timeout"` // milliseconds; 0 means without limit
}

// endedWith stands in front of the output of a command.
type endedWith struct {
	Code     int  `json:"code"`
	Signal   int  `json:"signal"`
	TimedOut bool `json:"timed_out"`
	Out      int  `json:"out"` // bytes of its standard output, and then comes its standard error
}

// execute runs a command to its end, and returns how it ended as a line of JSON, then its standard output and its standard error.
func (r *run) execute(a *arguments) (any, error) {
	var o order
	text := a.text()
	input := a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil || len(o.Args) == 0 {
		return nil, errors.Join(err, vfs.EINVAL)
	}
	r.p.Charge(len(text) + len(input))
	c := program.Subprocess{Args: o.Args, Env: o.Env, Cwd: o.Cwd, Stdout: o.Stdout, Stderr: o.Stderr}
	if o.Feeds {
		given := append([]byte{}, input...) // the guest's memory moves while the command runs
		c.Stdin = &given
	}
	if o.Timeout > 0 {
		c.Timeout = time.Duration(min(o.Timeout, 1e12) * float64(time.Millisecond))
	}
	ended, err := c.Run(r.p)
	if err != nil {
		if errors.Is(err, vfs.ENOENT) && c.Find(r.p) != nil {
			r.p.Host.Report(program.Lack{Kind: program.LackCommand, Name: o.Args[0]})
		}
		return nil, err
	}
	head, err := json.Marshal(endedWith{Code: ended.Status.Code, Signal: ended.Status.Signal, TimedOut: ended.TimedOut,
		Out: len(ended.Stdout)})
	if err != nil {
		return nil, err
	}
	answer := make([]byte, 0, len(head)+1+len(ended.Stdout)+len(ended.Stderr))
	answer = append(append(append(append(answer, head...), '\n'), ended.Stdout...), ended.Stderr...)
	r.p.Charge(len(answer))
	return answer, nil
}
