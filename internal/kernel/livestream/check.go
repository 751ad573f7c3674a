package livestream

import (
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Limits of frames that carry JSON instead of output, of a frame's texts, and of one read.
const (
	MaxJSONBytes = 16 << 20 // of an operation, its result, or the last message
	MaxTextBytes = 256
	MaxRead      = 1_000 // frames
)

// ErrComplete means that the run has ended; nothing follows its last frame.
var ErrComplete = fault.New(fault.Conflict, "stream_complete", "the run's output is complete; nothing can follow it")

// Check returns the frame with a nil output made empty, or a fault that names the error. A store calls it before it takes a frame.
func Check(run id.Run, f Frame) (Frame, error) {
	limit := MaxJSONBytes
	switch f.Kind {
	case Stdout, Stderr:
		limit = MaxFrameBytes
	case Operation, Result, Delta, Complete:
	default:
		return f, fault.New(fault.Invalid, "frame_invalid", "%.64q is not a kind of frame", f.Kind)
	}
	if run == "" || len(run) > MaxTextBytes || len(f.Operation) > MaxTextBytes {
		return f, fault.New(fault.Invalid, "frame_invalid", "a frame names its run, and texts have at most %d bytes", MaxTextBytes)
	}
	if len(f.Data) > limit {
		return f, fault.New(fault.Exhausted, "frame_too_large", "a frame of %s carries at most %d bytes, not %d", f.Kind, limit, len(f.Data))
	}
	if f.Data == nil {
		f.Data = []byte{}
	}
	return f, nil
}

// CheckRead refuses a limit that is not 1 to MaxRead.
func CheckRead(limit int) error {
	if limit < 1 || limit > MaxRead {
		return fault.New(fault.Invalid, "limit_invalid", "limit is 1 to %d, not %d", MaxRead, limit)
	}
	return nil
}

// Stamp returns the time as a store keeps it: UTC, to the microsecond.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
