package runcmd

import (
	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/term"
)

// Exec is the command that runs operations in a space.
func Exec(i *cmdline.Invocation) *cobra.Command {
	var (
		e      follow.Execution
		agent  string
		detach bool
		b      beside
	)
	c := &cobra.Command{
		Use: "run SPACE OPERATIONS.json", Short: "Run operations in a space", Args: b.args, ValidArgsFunction: i.CompleteSpaces,
		Long: "Run sends an operations message of protocol 1.0 (- reads it from standard input), waits for the run, and shows its timeline.\n" +
			"With --background, a command stands in the place of the file: it runs beside the other runs of the space, until it ends, is " +
			"cancelled, or the space is destroyed.\n" +
			"SPACE is, here and everywhere, the id of a space, or its name where no other has it.\n" +
			"It exits with 0 when the run is completed, 6 when all of it was refused, 7 when it waits for a person, 1 when it failed; see also " +
			"--strict.",
		Example: "  agentbox run spc_... operations.json --stream\n  agentbox run spc_... operations.json --ask\n  generate | agentbox run " +
			"spc_... - --json\n  agentbox run --background --tty spc_... -- python3",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if b.background {
			return b.start(cmd.Context(), i, client.RunRequest{Title: e.Title, Retention: e.Retention, Artifacts: e.Artifacts,
				IdempotencyKey: e.Key}, args[0], args[1:])
		}
		message, err := follow.Operations(i, args[1])
		if err != nil {
			return err
		}
		if agent != "" {
			message.Agent = &client.RunAgent{Name: agent}
		}
		if len(e.Context) > 0 {
			message.Context = &client.RunContext{Files: e.Context}
		}
		message.Title, message.Retention, message.IdempotencyKey, message.Artifacts = e.Title, e.Retention, e.Key, e.Artifacts
		if e.Ask {
			e.Answer = i.Answer
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		if detach {
			begun, err := api.CreateRun(cmd.Context(), in, message)
			if err != nil {
				return err
			}
			return i.Show(begun, func(p *term.Printer) { p.Line("%s", begun.RunID) })
		}
		shown, err := follow.Execute(cmd.Context(), i, api, in, message, e)
		if err != nil {
			return err
		}
		return follow.Conclude(i, shown, e)
	}
	b.flags(c)
	f := c.Flags()
	f.BoolVar(&e.Stream, "stream", false, "show operations and output as they come; with --json one frame per line")
	f.BoolVar(&detach, "detach", false, "print the run's id and do not wait for it")
	f.BoolVar(&e.Ask, "ask", false, "ask here what a person has to decide, and go on")
	f.BoolVar(&e.Strict, "strict", false, "exit with 6 when an operation was refused and with 1 when one failed")
	f.StringVar(&agent, "agent", "", "name of the agent that acts (default: the space's own)")
	f.StringArrayVar(&e.Context, "context", nil, "file of the space whose content opens the events; repeatable")
	f.StringVar(&e.Title, "title", "", "what the run is about")
	f.StringArrayVar(&e.Artifacts, "artifact", nil,
		"files of the space that are kept as artifacts when the run ends, such as 'out/**'; repeatable")
	f.StringVar(&e.Retention, "retention", "",
		"how long the data of the run's events are kept after its end, for example 30d or 36h; then they are redacted (default: by the "+
			"operator's rules)")
	f.StringVar(&e.Key, "idempotency-key", "", "the same key and operations run once, however often they are sent")
	return c
}
