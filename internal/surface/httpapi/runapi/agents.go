package runapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/agents"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// agentTask is the task of an agent.
type agentTask struct {
	Task     string    `json:"task" minLength:"1" maxLength:"262144" doc:"What the agent is to do, at most 256 KiB"`
	Version  int       `json:"version,omitempty" minimum:"1" doc:"Of the blueprint; the newest without it"`
	Space    id.Space  `json:"space_id,omitempty" maxLength:"100" doc:"Where it works, by id or name; a new space without it"`
	Room     id.Room   `json:"room_id,omitempty" maxLength:"64" doc:"The room of the run; that of the space without it"`
	Thread   id.Thread `json:"thread_id,omitempty" maxLength:"64" doc:"The agent reads what people post in it; a new one without it"`
	After    id.Run    `json:"after_run_id,omitempty" maxLength:"64" doc:"An ended run whose conversation goes on, in the same place"`
	Model    string    `json:"model,omitempty" maxLength:"64" doc:"The model that answers; that of the blueprint without it"`
	Pictures []picture `json:"pictures,omitempty" maxItems:"8" doc:"For a model that takes pictures; they become artifacts"`
	Title    string    `json:"title,omitempty" maxLength:"200" doc:"Of the run; the beginning of the task without it"`
}

// picture is a picture of a task.
type picture struct {
	Name string `json:"name,omitempty" maxLength:"200" doc:"The name of its file"`
	Data []byte `json:"data" minLength:"1" maxLength:"4194304" doc:"PNG, JPEG, GIF or WebP of at most 3 MiB, in base64"`
}

// maxTaskBody is the most that a task has: its text, and its pictures in base64.
const maxTaskBody = maxOrderBody + model.MaxImages*model.MaxImage*4/3 + 16<<10

// Agents are the operations for runs of agents.
type Agents struct {
	access.Part
	start *agents.Starter
	of    *Claims
}

// NewAgents returns the operations for runs of agents.
func NewAgents(p access.Part, start *agents.Starter, of *Claims) *Agents {
	return &Agents{p, start, of}
}

// Register adds the operations to the server.
func (s *Agents) Register() {
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "run-blueprint", Needs: wire.DoesThere(policy.RunCreate), Method: http.MethodPost, Path: "/v1/blueprints/{blueprint}/runs",
		Tag: "engines", Summary: "Give an agent a task", Rate: wire.RateRuns, Repeat: wire.RepeatRecalled, Status: http.StatusCreated,
		MaxBody: maxTaskBody,
		Detail: "The daemon's loop executes it: it asks the blueprint's model, and makes the tool calls that policy permits, until the model " +
			"reports. The input of the run names exactly what it runs with. A blueprint is refused (blueprint_unpinned) when a pin is missing or " +
			"does not fit, unless the daemon was started with --floating-pins.",
	}, s.of.spoken, s.run, func(r run.Run) *struct{ Body run.Run } { return &struct{ Body run.Run }{r} })
}

func (s *Agents) run(ctx context.Context, c wire.Call, in *struct {
	Name string `path:"blueprint" maxLength:"63" doc:"The blueprint's name"`
	Body agentTask
}) (run.Run, error) {
	q := in.Body
	if q.Space != "" {
		var err error
		if q.Space, err = s.SpaceNamed(ctx, c, q.Space); err != nil {
			return run.Run{}, err
		}
		in, err := s.of.spaces.Catalog.Space(ctx, c.Caller.Workspace, q.Space)
		if err != nil {
			return run.Run{}, err
		}
		if q.Room == "" && q.Thread == "" {
			q.Room = in.Room
		}
	}
	if err := s.of.reaches(ctx, c, q.Space, q.Thread, q.After); err != nil {
		return run.Run{}, err
	}
	var pictures []agents.Picture
	for _, p := range q.Pictures {
		pictures = append(pictures, agents.Picture{Name: p.Name, Data: p.Data})
	}
	return s.start.Start(ctx, c.Once(), agents.Task{
		Workspace: c.Caller.Workspace, Blueprint: in.Name, Version: q.Version, Text: q.Task,
		Space: q.Space, Room: q.Room, Thread: q.Thread, After: q.After, Model: q.Model, Title: q.Title, Pictures: pictures,
		Key: c.ServiceKey(),
	})
}
