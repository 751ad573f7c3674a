package external

import (
	"context"
	"encoding/json"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/step"
)

// PermissionsPath is where a program asks before it uses one of its tools, beside the addresses of the models.
const PermissionsPath = "/agentbox/permissions"

// Use is the question of a program whether it may use one of its own tools.
type Use struct {
	ID    string // the program's name of its call; that of the model's call where it has one
	Tool  string // as the program names it
	Input json.RawMessage
}

// Decision is the answer to a Use. Its reason is for the program and its model.
type Decision struct {
	Allow  bool
	Reason string
}

// Permit decides about a Use. It waits while a person is asked.
type Permit func(ctx context.Context, u Use) (Decision, error)

// Cause is what a Use belongs to.
type Cause struct {
	Program id.ToolCall // the call that started the program
	Step    id.Step     // the turn whose answer wants the tool, else the last turn; "" before the first
	Tool    string      // as policy names it
}

// Offer is what programs of a space may ask while the program of a run works.
type Offer struct {
	Models []string
	Answer Answer
	Permit Permit // nil where questions about tools are off
}

// offer is what the session offers.
func (s *session) offer() Offer {
	o := Offer{Models: namesOf(s.def), Answer: s.answer}
	if s.def.Adapter.Asks() {
		o.Permit = s.permit
	}
	return o
}

// The refusals of a question about a tool.
var (
	errNotStarted = fault.New(fault.Conflict, "agent_not_started", "the program of the run has not started, or has ended")
	errToolName   = fault.New(fault.Invalid, "invalid_tool_name", "tool is a name of at most %d letters, digits and _.:/-", step.MaxWord)
)

// started tells the session which call started the program. From now on it answers questions about tools.
func (s *session) started(ctx context.Context, program id.ToolCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program, s.done = program, ctx.Done()
}

// over refuses questions from now on, and waits until those under way have ended.
func (s *session) over() {
	s.mu.Lock()
	s.program = ""
	s.mu.Unlock()
	s.uses.Wait()
}

// enter begins a question about a tool.
func (s *session) enter(call string) (c Cause, done <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.program == "" {
		return c, nil, errNotStarted
	}
	if s.first != nil {
		s.first()
	}
	s.uses.Add(1)
	at, known := s.wanted[call]
	if !known {
		at = s.turns[s.asked]
	}
	return Cause{Program: s.program, Step: at}, s.done, nil
}

// permit answers a question about a tool. The time of the run stands still meanwhile.
func (s *session) permit(ctx context.Context, u Use) (Decision, error) {
	tool := s.def.Adapter.Tool(u.Tool)
	if u.Tool == "" || !step.Word(tool) {
		return Decision{}, errToolName
	}
	c, done, err := s.enter(u.ID)
	if err != nil {
		return Decision{}, err
	}
	defer s.uses.Done()
	waits := func(n int) {
		select {
		case s.waits <- n:
		case <-done:
		}
	}
	waits(1)
	defer waits(-1)
	c.Tool = tool
	return s.Records.Permit(ctx, s.w, c, u)
}

// watch ends the run when its time is over. While a question about a tool is open, its time stands still.
func (s *session) watch(ctx context.Context, end context.CancelCauseFunc) {
	left, open := time.Duration(s.def.Limits.Seconds)*time.Second, 0
	for {
		began := s.Clock.Now()
		late, stop := (<-chan time.Time)(nil), func() {}
		if open == 0 {
			late, stop = s.Clock.NewTimer(max(left, 0))
		}
		select {
		case <-late:
			stop()
			end(errTime)
			return
		case n := <-s.waits:
			stop()
			if open == 0 {
				left -= s.Clock.Now().Sub(began)
			}
			open += n
		case <-ctx.Done():
			stop()
			return
		}
	}
}

// turn notes the step of a request to a model.
func (s *session) turn(n int, at id.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[n] = at
}

// noted notes which calls the answer of a turn proposes, so that a question about a tool has its cause.
func (s *session) noted(n int, calls []model.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range calls {
		s.wanted[call.ID] = s.turns[n]
	}
}
