package policycmd

import (
	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Approvals are the commands about questions that wait for a person.
func Approvals(i *cmdline.Invocation) *cobra.Command {
	list := approvalList(i)
	c := &cobra.Command{
		Use: "approvals", Aliases: []string{"approval"}, Short: "List the questions that wait for a person, and answer them", Args: cobra.NoArgs,
		Example: "  agentbox approvals\n  agentbox approvals --room room_...\n  agentbox approvals show appr_...\n  agentbox approvals approve " +
			"appr_...\n  agentbox approvals deny appr_... --reason 'use the staging copy'\n  agentbox approvals revoke appr_...",
		RunE: list.RunE,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, approvalShow(i), approvalRequest(i), decide(i, "approve", "Approve exactly this action, once"), decide(i, "deny",
		"Deny it; the run goes on with the next operation"),
		decide(i, "hold", "Show that somebody works on the answer, which follows"), approvalWithdraw(i), approvalStanding(i), approvalRevoke(i))
	return c
}

func approvalList(i *cmdline.Invocation) *cobra.Command {
	var status, room string
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List what waits for a person", Args: cobra.NoArgs}
	c.Flags().StringVar(&status, "status", "", "only those: pending, held, approved, denied, expired or withdrawn (default: pending and held)")
	c.Flags().StringVar(&room, "room", "", "only those of a room")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := cmdline.Open(cmd.Context(), api, status, id.Room(room))
		if err != nil {
			return err
		}
		return i.List("approvals", found, "", func(p *term.Printer) {
			now := i.Clock.Now()
			rows := make([][]term.Cell, len(found))
			for n, a := range found {
				colour := ""
				if cmdline.Waits(a) {
					colour = term.Yellow
				}
				rows[n] = []term.Cell{term.Text(string(a.ID)), {Text: term.Plain(string(a.Status)), Colour: colour}, {Text: term.Ago(now,
					a.RequestedAt), Colour: term.Faint}, {Text: term.Ahead(now, a.ExpiresAt),
					Colour: term.Faint}, term.Text(a.Title)}
			}
			p.Table("Nothing waits for a person.", []string{"approval", "status", "asked", "expires", "what"}, rows)
			if len(rows) > 0 && status == "" {
				p.Line("%s", p.Paint(term.Faint, "\nagentbox approvals show|approve|deny|hold APPROVAL"))
			}
		})
	}
	return c
}

func approvalShow(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show APPROVAL", Short: "Show what is asked, why, and what it can change", Args: cobra.ExactArgs(1),
		ValidArgsFunction: i.CompleteApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			a, err := api.Approval(cmd.Context(), id.Approval(args[0]))
			if err != nil {
				return err
			}
			return i.Show(a, func(p *term.Printer) { writeApproval(p, i, a) })
		},
	}
}

func writeApproval(p *term.Printer, i *cmdline.Invocation, a policy.Approval) {
	now := i.Clock.Now()
	cmdline.WriteQuestion(p, a)
	expires := ""
	if cmdline.Waits(a) {
		expires = term.Ahead(now, a.ExpiresAt)
	}
	p.Fields("status", string(a.Status), "asked", term.Ago(now, a.RequestedAt)+" by "+string(a.RequestedBy), "expires", expires,
		"run", string(a.Run), "operation", a.Operation, "action", a.ActionHash.String(), "policy", a.Bundle.String(),
		"approvers", cmdline.Assents(a), "decided by", string(a.DecidedBy), "reason", a.Reason, "standing", string(a.Standing))
}

func decide(i *cmdline.Invocation, verb, short string) *cobra.Command {
	var (
		reason, scope, expires string
		uses                   int
		saw                    string
	)
	c := &cobra.Command{Use: verb + " APPROVAL", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteApprovals}
	c.Flags().StringVar(&reason, "reason", "", "why; the agent reads it")
	c.Flags().StringVar(&saw, "action", "", "the hash of the action that you read, as approvals show prints it; another one is refused")
	if verb == "approve" {
		c.Flags().StringVar(&scope, "scope", "", "what else it covers: once, run, room, workspace or template (default once)")
		c.Flags().StringVar(&expires, "for", "", "how long a standing approval lasts, for example 8h")
		c.Flags().IntVar(&uses, "uses", 0, "how often a standing approval may be used")
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		answer := client.Answer{Decision: verb, Reason: reason, Scope: policy.Scope(scope), Uses: uses}
		if expires != "" {
			d, err := cmdline.ParseSpan(expires)
			if err != nil {
				return err
			}
			answer.ExpiresAt = i.Clock.Now().Add(d)
		}
		if saw != "" {
			digest, err := event.ParseDigest(saw)
			if err != nil {
				return cmdline.Usage("--action is the hash that `agentbox approvals show` prints: sha256: and 64 hexadecimal digits")
			}
			answer.Saw = &digest
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		a, err := api.Decide(cmd.Context(), id.Approval(args[0]), answer)
		if err != nil {
			return cmdline.DecidedBefore(cmd.Context(), api, id.Approval(args[0]), err)
		}
		return i.Show(a, func(p *term.Printer) {
			if verb == "approve" && cmdline.Waits(a) {
				p.Line("%s has your approval; %s", a.ID, cmdline.Missing(a))
				return
			}
			p.Line("%s is %s", a.ID, a.Status)
		})
	}
	return c
}

func approvalWithdraw(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "withdraw APPROVAL", Short: "Withdraw your own request", Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			a, err := api.Withdraw(cmd.Context(), id.Approval(args[0]), reason)
			if err != nil {
				return err
			}
			return i.Show(a, func(p *term.Printer) { p.Line("%s is %s", a.ID, a.Status) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}
