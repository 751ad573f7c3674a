package runview

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// writeTimeline writes about each operation of a run: the operation, its decision, its end and its duration.
func writeTimeline(p *term.Printer, r run.Run, results []run.Result) {
	byOperation := map[string]run.Result{}
	for _, e := range results {
		if e.OperationID != "" && e.Type != run.ResApprovalRequired {
			byOperation[e.OperationID] = e
		}
	}
	var rows [][]term.Cell
	var cut []string // lines that the last column has no room for
	summary := writeSummaryWidth(p)
	for i, o := range r.Operations {
		ending, colour := outcome(o, byOperation[o.ID])
		if room := p.Width - 44 - summary; p.Width > 0 && colour == term.Red && utf8.RuneCountInString(ending) > max(9, room) {
			cut = append(cut, p.Paint(term.Red, "✗")+" "+term.Wrapped(term.Plain(o.ID)+": "+term.OneLine(ending, 0), p.Width, 2))
		}
		took := ""
		if !o.BegunAt.IsZero() && !o.EndedAt.IsZero() {
			took = term.Duration(o.EndedAt.Sub(o.BegunAt))
		}
		rows = append(rows, []term.Cell{
			{Text: fmt.Sprint(i + 1), Colour: term.Faint}, term.Text(o.Type), {Text: term.OneLine(o.Summary, summary),
				Colour: ""}, decided(o), {Text: took, Colour: term.Faint}, {Text: term.OneLine(ending, 0), Colour: colour},
		})
	}
	p.Table("The run has no operations.", []string{"", "operation", "what", "decision", "took", "result"}, rows)
	for _, line := range cut {
		p.Line("%s", line)
	}
	for _, o := range r.Operations {
		for _, d := range byOperation[o.ID].Displays {
			WriteDisplay(p, d, "agentbox artifact get "+string(d.Artifact))
		}
		if e := byOperation[o.ID]; e.Suggestion != "" {
			p.Line("%s %s", p.Paint(term.Yellow, "→"), term.Wrapped(term.Plain(o.ID)+": "+term.Plain(e.Suggestion), p.Width, 2))
		}
	}
}

// writeSummaryWidth returns how many characters of an operation fit into a line of the timeline, beside the other columns.
func writeSummaryWidth(p *term.Printer) int {
	if p.Width == 0 {
		return 60
	}
	return min(72, max(10, p.Width-60))
}

// decided says how the gate, and then perhaps a person, decided.
func decided(o run.Progress) term.Cell {
	switch {
	case o.State == run.Asking:
		return term.Cell{Text: "asks a person", Colour: term.Yellow}
	case o.Answer != "":
		return term.Cell{Text: "asked: " + o.Answer, Colour: map[bool]string{true: term.Green,
			false: term.Red}[o.Answer == string(policy.Approved)]}
	case o.Decision == policy.Deny.String():
		return term.Cell{Text: "refused", Colour: term.Red}
	case o.Decision == policy.Allow.String():
		return term.Cell{Text: "allowed", Colour: term.Green}
	case o.Decision == "":
		return term.Cell{Text: "-", Colour: term.Faint}
	}
	return term.Cell{Text: term.Plain(o.Decision), Colour: term.Yellow}
}

// outcome says how an operation ended, and in which colour.
func outcome(o run.Progress, e run.Result) (string, string) {
	switch o.State {
	case run.Waiting:
		return "not begun", term.Faint
	case run.Begun:
		return "under way", term.Cyan
	case run.Asking, run.Answered:
		return "waits", term.Yellow
	}
	if o.OK && e.Type == "" {
		return "ok", term.Green
	}
	if e.Type == "" {
		return cmdline.First(o.Kind, "failed"), term.Red
	}
	words, colour := Said(e)
	return strings.TrimPrefix(words, o.Summary+": "), colour // the reason of a refusal repeats the command
}
