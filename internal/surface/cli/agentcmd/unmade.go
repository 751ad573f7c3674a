package agentcmd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// notMade begins the reason of a call that the loop has not made because it was not valid, as the log has it.
const notMade = "not made: "

// unmade is a call that a model proposed and the loop never made.
type unmade struct {
	model.Call        // without a name and an id where the model has written it in its text
	reason     string // with notMade
}

// unmadeLine returns the line about calls with one reason.
func unmadeLine(p *term.Printer, calls []unmade) string {
	kind, summary := cmdline.First(calls[0].Name, "a call"), shortArguments(calls[0].Arguments, width)
	if len(calls) > 1 {
		names := make([]string, len(calls))
		for i, u := range calls {
			names[i] = cmdline.First(u.Name, "a call")
		}
		kind, summary = term.Count(len(calls), "call"), strings.Join(names, ", ")
	}
	return callLine(p, kind, summary) + "  " + resultWords(p, calls[0].result())
}

// result returns the words about the call as those of a result.
func (u unmade) result() run.Result { return run.Result{Type: run.ResError, Message: u.reason} }

// alike returns the calls in groups with one reason each.
func alike(calls []unmade) (groups [][]unmade) {
	for n, u := range calls {
		if n > 0 && calls[n-1].reason == u.reason {
			last := len(groups) - 1
			groups[last] = append(groups[last], u)
			continue
		}
		groups = append(groups, []unmade{u})
	}
	return groups
}

// proposals are the calls that the model proposes in the present turn of the loop. Those of a program that is not the loop are not
// followed: its turns have no steps.
type proposals struct {
	turn     bool // one is under way
	answered bool
	calls    []model.Call // of its answer
	stop     model.Stop
	made     map[int]bool // by their place
	refused  []string     // the titles of calls that policy has refused, of which the display tells by itself
	halted   []string     // those of calls that wait for the end of the kill switch; each is there once
}

// proposalTypes are the types of the events that take reads.
func proposalTypes() []string {
	return []string{step.EventCreated, step.EventInvoked, model.EventAnswered, policy.DeniedType, run.EventFailed, run.EventCancelled}
}

// take takes the next event of the run. At the end of a turn it returns the calls that were never made in it.
func (p *proposals) take(e event.Event) []unmade {
	switch e.Type {
	case step.EventCreated:
		made, err := event.Decode[step.Created](e)
		var next errand.Turn
		if err != nil || made.Kind != errand.TurnKind || json.Unmarshal(made.Input, &next) != nil {
			if err != nil || e.Withheld != "" {
				*p = proposals{} // nobody knows what it was
			}
			return nil
		}
		left := p.left(next.Refused, "")
		*p = proposals{turn: true, made: map[int]bool{}}
		return left
	case model.EventAnswered:
		if said, err := event.Decode[model.Outcome](e); err == nil && said.Answer != nil && p.turn && !p.answered {
			p.answered, p.stop = true, said.Answer.Stop
			for _, part := range said.Answer.Parts {
				if part.Type == model.CallPart && part.Call != nil {
					p.calls = append(p.calls, *part.Call)
				}
			}
		}
	case step.EventInvoked:
		var at errand.TurnCall
		if call, err := event.Decode[step.Invoked](e); err == nil && p.turn && json.Unmarshal(call.Input, &at) == nil {
			p.made[at.Index] = true
			p.halted = slices.DeleteFunc(p.halted, func(title string) bool { return title == refusalOf(call.Tool) })
		}
	case policy.DeniedType:
		if no, err := event.Decode[policy.Refused](e); err == nil && no.Action == policy.ToolCall {
			p.halted = slices.DeleteFunc(p.halted, func(title string) bool { return title == no.Title })
			if no.Decision.ReasonCode == policy.ReasonKillSwitch { // the loop asks again, and each time is refused
				p.halted = append(p.halted, no.Title)
			} else {
				p.refused = append(p.refused, no.Title)
			}
		}
	case run.EventFailed, run.EventCancelled:
		stands := run.Failed
		if e.Type == run.EventCancelled {
			stands = run.Cancelled
		}
		why := "not made before the run " + runview.Stands(stands)
		if end, err := event.Decode[run.Finished](e); err == nil && end.Message+end.Error != "" {
			why += ": " + cmdline.First(end.Message, end.Error)
		}
		left := p.left(nil, why)
		*p = proposals{}
		return left
	}
	return nil
}

// left returns the calls that were not made, with the reasons that the next turn has recorded, or that of the end of the run.
func (p *proposals) left(recorded map[int]string, end string) (all []unmade) {
	if !p.turn {
		return nil
	}
	for i, call := range p.calls {
		reason := recorded[i]
		switch {
		case p.made[i], reason != "" && !strings.HasPrefix(reason, notMade), end != "" && p.told(call.Name):
			continue // it was made, or policy refused it
		case reason != "":
		case p.stop == model.StopLength || p.stop == model.StopOverflow:
			reason = notMade + "the answer was cut at its limit"
		case len(p.calls) > errand.MaxCalls:
			reason = fmt.Sprintf(notMade+"an answer has at most %d calls", errand.MaxCalls)
		case end != "":
			reason = end
		default: // of an older daemon the log says no more
			reason = notMade + "it was not valid"
		}
		all = append(all, unmade{Call: call, reason: reason})
	}
	places := make([]int, 0, len(recorded))
	for i, reason := range recorded {
		if i >= len(p.calls) && strings.HasPrefix(reason, notMade) {
			places = append(places, i)
		}
	}
	slices.Sort(places)
	for _, i := range places { // of a model that writes its calls in its text
		all = append(all, unmade{reason: recorded[i]})
	}
	return all
}

// told reports whether policy has refused a call of a tool in this turn. A refusal is that of one call.
func (p *proposals) told(tool string) bool {
	titles := []string{refusalOf(tool), refusalOf(run.ToolPrefix + tool), refusalOf(ownPrefix + tool)}
	for _, refused := range []*[]string{&p.refused, &p.halted} {
		if n := slices.IndexFunc(*refused, func(title string) bool { return slices.Contains(titles, title) }); n >= 0 {
			*refused = slices.Delete(*refused, n, n+1)
			return true
		}
	}
	return false
}

// ownPrefix precedes the name of the loop's own tool where the gate decides on it.
const ownPrefix = "agent."

// refusalOf returns the title of the refusal of a call, by the name that its tool has for the gate.
func refusalOf(tool string) string {
	return policy.Title(policy.Action{Type: policy.ToolCall, Tool: tool})
}
