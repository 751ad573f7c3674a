// Package cmdline holds the shared code of all commands: the global flags, the way to the daemon, names, completions, questions and exit
// codes.
package cmdline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/term"
)

// Invocation is one command line with its global flags.
type Invocation struct {
	Host
	Data, URL, Key string
	Store, Shared  string
	JSON           bool
	KeyFrom        string                                  // where the API key was found
	Lines          *bufio.Reader                           // of In, once something was read
	Answers        func(prompt string) (string, error)     // reads an answer where a terminal is read key by key
	Aside          func() (back func())                    // takes the keys that were pressed by now; back gives them to the next line
	Asking         func(a policy.Approval) policy.Approval // what a session shows of a question about what it has sent; nil for all of it
}

// Printer returns a printer for one of the process's streams.
func (i *Invocation) Printer(out io.Writer) *term.Printer {
	return &term.Printer{Out: out, JSON: i.JSON, Colour: i.Terminal && i.Getenv("NO_COLOR") == "" && i.Getenv("TERM") != "dumb",
		Width: i.Width}
}

// Show writes a value as JSON, or for people.
func (i *Invocation) Show(v any, people func(*term.Printer)) error {
	p := i.Printer(i.Out)
	if i.JSON {
		return p.Object(v)
	}
	people(p)
	return nil
}

// List shows a list. Its JSON is the answer of the API: an object with the list under its name, and the cursor of the next page if there
// is one.
func (i *Invocation) List(name string, entries any, next string, people func(*term.Printer)) error {
	return i.Show(listed{name, entries, next}, people)
}

type listed struct {
	name    string
	entries any
	next    string
}

// MarshalJSON writes the list before its cursor, which is the identifier of an entry too.
func (l listed) MarshalJSON() ([]byte, error) {
	name, err := json.Marshal(l.name)
	entries, wrong := json.Marshal(l.entries)
	if err = errors.Join(err, wrong); err != nil || l.next == "" {
		return fmt.Appendf(nil, "{%s:%s}", name, entries), err
	}
	next, err := json.Marshal(l.next)
	return fmt.Appendf(nil, `{%s:%s,"next_cursor":%s}`, name, entries, next), err
}

// Call connects to the daemon, asks, and shows the answer.
func Call[T any](i *Invocation, cmd *cobra.Command, ask func(*client.Client) (T, error), people func(*term.Printer, T)) error {
	api, err := i.Connect(cmd.Context())
	if err != nil {
		return err
	}
	answer, err := ask(api)
	if err != nil {
		return err
	}
	return i.Show(answer, func(p *term.Printer) { people(p, answer) })
}
