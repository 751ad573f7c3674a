package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// approvals are the commands about what waits for a person.
func approvals(i *invocation) *cobra.Command {
	list := approvalList(i)
	c := &cobra.Command{
		Use: "approvals", Aliases: []string{"approval"}, Short: "List the questions that wait for a person, and answer them", Args: cobra.NoArgs,
		Example: "  agentbox approvals\n  agentbox approvals --room room_...\n  agentbox approvals show appr_...\n  agentbox approvals approve " +
			"appr_...\n  agentbox approvals deny appr_... --reason 'use the staging copy'",
		RunE: list.RunE,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, approvalShow(i), approvalRequest(i), decide(i, "approve", "Approve exactly this action, once"), decide(i, "deny",
		"Deny it; the run goes on with the next operation"),
		decide(i, "hold", "Say that somebody looks into it; a final answer follows"), approvalWithdraw(i))
	return c
}

func approvalList(i *invocation) *cobra.Command {
	var status, room string
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List what waits for a person", Args: cobra.NoArgs}
	c.Flags().StringVar(&status, "status", "", "only those: pending, held, approved, denied, expired or withdrawn (default: pending and held)")
	c.Flags().StringVar(&room, "room", "", "only those of a room")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := open(cmd.Context(), api, status, id.Room(room))
		if err != nil {
			return err
		}
		return i.list("approvals", found, "", func(p *printer) {
			now := i.Clock.Now()
			rows := make([][]cell, len(found))
			for n, a := range found {
				colour := ""
				if waits(a) {
					colour = yellow
				}
				rows[n] = []cell{text(string(a.ID)), {plain(string(a.Status)), colour}, {ago(now, a.RequestedAt), faint}, {ahead(now, a.ExpiresAt),
					faint}, text(a.Title)}
			}
			p.table("Nothing waits for a person.", []string{"approval", "status", "asked", "expires", "what"}, rows)
			if len(rows) > 0 && status == "" {
				p.line("%s", p.paint(faint, "\nagentbox approvals show|approve|deny|hold APPROVAL"))
			}
		})
	}
	return c
}

// open returns the approvals in a state, of a room where one is named; without a state, those that wait.
func open(ctx context.Context, api *client.Client, status string, in id.Room) ([]policy.Approval, error) {
	states := []string{status}
	if status == "" {
		states = []string{string(policy.Pending), string(policy.Held)}
	}
	found := []policy.Approval{}
	for _, state := range states {
		part, err := all(func(cursor string) ([]policy.Approval, string, error) {
			page, err := api.Approvals(ctx, client.ApprovalFilter{Status: state, Room: in, Page: client.Page{Cursor: cursor, Limit: 100}})
			return page.Approvals, page.Next, err
		})
		if err != nil {
			return nil, err
		}
		found = append(found, part...)
	}
	return found, nil
}

// waits reports whether an approval has no final answer yet.
func waits(a policy.Approval) bool { return a.Open() }

// missing says whose approval is still missing where policy demands more than one.
func missing(a policy.Approval) string {
	if n := a.Approvers - len(a.Assents); n > 1 {
		return fmt.Sprintf("%d other persons have to approve it too", n)
	}
	return "another person has to approve it too"
}

// assents names the people who approved, where the policy demands more than one person.
func assents(a policy.Approval) string {
	if a.Approvers < 2 {
		return ""
	}
	said := fmt.Sprintf("%d persons needed", a.Approvers)
	for _, x := range a.Assents {
		said += "; approved by " + string(x.By)
	}
	return said
}

func approvalShow(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show APPROVAL", Short: "Show what is asked, why, and what it can change", Args: cobra.ExactArgs(1),
		ValidArgsFunction: i.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			a, err := api.Approval(cmd.Context(), id.Approval(args[0]))
			if err != nil {
				return err
			}
			return i.show(a, func(p *printer) { p.approval(i, a) })
		},
	}
}

func (p *printer) approval(i *invocation, a policy.Approval) {
	now := i.Clock.Now()
	p.question(a)
	expires := ""
	if waits(a) {
		expires = ahead(now, a.ExpiresAt)
	}
	p.fields("status", string(a.Status), "asked", ago(now, a.RequestedAt)+" by "+string(a.RequestedBy), "expires", expires,
		"run", string(a.Run), "operation", a.Operation, "action", a.ActionHash.String(), "policy", a.Bundle.String(),
		"approvers", assents(a), "decided by", string(a.DecidedBy), "reason", a.Reason, "standing", string(a.Standing))
}

// question writes what a person is asked: why and what it can change first, then what exactly would run. What the agent says about it
// stands apart and is marked.
func (p *printer) question(a policy.Approval) {
	p.line("%s  %s", p.paint(bold, oneLine(a.Title, 0)), p.paint(faint, string(a.ID)))
	p.fields("why", a.Question.Why, "impact", a.Question.Impact, "not sealed", strings.Join(a.Question.Unsealed, "; "), "exactly",
		a.Question.What,
		"as template", a.Question.Template)
	if a.Question.AgentTitle != "" {
		p.line("%s", p.paint(faint, "the agent's own title, not checked: "+oneLine(a.Question.AgentTitle, 200)))
	}
	if a.Question.AgentWords != "" {
		p.line("%s", p.paint(faint, "the agent's own words, not checked: "+oneLine(a.Question.AgentWords, 400)))
	}
}

func decide(i *invocation, verb, short string) *cobra.Command {
	var (
		reason, scope, expires string
		uses                   int
		saw                    string
	)
	c := &cobra.Command{Use: verb + " APPROVAL", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: i.completeApprovals}
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
			d, err := parseSpan(expires)
			if err != nil {
				return err
			}
			answer.ExpiresAt = i.Clock.Now().Add(d)
		}
		if saw != "" {
			digest, err := event.ParseDigest(saw)
			if err != nil {
				return usage("--action is the hash that `agentbox approvals show` prints: sha256: and 64 hexadecimal digits")
			}
			answer.Saw = &digest
		}
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		a, err := api.Decide(cmd.Context(), id.Approval(args[0]), answer)
		if err != nil {
			return err
		}
		return i.show(a, func(p *printer) {
			if verb == "approve" && waits(a) {
				p.line("%s has your approval; %s", a.ID, missing(a))
				return
			}
			p.line("%s is %s", a.ID, a.Status)
		})
	}
	return c
}

func approvalWithdraw(i *invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "withdraw APPROVAL", Short: "Withdraw your own request", Args: cobra.ExactArgs(1), ValidArgsFunction: i.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			a, err := api.Withdraw(cmd.Context(), id.Approval(args[0]), reason)
			if err != nil {
				return err
			}
			return i.show(a, func(p *printer) { p.line("%s is %s", a.ID, a.Status) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}

// own returns the question as the session shows it to the person whose line caused it.
func (i *invocation) own(a policy.Approval) policy.Approval {
	if i.asking == nil {
		return a
	}
	return i.asking(a)
}

// answer asks the person at the terminal and sends the answer; false means that there was none.
func (i *invocation) answer(ctx context.Context, api *client.Client, approval id.Approval) (bool, error) {
	a, err := api.Approval(ctx, approval)
	if err != nil || !waits(a) {
		return err == nil, err
	}
	p := i.printer(i.Err)
	p.json = false
	p.line("")
	p.question(i.own(a))
	for {
		line, err := i.ask(p.paint(bold, "Allow it? [y]es, [n]o, or [l]ater: "))
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(i.Err)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var decision string
		switch word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(line)), " "); word {
		case "y", "yes":
			decision = "approve"
		case "n", "no":
			decision = "deny"
		case "l", "later":
			return false, nil
		default:
			continue
		}
		a, err = api.Decide(ctx, approval, client.Answer{Decision: decision, Saw: &a.ActionHash})
		if err == nil && waits(a) {
			p.line("%s", p.paint(yellow, missing(a)))
			return false, nil
		}
		return err == nil, err
	}
}

// ask shows a prompt and reads one line of the person's input.
func (i *invocation) ask(prompt string) (string, error) {
	if i.answers != nil {
		return i.answers(prompt)
	}
	fmt.Fprint(i.Err, prompt)
	return i.readLine()
}

// readLine reads one line of the person's input.
func (i *invocation) readLine() (string, error) {
	if i.lines == nil {
		i.lines = bufio.NewReader(i.In)
	}
	line, err := i.lines.ReadString('\n')
	if line != "" && errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// completeApprovals offers what waits for a person.
func (i *invocation) completeApprovals(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := i.connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	waiting, err := open(cmd.Context(), api, "", "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, a := range waiting {
		found = append(found, string(a.ID)+"\t"+oneLine(a.Title, 60))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
