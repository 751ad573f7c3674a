package runapi

import (
	"net/http"

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

// registerStream adds the stream of a run of any space, or of none, to the server.
func (s *Runs) registerStream() {
	wire.Stream[struct {
		Run  string `path:"run_id" doc:"The run"`
		From uint64 `query:"from" doc:"The number of the first frame; 1 by default"`
		Last uint64 `header:"Last-Event-ID" doc:"The last frame that was received; wins over from"`
	}](s.Server, wire.Operation{
		ID: "stream-any-run", Home: wire.AtRun, Needs: wire.Shows("run", "run_id"), Method: http.MethodGet,
		Path: "/v1/runs/{run_id}/stream", Tag: "runs", Summary: "Watch a run, whoever executes it",
		Media: "text/event-stream", Frames: runFrames(),
		Detail: "As the stream of a run under its space. That of an agent's run has the pieces of the model's answers (delta), and the tool " +
			"calls with their questions and results (operation and event; operationId is the tool call).",
	}, s.streamRun)
}
