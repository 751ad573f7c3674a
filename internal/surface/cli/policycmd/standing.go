package policycmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// approvalStanding returns the command that lists standing approvals.
func approvalStanding(i *cmdline.Invocation) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "standing", Short: "List the standing approvals: answers that hold for later questions, too", Args: cobra.NoArgs,
	}
	c.Flags().BoolVar(&all, "all", false, "also those that have ended")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		api, err := i.Connect(ctx)
		if err != nil {
			return err
		}
		found, err := cmdline.All(func(cursor string) ([]policy.Standing, string, error) {
			page, err := api.Standings(ctx, client.Page{Cursor: cursor, Limit: 100})
			return page.Standing, page.Next, err
		})
		if err != nil {
			return err
		}
		now, shown := i.Clock.Now(), []policy.Standing{}
		for _, s := range found {
			if all || s.Holds(now) {
				shown = append(shown, s)
			}
		}
		return i.List("standing_approvals", shown, "", func(p *term.Printer) {
			rows := make([][]term.Cell, len(shown))
			for n, s := range shown {
				rows[n] = []term.Cell{term.Text(string(s.Approval)), {Text: ends(now, s), Colour: term.Faint}, term.Text(string(s.Cover.Scope)),
					term.Text(fmt.Sprintf("%d of %d", s.Used, s.Uses)), term.Text(s.Cover.Text)}
			}
			p.Table("No standing approval holds.", []string{"approval", "ends", "scope", "used", "what"}, rows)
			if len(rows) > 0 {
				p.Line("%s", p.Paint(term.Faint, "\nagentbox approvals revoke APPROVAL"))
			}
		})
	}
	return c
}

// ends says until when a standing approval can be used.
func ends(now time.Time, s policy.Standing) string {
	switch {
	case !s.RevokedAt.IsZero():
		return "revoked"
	case s.Used >= s.Uses:
		return "used up"
	case !now.Before(s.EndsAt):
		return "over"
	}
	return term.Ahead(now, s.EndsAt)
}

// approvalRevoke returns the command that ends a standing approval.
func approvalRevoke(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "revoke APPROVAL", Short: "Take back an answer that holds for later questions, too", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Revoke ends the standing approval that the answer to a question made. APPROVAL is the id of the question, or of the standing " +
			"approval.\nThe same action asks a person again. `agentbox approvals standing` lists the standing approvals.",
		Example: "  agentbox approvals revoke appr_...",
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		api, err := i.Connect(ctx)
		if err != nil {
			return err
		}
		standing := id.Standing(args[0])
		if !strings.HasPrefix(args[0], "stand_") {
			a, err := api.Approval(ctx, id.Approval(args[0]))
			if err != nil {
				return err
			}
			if standing = a.Standing; standing == "" {
				return fault.New(fault.Conflict, "no_standing_approval", "the answer to %s holds for no later question; there is nothing to take back",
					a.ID).With("see those that hold: agentbox approvals standing")
			}
		}
		if err := api.RevokeStanding(ctx, standing, reason); err != nil {
			return err
		}
		ended := struct {
			Standing id.Standing `json:"standing_id"`
			Revoked  bool        `json:"revoked"`
		}{standing, true}
		return i.Show(ended, func(p *term.Printer) { p.Line("%s is revoked; the same action asks a person again", standing) })
	}
	return c
}
