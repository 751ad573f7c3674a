// Package external runs coding agents of other vendors in spaces, and answers their requests to a model.
package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
)

// Question is a request of a program to a model.
type Question struct {
	Request model.Request
	Model   string // as the program names it
	Wire    string // chat, responses or messages
}

// Answer answers a question, as model.Asker does.
type Answer func(ctx context.Context, q Question, emit func(model.Delta) error) (model.Reply, error)

// Ended is the end of a program.
type Ended struct {
	Result run.Result
	Found  bool // the run has a result
}

// Records reports and executes a run of an external agent. After Unavailable the engine may repeat a method for the same thing.
type Records interface {
	// Past returns the records of the run's one operation, none if it has not begun.
	Past(ctx context.Context, w errand.Work) ([]errand.Progress, error)
	// Step records the step of the program.
	Step(ctx context.Context, w errand.Work, index int) (id.Step, error)
	// Invoke asks the gate about the program, and records its call if the gate permits it.
	Invoke(ctx context.Context, w errand.Work, s id.Step, index int, operation json.RawMessage) (errand.Verdict, error)
	// Operate executes the program in the background of the space, and returns when it has ended.
	Operate(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space, operation json.RawMessage) (errand.Outcome, error)
	// Conclude records the outcome of the call.
	Conclude(ctx context.Context, w errand.Work, call id.ToolCall, permit string, o errand.Outcome) error
	// Turn records the step of a request to a model.
	Turn(ctx context.Context, w errand.Work, t errand.Turn) (id.Step, error)
	// Origin returns the principal in whose name the run calls models, and its room.
	Origin(ctx context.Context, w errand.Work) (event.Origin, id.Room, error)
	// Ended returns the end of the program, by the run in the space that executed it.
	Ended(ctx context.Context, w errand.Work, child id.Run) (Ended, error)
	// Open lets programs of the space ask for what is offered, on a port of its loopback interface, until closed is called.
	Open(ctx context.Context, w errand.Work, in id.Space, o Offer) (port int, closed func(), err error)
	// Permit asks the gate whether the program may use a tool, waits while a person is asked, and records the question and its answer as a
	// tool call. When ctx ends it takes its question back. It is called once for each question.
	Permit(ctx context.Context, w errand.Work, c Cause, u Use) (Decision, error)
	// Withdraw takes the open questions of the run back.
	Withdraw(ctx context.Context, w errand.Work) error
}

// Engine executes runs whose blueprint has the adapter external_cli. Its fields are set once; any goroutine may call Perform.
type Engine struct {
	Records Records
	Models  model.Asker
	Clock   event.Clock
	Logger  *slog.Logger

	// Read returns a version of a registered blueprint, and its content hash with its pins.
	Read func(ctx context.Context, ws id.Workspace, name string, version int) (blueprint.Blueprint, event.Digest, error)
	// Drift returns the references whose pins do not match. It is nil if the daemon lets pins float.
	Drift func(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]blueprint.Drift, error)
}

// The failures of a run.
const (
	FailInput       = "input_invalid"
	FailChanged     = "definition_changed" // the blueprint, a pin or the commands have other hashes now
	FailInterrupted = "agent_interrupted"  // the daemon ended while the program ran
	FailRefused     = "command_refused"    // the gate or the space refused to start the program
	FailProgram     = "agent_failed"       // the program ended with an error
	FailTime        = "time_exceeded"
)

// The refusals of a question.
var (
	// ErrSteps means that the run has reached its limit of requests to models.
	ErrSteps = fault.New(fault.Exhausted, "steps_exceeded", "the run has asked models as often as its blueprint allows")
	errTime  = fault.New(fault.Exhausted, FailTime, "the time of the run is over")
)

func failure(code, format string, args ...any) errand.Result {
	return errand.Result{Failure: code, Message: fmt.Sprintf(format, args...)}
}

// Perform runs the program of a run until it ends. It returns an error if another engine may continue, which is only before the program
// starts.
func (e *Engine) Perform(ctx context.Context, w errand.Work) (errand.Result, error) {
	mission, ok := errand.ReadMission(w.Input)
	if !ok {
		return failure(FailInput, "the input is no task of an agent, version 1"), nil
	}
	b, locked, err := e.Read(ctx, w.Workspace, mission.Blueprint, mission.Edition)
	if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Invalid {
		return failure(FailChanged, "the blueprint %s@%d cannot be read: %v", mission.Blueprint, mission.Edition, err), nil
	} else if err != nil {
		return errand.Result{}, err
	}
	if locked != mission.Locked {
		return failure(FailChanged, "the blueprint %s@%d is %s; the run was begun with %s", mission.Blueprint, mission.Edition, locked,
			mission.Locked), nil
	}
	if now := Hash(); now != mission.Loop {
		return failure(FailChanged, "this daemon starts agents by %s; the run was begun with %s", now, mission.Loop), nil
	}
	if e.Drift != nil {
		drift, err := e.Drift(ctx, w.Workspace, b)
		if err != nil {
			return errand.Result{}, err
		}
		if len(drift) > 0 {
			return failure(FailChanged, "%s is not what it was when the run was begun", drift[0].Reference), nil
		}
	}
	s := &session{Engine: e, w: w, mission: mission, def: b.Effective(), open: map[event.Digest][]int{}, turns: map[int]id.Step{},
		wanted: map[string]id.Step{}, waits: make(chan int)}
	return s.work(ctx)
}

// session is the work on one run.
type session struct {
	*Engine
	w       errand.Work
	mission errand.Mission
	origin  event.Origin
	room    id.Room
	def     blueprint.Blueprint // with its defaults

	waits chan int       // +1 where a question about a tool begins, -1 where it ends; watch receives
	uses  sync.WaitGroup // questions about tools

	mu      sync.Mutex
	asked   int                    // questions to models
	again   int                    // of them, those that were repeated because their answer did not arrive
	open    map[event.Digest][]int // the numbers of questions whose answer did not reach the program
	first   func()                 // called with each question; it acts once
	turns   map[int]id.Step        // the steps of questions to models
	wanted  map[string]id.Step     // the steps of the answers that propose calls, by the name of the call
	program id.ToolCall            // that started the program; "" where it has not started or is over
	done    <-chan struct{}        // closed when the work on the run ends
}

func (s *session) patiently(ctx context.Context, do func() error) error {
	return errand.Patiently(ctx, s.Clock, do)
}

// work starts the program and waits for its end.
func (s *session) work(ctx context.Context) (errand.Result, error) {
	var past []errand.Progress
	err := s.patiently(ctx, func() (err error) { past, err = s.Records.Past(ctx, s.w); return err })
	if err != nil {
		return errand.Result{}, err
	}
	p, called := began(past)
	if called {
		return s.resumed(ctx, p)
	}
	if err := s.patiently(ctx, func() (err error) { s.origin, s.room, err = s.Records.Origin(ctx, s.w); return err }); err != nil {
		return errand.Result{}, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if ownTime(s.def) {
		s.first = sync.OnceFunc(func() { go s.watch(ctx, end) })
	}
	port, closed, err := s.Records.Open(ctx, s.w, s.mission.Space, s.offer())
	if kind := fault.KindOf(err); err != nil && (kind == fault.Internal || kind == fault.Unavailable) {
		return errand.Result{}, err
	} else if err != nil {
		return failure(fault.CodeOf(err), "%v", err), nil
	}
	defer s.over()
	defer closed()
	op, err := commandOf(s.def, s.mission.Task, port)
	if err != nil {
		return failure(fault.CodeOf(err), "%v", err), nil
	}
	operation, err := json.Marshal(op)
	if err != nil {
		return errand.Result{}, err
	}
	if p.Step == "" {
		if err := s.patiently(ctx, func() (err error) { p.Step, err = s.Records.Step(ctx, s.w, 0); return err }); err != nil {
			return errand.Result{}, err
		}
	}
	permit, refused, err := s.invoke(ctx, &p, operation)
	if err != nil || refused != nil {
		return resultOf(refused), err
	}
	s.started(ctx, p.Call)
	var o errand.Outcome
	err = s.patiently(ctx, func() (err error) {
		o, err = s.Records.Operate(ctx, s.w, p.Call, s.mission.Space, operation)
		return err
	})
	if errors.Is(err, errTime) {
		return failure(FailTime, "the program did not end within %d seconds; it and its children are killed", s.def.Limits.Seconds), nil
	}
	if err != nil {
		return errand.Result{}, err
	}
	if err := s.patiently(ctx, func() error { return s.Records.Conclude(ctx, s.w, p.Call, permit, o) }); err != nil {
		return errand.Result{}, err
	}
	return s.ended(ctx, o)
}

func resultOf(r *errand.Result) errand.Result {
	if r == nil {
		return errand.Result{}
	}
	return *r
}

// began returns the record of the program, and whether it may have started.
func began(past []errand.Progress) (p errand.Progress, called bool) {
	for _, one := range past {
		if one.Index == 0 && (one.Call != "" || p.Step == "") {
			p = one
		}
	}
	return p, p.Call != ""
}

// resumed returns the result of a program that an earlier claim started. The program ended with its daemon and is never started twice.
func (s *session) resumed(ctx context.Context, p errand.Progress) (errand.Result, error) {
	if p.Ended && p.Outcome.Child != "" {
		return s.ended(ctx, p.Outcome)
	}
	if err := s.patiently(ctx, func() error { return s.Records.Withdraw(ctx, s.w) }); err != nil {
		return errand.Result{}, err
	}
	return failure(FailInterrupted, "the daemon stopped while the program ran; look at the files of the space, and give the task again"), nil
}

// invoke asks the gate about the program, again and again until it decides without a person. It returns the permit or the refusal.
func (s *session) invoke(ctx context.Context, p *errand.Progress, operation json.RawMessage) (permit string, refused *errand.Result,
	err error) {
	for said := ""; ; {
		var v errand.Verdict
		if err := s.patiently(ctx, func() (err error) {
			v, err = s.Records.Invoke(ctx, s.w, p.Step, 0, operation)
			return err
		}); err != nil {
			return "", nil, err
		}
		if p.Call = v.Call; p.Call != "" {
			return v.Permit, nil, nil
		}
		if !v.Asks && v.Code != policy.ReasonKillSwitch {
			r := failure(FailRefused, "%s: %s", v.Code, v.Reason)
			return "", &r, nil
		}
		if said != v.Code {
			said = v.Code
			s.Logger.Info("an external agent waits", "code", "external_agent_waits", "run", s.w.Run, "for", v.Code, "reason", v.Reason)
		}
		if !errand.Pause(ctx, s.Clock, errand.Ask) {
			return "", nil, context.Cause(ctx)
		}
	}
}

// Output is the output of a run.
type Output struct {
	Report   string `json:"report"`
	Program  string `json:"program"`
	Run      id.Run `json:"space_run_id,omitempty"` // of the program in the space; it has the program's output
	ExitCode *int   `json:"exit_code,omitempty"`
	Requests int    `json:"model_requests"`
}

// ended returns the result of the run for the end of its program.
func (s *session) ended(ctx context.Context, o errand.Outcome) (errand.Result, error) {
	var end Ended
	if o.Child != "" {
		if err := s.patiently(ctx, func() (err error) { end, err = s.Records.Ended(ctx, s.w, o.Child); return err }); err != nil {
			return errand.Result{}, err
		}
	}
	r := end.Result
	out := Output{Program: s.def.Adapter.Program, Run: o.Child, ExitCode: r.ExitCode}
	s.mu.Lock()
	out.Requests = s.asked
	s.mu.Unlock()
	stdout, stderr, failed := "", "", false
	if r.Stdout != nil {
		stdout = *r.Stdout
	}
	if r.Stderr != nil {
		stderr = *r.Stderr
	}
	out.Report, failed = reportOf(out.Program, stdout)
	raw, err := json.Marshal(out)
	if err != nil || len(raw) > run.MaxReport {
		out.Report = ""
		if raw, err = json.Marshal(out); err != nil {
			return errand.Result{}, err
		}
	}
	switch {
	case !end.Found || r.ExitCode == nil:
		why := r.Error
		if why == "" {
			why = r.Reason
		}
		return errand.Result{Failure: FailRefused, Message: "the program was not run: " + why, Output: raw}, nil
	case r.TimedOut != nil && *r.TimedOut:
		return errand.Result{Failure: FailTime, Message: r.Error, Output: raw}, nil
	case !o.OK:
		why := r.Error
		if why == "" {
			why = firstLine(ending(stderr))
		}
		return errand.Result{Failure: FailProgram, Message: fmt.Sprintf("%s ended with the exit code %d: %s", out.Program, *r.ExitCode, why),
			Output: raw}, nil
	case failed:
		return errand.Result{Failure: FailProgram, Message: fmt.Sprintf("%s says that it failed: %s", out.Program, firstLine(out.Report)),
			Output: raw}, nil
	}
	return errand.Result{Summary: firstLine(out.Report), Output: raw}, nil
}

// number returns the number of a question. A question whose answer did not arrive keeps its number when the program repeats it, so that the
// daemon does not pay twice for a recorded answer. It returns ErrSteps at the limit, which holds for new questions and for repeated ones.
func (s *session) number(hash event.Digest) (n int, again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.open[hash]; len(open) > 0 {
		if s.again >= s.def.Limits.Steps { // a program that breaks off each answer would else be given, and bill, any number of them
			return 0, false, fault.New(ErrSteps.Kind, ErrSteps.Code, "the run has repeated its requests to models %d times, as often as it may ask",
				s.again)
		}
		s.again++
		s.open[hash] = open[1:]
		return open[0], true, nil
	}
	if s.asked >= s.def.Limits.Steps {
		return 0, false, fault.New(ErrSteps.Kind, ErrSteps.Code, "%s: %d times", ErrSteps.Msg, s.def.Limits.Steps)
	}
	if s.asked++; s.first != nil {
		s.first()
	}
	return s.asked, false, nil
}

// missed notes a question whose answer did not reach the program.
func (s *session) missed(hash event.Digest, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[hash] = append(s.open[hash], n)
}

// answer answers a question of the program within the budgets, through the gate, and records it as a step of the run.
func (s *session) answer(ctx context.Context, q Question, emit func(model.Delta) error) (_ model.Reply, err error) {
	hash, err := q.Request.Hash()
	if err != nil {
		return model.Reply{}, err
	}
	n, again, err := s.number(hash)
	if err != nil {
		return model.Reply{}, err
	}
	defer func() {
		if err != nil || ctx.Err() != nil {
			s.missed(hash, n)
		}
	}()
	ask := model.Ask{Origin: s.origin, Workspace: s.w.Workspace, Room: s.room, Space: s.mission.Space, Run: s.w.Run, Step: n,
		Class: model.TaskClass(blueprint.DefaultTask), Entry: s.def.Model(blueprint.DefaultTask), Request: q.Request, Emit: emit,
		Limits: model.Limits{Tokens: s.def.Limits.Tokens}}
	if slices.Contains(namesOf(s.def), q.Model) {
		ask.Entry = q.Model
	}
	if s.def.Limits.Cost != "" {
		if ask.Limits.Cost, err = model.ParseAmount(string(s.def.Limits.Cost)); err != nil {
			return model.Reply{}, err
		}
	}
	if !again {
		var at id.Step
		if err := s.patiently(ctx, func() (err error) {
			at, err = s.Records.Turn(ctx, s.w, errand.Turn{Number: n - 1, Request: hash})
			return err
		}); err != nil {
			return model.Reply{}, err
		}
		s.turn(n, at)
	}
	for {
		reply, err := s.Models.Ask(ctx, ask)
		if err == nil {
			s.noted(n, reply.Calls())
			return reply, nil
		}
		if ctx.Err() != nil {
			return model.Reply{}, context.Cause(ctx)
		}
		_, ofVendor := model.FailureOf(err)
		if ofVendor || fault.KindOf(err) != fault.Waiting { // Waiting: a person has to answer first
			return model.Reply{}, err
		}
		if !errand.Pause(ctx, s.Clock, errand.Ask) {
			return model.Reply{}, context.Cause(ctx)
		}
	}
}
