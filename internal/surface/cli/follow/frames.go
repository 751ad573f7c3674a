package follow

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// frame shows one frame. It says whether the run has ended, or which approval it waits for.
func (w *watch) frame(f client.Frame) (done bool, pending id.Approval, err error) {
	var result run.Result
	if f.Kind == client.FrameResult {
		if err := json.Unmarshal(f.Data, &result); err != nil {
			return false, "", fault.Wrap(err, fault.Internal, "frame_unreadable", "frame %d of the run cannot be read", f.N)
		}
		if result.Type == run.ResApprovalRequired {
			pending = id.Approval(result.ApprovalID)
		}
	}
	switch {
	case w.quiet:
	case w.p.JSON:
		if err := w.p.Record(f); err != nil {
			return false, "", err
		}
	default:
		if err := w.show(f, result); err != nil {
			return false, "", err
		}
	}
	return f.Kind == client.FrameComplete, pending, nil
}

// show writes a frame for people.
func (w *watch) show(f client.Frame, result run.Result) error {
	switch f.Kind {
	case client.FrameOperation:
		var op run.Outline
		if err := json.Unmarshal(f.Data, &op); err != nil {
			return fault.Wrap(err, fault.Internal, "frame_unreadable", "frame %d of the run cannot be read", f.N)
		}
		w.p.Line("%s %s  %s", w.p.Paint(term.Cyan, "▸"), w.p.Paint(term.Bold, term.Plain(op.Type)), term.OneLine(op.Summary, w.room(16)))
	case client.FrameStdout, client.FrameStderr:
		var out client.Output
		if err := json.Unmarshal(f.Data, &out); err != nil {
			return fault.Wrap(err, fault.Internal, "frame_unreadable", "frame %d of the run cannot be read", f.N)
		}
		data := []byte(out.Data)
		if out.Encoding == "base64" {
			var err error
			if data, err = base64.StdEncoding.DecodeString(out.Data); err != nil {
				return fault.Wrap(err, fault.Internal, "frame_unreadable", "frame %d of the run cannot be read", f.N)
			}
		}
		w.output(data, map[string]string{client.FrameStderr: term.Yellow}[f.Kind])
	case client.FrameResult:
		w.flush()
		words, colour := runview.Said(result)
		mark := map[string]string{term.Green: "✓", term.Red: "✗", term.Yellow: "?"}[colour]
		w.p.Line("  %s %s", w.p.Paint(colour, mark), w.p.Paint(colour, term.Wrapped(term.OneLine(words, 0), w.p.Width, 4)))
		if result.Suggestion != "" {
			w.p.Line("    %s", term.Wrapped(term.OneLine(result.Suggestion, 0), w.p.Width, 4))
		}
	}
	return nil
}

// room returns how many characters of a line are left beside the given number. 0 means that lines have no limit.
func (w *watch) room(taken int) int {
	if w.p.Width == 0 {
		return 0
	}
	return max(20, w.p.Width-taken)
}

// output writes the output of a command, line by line, behind a bar. A character that comes in two pieces is put together first.
func (w *watch) output(data []byte, colour string) {
	data = append(w.rest, data...)
	whole := len(data)
	for back := 1; back <= min(utf8.UTFMax-1, len(data)); back++ {
		if utf8.RuneStart(data[len(data)-back]) {
			if !utf8.FullRune(data[len(data)-back:]) {
				whole = len(data) - back
			}
			break
		}
	}
	text := string(data[:whole])
	w.rest = append([]byte(nil), data[whole:]...)
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	for part := range strings.Lines(text) {
		if !w.open {
			fmt.Fprint(w.p.Out, w.p.Paint(term.Faint, "  │ "))
		}
		line, ends := strings.CutSuffix(part, "\n")
		fmt.Fprint(w.p.Out, w.p.Paint(colour, term.Plain(line)))
		if w.open = !ends; ends {
			fmt.Fprintln(w.p.Out)
		}
	}
}

// flush ends a line of output that the command left open.
func (w *watch) flush() {
	if len(w.rest) > 0 {
		rest := w.rest
		w.rest = nil
		fmt.Fprint(w.p.Out, term.Plain(string(rest)))
		w.open = true
	}
	if w.open {
		fmt.Fprintln(w.p.Out)
		w.open = false
	}
}
