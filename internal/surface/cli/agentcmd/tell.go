package agentcmd

import (
	"context"
	"encoding/json"
	"strings"

	"agentbox/internal/client"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/domain/tool"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// teller prints the events of an agent's run, and of the runs in spaces that its tool calls make.
type teller struct {
	p      *term.Printer
	api    *client.Client
	made   run.Run
	titles map[string]string // of the operations of runs in spaces, by key
	failed map[id.Run]bool   // the runs in spaces of which it has printed a failure
	last   string            // the refusal of a call that this turn has printed last
	asking int               // calls of ask_person whose question it has not printed yet

	proposals proposals
}

// key names an operation of a run.
func key(r id.Run, operation string) string { return string(r) + " " + operation }

// width is the most characters of a text in a line about an event.
const width = 160

// tell prints one event. Calls that fail, are refused or are never made have the lines that a conversation shows.
func (t *teller) tell(ctx context.Context, e event.Event) {
	own := e.Run == t.made.ID
	if own {
		for _, calls := range alike(t.proposals.take(e)) {
			t.p.Line("%s", unmadeLine(t.p, calls))
		}
	}
	switch e.Type {
	case run.EventCreated:
		if made, err := event.Decode[run.Created](e); err == nil {
			for _, o := range made.Operations {
				t.titles[key(e.Run, o.ID)] = o.Summary
			}
		}
	case policy.ApprovalRequestedType:
		t.p.Line("%s", t.p.Paint(term.Yellow, "  waits for an answer: agentbox approvals show "+term.OneLine(string(asked(e)), 80)))
	case policy.DeniedType:
		if own {
			t.refused(e)
		}
	case model.EventDeferred:
		if wait, err := event.Decode[model.Deferred](e); err == nil && own {
			t.p.Line("%s", waitsLine(t.p, wait))
		}
	case step.EventCreated:
		if turn, err := event.Decode[step.Created](e); err == nil && own {
			t.last = ""
			t.p.Line("%s", t.p.Paint(term.Faint, term.OneLine(turn.Title, width)))
		}
	case step.EventInvoked:
		call, err := event.Decode[step.Invoked](e)
		switch {
		case err != nil:
		case call.Tool == tool.AskPerson:
			t.asking++ // the message with the question follows
		case !own:
			t.p.Line("  %s", term.OneLine(call.Tool+": "+call.Title, width))
		}
	case room.EventMessageCreated:
		if said, err := event.Decode[room.MessageCreated](e); err == nil && said.SenderType != id.User {
			t.message(said.Content)
		}
	case step.EventFailed, step.EventUnknown:
		t.failure(ctx, e)
	}
}

// message prints what the agent, or one of its sub-agents, has posted in the thread. After a call of ask_person it is the question.
func (t *teller) message(text string) {
	if t.asking == 0 {
		t.p.Line("%s", callLine(t.p, "message", text))
		return
	}
	t.asking--
	t.p.Line("  %s %s", t.p.Paint(term.Cyan, "▸ "+tool.AskPerson), term.Wrapped(term.Plain(text), t.p.Width, len("    ")))
	t.p.Line("%s", t.p.Paint(term.Yellow, "  waits for an answer: agentbox agent steer "+string(t.made.ID)+" ANSWER"))
}

// refused prints a call that policy has refused before it began. The loop may ask about one call again and again.
func (t *teller) refused(e event.Event) {
	no, err := event.Decode[policy.Refused](e)
	if err != nil || no.Action != policy.ToolCall {
		return // the call of a tool that was refused something fails, and says so
	}
	line := callLine(t.p, "tool", no.Title) + "  " + resultWords(t.p, run.Result{Type: run.ResPolicyDenied, Reason: no.Decision.Reason,
		ReasonCode: no.Decision.ReasonCode})
	if line != t.last {
		t.p.Line("%s", line)
	}
	t.last = line
}

// failure prints an operation in a space, or a call of another tool, that did not succeed.
func (t *teller) failure(ctx context.Context, e event.Event) {
	operation, err := event.Decode[run.Ended](e)
	if err == nil && operation.Operation != "" {
		t.failed[e.Run] = true
		t.line(operation.Tool, t.titles[key(e.Run, operation.Operation)], t.resultOf(ctx, e.Run, operation))
		return
	}
	call, err := event.Decode[step.Ended](e)
	if err != nil {
		return
	}
	var o errand.Outcome
	_ = json.Unmarshal(call.Error, &o) // an engine outside of the daemon may write something else
	if o.Child != "" && t.failed[o.Child] {
		return
	}
	name := strings.TrimPrefix(call.Tool, run.ToolPrefix)
	said, _, _ := strings.Cut(o.Text, "\n")
	result := run.Result{Type: name, Error: cmdline.First(said, o.Reason, call.Message)}
	if o.Status == errand.Refused {
		result = run.Result{Type: run.ResPolicyDenied, Reason: o.Reason, ReasonCode: o.Code}
	} else if e.Type == step.EventUnknown {
		result = run.Result{Type: run.ResUnknown, Reason: call.Message}
	}
	t.line(name, "", result)
}

// resultOf returns the result of an operation. A long one stands outside of its event.
func (t *teller) resultOf(ctx context.Context, r id.Run, ended run.Ended) run.Result {
	if ended.Result != nil {
		return *ended.Result
	}
	if shown, err := t.api.Run(ctx, r); err == nil { // else the line says less
		for _, result := range shown.Result.Events {
			if result.OperationID == ended.Operation && result.Type != run.ResApprovalRequired {
				return result
			}
		}
	}
	return run.Result{Type: ended.Kind, ReasonCode: ended.Reason}
}

func (t *teller) line(kind, summary string, r run.Result) {
	t.p.Line("%s  %s", callLine(t.p, kind, summary), resultWords(t.p, r))
}
