package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/tool"
)

// Records reports the work of the loop and asks for permission. After Unavailable the loop may repeat a method for the same thing; then the
// method does and records nothing twice.
type Records interface {
	// Past returns the records of the run's turns, by their number.
	Past(ctx context.Context, w errand.Work) (map[int]errand.PastTurn, error)
	// Heard returns the messages of people to the run, without the first `after` of them.
	Heard(ctx context.Context, w errand.Work, after int) ([]string, error)
	// Turn records the step of a turn.
	Turn(ctx context.Context, w errand.Work, t errand.Turn) (id.Step, error)
	// Invoke asks the gate about a call of a tool, and records the call if the gate permits it.
	Invoke(ctx context.Context, w errand.Work, s id.Step, tool string, c errand.TurnCall) (errand.Verdict, error)
	// Operate executes the task that Prepare returned for a call: in the space if it is an operation, otherwise in the daemon. It returns
	// when the task has ended, or at the call's time limit. For a call that was executed before, it returns the recorded outcome.
	Operate(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space, operation json.RawMessage, left errand.Left) (errand.Outcome,
		error)
	// Result returns the result of an executed call, as a model reads it.
	Result(ctx context.Context, w errand.Work, o errand.Outcome) (tool.Result, error)
	// Conclude records the outcome of a call. The permit is that of its verdict, "" if the verdict came under an earlier claim.
	Conclude(ctx context.Context, w errand.Work, call id.ToolCall, permit string, o errand.Outcome) error
	// Origin returns the principal in whose name the run calls models, and its room.
	Origin(ctx context.Context, w errand.Work) (event.Origin, id.Room, error)
}

// Loop executes runs of the kind errand.Agent. Its fields are set once; any goroutine may call Perform.
type Loop struct {
	Records Records
	Models  model.Asker
	Clock   event.Clock
	Logger  *slog.Logger

	// Read returns a version of a registered blueprint, and its content hash with its pins.
	Read func(ctx context.Context, ws id.Workspace, name string, version int) (blueprint.Blueprint, event.Digest, error)
	// Tools returns the tools that a blueprint's agent is offered, and the content hash of their set.
	Tools func(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]tool.Tool, event.Digest, error)
	// Prepare checks the arguments of a call of a tool, and returns the task for Operate.
	Prepare func(t tool.Tool, arguments json.RawMessage) (json.RawMessage, error)
	// Earlier returns the record of an ended run. It is nil if the daemon cannot continue conversations.
	Earlier func(ctx context.Context, ws id.Workspace, r id.Run) (Earlier, error)
	// Picture returns the content of a picture of a task; nil where tasks have none. It returns errand.ErrForgotten for one that was redacted.
	Picture func(ctx context.Context, ws id.Workspace, digest event.Digest) ([]byte, error)
	// Pins returns the present content hashes of everything that a blueprint refers to. It is nil if the daemon lets pins float.
	Pins func(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) (blueprint.Pins, error)
}

// The failures of a run that cannot continue, besides those of the conversation.
const (
	FailInput    = "input_invalid"
	FailChanged  = "definition_changed" // the blueprint, a pin, the tools or the loop have other hashes now
	FailDiverged = "replay_diverged"    // the replay of the record led to another request than the recorded one
	FailModel    = "model_failed"
	FailBudget   = "budget_exceeded"
)

// Perform continues a run from its recorded state until it ends. It returns an error if another engine may continue the run.
func (l *Loop) Perform(ctx context.Context, w errand.Work) (errand.Result, error) {
	mission, ok := errand.ReadMission(w.Input)
	if !ok {
		return errand.Result{Failure: FailInput, Message: "the input is no task of an agent, version 1"}, nil
	}
	s := session{Loop: l, w: w, mission: mission}
	if failed, err := s.load(ctx); failed != nil || err != nil {
		return final(failed), err
	}
	for {
		s.atRecord()
		next := s.conversation.Next()
		var failed *errand.Result
		var err error
		switch {
		case next.End != nil:
			return *next.End, nil
		case next.Request != nil:
			failed, err = s.ask(ctx, *next.Request)
		default:
			err = s.act(ctx, next.Calls)
		}
		if failed != nil || err != nil {
			return final(failed), err
		}
	}
}

func final(failed *errand.Result) errand.Result {
	if failed == nil {
		return errand.Result{}
	}
	return *failed
}

func failure(code, format string, args ...any) *errand.Result {
	return &errand.Result{Failure: code, Message: fmt.Sprintf(format, args...)}
}

// session is the work on one run.
type session struct {
	*Loop
	w       errand.Work
	mission errand.Mission
	origin  event.Origin
	room    id.Room
	def     blueprint.Blueprint // with its defaults
	tools   []tool.Tool
	past    map[int]errand.PastTurn
	above   []model.Above // of a sub-agent: the runs for which it works

	conversation *Conversation
	step         id.Step // of the present turn
	heard        int     // messages of people that the conversation has

	mu      sync.Mutex     // guards refused
	refused map[int]string // why the last calls were refused or skipped, by their index
}

// CacheKey names the conversations of a task to an endpoint's prompt cache. It is the same for the same blueprint and task, so that a
// cassette of one run fits another.
func CacheKey(m errand.Mission) string {
	return event.DigestOf([]byte(m.Locked.String() + "\n" + m.Task)).Hex()[:32]
}

// load reads the definition of the agent and the record of the run. It returns the failure of a run that cannot continue.
func (s *session) load(ctx context.Context) (*errand.Result, error) {
	b, locked, err := s.Read(ctx, s.w.Workspace, s.mission.Blueprint, s.mission.Edition)
	if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Invalid {
		return failure(FailChanged, "the blueprint %s@%d cannot be read: %v", s.mission.Blueprint, s.mission.Edition, err), nil
	} else if err != nil {
		return nil, err
	}
	tools, hash, err := s.Tools(ctx, s.w.Workspace, b)
	if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Conflict || kind == fault.Invalid {
		return failure(FailChanged, "the tools cannot be read: %v", err), nil
	} else if err != nil {
		return nil, err
	}
	switch {
	case locked != s.mission.Locked:
		return failure(FailChanged, "the blueprint %s@%d is %s; the run was begun with %s", s.mission.Blueprint, s.mission.Edition, locked,
			s.mission.Locked), nil
	case hash != s.mission.Tools:
		return failure(FailChanged, "the tools of this daemon are %s; the run was begun with %s", hash, s.mission.Tools), nil
	case Hash() != s.mission.Loop:
		return failure(FailChanged, "the loop of this daemon is %s; the run was begun with %s", Hash(), s.mission.Loop), nil
	}
	b = b.Answering(s.mission.Model)
	if s.Pins != nil && s.mission.Pins != nil {
		now, err := s.Pins(ctx, s.w.Workspace, b)
		if kind := fault.KindOf(err); err != nil && (kind == fault.Internal || kind == fault.Unavailable) {
			return nil, err
		} else if err != nil {
			return failure(FailChanged, "%v", err), nil
		}
		for name, hash := range pinned(b, now) {
			if hash != s.mission.Pins[name] {
				return failure(FailChanged, "%s is not what it was when the run was begun", name), nil
			}
		}
	}
	s.def, s.tools = b.Effective(), slices.Concat(tools, []tool.Tool{ReadResult()})
	if err := s.inherit(); err != nil {
		return failure(FailInput, "%v", err), nil
	}
	err = s.patiently(ctx, func() (err error) { s.past, err = s.Records.Past(ctx, s.w); return err })
	if errors.Is(err, errand.ErrForgotten) {
		return failure(errand.ErrForgotten.Code, "%v", err), nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.patiently(ctx, func() (err error) { s.origin, s.room, err = s.Records.Origin(ctx, s.w); return err }); err != nil {
		return nil, err
	}
	// Hook phase: Pre-Plan.
	s.conversation = Begin(s.def, s.tools, CacheKey(s.mission), s.mission.Task)
	s.conversation.Speak(s.mission.Protocol)
	pictures, err := s.pictures(ctx, s.mission.Pictures)
	if errors.Is(err, errand.ErrForgotten) {
		return failure(errand.ErrForgotten.Code, "%v", err), nil
	}
	if err != nil {
		return nil, err
	}
	s.conversation.Show(pictures)
	return s.goOn(ctx)
}

// pictures reads the pictures of a task.
func (s *session) pictures(ctx context.Context, of []errand.Picture) (list []model.Image, err error) {
	for _, p := range of {
		if s.Picture == nil {
			return nil, errand.ErrForgotten
		}
		var raw []byte
		if err := s.patiently(ctx, func() (err error) { raw, err = s.Picture(ctx, s.w.Workspace, p.Digest); return err }); err != nil {
			return nil, err
		}
		if event.DigestOf(raw) != p.Digest {
			return nil, errand.ErrForgotten
		}
		list = append(list, model.Image{MediaType: p.Media, Data: raw})
	}
	return list, nil
}

// atRecord sets the time that models and tools have worked to the time that was recorded before the next turn. So a resumed run comes to
// the same decision as before, even if a repeated request took another time.
func (s *session) atRecord() {
	if before, recorded := s.past[s.conversation.Turn()]; recorded && !s.conversation.waiting() {
		s.conversation.worked = time.Duration(before.Worked) * time.Millisecond
	}
}

func (s *session) patiently(ctx context.Context, do func() error) error {
	return errand.Patiently(ctx, s.Clock, do)
}

// ask gets the answer to a request: the recorded one, or a new one of a model. It returns the failure of a run that cannot continue.
func (s *session) ask(ctx context.Context, r model.Request) (*errand.Result, error) {
	n := s.conversation.Turn()
	before, recorded := s.past[n]
	if recorded { // with the messages that the request first had
		for _, text := range before.Heard {
			s.conversation.Hear(text)
		}
		s.heard += len(before.Heard)
	}
	turn := errand.Turn{Number: n, Refused: s.refused, Worked: s.conversation.worked.Milliseconds()}
	s.refused = nil // an answer without calls leads to another turn
	if !recorded {
		if err := s.patiently(ctx, func() (err error) { turn.Heard, err = s.Records.Heard(ctx, s.w, s.heard); return err }); err != nil {
			return nil, err
		}
		for _, text := range turn.Heard {
			s.conversation.Hear(text)
		}
		s.heard += len(turn.Heard)
	}
	if len(before.Heard)+len(turn.Heard) > 0 {
		next := s.conversation.Next()
		if next.Request == nil {
			return next.End, nil
		}
		r = *next.Request
	}
	// Hook phase: Pre-Send.
	hash, err := r.Hash()
	if err != nil {
		return failure(FailInput, "the request of turn %d cannot be sent: %v", n+1, err), nil
	}
	switch {
	case !recorded:
		turn.Request = hash
		if err := s.patiently(ctx, func() (err error) { s.step, err = s.Records.Turn(ctx, s.w, turn); return err }); err != nil {
			return nil, err
		}
	case before.Request != hash:
		return failure(FailDiverged, "turn %d asks %s now; %s was recorded", n+1, hash, before.Request), nil
	default:
		s.step = before.Step
	}
	ask := model.Ask{
		Origin: s.origin, Workspace: s.w.Workspace, Room: s.room, Space: s.mission.Space, Run: s.w.Run, Step: n + 1,
		Class: model.TaskClass(blueprint.DefaultTask), Entry: s.def.Model(blueprint.DefaultTask), Request: r,
		Limits: model.Limits{Tokens: s.def.Limits.Tokens}, Time: s.conversation.Left(), Above: s.above,
	}
	if s.def.Limits.Cost != "" {
		if ask.Limits.Cost, err = model.ParseAmount(string(s.def.Limits.Cost)); err != nil {
			return failure(FailInput, "limits.cost: %v", err), nil
		}
	}
	return s.answered(ctx, ask)
}

// answered calls a model until it answers, and adds the answer to the conversation.
func (s *session) answered(ctx context.Context, ask model.Ask) (*errand.Result, error) {
	for {
		reply, err := s.Models.Ask(ctx, ask)
		if err == nil {
			s.conversation.Work(reply.Took)
			// Hook phase: Post-Receive.
			s.conversation.Answered(reply.Answer)
			return nil, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		vendor, ofVendor := model.FailureOf(err)
		switch kind := fault.KindOf(err); {
		case ofVendor && vendor.Class == model.Overflow:
			s.conversation.Work(reply.Took)
			s.conversation.Overflowed()
			return nil, nil
		case ofVendor:
			return failure(FailModel, "%v", err), nil
		case errors.Is(err, model.ErrTime):
			s.conversation.Work(reply.Took)
			return s.conversation.late().End, nil
		case errors.Is(err, model.ErrBudget) || errors.Is(err, model.ErrPrice):
			return failure(FailBudget, "%v", err), nil
		case fault.CodeOf(err) == policy.ReasonKillSwitch || kind == fault.Waiting || kind == fault.Unavailable:
			if !errand.Pause(ctx, s.Clock, errand.Ask) {
				return nil, context.Cause(ctx)
			}
		case kind == fault.Internal:
			return nil, err
		default:
			return failure(fault.CodeOf(err), "%v", err), nil
		}
	}
}
