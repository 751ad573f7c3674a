package cmdline

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"agentbox/internal/surface/cli/term"
)

// widest is the most characters in a line of help. Longer lines are hard to read.
const widest = 120

// Fits makes the help of every command fit into the width of the terminal. Help that goes elsewhere stays as it is.
func Fits(i *Invocation, root *cobra.Command) {
	if i.Width == 0 {
		return
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text bytes.Buffer
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(nil)
		fmt.Fprint(i.Out, fitted(text.String(), min(i.Width, widest)))
	})
}

// fitted breaks the lines of a help text between words. Examples stay whole, so that they can be copied.
func fitted(text string, width int) string {
	intro, rest, found := strings.Cut(text, "\nUsage:")
	if found {
		text = joined(intro) + "\nUsage:" + rest
	}
	var out strings.Builder
	examples := false
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, ":\n") && !strings.HasPrefix(line, " ") {
			examples = line == "Examples:\n"
		}
		if line = strings.TrimSuffix(line, "\n"); !examples && utf8.RuneCountInString(line) > width {
			at := hanging(line, width)
			line = line[:at] + term.Wrapped(strings.Join(strings.Fields(line[at:]), " "), width, at)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// joined puts the lines of a sentence into one line. Lines that begin with a space stay apart.
func joined(text string) string {
	var out strings.Builder
	before := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case out.Len() == 0:
		case before == "" || strings.ContainsAny(before[len(before)-1:], ".:") || line == "" || line[0] == ' ' || before[0] == ' ':
			out.WriteByte('\n')
		default:
			out.WriteByte(' ')
		}
		out.WriteString(line)
		before = line
	}
	return out.String()
}

// column matches what stands in front of the text of a flag or of a command.
var column = regexp.MustCompile(`^ +\S+(?: \S+)*  +`)

// hanging returns the place in a line under which its further lines begin: the column of its text, if that leaves room.
func hanging(line string, width int) int {
	const room = 20
	if at := len(column.FindString(line)); at > 0 && at < width-room {
		return at
	}
	return len(line) - len(strings.TrimLeft(line, " "))
}
