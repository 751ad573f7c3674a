// Package livestream is the contract of a run's output while it comes: numbered frames that a reader can resume from any number.
//
// Frames are not events: they carry the output of a command, in pieces as they arrive. The result event of the operation holds the whole
// output; frames exist so that people can watch, and they survive a restart of the daemon like everything else.
package livestream

import (
	"context"
	"time"

	"agentbox/internal/domain/id"
)

// MaxFrameBytes is the most that one frame carries.
const MaxFrameBytes = 32 << 10

// The kinds of frame; they are the SSE event names of a run's stream.
const (
	Operation = "operation" // an operation begins; Data is its JSON
	Result    = "event"     // its result event; Data is its JSON
	Stdout    = "stdout"
	Stderr    = "stderr"
	Cut       = "cut"      // no more stdout, stderr and delta is kept; Data is JSON that names the limit. Made by a store, never appended
	Delta     = "delta"    // a piece of a model's answer; Data is JSON, Operation the name of the request
	Complete  = "complete" // the run ended; Data is its events message without the events. Always the last
)

// Frame is a piece of a run's output.
type Frame struct {
	N         uint64    `json:"n"` // from 1, without gaps; stamped by the store
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Operation string    `json:"operation_id,omitempty"`
	Data      []byte    `json:"data"`
}

// Forgotten returns a frame whose content was forgotten.
func Forgotten(f Frame) Frame {
	switch f.Kind {
	case Operation, Result, Delta, Complete:
		f.Data = []byte(`{"redacted":true}`)
	case Stdout, Stderr:
		f.Data = []byte{}
	}
	return f
}

// Store keeps the frames of runs. The conformance suite is package livestreamtest.
type Store interface {
	// Append adds a frame and returns its number.
	Append(ctx context.Context, run id.Run, f Frame) (uint64, error)
	// Read returns up to limit frames from number from on, in order.
	Read(ctx context.Context, run id.Run, from uint64, limit int) ([]Frame, error)
	// Wait returns when there is a frame beyond number after, or when ctx ends.
	Wait(ctx context.Context, run id.Run, after uint64) error
	// Forget destroys the content of the frames of operations of a run, for good. "" names the frames that belong to no operation. The
	// frames stay, with Forgotten as their content. A run without frames is not an error.
	Forget(run id.Run, operations ...string) error
	// Sync makes all frames of the run durable; the service of runs calls it before it records the result of an operation that took a while.
	// Frames that are not durable survive the end of the daemon, but not that of the host.
	Sync(ctx context.Context, run id.Run) error
}
