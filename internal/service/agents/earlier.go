package agents

import (
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// MaxEarlier is the largest number of earlier runs of a conversation.
const MaxEarlier = 1000

// FailEarlier is the failure of a run whose conversation has more than MaxEarlier earlier runs.
const FailEarlier = "conversation_too_long"

// Earlier is the record of an ended run whose conversation a later run continues.
type Earlier struct {
	Task     string
	Pictures []errand.Picture // of the task
	After    id.Run           // the run before it; "" for the first one
	Protocol string           // by which its model called tools
	Past     map[int]errand.PastTurn
	Answers  map[int]model.Answer // by the number of the turn; a turn that was not answered has none
}

// The loop's own messages about the earlier runs.
const (
	saidStopped = "not known: the run was ended before this call had a result"
	saidLeftOut = "The beginning of this conversation is left out, because it does not fit into your context."
)

// errTooLong means that a conversation has too many runs.
var errTooLong = fault.New(fault.Exhausted, FailEarlier, "a conversation has at most %d tasks; begin a new one", MaxEarlier+1)

// recall reads the earlier runs of the conversation. It returns their turns, the oldest first, and the first task. The same records lead to
// the same turns, so an interrupted run sends the same requests again.
func (s *session) recall(ctx context.Context) (turns []turn, first string, err error) {
	var runs []Earlier
	for r := s.mission.After; r != ""; {
		if len(runs) == MaxEarlier {
			return nil, "", errTooLong
		}
		var e Earlier
		if err := s.patiently(ctx, func() (err error) { e, err = s.Earlier(ctx, s.w.Workspace, r); return err }); err != nil {
			return nil, "", err
		}
		runs, r = append(runs, e), e.After
	}
	for _, e := range slices.Backward(runs) {
		of, err := s.replayed(ctx, e)
		if err != nil {
			return nil, "", err
		}
		if len(of) == 0 { // the run was stopped before its first answer
			of = []turn{{}}
		}
		of[0].heard = append([]string{e.Task}, of[0].heard...)
		of[0].first = true
		pictures, err := s.pictures(ctx, e.Pictures)
		if err != nil {
			return nil, "", err
		}
		of[0].shown = parts(pictures)
		turns = append(turns, of...)
	}
	if len(runs) > 0 {
		first = runs[len(runs)-1].Task
	}
	return turns, first, nil
}

// replayed returns the turns of an earlier run by replaying its record.
func (s *session) replayed(ctx context.Context, e Earlier) ([]turn, error) {
	c := Begin(s.def, s.tools, "", e.Task)
	c.Speak(e.Protocol)
	for n := 0; ; n++ {
		past, recorded := e.Past[n]
		if !recorded {
			return c.turns, nil
		}
		for _, text := range past.Heard {
			c.Hear(text)
		}
		answer, answered := e.Answers[n]
		if !answered {
			c.Overflowed() // or it was stopped
			continue
		}
		c.Answered(answer)
		if !c.waiting() {
			continue
		}
		calls := c.calls()
		results := make([]model.Result, len(calls))
		for i, call := range calls {
			var err error
			if results[i], err = s.resulted(ctx, c, call, past.Calls[i], e.Past[n+1].Refused[i]); err != nil {
				return nil, err
			}
		}
		c.Acted(results)
	}
}

// resulted returns the result of a call of an earlier run, as the model read it.
func (s *session) resulted(ctx context.Context, c *Conversation, call model.Call, p errand.Progress, refused string) (model.Result, error) {
	_, wrong := s.operation(call)
	switch {
	case wrong != "":
		return model.Result{ID: call.ID, Failed: true, Text: wrong}, nil
	case refused != "":
		return model.Result{ID: call.ID, Failed: true, Text: refused}, nil
	case !p.Ended:
		return model.Result{ID: call.ID, Failed: true, Text: saidStopped}, nil
	case call.Name == readResult:
		return c.read(call), nil
	}
	return s.told(ctx, call, p.Outcome)
}

// goOn adds the earlier runs of the mission to the conversation. It returns the failure of a run that cannot continue.
func (s *session) goOn(ctx context.Context) (*errand.Result, error) {
	if s.mission.After == "" {
		return nil, nil
	}
	if s.Earlier == nil {
		return failure(FailInput, "this daemon goes on no earlier conversation"), nil
	}
	turns, first, err := s.recall(ctx)
	switch kind := fault.KindOf(err); {
	case errors.Is(err, errand.ErrForgotten), errors.Is(err, errTooLong), err != nil && (kind == fault.NotFound || kind == fault.Conflict):
		return failure(fault.CodeOf(err), "%v", err), nil
	case err != nil:
		return nil, err
	}
	s.conversation.before = turns
	s.conversation.key = event.DigestOf([]byte(s.mission.Locked.String() + "\n" + first)).Hex()[:32]
	return nil, nil
}

// leaveOut leaves the oldest earlier run out of the requests. It returns false if there is none.
func (c *Conversation) leaveOut() bool {
	if len(c.before) == 0 {
		return false
	}
	n := 1
	for n < len(c.before) && !c.before[n].first {
		n++
	}
	c.before = c.before[n:]
	c.shortened, c.leftOut = max(0, c.shortened-n), true
	return true
}

// everything returns the turns of the earlier runs and of this one.
func (c *Conversation) everything() []turn { return slices.Concat(c.before, c.turns) }
