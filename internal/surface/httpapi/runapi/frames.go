package runapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

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

// begun is the data of an operation frame. The stream speaks protocol 1.0, so its names are in camel case.
type begun struct {
	Operation string `json:"operationId" doc:"The operation that begins"`
	Older     string `json:"operation_id" deprecated:"true" doc:"The older name of operationId"`
	Type      opType `json:"type" doc:"Its type"`
	Summary   string `json:"summary,omitempty" doc:"What it is about, in a line"`
	Context   bool   `json:"context,omitempty" doc:"Nobody sent it: it reads a file of the run's context"`
}

// opType is the type of an operation. The API document lists the types of protocol 1.0.
type opType string

// Schema implements huma.SchemaProvider.
func (opType) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, spec := range run.Specs() {
		s.Enum = append(s.Enum, spec.Type)
	}
	return s
}

// cutShort is the data of a cut frame.
type cutShort struct {
	Limit     string `json:"limit" doc:"The bound that was reached: output_bytes"`
	Kept      int64  `json:"keptBytes" doc:"Bytes of output that were kept"`
	Max       int64  `json:"maxBytes" doc:"Bytes of output that are kept at most"`
	OlderKept int64  `json:"kept_bytes" deprecated:"true" doc:"The older name of keptBytes"`
	OlderMax  int64  `json:"max_bytes" deprecated:"true" doc:"The older name of maxBytes"`
}

// frameData returns the data of a frame as the stream shows it.
func frameData(kind, operation string, data []byte, at time.Time) []byte {
	if kind == livestream.Operation {
		var o run.Outline
		if json.Unmarshal(data, &o) != nil || o.ID == "" {
			return data // its content was forgotten
		}
		raw, _ := json.Marshal(begun{o.ID, o.ID, opType(o.Type), o.Summary, o.Context}) // strings only
		return raw
	}
	if kind == livestream.Cut {
		var c cutShort
		if json.Unmarshal(data, &c) != nil {
			return data
		}
		c.Kept, c.Max = c.OlderKept, c.OlderMax
		raw, _ := json.Marshal(c) // a word and numbers only
		return raw
	}
	if kind != "stdout" && kind != "stderr" {
		return data
	}
	o := output{Operation: operation, Data: string(data), Encoding: "utf-8", Time: at.UTC().Format(time.RFC3339Nano)}
	if !utf8.Valid(data) {
		o.Data, o.Encoding = base64.StdEncoding.EncodeToString(data), "base64"
	}
	raw, _ := json.Marshal(o) // strings only
	return raw
}
