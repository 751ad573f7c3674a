package policycmd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// outsideFlags describe an action outside of Agentbox.
type outsideFlags struct {
	target, method, tool, request, zone, room, run, as, space, question string
}

func (o *outsideFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.target, "target", "", "the host or recipient")
	f.StringVar(&o.method, "method", "", "how the target is reached")
	f.StringVar(&o.tool, "tool", "", "by which tool")
	f.StringVar(&o.request, "request", "", "what is done, in full, as a JSON object; an approval is for exactly this")
	f.StringVar(&o.zone, "zone", "", "the posture of who acts: sandbox, supervised or high_stakes (default supervised)")
	f.StringVar(&o.room, "room", "", "the room in which it is done")
	f.StringVar(&o.run, "run", "", "the run in which it is done")
	f.StringVar(&o.space, "space", "", "judge it under the policy of this space, too, which has to permit it")
	f.StringVar(&o.question, "question", "", "a plain question, instead of an action: about the run, else the room, else the workspace")
	f.StringVar(&o.as, "as", "", "the agent that acts (default: who asks)")
}

// action reads the flags and arguments: an action, or a plain question without an action.
func (o *outsideFlags) action(args []string) (client.OutsideAction, error) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	if name == "" && o.question == "" {
		return client.OutsideAction{}, cmdline.Usage("name an action, or put a question with --question")
	}
	a := client.OutsideAction{
		Action: name, Text: o.question, Space: id.Space(o.space), Target: o.target, Method: o.method, Tool: o.tool, Zone: event.Zone(o.zone),
		Room: id.Room(o.room), Run: id.Run(o.run), Principal: id.Principal(o.as),
	}
	if o.request != "" {
		if a.Request = json.RawMessage(o.request); !json.Valid(a.Request) {
			return a, cmdline.Usage("--request is not JSON")
		}
	}
	return a, nil
}

func policyEvaluate(i *cmdline.Invocation) *cobra.Command {
	var (
		what    outsideFlags
		preview bool
	)
	c := &cobra.Command{
		Use: "evaluate [ACTION]", Short: "Ask whether something may be done outside of Agentbox, right before it is done",
		Args: cobra.MaximumNArgs(1),
		Long: "Evaluate is for programs that act outside of Agentbox by themselves. It exits with 0 where it may be done, with 6 where policy " +
			"refuses, and with 7 where\n" +
			"a person has to approve it first. An answer that rests on an approval has used it up once.",
		Example: "  agentbox policy evaluate email.send --zone high_stakes --target ada@example.com --request '{\"subject\":\"Report\"}' && " +
			"send-mail",
	}
	what.add(c)
	c.Flags().BoolVar(&preview, "preview", false, "only say what would be answered; nothing is recorded or used up")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := what.action(args)
		if err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		e, err := api.Evaluate(cmd.Context(), a, preview)
		if err != nil {
			return err
		}
		if err := i.Show(e, func(p *term.Printer) {
			p.Line("%s  %s", p.Paint(colourOf(e.Decision), e.Decision.String()), term.Plain(e.Reason))
			if e.Suggestion != "" {
				p.Line("%s %s", p.Paint(term.Yellow, "→"), term.Plain(here(e.Suggestion)))
			}
			p.Fields("reason code", e.Code, "approval", string(e.Approval), "standing", string(e.Standing), "event", string(e.Event), "policies",
				strings.Join(e.Policies, ", "),
				"action", e.Action.String())
		}); err != nil {
			return err
		}
		switch {
		case !e.Blocked:
			return nil
		case e.Decision == policy.RequireApproval:
			return &cmdline.Ended{Code: cmdline.ExitWaiting}
		}
		return &cmdline.Ended{Code: cmdline.ExitRefused}
	}
	return c
}

// here says a suggestion for programs in the words of the command line.
func here(suggestion string) string {
	return strings.ReplaceAll(suggestion, "POST /v1/approvals", "agentbox approvals request")
}

func policyActions(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "actions", Short: "List the actions that there are, and how carefully each is treated", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := api.Actions(cmd.Context())
			if err != nil {
				return err
			}
			return i.List("actions", found, "", func(p *term.Printer) {
				rows := make([][]term.Cell, len(found))
				for n, k := range found {
					asks, where := "", "inside"
					if k.PreApproval {
						asks = "always asks"
					}
					if k.Outside {
						where = "outside"
					}
					if k.Declared > 0 {
						where = "outside, own"
					}
					rows[n] = []term.Cell{
						term.Text(k.Type), term.Text(where), term.Text(string(k.SideEffect)), term.Text(string(k.Zone)), term.Text(asks),
						term.Text(string(k.Cost)),
						term.Text(string(k.Recovery)), term.Text(k.Title),
					}
				}
				p.Table("There are no actions.", []string{"action", "done", "effect", "zone", "approval", "cost", "recovery", "what"}, rows)
			})
		},
	}
}

func approvalRequest(i *cmdline.Invocation) *cobra.Command {
	var (
		what                      outsideFlags
		title, words, scope, open string
	)
	c := &cobra.Command{
		Use: "request [ACTION]", Short: "Ask a person about what is to be done outside of Agentbox, or a plain question",
		Args: cobra.MaximumNArgs(1),
		Example: "  agentbox approvals request --room room_... --question 'May this room be closed?'\n  agentbox approvals request email.send " +
			"--zone high_stakes --target ada@example.com --request '{\"subject\":\"Report\"}' --title 'the weekly report'",
	}
	what.add(c)
	c.Flags().StringVar(&title, "title", "", "in your own words, which are shown apart")
	c.Flags().StringVar(&words, "context", "", "more of your own words, as JSON")
	c.Flags().StringVar(&scope, "scope", "", "the scope that you ask for: once, run, room, workspace or template (default once)")
	c.Flags().StringVar(&open, "for", "", "how long it can be answered, for example 8h (default: as long as any question)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := what.action(args)
		if err != nil {
			return err
		}
		r := client.ApprovalRequest{OutsideAction: a, Title: title, Scope: policy.Scope(scope)}
		if words != "" {
			if r.Context = json.RawMessage(words); !json.Valid(r.Context) {
				return cmdline.Usage("--context is not JSON")
			}
		}
		if open != "" {
			d, err := cmdline.ParseSpan(open)
			if err != nil {
				return err
			}
			r.ExpiresAt = i.Clock.Now().Add(d)
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		made, err := api.RequestApproval(cmd.Context(), r)
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) {
			cmdline.WriteQuestion(p, made)
			p.Line("%s", p.Paint(term.Faint, fmt.Sprintf("a person answers with: agentbox approvals approve %s", made.ID)))
		})
	}
	return c
}
