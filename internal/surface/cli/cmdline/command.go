package cmdline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/surface/cli/term"
)

// WrapArgs names the arguments of a command if cobra finds a wrong number of them.
func WrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return refuseNothing(cmd, args)
			}
			if _, said := AsFault(err); said {
				return err
			}
			_, takes, _ := strings.Cut(cmd.Use, " ")
			return Usage("%s takes %s, and %s given", Within(cmd), First(takes, "no arguments"), map[bool]string{true: "1 argument was",
				false: fmt.Sprintf("%d arguments were", len(args))}[len(args) == 1]).With("see: " + cmd.CommandPath() + " --help")
		}
	}
	for _, sub := range cmd.Commands() {
		WrapArgs(sub)
	}
}

// Group makes a command that only has others below it.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: OnlyCommands, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	c.AddCommand(subs...)
	return c
}

// Within names a command below the program, or the program.
func Within(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "agentbox ") }

// OnlyCommands refuses a word that is not a command, and names those that are near it.
func OnlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = min(2, len(args[0])/2) // of two letters only one may be wrong
	near := cmd.SuggestionsFor(args[0])
	for n, name := range near {
		near[n] = cmd.CommandPath() + " " + name
	}
	hint := "see: " + cmd.CommandPath() + " --help"
	if len(near) > 0 {
		hint = "did you mean: " + strings.Join(near, ", ")
	}
	return Usage("there is no command %s %s", cmd.CommandPath(), term.OneLine(args[0], 60)).With(hint)
}

// Pages adds the flags of a page to a command.
func Pages(c *cobra.Command, page *client.Page) {
	c.Flags().IntVar(&page.Limit, "limit", 20, "how many at most, 1 to 100")
	c.Flags().StringVar(&page.Cursor, "cursor", "", "where to go on, as the page before says")
}

// WriteMore says where a list goes on.
func WriteMore(p *term.Printer, next string) {
	if next != "" {
		p.Line("%s", p.Paint(term.Faint, "more with --cursor "+next))
	}
}

// All reads every page of a list.
func All[T any](next func(cursor string) ([]T, string, error)) ([]T, error) {
	found := []T{}
	for cursor := ""; ; {
		page, following, err := next(cursor)
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
		if following == "" || following == cursor {
			return found, nil
		}
		cursor = following
	}
}
