package runapi

import (
	"cmp"
	"context"
	"net/http"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/spaceapi"
	"agentbox/internal/surface/httpapi/wire"
)

// ContextPath names an interpreter context of a space.
type ContextPath struct {
	Space   string `path:"space_id" doc:"The space"`
	Context string `path:"context" doc:"The context"`
}

// cellRequest asks for a cell to be run.
type cellRequest struct {
	Language  string            `json:"language" enum:"python,javascript" doc:"TypeScript is javascript whose types are taken away"`
	Code      string            `json:"code,omitempty" doc:"At most 30,000 bytes; longer code is put into a file of the space"`
	File      string            `json:"file,omitempty" doc:"The file of the space that holds the code, instead of it"`
	Cwd       string            `json:"cwd,omitempty" doc:"The working folder, below the space's files"`
	Env       map[string]string `json:"env,omitempty" doc:"Variables of the cell's environment; none stays for the next one"`
	TimeoutMS *int64            `json:"timeout_ms,omitempty" minimum:"1" maximum:"3600000" doc:"Milliseconds that it may take; 30,000 by default, and never more than policy allows"`
	Timeout   *int64            `json:"timeout,omitempty" minimum:"1" maximum:"3600000" deprecated:"true" doc:"The older name of timeout_ms, in milliseconds too"`
	Agent     *runAgent         `json:"agent,omitempty" doc:"Who acts; the space's own agent unless named"`
	Title     string            `json:"title,omitempty" maxLength:"200"`
	Waiting
}

type contextList struct {
	Contexts []space.Context `json:"contexts" nullable:"false"`
}

// Contexts are the operations for interpreter contexts.
type Contexts struct {
	access.Part
	spaces *spaces.Service
	runs   *runs.Service
	of     *Runs
}

// NewContexts returns the operations for interpreter contexts.
func NewContexts(p access.Part, spaces *spaces.Service, runs *runs.Service, of *Runs) *Contexts {
	return &Contexts{p, spaces, runs, of}
}

// Register adds the operations to the server.
func (s *Contexts) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "run-cell", Home: wire.AtSpace, Needs: wire.Does(policy.RunStart, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/contexts/{context}/cells", Tag: "contexts",
		Summary: "Run code in an interpreter context of a space", Rate: wire.RateRuns, Waits: true, Repeat: wire.RepeatByService,
		Status:  http.StatusCreated,
		Answers: map[int]any{http.StatusOK: run.Events{}, http.StatusAccepted: run.Events{}},
		Detail: "What the code defines stays for the next cell. A cell is a run of one shell operation, judged and recorded as every run, and " +
			"answered like one: 201 when it has ended, " +
			"200 when it waits for a person, 202 when it still goes on after `wait_seconds`. The operation's result names in `displays` what the " +
			"cell has shown, each an artifact of the run. " +
			"A context is made by its first cell. In nano its state is a file of the space, and is kept, forked and rewound with the others. In " +
			"the tier namespace it is a process, which ends with the space and at a rewind; a fork has none. The next cell begins a new one.",
	}, s.runCell)
	wire.Handle(s.Server, wire.Operation{
		ID: "list-contexts", Home: wire.AtSpace, Needs: wire.Does(policy.FileList, "space_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/contexts", Tag: "contexts",
		Summary: "List the interpreter contexts of a space", Rate: wire.RateFiles,
	}, func(ctx context.Context, c wire.Call, in *spaceapi.SpacePath) (*struct{ Body contextList }, error) {
		found, err := s.spaces.Contexts.List(ctx, c.Origin(), c.Caller.Workspace, id.Space(in.Space))
		return &struct{ Body contextList }{contextList{found}}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "delete-context", Home: wire.AtSpace, Needs: wire.Does(policy.FileDelete, "space_id").PastLabels(), Method: http.MethodDelete,
		Path: "/v1/spaces/{space_id}/contexts/{context}", Tag: "contexts",
		Summary: "Delete an interpreter context of a space", Rate: wire.RateFiles, Status: http.StatusNoContent,
		Detail: "Its file is deleted, and that is judged as the deletion of the file. The next cell of the name begins a new context.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		ContextPath
		Language string `query:"language" enum:"python,javascript" doc:"Needed where there is a context of the name in both"`
	}) (*struct{}, error) {
		return nil, s.spaces.Contexts.Delete(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), in.Context, in.Language)
	})
}

func (s *Contexts) runCell(ctx context.Context, c wire.Call, in *struct {
	ContextPath
	Body cellRequest
}) (*eventsAnswer, error) {
	q := runs.Request{Workspace: c.Caller.Workspace, Space: id.Space(in.Space), Title: in.Body.Title, Key: c.ServiceKey(),
		Unless: s.spaces.Contexts.Has}
	wait, err := in.Body.Waiting.time()
	if err != nil {
		return nil, err
	}
	if in.Body.Timeout != nil && in.Body.TimeoutMS != nil {
		return nil, fault.New(fault.Invalid, "invalid_field", "timeout is the older name of timeout_ms; send one of them")
	}
	if in.Body.Agent != nil {
		q.Agent = in.Body.Agent.Name
	}
	q.Message, err = runs.Cell{
		Context: in.Context, Language: in.Body.Language, Code: in.Body.Code, File: in.Body.File, Cwd: in.Body.Cwd, Env: in.Body.Env,
		Timeout: cmp.Or(in.Body.TimeoutMS, in.Body.Timeout),
	}.Message()
	if err != nil {
		return nil, err
	}
	q.Waits = wait > 0
	doc, err := s.runs.Start(c.Lasting(ctx), c.Origin(), q)
	if err != nil {
		return nil, err
	}
	return s.of.waited(ctx, c, doc, "", wait)
}
