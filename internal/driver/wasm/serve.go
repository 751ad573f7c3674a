package wasm

import (
	"io"

	"agentbox/internal/driver/wasm/worker"
)

// dataBytes bounds the private memory of a worker's process: its own, and what an execution may hold.
const dataBytes = 4 << 30

// Serve makes this process a worker: it prepares what executions need, gives up every right that it does not need for them, and executes what is asked for
// over in until it ends. Where the daemon is gone while an execution does not stop, exit is called, which does not return.
func Serve(in io.Reader, out io.Writer, exit func()) error {
	s := newSystem(nil)
	if err := worker.Confine(worker.Confinement{DataBytes: dataBytes}); err != nil {
		return err
	}
	return worker.Serve(in, out, s, exit)
}
