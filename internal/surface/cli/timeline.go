package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
)

// timeline writes about each operation of a run: the operation, its decision, its end and its duration.
func (p *printer) timeline(r run.Run, results []run.Result) {
	byOperation := map[string]run.Result{}
	for _, e := range results {
		if e.OperationID != "" && e.Type != run.ResApprovalRequired {
			byOperation[e.OperationID] = e
		}
	}
	var rows [][]cell
	var cut []string // what the last column has no room for
	summary := p.summaryWidth()
	for i, o := range r.Operations {
		ending, colour := outcome(o, byOperation[o.ID])
		if room := p.width - 44 - summary; p.width > 0 && colour == red && utf8.RuneCountInString(ending) > max(9, room) {
			cut = append(cut, p.paint(red, "✗")+" "+wrapped(plain(o.ID)+": "+oneLine(ending, 0), p.width, 2))
		}
		took := ""
		if !o.BegunAt.IsZero() && !o.EndedAt.IsZero() {
			took = duration(o.EndedAt.Sub(o.BegunAt))
		}
		rows = append(rows, []cell{
			{fmt.Sprint(i + 1), faint}, text(o.Type), {oneLine(o.Summary, summary), ""}, decided(o), {took, faint}, {oneLine(ending, 0), colour},
		})
	}
	p.table("The run has no operations.", []string{"", "operation", "what", "decision", "took", "result"}, rows)
	for _, line := range cut {
		p.line("%s", line)
	}
	for _, o := range r.Operations {
		for _, d := range byOperation[o.ID].Displays {
			p.display(d, "agentbox artifact get "+string(d.Artifact))
		}
		if e := byOperation[o.ID]; e.Suggestion != "" {
			p.line("%s %s", p.paint(yellow, "→"), wrapped(plain(o.ID)+": "+plain(e.Suggestion), p.width, 2))
		}
	}
}

// summaryWidth returns how many characters of an operation fit into a line of the timeline, beside the other columns.
func (p *printer) summaryWidth() int {
	if p.width == 0 {
		return 60
	}
	return min(72, max(10, p.width-60))
}

// decided says how the gate, and then perhaps a person, decided.
func decided(o run.Progress) cell {
	switch {
	case o.State == run.Asking:
		return cell{"asks a person", yellow}
	case o.Answer != "":
		return cell{"asked: " + o.Answer, map[bool]string{true: green, false: red}[o.Answer == string(policy.Approved)]}
	case o.Decision == policy.Deny.String():
		return cell{"refused", red}
	case o.Decision == policy.Allow.String():
		return cell{"allowed", green}
	case o.Decision == "":
		return cell{"-", faint}
	}
	return cell{plain(o.Decision), yellow}
}

// outcome says how an operation ended, and in which colour.
func outcome(o run.Progress, e run.Result) (string, string) {
	switch o.State {
	case run.Waiting:
		return "not begun", faint
	case run.Begun:
		return "under way", cyan
	case run.Asking, run.Answered:
		return "waits", yellow
	}
	if o.OK && e.Type == "" {
		return "ok", green
	}
	if e.Type == "" {
		return first(o.Kind, "failed"), red
	}
	words, colour := said(e)
	return strings.TrimPrefix(words, o.Summary+": "), colour // the reason of a refusal repeats the command
}

// said puts a result event into a few words, with the colour that suits it.
func said(e run.Result) (string, string) {
	switch e.Type {
	case run.ResPolicyDenied:
		return first(e.Reason, e.ReasonCode), red
	case run.ResUnknown:
		return "unknown: " + e.Reason, red
	case run.ResError:
		return first(e.Message, e.Category), red
	case run.ResApprovalRequired:
		return "asks: " + e.Reason, yellow
	}
	var parts []string
	if e.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit %d", *e.ExitCode))
	}
	if e.TimedOut != nil && *e.TimedOut {
		parts = append(parts, "timed out")
	}
	if e.Limit != "" {
		parts = append(parts, "hit "+e.Limit)
	}
	if e.BytesWritten != nil {
		parts = append(parts, bytesize(*e.BytesWritten)+" written")
	}
	if e.Size != nil {
		parts = append(parts, bytesize(*e.Size)+" read")
	}
	if e.EditsApplied != nil {
		parts = append(parts, fmt.Sprintf("%d edited", *e.EditsApplied))
	}
	if e.Error != "" {
		parts = append(parts, e.Error)
	}
	if !e.OK() {
		return first(strings.Join(parts, ", "), "failed"), red
	}
	return first(strings.Join(parts, ", "), "ok"), green
}
