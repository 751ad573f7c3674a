// Package agentcmd has the commands for agents at work: give an agent a task, show its work, send it a message, stop it, and chat.
package agentcmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// Commands are the commands about agents at work.
func Commands(i *cmdline.Invocation) []*cobra.Command {
	return []*cobra.Command{agentRun(i), agentList(i), agentShow(i), agentFollow(i), agentSteer(i), agentStop(i)}
}

func agentList(i *cmdline.Invocation) *cobra.Command {
	f := client.RunFilter{Work: errand.Agent}
	c := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List what agents work on and worked on, the newest first", Args: cobra.NoArgs,
		Long: "Ls lists the runs of agents that blueprints define. Agents that are registered by name are listed by: agentbox principal ls " +
			"--kind agent\n" +
			"An agent that waits for a person is awaiting_approval: see agentbox approvals. With awaiting_answer its tool ask_person has asked: " +
			"agentbox agent steer RUN ANSWER",
		Example: "  agentbox agent ls\n  agentbox agent ls --status running\n  agentbox agent ls --blueprint reporter --limit 5",
	}
	c.Flags().StringVar(&f.Status, "status", "", "only those: queued, running, awaiting_approval (of those that run), succeeded, failed or "+
		"cancelled")
	c.Flags().StringVar(&f.Blueprint, "blueprint", "", "only runs of the agent that this blueprint defines")
	cmdline.Pages(c, &f.Page)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if f.Blueprint != "" {
			f.Work = "" // the API takes one of them
		}
		page, err := api.Runs(cmd.Context(), f)
		if err != nil {
			return err
		}
		if f.Blueprint != "" && len(page.Runs) == 0 {
			_, err := api.Blueprint(cmd.Context(), f.Blueprint, 0)
			if err = cmdline.UnknownBlueprint(cmd.Context(), api, f.Blueprint, err); fault.KindOf(err) == fault.NotFound {
				return err
			}
		}
		return i.List("runs", page.Runs, page.Next, func(p *term.Printer) {
			now := i.Clock.Now()
			rows := make([][]term.Cell, len(page.Runs))
			for n, r := range page.Runs {
				rows[n] = []term.Cell{term.Text(string(r.ID)), runview.WhereItStands(r.Run, r.Waits, now), term.Text(r.Blueprint),
					{Text: term.Ago(now, r.CreatedAt), Colour: term.Faint}, term.Text(r.Title)}
			}
			p.Table(noWork(f), []string{"run", "status", "agent", "asked for", "task"}, rows)
			cmdline.WriteMore(p, page.Next)
		})
	}
	return c
}

// noWork says that no run fits a filter, and how to see others or to begin one.
func noWork(f client.RunFilter) string {
	of, all := "an agent", "agentbox agent ls"
	if f.Blueprint != "" {
		of, all = "the agent "+f.Blueprint, all+" --blueprint "+f.Blueprint
	}
	switch {
	case f.Status != "":
		return "No run of " + of + " has the status " + f.Status + ". See all: " + all
	case f.Blueprint != "":
		return "The agent " + f.Blueprint + " has had no task. Give it one: agentbox agent run " + f.Blueprint + " TASK"
	}
	return "No agent has had a task. Give one: agentbox agent run BLUEPRINT TASK"
}

// work is the state of an agent's run, with its history.
type work struct {
	client.RunShown
	Agent     errand.Mission    `json:"agent"` // its definition
	Turns     int               `json:"turns"`
	Calls     []step.Call       `json:"tool_calls"`
	Used      *model.Used       `json:"usage,omitempty"` // of models; nil before the first request
	Currency  string            `json:"currency,omitempty"`
	Questions []policy.Approval `json:"questions"`      // that wait for a person
	Asks      string            `json:"asks,omitempty"` // what its tool ask_person has asked, while it waits for the answer

	Stopped bool `json:"kill_switch,omitempty"` // the kill switch is on, and the run has not ended
}

// find returns a run of an agent. It returns not_an_agent for other runs.
func find(ctx context.Context, api *client.Client, r id.Run) (client.RunShown, errand.Mission, error) {
	shown, err := api.Run(ctx, r)
	if err != nil {
		return shown, errand.Mission{}, notARun(ctx, api, r, err)
	}
	m, ok := errand.ReadMission(shown.Given)
	if !ok && shown.Work != errand.Agent {
		return shown, m, fault.New(fault.Invalid, "not_an_agent", "%s is not the run of an agent", term.OneLine(string(r), 80)).
			With("see it with: agentbox runs show " + string(shown.ID) + "\nlist the runs of agents: agentbox agent ls")
	}
	return shown, m, nil
}

// notARun returns the error of a run that was not found. Where a person has named a blueprint instead, it says how to find its runs.
func notARun(ctx context.Context, api *client.Client, r id.Run, err error) error {
	kind, name := fault.KindOf(err), string(r)
	if strings.HasPrefix(name, "run_") || kind != fault.NotFound && kind != fault.Invalid {
		return err
	}
	if _, unknown := api.Blueprint(ctx, name, 0); unknown == nil {
		return fault.New(fault.NotFound, "run_not_found", "%s is a blueprint, and here the id of a run is wanted", name).
			With("list its runs: agentbox agent ls --blueprint " + name)
	}
	return fault.New(fault.NotFound, "run_not_found", "no run has the id %q", term.OneLine(name, 100)).
		With("list the runs of agents: agentbox agent ls")
}

// read returns the state of an agent's run, with its history.
func read(ctx context.Context, api *client.Client, r id.Run) (work, error) {
	w := work{Questions: []policy.Approval{}}
	var err error
	if w.RunShown, w.Agent, err = find(ctx, api, r); err != nil {
		return w, err
	}
	recorded, err := api.Steps(ctx, r)
	if err != nil {
		return w, err
	}
	for _, s := range recorded.Steps {
		if s.Kind == errand.TurnKind {
			w.Turns++
		}
	}
	if w.Calls = recorded.Calls; w.Calls == nil {
		w.Calls = []step.Call{}
	}
	used, err := api.ModelUsage(ctx, model.ScopeRun, "", r, 1)
	if err != nil {
		return w, err
	}
	if w.Currency = used.Currency; len(used.Usage) > 0 {
		w.Used = &used.Usage[0]
	}
	if w.Status.Ended() {
		return w, nil
	}
	if w.For == forAnswer {
		w.Asks = lastAsked(ctx, api, w.Thread)
	}
	if k, err := api.KillSwitch(ctx); err == nil { // else the state says less
		w.Stopped = k.On
	}
	asked := []id.Run{r}
	for _, c := range w.Calls {
		if c.Status == step.Running && c.Child != "" {
			asked = append(asked, c.Child)
		}
	}
	for _, one := range asked {
		for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
			page, err := api.Approvals(ctx, client.ApprovalFilter{Run: one, Status: string(status), Page: client.Page{Limit: 100}})
			if err != nil {
				return w, err
			}
			w.Questions = append(w.Questions, page.Approvals...)
		}
	}
	return w, nil
}

// forAnswer is what a run waits for whose tool ask_person has asked.
const forAnswer = "answer"

// lastAsked returns the last message in a thread that no person has posted; "" where the caller may not read it.
func lastAsked(ctx context.Context, api *client.Client, t id.Thread) string {
	const most = 50 // messages of people that came after the question
	l, err := api.Messages(ctx, t, "", most)
	if err != nil {
		return ""
	}
	for _, m := range slices.Backward(l.Messages) {
		if m.SenderType != id.User {
			return m.Content
		}
	}
	return ""
}

func agentShow(i *cmdline.Invocation) *cobra.Command {
	c := &cobra.Command{
		Use: "show RUN", Short: "Show what an agent does: turns, tool calls, cost, open questions", Args: cobra.ExactArgs(1),
		Example: "  agentbox agent show run_...",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		w, err := read(cmd.Context(), api, id.Run(args[0]))
		if err != nil {
			return err
		}
		return i.Show(w, func(p *term.Printer) { w.write(p, i) })
	}
	return c
}

// write prints the work of an agent for people.
func (w work) write(p *term.Printer, i *cmdline.Invocation) {
	now := i.Clock.Now()
	p.Line("%s", p.Paint(term.Bold, term.OneLine(cmdline.First(w.Title, string(w.ID)), 200)))
	state := runview.WhereItStands(w.Run, w.Waits, now).Text
	pins := make([]string, 0, len(w.Agent.Pins))
	for _, name := range slices.Sorted(maps.Keys(w.Agent.Pins)) {
		pins = append(pins, name+" "+short(w.Agent.Pins[name]))
	}
	took := ""
	if !w.EndedAt.IsZero() {
		took = term.Duration(w.EndedAt.Sub(w.CreatedAt))
	}
	agent, parent := w.Blueprint, ""
	if w.Agent.Lineage != nil {
		parent = string(w.Agent.Lineage.Parent)
	}
	if w.Agent.Blueprint != "" {
		agent = fmt.Sprintf("%s, version %d, %s", w.Agent.Blueprint, w.Agent.Edition, short(w.Agent.Locked.String()))
	}
	summary, failed, why := "", "error", w.Error
	if w.Reported != nil {
		summary, why = w.Reported.Summary, cmdline.First(w.Reported.Message, w.Error)
	}
	if w.Status == run.Cancelled {
		failed = "reason"
	}
	p.Fields("run", string(w.ID), "status", state, "agent", agent, "sub-agent of", parent, "pins", strings.Join(pins, ", "),
		"space", string(w.Agent.Space), "thread",
		string(w.Thread), "asked for", term.Ago(now, w.CreatedAt), "took", took, "turns", fmt.Sprint(w.Turns), "tool calls",
		callCounts(w.Calls), "models", usedText(w.Used, w.Currency), "summary", summary, failed, why, "asks", w.Asks)
	runview.WriteKept(p, w.Run)
	if w.Stopped {
		p.Line("%s", p.Paint(term.Yellow, "the kill switch is on, so that it waits; lift it with: agentbox kill-switch off"))
	}
	for _, a := range w.Questions {
		p.Line("")
		cmdline.WriteQuestion(p, a)
		p.Line("%s", p.Paint(term.Faint, "agentbox approvals approve|deny "+string(a.ID)))
	}
	if len(w.Questions) == 0 && !w.Status.Ended() && w.Thread != "" {
		steer := "tell it something: agentbox agent steer " + string(w.ID) + " TEXT"
		if w.For == forAnswer {
			steer = "answer it: agentbox agent steer " + string(w.ID) + " ANSWER"
		}
		p.Line("%s", p.Paint(term.Faint, "\n"+steer+"\nend it: agentbox agent stop "+string(w.ID)))
	}
}

// short returns the beginning of a hash.
func short(hash string) string {
	const most = len("sha256:") + 12
	return hash[:min(len(hash), most)]
}

// callCounts returns the number of tool calls, and how many are running, failed or unknown.
func callCounts(calls []step.Call) string {
	counts := map[step.Status]int{}
	for _, c := range calls {
		counts[c.Status]++
	}
	said := fmt.Sprint(len(calls))
	for _, s := range []step.Status{step.Running, step.Failed, step.Unknown} {
		if counts[s] > 0 {
			said += fmt.Sprintf(", %d %s", counts[s], s)
		}
	}
	return said
}

// usedText describes the use of models: requests, tokens and cost.
func usedText(u *model.Used, currency string) string {
	if u == nil {
		return "not asked yet"
	}
	said := fmt.Sprintf("%s, %d tokens", term.Count(u.Requests, "request"), u.Usage.Tokens())
	switch {
	case u.Unpriced == 0 && u.Cost == 0 && u.Usage.Tokens() == 0:
		return said
	case u.Unpriced == u.Requests:
		return said + ", no price is known"
	case u.Unpriced > 0:
		return said + fmt.Sprintf(", %s and %d without a price", strings.TrimSpace(u.Cost.String()+" "+currency), u.Unpriced)
	}
	return said + ", " + strings.TrimSpace(u.Cost.String()+" "+currency)
}

func agentStop(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "stop RUN", Short: "End an agent's run, and what it executes in its space", Args: cobra.ExactArgs(1),
		Example: "  agentbox agent stop run_... --reason 'the task has changed'",
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if _, _, err := find(cmd.Context(), api, id.Run(args[0])); err != nil {
			return err
		}
		r, err := api.CancelRun(cmd.Context(), id.Run(args[0]), reason)
		if err != nil {
			return err
		}
		return i.Show(r, func(p *term.Printer) { p.Line("%s %s", r.ID, runview.Stands(r.Status)) })
	}
	return c
}

func agentSteer(i *cmdline.Invocation) *cobra.Command {
	c := &cobra.Command{
		Use: "steer RUN TEXT", Short: "Tell an agent something while it works", Args: cobra.ExactArgs(2),
		Long: "Steer posts a message in the thread of an agent's run. The agent is told before its next turn; what it does meanwhile goes on.\n" +
			"TEXT - reads the message from standard input.",
		Example: "  agentbox agent steer run_... 'use the file of last week, too'",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		text := args[1]
		if text == "-" {
			raw, err := io.ReadAll(io.LimitReader(i.In, maxSteer+1))
			if err != nil {
				return err
			}
			text = string(raw)
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		r, _, err := find(cmd.Context(), api, id.Run(args[0]))
		if err != nil {
			return err
		}
		said, err := steer(cmd.Context(), api, r.Run, text)
		if err != nil {
			return err
		}
		return i.Show(said, func(p *term.Printer) { p.Line("%s will be told before its next turn", term.Plain(r.Blueprint)) })
	}
	return c
}

// maxSteer is the largest message of a thread, in bytes.
const maxSteer = 64 << 10

// told is a message that the agent's next turn will include.
type told struct {
	Run     id.Run     `json:"run_id"`
	Thread  id.Thread  `json:"thread_id"`
	Message id.Message `json:"message_id"`

	content string // as it was recorded: without the secrets that were found in it
}

// steer sends a message to a running agent.
func steer(ctx context.Context, api *client.Client, r run.Run, text string) (told, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return told{}, cmdline.Usage("say what the agent is to be told")
	case len(text) > maxSteer:
		return told{}, cmdline.Usage("a message has at most %d bytes; put what is longer into a file of the space", maxSteer)
	case r.Status.Ended():
		return told{}, fault.New(fault.Conflict, "run_ended", "the run %s; nobody would hear it", runview.Stands(r.Status)).
			With("go on with it: agentbox chat --resume " + string(r.ID))
	case r.Thread == "":
		return told{}, fault.New(fault.Conflict, "run_without_thread", "the run has no thread, because who asked for it may not begin one")
	}
	m, err := api.PostMessage(ctx, r.Thread, client.MessageRequest{Content: text})
	if err != nil {
		return told{}, err
	}
	return told{Run: r.ID, Thread: r.Thread, Message: m.ID, content: m.Content}, nil
}
