package runapi

import (
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/surface/httpapi/wire"
)

// runFrames are the messages of a run's stream.
func runFrames() []wire.Frame {
	return []wire.Frame{
		{Event: livestream.Operation, Doc: "An operation begins", Data: begun{}, Drop: true},
		{Event: livestream.Result, Doc: "An operation's result; long fields are left out and named in `omitted`", Data: run.Result{}, Drop: true},
		{Event: livestream.Stdout, Doc: "A piece of what a command prints", Data: output{}},
		{Event: livestream.Stderr, Doc: "A piece of what a command prints as errors", Data: output{}},
		{Event: livestream.Delta, Doc: "A piece of a model's answer, while it comes; the answer itself is recorded when it is whole",
			Data: model.Delta{}},
		{Event: livestream.Cut, Doc: "No more output of the run is kept", Data: cutShort{}},
		{Event: livestream.Complete, Doc: "The run has ended: its events message, without the events. Always the last", Data: run.Events{},
			Drop: true},
	}
}
