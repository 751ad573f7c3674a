package runcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// Engine is an engine outside of the daemon.
func Engine(i *cmdline.Invocation) *cobra.Command {
	var (
		room          string
		once, verbose bool
		hands         int
	)
	c := &cobra.Command{
		Use: "engine", Short: "Execute runs as an engine; Ctrl-C stops it", Args: cobra.NoArgs,
		Long: "Engine claims runs whose input is an operations message with a space_id, executes the operations in that space over the API, " +
			"and reports a step\n" +
			"and a tool call for each. It tells on standard error, with --json in JSON, of the runs that it claims, what it waits for, and what " +
			"came of them. It says that it lives every ten seconds, gives what is under way back when it is interrupted, and waits for a daemon\n" +
			"that is started again. The daemon does the same by itself, unless it was started with --engine external.",
		Example: "  agentbox up --engine external\n  agentbox engine\n  agentbox engine --once --room lab",
	}
	cmdline.OnlyRoom(i, c, &room, "only runs of this room, by its id or title")
	c.Flags().IntVar(&hands, "hands", 1, fmt.Sprintf("runs that are executed at the same time, 1 to %d", maxHands))
	c.Flags().BoolVar(&once, "once", false, "end when no run waits")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "log more, as what is tried again")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if hands < 1 || hands > maxHands {
			return cmdline.Usage("--hands is 1 to %d, not %d", maxHands, hands)
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := cmdline.RoomOnly(cmd.Context(), i, api, room)
		if err != nil {
			return err
		}
		return i.Engine(cmd.Context(), client.Desk{Client: api, Room: in}, cmdline.Engine{Hands: hands, Once: once, Verbose: verbose,
			JSONLog: i.JSON,
			Daemon:  api.Address()})
	}
	return c
}

// maxHands is how many runs an engine executes at the same time at most. For more runs, start another engine.
const maxHands = 64

// runCreate asks for a run that an engine executes.
func runCreate(i *cmdline.Invocation) *cobra.Command {
	q := client.EngineRun{}
	var room, input string
	c := &cobra.Command{
		Use: "create", Short: "Ask for a run that an engine executes", Args: cobra.NoArgs,
		Long: "Create asks for a run that waits until an engine claims it. Operations in a space are run at once with: agentbox run SPACE " +
			"OPERATIONS.json",
		Example: "  agentbox runs create --title report --input order.json",
	}
	cmdline.RoomFlag(i, c, &room)
	c.Flags().StringVar(&q.Title, "title", "", "what it is called")
	c.Flags().StringVar(&q.Goal, "goal", "", "what it is for")
	c.Flags().StringVar(&input, "input", "", "JSON file that the engine is to work on; - reads standard input")
	c.Flags().StringArrayVar(&q.Tags, "tag", nil, "a word by which it is found; repeatable")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if q.Room, err = i.RoomNamed(cmd.Context(), api, room); err != nil {
			return err
		}
		if q.Input, err = jsonFile(i, input); err != nil {
			return err
		}
		made, err := api.CreateEngineRun(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) {
			p.Line("%s", made.ID)
			who := "it waits for an engine that is made for it, or for who does it by hand: agentbox runs claim"
			if made.Work == errand.Operations {
				who = "it waits for an engine that executes operations: the daemon's own, or where it has none an agentbox engine"
			}
			i.Printer(i.Err).Line("%s\nsee how it goes: agentbox runs show %s", who, made.ID)
		})
	}
	return c
}

// jsonFile reads a JSON value from a file, or from standard input where it is named -; nil where no file is named.
func jsonFile(i *cmdline.Invocation, name string) (json.RawMessage, error) {
	if name == "" {
		return nil, nil
	}
	var raw []byte
	var err error
	if name == "-" {
		raw, err = io.ReadAll(io.LimitReader(i.In, run.MaxGiven+1))
	} else {
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "file_unreadable", "%s cannot be read", term.OneLine(name, 200))
	}
	if !json.Valid(raw) {
		return nil, cmdline.Usage("%s is not JSON", term.OneLine(name, 200))
	}
	return raw, nil
}

func runClaim(i *cmdline.Invocation) *cobra.Command {
	var room, work string
	var wait time.Duration
	c := &cobra.Command{
		Use: "claim", Short: "Claim the next run, as an engine does", Args: cobra.NoArgs,
		Long: "Claim prints the token by which the run is yours, for 30 seconds and as long as you renew it. It exits with 5 when there is " +
			"none, and says why.",
	}
	cmdline.OnlyRoom(i, c, &room, "only a run of this room, by its id or title")
	c.Flags().StringVar(&work, "work", "", "only a run whose input is of this kind: operations")
	c.Flags().DurationVar(&wait, "wait", 0, "how long to wait for one, in whole seconds, at most 60s")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if wait%time.Second != 0 || wait < 0 || wait > time.Minute {
			return cmdline.Usage("--wait %s: whole seconds, from 0s to 60s", wait)
		}
		in, err := cmdline.RoomOnly(cmd.Context(), i, api, room)
		if err != nil {
			return err
		}
		got, err := api.ClaimRun(cmd.Context(), in, work, wait)
		if err != nil {
			return err
		}
		if !got.Claimed {
			return unclaimed(got)
		}
		return i.Show(got, func(p *term.Printer) {
			p.Line("%s is yours", got.Run.ID)
			p.Fields("token", got.Token, "permit", got.Permit, "fence", strconv.FormatUint(got.Fence, 10), "input", term.OneLine(string(got.Input),
				2000))
		})
	}
	return c
}

// unclaimed says why there was nothing to claim.
func unclaimed(got client.Claimed) error {
	if got.Reason != client.WorkspaceFull || got.Tasks == nil {
		return errand.ErrNothing
	}
	return fault.New(fault.NotFound, client.WorkspaceFull, "%s, but %s", several(got.Waiting, "run waits", "runs wait"),
		runview.Full(*got.Tasks)).With("see: agentbox runs list")
}

// several writes a number of things.
func several(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

// runTell makes a command that tells something to a run that was claimed.
func runTell(i *cmdline.Invocation, use, short, what, said string, flags func(*cobra.Command) func() (any, error)) *cobra.Command {
	var token, permit string
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&token, "token", "", "the token of the run's claim")
	if what == "complete" || what == "fail" {
		c.Flags().StringVar(&permit, "permit", "", "the permit of the run's claim; without it what is reported is recorded as attested")
	}
	body := func() (any, error) { return struct{}{}, nil }
	if flags != nil {
		body = flags(c)
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		sent, err := body()
		if err != nil {
			return err
		}
		if ended, ok := sent.(map[string]any); ok && permit != "" {
			ended["permit"] = permit
		}
		var answer map[string]any
		if err := api.Tell(cmd.Context(), id.Run(args[0]), what, token, sent, &answer, ""); err != nil {
			return err
		}
		return i.Show(answer, func(p *term.Printer) {
			if s, ok := answer["step_id"].(string); ok {
				p.Line("%s", s)
				return
			}
			p.Line("%s %s", args[0], said)
		})
	}
	return c
}

// engineRuns are the commands about runs that engines execute.
func engineRuns(i *cmdline.Invocation) []*cobra.Command {
	return []*cobra.Command{
		runCreate(i), runClaim(i),
		runTell(i, "renew RUN", "Go on owning a run, for another 30 seconds", "lease/heartbeat", "is yours for another 30 seconds", nil),
		runTell(i, "release RUN", "Give back a run that is not done", "lease/release", "waits for an engine", nil),
		runTell(i, "start RUN", "Start a run by hand, without a claim", "start", "is running", nil),
		runTell(i, "complete RUN", "Report that a run has succeeded", "complete", "succeeded", func(c *cobra.Command) func() (any, error) {
			var summary, output string
			c.Flags().StringVar(&summary, "summary", "", "what was done")
			c.Flags().StringVar(&output, "output", "", "JSON file with the result; - reads standard input")
			return func() (any, error) {
				raw, err := jsonFile(i, output)
				body := map[string]any{"summary": summary}
				if raw != nil {
					body["output"] = raw
				}
				return body, err
			}
		}),
		runTell(i, "fail RUN", "Report that a run has failed", "fail", "failed", func(c *cobra.Command) func() (any, error) {
			var why, message, output string
			c.Flags().StringVar(&why, "error", "", "why, a word")
			c.Flags().StringVar(&message, "message", "", "why, for people")
			c.Flags().StringVar(&output, "output", "", "JSON file with a result all the same; - reads standard input")
			return func() (any, error) {
				raw, err := jsonFile(i, output)
				body := map[string]any{"error": why, "message": message}
				if raw != nil {
					body["output"] = raw
				}
				return body, err
			}
		}),
		runTell(i, "step RUN", "Record a step of a run, and print its id", "steps", "", func(c *cobra.Command) func() (any, error) {
			var kind, title string
			c.Flags().StringVar(&kind, "kind", "", "what kind of step it is, a word")
			c.Flags().StringVar(&title, "title", "", "what it is called")
			return func() (any, error) { return map[string]string{"kind": kind, "title": title}, nil }
		}),
		runAttempts(i), runSteps(i), runEvidence(i),
	}
}

func runAttempts(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "attempts RUN", Short: "List the attempts of engines to execute a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := api.Attempts(cmd.Context(), id.Run(args[0]))
			if err != nil {
				return err
			}
			return i.Show(found, func(p *term.Printer) {
				rows := make([][]term.Cell, len(found))
				for n, a := range found {
					rows[n] = []term.Cell{term.Text(strconv.Itoa(a.Number)), term.Text(string(a.Engine)), {Text: term.Ago(i.Clock.Now(), a.Since),
						Colour: term.Faint}, term.Text(a.Reason)}
				}
				p.Table("No engine has claimed it.", []string{"attempt", "engine", "claimed", "ended by"}, rows)
			})
		},
	}
}

func runSteps(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "steps RUN", Short: "List the steps of a run that an engine executes, with their tool calls", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := api.Steps(cmd.Context(), id.Run(args[0]))
			if err != nil {
				return err
			}
			return i.Show(found, func(p *term.Printer) { writeSteps(p, found, "No step of it was recorded.") })
		},
	}
}

// writeSteps writes what an engine has recorded of a run.
func writeSteps(p *term.Printer, found client.Recorded, none string) {
	var rows [][]term.Cell
	for _, s := range found.Steps {
		row := []term.Cell{term.Text(string(s.ID)), term.Text(s.Kind), term.Text(s.Title), term.Text(""), term.Text("")}
		calls := 0
		for _, c := range found.Calls {
			if c.Step != s.ID {
				continue
			}
			row[3], row[4] = term.Text(c.Tool), runview.State(run.Status(c.Status))
			rows = append(rows, row)
			row = []term.Cell{term.Text(""), term.Text(""), term.Text(""), term.Text(""), term.Text("")}
			calls++
		}
		if calls == 0 {
			rows = append(rows, row)
		}
	}
	p.Table(none, []string{"step", "kind", "title", "tool", "status"}, rows)
	for _, a := range found.Artifacts {
		p.Line("artifact %s: %s", a.ID, term.OneLine(strings.TrimSpace(a.Kind+" "+a.Title), 200))
	}
}

func runEvidence(i *cmdline.Invocation) *cobra.Command {
	var finalize bool
	c := &cobra.Command{Use: "evidence RUN", Short: "Show which events tell of a run, under which hashes", Args: cobra.ExactArgs(1)}
	c.Flags().BoolVar(&finalize, "finalize", false, "collect it first, where that was not done")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := api.Evidence(cmd.Context(), id.Run(args[0]), finalize)
		if err != nil {
			return err
		}
		return i.Show(found, func(p *term.Printer) {
			p.Fields("run", string(found.Run), "events", strconv.Itoa(found.Window.Count), "root", found.Root.String(), "manifest",
				found.Hash.String(),
				"artifacts", strconv.Itoa(found.Completeness.Artifacts), "complete", strconv.FormatBool(found.Completeness.Terminal &&
					found.Completeness.Calls))
		})
	}
	return c
}

// showEngineRun shows a run that an engine executes, with everything that was recorded of it.
func showEngineRun(ctx context.Context, i *cmdline.Invocation, api *client.Client, r client.RunShown) error {
	found, err := api.Steps(ctx, r.ID)
	if err != nil {
		return err
	}
	shown := struct {
		client.RunShown
		client.Recorded
	}{r, found}
	return i.Show(shown, func(p *term.Printer) {
		none := "Nothing was recorded of it."
		if c := r.Claim; c != nil && !r.Status.Ended() {
			none = fmt.Sprintf("It is with engine %s, claimed %s; no step of it was recorded yet.", c.Engine, term.Ago(i.Clock.Now(), c.Since))
		}
		writeSteps(p, found, none)
		runview.WriteRun(p, i, r)
	})
}
