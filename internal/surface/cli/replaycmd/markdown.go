package replaycmd

import (
	"fmt"
	"slices"
	"strings"

	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// markdown tells a transcript to a person. Foreign text stands in code only, behind fences that it cannot close.
func markdown(t run.Transcript) string {
	var b strings.Builder
	r := t.Header.Run
	fmt.Fprintf(&b, "# Run %s\n\n", code(string(r.ID)))
	if r.Title != "" {
		fmt.Fprintf(&b, "%s\n\n", code(r.Title))
	}
	took := "-"
	if !r.StartedAt.IsZero() && !r.EndedAt.IsZero() {
		took = term.Duration(r.EndedAt.Sub(r.StartedAt))
	}
	rows := [][2]string{
		{"status", string(r.Status)}, {"error", r.Error}, {"asked for by", string(r.CreatedBy)}, {"agent", string(r.Agent)},
		{"begun", term.Moment(r.StartedAt)}, {"took", took},
		{"space", fmt.Sprintf("%s, tier %s", t.Header.Place.ID, t.Header.Place.Tier)},
		{"policy", fmt.Sprintf("%s, %s", t.Header.Place.Policy, t.Header.Place.Bundle)},
		{"redacted", cmdline.First(strings.Join(t.Header.Redacted, ", "), "nothing")},
		{"exported", fmt.Sprintf("%s, at place %d of the log", term.Moment(t.Header.Exported), t.Header.Head)},
	}
	b.WriteString("| | |\n|---|---|\n")
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", row[0], strings.ReplaceAll(code(row[1]), "|", `\|`))
		}
	}
	outcomes := map[int]run.Outcome{}
	for _, o := range t.Outcomes {
		outcomes[o.Index] = o
	}
	for _, a := range t.Asked {
		o, done := outcomes[a.Index]
		fmt.Fprintf(&b, "\n## %d. %s %s\n", a.Index+1, a.Operation.Type, code(a.Operation.ID))
		asked(&b, a)
		if !done {
			b.WriteString("\nNot done.\n")
			continue
		}
		became(&b, o)
	}
	fmt.Fprintf(&b, "\n%s of the log belong to this run", term.Count(len(t.Events), "event"))
	if n := len(t.Events); n > 0 {
		fmt.Fprintf(&b, ", from place %d to place %d", t.Events[0].Seq, t.Events[n-1].Seq)
	}
	b.WriteString(".\n")
	return b.String()
}

// asked writes what an operation wanted.
func asked(b *strings.Builder, a run.Asked) {
	op := a.Operation
	switch op.Type {
	case run.OpShell:
		fence(b, "sh", op.Command)
	case run.OpMessage:
		fence(b, "", op.Content)
	default:
		fmt.Fprintf(b, "\n%s\n", code(op.Path))
		fence(b, "", op.Content)
	}
	for _, e := range op.Edits {
		fence(b, "diff", prefixed("-", e.Old)+"\n"+prefixed("+", e.New))
	}
	removed(b, a.Removed)
}

// became writes the decision about an operation and its result.
func became(b *strings.Builder, o run.Outcome) {
	words, _ := runview.Said(o.Result)
	decision := cmdline.First(o.Decision, "-")
	if o.Reason != "" {
		decision += " (" + o.Reason + ")"
	}
	if o.Answer != "" {
		decision += ", a person: " + o.Answer
	}
	fmt.Fprintf(b, "\n- decision: %s\n- result: %s\n", code(decision), code(words))
	if !o.BegunAt.IsZero() && !o.EndedAt.IsZero() {
		fmt.Fprintf(b, "- took: %s\n", term.Duration(o.EndedAt.Sub(o.BegunAt)))
	}
	for _, text := range []struct {
		name string
		text *string
	}{{"stdout", o.Result.Stdout}, {"stderr", o.Result.Stderr}, {"content", o.Result.Content}} {
		if text.text != nil && *text.text != "" {
			fmt.Fprintf(b, "\n%s:\n", text.name)
			fence(b, "", *text.text)
		}
	}
	if len(o.Result.Displays) > 0 {
		b.WriteString("\nshown:\n\n")
	}
	for _, d := range o.Result.Displays {
		fmt.Fprintf(b, "- %s: %s\n", runview.FormOf(d), code(string(d.Artifact)))
	}
	removed(b, o.Removed)
}

// removed names the removed parts.
func removed(b *strings.Builder, texts map[string]run.Removed) {
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		what := "redacted"
		if r := texts[name]; !r.Digest.IsZero() {
			what = fmt.Sprintf("redacted, %s, %s", term.Bytesize(r.Size), r.Digest)
		}
		fmt.Fprintf(b, "\n%s: %s\n", code(name), what)
	}
}

// fence writes a block of code whose fence is longer than any row of backticks in it.
func fence(b *strings.Builder, language, text string) {
	if text == "" {
		return
	}
	ticks := strings.Repeat("`", max(3, longest(text)+1))
	fmt.Fprintf(b, "\n%s%s\n%s\n%s\n", ticks, language, strings.TrimSuffix(term.Plain(text), "\n"), ticks)
}

// code puts a short text between backticks that it cannot close.
func code(text string) string {
	text = term.OneLine(text, 0)
	if text == "" {
		return ""
	}
	ticks := strings.Repeat("`", longest(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return ticks + text + ticks
}

// longest is the length of the longest row of backticks.
func longest(text string) int {
	most, row := 0, 0
	for _, r := range text {
		if r != '`' {
			row = 0
			continue
		}
		row++
		most = max(most, row)
	}
	return most
}

func prefixed(sign, text string) string {
	return sign + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+sign)
}
