// Package runview draws runs: their state, their timeline and where their time went.
package runview

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// writeOrder writes the input of an engine's run and its output.
func writeOrder(p *term.Printer, r client.RunShown) {
	fields := []string{}
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, name, term.OneLine(value, 2000))
		}
	}
	add("title", r.Title)
	add("goal", r.Goal)
	add("input", string(r.Given))
	if r.Claim != nil {
		add("engine", string(r.Claim.Engine))
	}
	if r.Reported != nil {
		add("said", r.Reported.Summary+r.Reported.Message)
		add("output", string(r.Reported.Output))
	}
	p.Fields(fields...)
}

// RefusedWhole reports whether policy refused every operation of a run, so that nothing at all was done. The run itself has succeeded: it
// was executed to its end, and each operation has its result.
func RefusedWhole(r client.RunShown) bool {
	refused := 0
	for _, e := range r.Result.Events {
		switch {
		case e.Type == run.ResPolicyDenied:
			refused++
		case e.Type != run.ResApprovalRequired && e.OperationID != "":
			return false
		}
	}
	return refused > 0
}

// Place is where a run was executed.
func Place(r run.Run) term.Cell {
	if r.Imported != nil {
		return term.Cell{Text: "imported", Colour: term.Yellow}
	}
	return term.Text(string(r.Space))
}

// Progress says how many operations of a run are done.
func Progress(r run.Run) string {
	done := 0
	for _, o := range r.Operations {
		if o.State == run.Done {
			done++
		}
	}
	return fmt.Sprintf("%d/%d", done, len(r.Operations))
}

// State is a run's status in its colour.
func State(s run.Status) term.Cell {
	colour := map[run.Status]string{run.Succeeded: term.Green, run.Failed: term.Red, run.Cancelled: term.Red,
		run.AwaitingApproval: term.Yellow,
		run.Running:          term.Cyan}[s]
	return term.Cell{Text: term.OneLine(string(s), 40), Colour: colour}
}

// WhereItStands is a run's status, and for how long its engine was silent where its claim has expired. A run of an engine that waits for a
// person is awaiting_approval, or awaiting_answer.
func WhereItStands(r run.Run, w client.Waits, now time.Time) term.Cell {
	if c := r.Claim; c != nil && r.Status == run.Running && now.After(c.Until) {
		return term.Cell{Text: fmt.Sprintf("%s, engine silent for %s", r.Status, term.Duration(now.Sub(c.Renewed).Truncate(time.Second))),
			Colour: term.Yellow}
	}
	if w.For != "" {
		return term.Cell{Text: "awaiting_" + term.OneLine(w.For, 40), Colour: term.Yellow}
	}
	return State(r.Status)
}

// failures says how many operations did not succeed, for a run that has succeeded may hold some.
func failures(r client.RunShown) string {
	if r.Status == run.Succeeded && RefusedWhole(r) {
		return ", but all of it was refused: nothing was done"
	}
	failed := 0
	for _, o := range r.Operations {
		if o.State == run.Done && !o.OK {
			failed++
		}
	}
	switch failed {
	case 0:
		return ""
	case 1:
		return ", 1 operation did not succeed"
	}
	return fmt.Sprintf(", %s did not succeed", term.Count(failed, "operation"))
}

// WriteRun writes a run: its timeline, then where it stands and what to do next.
func WriteRun(p *term.Printer, i *cmdline.Invocation, r client.RunShown) {
	if r.Engine {
		writeOrder(p, r)
	} else {
		writeTimeline(p, r.Run, r.Result.Events)
	}
	status := WhereItStands(r.Run, r.Waits, i.Clock.Now())
	took := ""
	if !r.EndedAt.IsZero() && !r.StartedAt.IsZero() {
		took = " in " + term.Duration(r.EndedAt.Sub(r.StartedAt))
	}
	p.Line("\nrun %s: %s%s%s", p.Paint(term.Bold, string(r.ID)), p.Paint(status.Colour, status.Text), took, p.Paint(term.Red, failures(r)))
	if r.Error != "" {
		p.Line("%s", p.Paint(term.Red, term.Plain(r.Error)))
	}
	WriteImported(p, r.Run)
	WriteKept(p, r.Run)
	WriteRetention(p, r.Run)
	if _, approval := r.Pending(); approval != "" {
		p.Line("%s", term.Wrapped("it waits for a person: agentbox approvals show|approve|deny "+string(approval), p.Width, 2))
	}
}

// WriteKept says which files a run has kept as artifacts; nothing of a run that keeps none.
func WriteKept(p *term.Printer, r run.Run) {
	kept := r.Artifacts
	if kept == nil {
		return
	}
	switch {
	case kept.Files > 0:
		p.Line("it keeps %s of %s: agentbox artifact list --run %s", term.Count(int64(kept.Files), "file"), term.Count(kept.Bytes, "byte"), r.ID)
	case kept.LeftOut > 0 || kept.Error != "" || len(r.Patterns) == 0:
		p.Line("it keeps no files")
	default:
		p.Line("%s", p.Paint(term.Faint, "it keeps no files: none fits "+term.OneLine(strings.Join(r.Patterns, ", "), 200)))
	}
	for _, f := range kept.Named {
		p.Line("%s", p.Paint(term.Yellow, "left out: "+term.OneLine(f.Path, 200)+" ("+f.Reason+")"))
	}
	if more := kept.LeftOut - len(kept.Named); more > 0 {
		p.Line("%s", p.Paint(term.Yellow, fmt.Sprintf("left out: %s more", term.Count(int64(more), "file"))))
	}
	if kept.Error != "" {
		p.Line("%s", p.Paint(term.Yellow, "some files were not looked for: "+kept.Error))
	}
}

// WriteRetention says how long the data of a run are kept, where that was said of it.
func WriteRetention(p *term.Printer, r run.Run) {
	keep := keptFor(r.Retention)
	switch {
	case !r.Forgotten.IsZero():
		p.Line("%s", p.Paint(term.Yellow, "its data were kept for "+keep+" and redacted at "+r.Forgotten.Format(time.RFC3339)))
	case !r.KeptUntil.IsZero():
		p.Line("its data are kept for %s, until %s, and redacted then", keep, r.KeptUntil.Format(time.RFC3339))
	case r.Retention > 0:
		p.Line("its data are kept for %s once it has ended, and redacted then", keep)
	}
}

// keptFor writes a retention time in the form that a request has.
func keptFor(seconds int64) string {
	const day = 24 * 60 * 60
	if seconds > 0 && seconds%day == 0 {
		return strconv.FormatInt(seconds/day, 10) + "d"
	}
	text := (time.Duration(seconds) * time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// WriteImported says of a run that it was not executed here, and what of it was proven.
func WriteImported(p *term.Printer, r run.Run) {
	from := r.Imported
	if from == nil {
		return
	}
	a := from.Attested
	p.Line("%s", term.Wrapped(p.Paint(term.Yellow, "imported")+": not executed here; it was "+term.Plain(string(from.Run))+" of "+
		term.Plain(string(from.Workspace))+" elsewhere", p.Width, 2))
	claim := "no checkpoint came with it: what it says is nobody's signed word"
	if a.Origin != "" {
		claim = strconv.Itoa(a.Proven) + " included under the checkpoint of " + strconv.FormatUint(a.Size, 10) + " events that " +
			term.Plain(a.PublicKey) + " signed"
	}
	p.Line("%s", term.Wrapped("checked: "+strconv.Itoa(a.Events)+" events chained, "+strconv.Itoa(a.Whole)+" with their data, "+
		strconv.Itoa(a.Bound)+" outcomes in them, "+claim, p.Width, 2))
}
