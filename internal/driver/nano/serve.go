package nano

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"agentbox/internal/driver/nano/worker"
)

// The commands to Worker.
const (
	serves   = "serve"
	tries    = "try"
	prepares = "prepare"
)

// Worker is the main function of the process that a tier starts with arguments of its own. It prepares the interpreters, or serves
// executions until in ends.
func Worker(ctx context.Context, args []string, in io.Reader, out io.Writer, exit func()) error {
	switch {
	case len(args) == 2 && args[0] == prepares:
		return prepareFor(ctx, args[1], in, out, exit)
	case len(args) == 2 && args[0] == serves:
		return Serve(ctx, args[1], in, out, exit)
	case len(args) == 2 && args[0] == tries:
		return serve(&guests{cache: args[1]}, (*guests).bare, in, out, exit)
	}
	return fmt.Errorf("this is started by the daemon: %q is not what it says", args)
}

// dataBytes bounds the private memory of a worker's process: its own memory and that of an execution.
const dataBytes = 4 << 30

// Serve makes this process a worker. It loads the files that Prepare has put into a folder, gives up every right that executions do not
// need, and executes the orders of in until in ends. If the daemon is gone while an execution does not stop, Serve calls exit, which does
// not return.
func Serve(ctx context.Context, cache string, in io.Reader, out io.Writer, exit func()) error {
	return serve(&guests{cache: cache}, func(g *guests) error { return g.open(ctx, false) }, in, out, exit)
}

// serve is Serve with what open has made of g.
func serve(g *guests, open func(*guests) error, in io.Reader, out io.Writer, exit func()) error {
	if err := open(g); err != nil {
		return err
	}
	s := newSystem(g)
	if err := s.rehearse(); err != nil {
		return err
	}
	debug.FreeOSMemory()   // what was read and made on the way is many times what is needed from now on
	in = worker.Polled(in) // before it can ask for it no more
	if err := worker.Confine(worker.Confinement{DataBytes: dataBytes}); err != nil {
		return err
	}
	return worker.Serve(in, out, s, exit)
}
