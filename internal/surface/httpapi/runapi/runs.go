// Package runapi has the operations for runs: in spaces, in contexts and by engines, with their steps, artifacts and transcripts.
package runapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/query"
	redacting "agentbox/internal/service/redaction"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/policyapi"
	"agentbox/internal/surface/httpapi/spaceapi"
	"agentbox/internal/surface/httpapi/strictjson"
	"agentbox/internal/surface/httpapi/wire"
)

// maxRunBody is the most that an operations message may have: six files of the largest size, in base64.
const maxRunBody = run.MaxInputBytes

// runRequest asks for a run: an operations message of protocol 1.0, and how to run it.
type runRequest struct {
	ProtocolVersion string          `json:"protocolVersion" enum:"1.0"`
	Operations      []run.Operation `json:"operations" minItems:"1" maxItems:"1000" doc:"The operations, in order"`
	Context         *runContext     `json:"context,omitempty" doc:"What the agent is to see first"`
	Agent           *runAgent       `json:"agent,omitempty" doc:"Who acts; the space's own agent unless named"`
	Title           string          `json:"title,omitempty" maxLength:"200"`
	Background      bool            `json:"background,omitempty" doc:"The run is one shell operation that does not wait for the other runs of its space, nor they for it; wait_seconds is 0 by default then"`
	Retention       string          `json:"retention,omitempty" maxLength:"40" doc:"How long what the run's events hold is kept once it has ended, as in 30d or 36h; then it is redacted. Only who may redact may ask for it; as long as the operator's rules say unless given"`
	Artifacts       []string        `json:"artifacts,omitempty" maxItems:"20" nullable:"false" doc:"Files of the space that are kept as artifacts when the run ends: paths in which * stays within a name and ** goes through folders, as in out/**; at most 200 files and 256 MiB"`
	Waiting
}

// Waiting says for how long a request waits for its run.
type Waiting struct {
	WaitSeconds *int64 `json:"wait_seconds,omitempty" minimum:"0" maximum:"300" doc:"Seconds to wait for the run to end or pause; 30 by default"`
	Wait        *int64 `json:"wait,omitempty" minimum:"0" maximum:"300" deprecated:"true" doc:"The older name of wait_seconds, in seconds too"`
}

// runSent is a runRequest as it is read: the operations stay as they were sent until the protocol's own reader has judged them.
type runSent struct {
	ProtocolVersion json.RawMessage   `json:"protocolVersion"`
	Operations      []json.RawMessage `json:"operations"`
	Context         *runContext       `json:"context"`
	Agent           *runAgent         `json:"agent"`
	Title           string            `json:"title"`
	Background      bool              `json:"background"`
	Retention       string            `json:"retention"`
	Artifacts       []string          `json:"artifacts"`
	Waiting
}

type runContext struct {
	Files []string `json:"files,omitempty" maxItems:"100" doc:"Files whose content opens the events, as results of readFile"`
}

type runAgent struct {
	Name string `json:"name" minLength:"1" maxLength:"100" doc:"The agent's name in the workspace; made if it is new"`
}

// eventsAnswer is an events message: 201 for a run that has ended, 200 for one that waits for a person, 202 for one that goes on.
type eventsAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     run.Events
}

// resumeRequest answers the question that a run waits for.
type resumeRequest struct {
	Approval resumeAnswer `json:"approval"`
	Waiting
}

type resumeAnswer struct {
	Operation string `json:"operationId" minLength:"1" maxLength:"128" doc:"The operation that the question is about"`
	Decision  string `json:"decision" enum:"approve,deny,approved,denied" doc:"approve or deny; approved and denied are their older names"`
	Reason    string `json:"reason,omitempty" maxLength:"2000"`
}

type cancelRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"2000"`
}

// RunPath names a run under its space.
type RunPath struct {
	Space string `path:"space_id" doc:"The space"`
	Run   string `path:"run_id" doc:"The run"`
}

const defaultWait, maxWait = 30, 300 // seconds

// Runs are the operations for runs in spaces.
type Runs struct {
	access.Part
	gate      *gate.Gate
	spaces    *spaces.Service
	runs      *runs.Service
	engines   *engines.Service
	redaction *redacting.Service
	identity  *identity.Service
	approvals *policyapi.Approvals
}

// NewRuns returns the operations for runs in spaces.
func NewRuns(p access.Part, gate *gate.Gate, spaces *spaces.Service, runs *runs.Service, engines *engines.Service,
	redaction *redacting.Service,
	identity *identity.Service, approvals *policyapi.Approvals) *Runs {
	return &Runs{p, gate, spaces, runs, engines, redaction, identity, approvals}
}

// Register adds the operations to the server.
func (s *Runs) Register() {
	message := run.Events{}
	wire.Stream[struct {
		spaceapi.SpacePath
		Call  string `header:"X-Tool-Call-Id" maxLength:"64" doc:"The tool call of an engine's run for which the operations are run; one call has one run, and a repeat is answered with it"`
		Token string `header:"X-Claim-Token" maxLength:"200" doc:"The token of the claim of that engine's run"`
		Body  runRequest
	}](s.Server, wire.Operation{
		ID: "create-run", Home: wire.AtSpace, Needs: wire.Does(policy.RunStart, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/runs", Tag: "runs", Summary: "Run operations in a space",
		Rate: wire.RateRuns, Waits: true, MaxBody: maxRunBody, Repeat: wire.RepeatByService, Reads: reflect.TypeFor[runSent](),
		Answers: map[int]any{http.StatusCreated: message, http.StatusOK: message, http.StatusAccepted: message},
		Detail: "Answers with the events message when the run has ended (201), waits for a person (200) or still goes on after `wait_seconds` " +
			"(202). " +
			"An operation that policy refuses is a result in it, not an error.",
	}, s.createRun)
	for _, where := range []struct{ id, path string }{{"list-space-runs", "/v1/spaces/{space_id}/runs"}, {"list-runs", "/v1/runs"}} {
		op := wire.Operation{ID: where.id, Needs: wire.Shows("run", "space_id"), Method: http.MethodGet, Path: where.path, Tag: "runs",
			Summary: "List runs, the newest first"}
		if where.id == "list-runs" {
			op.Summary += ", of the whole workspace"
			op.Needs.Of = append(op.Needs.Of, "room_id")
			wire.Handle(s.Server, op, func(ctx context.Context, c wire.Call, in *struct {
				Space      string `query:"space_id" doc:"Only runs of this space"`
				Room       string `query:"room_id" doc:"Only runs of this room"`
				Experiment string `query:"experiment_id" doc:"Only runs of this experiment"`
				Work       string `query:"work" enum:"agent,operations" doc:"Only runs that engines execute, of this kind: tasks of agents, or operations in a space"`
				Blueprint  string `query:"blueprint" maxLength:"63" doc:"Only runs of the agent that this blueprint defines"`
				RunFilter
			}) (*struct{ Body runList }, error) {
				return s.listRuns(ctx, c, history.Filter{Space: id.Space(in.Space), Room: id.Room(in.Room), Experiment: id.Experiment(in.Experiment),
					Work: in.Work, Blueprint: in.Blueprint}, in.RunFilter)
			})
			continue
		}
		wire.Handle(s.Server, op, func(ctx context.Context, c wire.Call, in *struct {
			spaceapi.SpacePath
			RunFilter
		}) (*struct{ Body runList }, error) {
			if _, err := s.spaces.Catalog.Space(ctx, c.Caller.Workspace, id.Space(in.Space)); err != nil {
				return nil, err
			}
			return s.listRuns(ctx, c, history.Filter{Space: id.Space(in.Space)}, in.RunFilter)
		})
	}
	wire.Handle(s.Server, wire.Operation{ID: "get-space-run", Needs: wire.Shows("run", "space_id", "run_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/runs/{run_id}", Tag: "runs", Summary: "Show a run with its result events"}, s.getRun)
	wire.Handle(s.Server, wire.Operation{ID: "get-run", Needs: wire.Shows("run", "run_id"), Method: http.MethodGet, Path: "/v1/runs/{run_id}",
		Tag: "runs", Summary: "Show a run with its result events, whatever its space"},
		func(ctx context.Context, c wire.Call, in *struct {
			Run string `path:"run_id" doc:"The run"`
		}) (*struct{ Body runShown }, error) {
			return s.getRun(ctx, c, &RunPath{Run: in.Run})
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "resume-run", Status: http.StatusCreated, Answers: map[int]any{http.StatusOK: message, http.StatusAccepted: message},
		Needs: wire.Does(policy.ApprovalDecide, "space_id", "run_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/runs/{run_id}/resume", Tag: "runs", Repeat: wire.RepeatRecalled, Waits: true,
		Summary: "Answer the question a run waits for, and wait for the run",
		Detail: "Approved means that exactly what was shown is done and the run goes on; denied means that the run goes on with the next " +
			"operation.",
	}, s.resumeRun)
	wire.Handle(s.Server, wire.Operation{
		ID: "cancel-run", Home: wire.AtSpace, Needs: wire.Does(policy.RunCancel, "space_id", "run_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/runs/{run_id}/cancel", Tag: "runs", Summary: "End a run and every process of it",
		Repeat: wire.RepeatRecalled,
		Status: http.StatusAccepted,
	}, s.cancelRun)
	wire.Stream[struct {
		RunPath
		From uint64 `query:"from" doc:"The number of the first frame; 1 by default"`
		Last uint64 `header:"Last-Event-ID" doc:"The last frame that was received; wins over from"`
	}](s.Server, wire.Operation{
		ID: "stream-run", Home: wire.AtSpace, Needs: wire.Shows("run", "space_id", "run_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/runs/{run_id}/stream", Tag: "runs", Summary: "Watch a run", Media: "text/event-stream", Frames: runFrames(),
		Detail: "Server-sent events named operation, event, stdout, stderr, cut and complete; id is the frame's number. The stream ends with " +
			"complete if and only if the run " +
			"has ended; a stream that ends otherwise is resumed with Last-Event-ID.",
	}, s.streamRun)
	s.registerStream()
	wire.Handle(s.Server, wire.Operation{
		ID: "retain-run", Needs: wire.Does(policy.AuditRedact, "run_id").From(principal.Admin).PastLabels(), Method: http.MethodPost,
		Path: "/v1/runs/{run_id}/retention", Tag: "runs", Summary: "Set how long the data of a run that has ended are kept",
		Repeat: wire.RepeatRecalled,
		Detail: "Counted from its end; when that is over, everything of the run that holds text is redacted. Never longer than the operator's " +
			"rules. Only owners and admins may.",
	}, s.retainRun)
	s.registerInput()
}

func (s *Runs) createRun(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	out, err := s.startRun(r, c, id.Space(r.PathValue("space_id")))
	if err != nil {
		return err
	}
	w.Header().Set("Location", out.Location)
	return wire.AnswerJSON(w, out.Status, out.Body)
}

func (s *Runs) startRun(r *http.Request, c wire.Call, sp id.Space) (*eventsAnswer, error) {
	ctx := r.Context()
	var sent runSent
	if err := strictjson.Decode(c.Body, &sent); err != nil {
		return nil, err
	}
	message, err := run.ParseParts(sent.ProtocolVersion, sent.Operations)
	if err != nil {
		return nil, err
	}
	wait, err := sent.Waiting.time()
	if err != nil {
		return nil, err
	}
	q := runs.Request{Workspace: c.Caller.Workspace, Space: sp, Title: sent.Title, Message: message, Key: c.ServiceKey()}
	if sent.Context != nil {
		q.Context = sent.Context.Files
	}
	if sent.Agent != nil {
		if q.Agent = sent.Agent.Name; q.Agent == "" || utf8.RuneCountInString(q.Agent) > 100 {
			return nil, fault.New(fault.Invalid, "invalid_field", "agent.name has 1 to 100 characters")
		}
	}
	if sent.Retention != "" {
		if q.Retention, err = run.ParseRetention(sent.Retention); err != nil {
			return nil, err
		}
	}
	if r.Header["X-Tool-Call-Id"] != nil {
		call := id.ToolCall(r.Header.Get("X-Tool-Call-Id"))
		if call == "" { // a plain run would not be the call's, and a repeat would be a second one
			return nil, fault.New(fault.Invalid, "invalid_field", "the header X-Tool-Call-Id is empty").
				With("name the tool call, or leave the header out")
		}
		token := r.Header.Get("X-Claim-Token")
		q.Under = func(ctx context.Context) (run.Under, error) {
			return s.engines.Steps.Vouch(ctx, c.Caller.Workspace, token, call)
		}
	}
	if q.Background = sent.Background; q.Background && sent.Wait == nil && sent.WaitSeconds == nil {
		wait = 0
	}
	q.Waits, q.Artifacts = wait > 0, sent.Artifacts
	doc, err := s.runs.Start(c.Lasting(ctx), c.Origin(), q)
	if err != nil {
		return nil, err
	}
	return s.waited(ctx, c, doc, "", wait)
}

// time returns for how long a request waits.
func (w Waiting) time() (time.Duration, error) {
	if w.Wait != nil && w.WaitSeconds != nil {
		return 0, fault.New(fault.Invalid, "invalid_field", "wait is the older name of wait_seconds; send one of them")
	}
	sent := cmp.Or(w.WaitSeconds, w.Wait)
	if sent == nil {
		return defaultWait * time.Second, nil
	}
	if *sent < 0 || *sent > maxWait {
		return 0, fault.New(fault.Invalid, "invalid_field", "wait_seconds is %d; it may be 0 to %d", *sent, maxWait)
	}
	return time.Duration(*sent) * time.Second, nil
}

// waited answers with the events message of a run when it has ended, waits for a person (about another question than the one that was just
// answered), or the time is over.
func (s *Runs) waited(ctx context.Context, c wire.Call, doc run.Run, answered id.Approval, wait time.Duration) (*eventsAnswer, error) {
	if wait > 0 {
		limited, cancel := s.Within(ctx, wait, s.Stopping())
		defer cancel()
		var err error
		if doc, err = s.runs.History.WaitPast(limited, doc.Workspace, doc.ID, answered); err != nil {
			return nil, err
		}
	}
	events, err := s.runs.History.Events(c.Lasting(ctx), doc) // a caller who closed their side may still read
	if err != nil {
		return nil, err
	}
	out := &eventsAnswer{Status: http.StatusAccepted, Location: "/v1/spaces/" + string(doc.Space) + "/runs/" + string(doc.ID), Body: events}
	switch {
	case doc.Status.Ended():
		out.Status = http.StatusCreated
	case doc.Status == run.AwaitingApproval:
		out.Status = http.StatusOK
	}
	return out, nil
}

// RunFilter are the parameters that select runs.
type RunFilter struct {
	Status     string `query:"status" enum:"queued,running,awaiting_approval,succeeded,failed,cancelled" doc:"Only runs in this state; awaiting_approval with work or blueprint: those that have waits_for"`
	Background bool   `query:"background" doc:"Only background runs"`
	access.Page[id.Run]
}

type runList struct {
	Runs []runListed `json:"runs" nullable:"false"`
	Next string      `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

func (s *Runs) listRuns(ctx context.Context, c wire.Call, in history.Filter, f RunFilter) (*struct{ Body runList }, error) {
	in.Status, in.Background = run.Status(f.Status), f.Background
	list := func(after id.Run, limit int) ([]run.Run, error) {
		return s.runs.History.List(ctx, c.Caller.Workspace, in, after, limit)
	}
	waits := func(r run.Run) (engines.Waits, error) { return s.waits(ctx, c, r) }
	out := runList{}
	var err error
	if in.Status == run.AwaitingApproval && (in.Work != "" || in.Blueprint != "") {
		in.Status = run.Running // a run of an engine is running while it waits
		out.Runs, out.Next, err = waiting(f.Cursor.After, f.Limit, list, waits)
	} else {
		out.Runs, out.Next, err = listed(f.Cursor.After, f.Limit, list, waits)
	}
	if err != nil {
		return nil, err
	}
	out.Runs, err = access.Visible(ctx, s.Access, c, out.Runs, func(x runListed) label.Resource {
		return label.Resource{Type: label.OfRun, ID: string(x.ID)}
	})
	return &struct{ Body runList }{out}, err
}

type runShown struct {
	run.Run
	engines.Waits
	Result run.Events      `json:"result" doc:"The run's events message"`
	Given  json.RawMessage `json:"given,omitempty" doc:"Of a run that an engine executes, the input as it was sent"`
}

// find returns a run of the caller's workspace and, where one is named, of the space: a run under another space is not found.
func (s *Runs) find(ctx context.Context, c wire.Call, p RunPath) (run.Run, error) {
	doc, err := s.runs.History.Find(ctx, c.Caller.Workspace, id.Run(p.Run))
	if err == nil && p.Space != "" && doc.Space != id.Space(p.Space) {
		err = fault.New(fault.NotFound, "run_not_found", "there is no run %.64q in this space", p.Run)
	}
	return doc, err
}

func (s *Runs) getRun(ctx context.Context, c wire.Call, in *RunPath) (*struct{ Body runShown }, error) {
	doc, err := s.find(ctx, c, *in)
	if err != nil {
		return nil, err
	}
	events, err := s.runs.History.Events(ctx, doc)
	if err != nil {
		return nil, err
	}
	shown := runShown{Run: doc, Result: events}
	if shown.Waits, err = s.waits(ctx, c, doc); err != nil {
		return nil, err
	}
	if doc.Engine {
		if shown.Given, err = s.engines.Given(ctx, doc); err == nil {
			shown.Given, _ = leak.Scan(shown.Given) // an order is kept as it was sent, and shown without secrets
		}
	}
	return &struct{ Body runShown }{shown}, err
}

func (s *Runs) resumeRun(ctx context.Context, c wire.Call, in *struct {
	RunPath
	Body resumeRequest
}) (*eventsAnswer, error) {
	doc, err := s.find(c.Lasting(ctx), c, in.RunPath)
	if err != nil {
		return nil, err
	}
	wait, err := in.Body.Waiting.time()
	if err != nil {
		return nil, err
	}
	about := in.Body.Approval.Operation
	i := slices.IndexFunc(doc.Operations, func(p run.Progress) bool { return p.ID == about })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "operation_not_found", "the run has no operation %.128q", about)
	}
	approval := doc.Operations[i].Approval
	if approval == "" {
		return nil, fault.New(fault.Conflict, "operation_not_waiting", "operation %.128q does not wait for a person", about)
	}
	decided, err := wire.Once(c, func() (policy.Approval, error) {
		return s.gate.Approvals.Get(c.Lasting(ctx), c.Caller.Workspace, approval)
	}, func() (policy.Approval, error) {
		return s.approvals.Decide(c.Lasting(ctx), c, approval, policyapi.AnswerRequest{Decision: in.Body.Approval.Decision,
			Reason: in.Body.Approval.Reason})
	})
	if err != nil {
		return nil, err
	}
	if decided.Open() {
		approval = "" // another person has to approve it too: the run still waits for this one
	}
	return s.waited(ctx, c, doc, approval, wait)
}

func (s *Runs) cancelRun(ctx context.Context, c wire.Call, in *struct {
	RunPath
	Body *cancelRequest
}) (*struct{ Body run.Run }, error) {
	doc, err := s.find(ctx, c, in.RunPath)
	if err != nil {
		return nil, err
	}
	if err := s.identity.MayStop(ctx, doc.Workspace, c.Caller.Principal, doc.Agent); err != nil {
		return nil, err
	}
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	doc, err = wire.Once(c, func() (run.Run, error) { return doc, nil }, func() (run.Run, error) {
		if !doc.Engine {
			if err := s.runs.Cancel(ctx, c.Once(), doc.Workspace, doc.ID, reason); err != nil {
				return doc, err
			}
			return s.find(ctx, c, in.RunPath)
		}
		ended, err := s.engines.Cancel(ctx, c.Once(), doc.Workspace, doc.ID, reason)
		if err == nil {
			err = s.cancelChildren(ctx, c, ended)
		}
		return ended, err
	})
	if err != nil {
		return nil, err
	}
	doc, err = s.bare(ctx, c, doc)
	return &struct{ Body run.Run }{doc}, err
}

// bare returns a run after it was ended or before it is redacted. If a label withholds it from the caller, it has only ids and states.
func (s *Runs) bare(ctx context.Context, c wire.Call, doc run.Run) (run.Run, error) {
	hidden, err := s.Hidden(ctx, c, label.Resource{Type: label.OfRun, ID: string(doc.ID)})
	if err != nil || !hidden {
		return doc, err
	}
	return run.Run{
		ID: doc.ID, Workspace: doc.Workspace, Room: doc.Room, Space: doc.Space, Agent: doc.Agent, CreatedBy: doc.CreatedBy, Status: doc.Status,
		Operations: []run.Progress{},
		Retention:  doc.Retention, KeptUntil: doc.KeptUntil, CreatedAt: doc.CreatedAt, StartedAt: doc.StartedAt, EndedAt: doc.EndedAt,
		Correlation: doc.Correlation,
	}, nil
}

// cancelChildren ends what the daemon executes in spaces for a run that an engine had. Nothing new can begin: it would expect the run as
// it was.
func (s *Runs) cancelChildren(ctx context.Context, c wire.Call, doc run.Run) error {
	for after := ""; ; {
		calls, err := s.engines.Look.Calls(ctx, doc.Workspace, engines.Of{Run: doc.ID}, after, 100)
		if err != nil || len(calls) == 0 {
			return err
		}
		for _, call := range calls {
			after = string(call.ID)
			if call.Child == "" || call.Status != step.Running {
				continue
			}
			if err := s.runs.Cancel(ctx, c.Origin(), doc.Workspace, call.Child,
				"the run for which it was executed was cancelled"); err != nil && !errors.Is(err, runs.ErrEnded) {
				return err
			}
		}
	}
}

type retainRequest struct {
	Retention string `json:"retention" minLength:"1" maxLength:"40" doc:"As in 30d or 36h; none for as long as the operator's rules say"`
}

func (s *Runs) retainRun(ctx context.Context, c wire.Call, in *struct {
	Run  string `path:"run_id" doc:"The run"`
	Body retainRequest
}) (*struct{ Body run.Run }, error) {
	var keep time.Duration
	if in.Body.Retention != "none" {
		var err error
		if keep, err = run.ParseRetention(in.Body.Retention); err != nil {
			return nil, err
		}
	}
	doc, err := wire.Once(c, func() (run.Run, error) {
		return access.Then[run.Run](ctx, s.Access, c, query.Subject{Projection: run.Projection, Key: in.Run})
	}, func() (run.Run, error) {
		return s.redaction.Retain(ctx, c.Once(), c.Caller.Workspace, id.Run(in.Run), keep)
	})
	if err != nil {
		return nil, err
	}
	doc, err = s.bare(ctx, c, doc)
	return &struct{ Body run.Run }{doc}, err
}

// output is the data of a stdout or stderr frame.
type output struct {
	Operation string `json:"operationId" doc:"The operation that prints"`
	Data      string `json:"data" doc:"What it printed"`
	Encoding  string `json:"encoding" enum:"utf-8,base64" doc:"base64 where the bytes are no text"`
	Time      string `json:"timestamp" format:"date-time"`
}

func (s *Runs) streamRun(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	doc, err := s.find(r.Context(), c, RunPath{r.PathValue("space_id"), r.PathValue("run_id")})
	if err != nil {
		return err
	}
	from, _, err := wire.Cursor(r, "from")
	if err == nil && from > 1 {
		var there uint64
		if there, err = s.runs.Frames.Count(r.Context(), doc.ID, from-1); err == nil {
			err = wire.Within(from, there+1)
		}
	}
	if err != nil {
		return err
	}
	return s.Feed(w, r, c, func(ctx context.Context) iter.Seq2[wire.Message, error] {
		return func(yield func(wire.Message, error) bool) {
			for f, err := range s.runs.Frames.Follow(ctx, doc.Workspace, doc.ID, from) {
				if err == nil { // a label may come meanwhile: then the stream ends, and a new request gets the reason
					var hidden bool
					if hidden, err = s.Hidden(ctx, c, label.Resource{Type: label.OfRun, ID: string(doc.ID)}); hidden && err == nil {
						return
					}
				}
				if !yield(wire.Message{ID: f.N, Name: f.Kind, Data: frameData(f.Kind, f.Operation, f.Data, f.At), Last: f.Kind == "complete"}, err) {
					return
				}
			}
		}
	})
}
