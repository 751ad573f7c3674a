package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
)

// audit are the commands that prove the log.
func audit(i *invocation) *cobra.Command {
	return group("audit", "Prove that the log is what it was", auditVerify(i))
}

func auditVerify(i *invocation) *cobra.Command {
	c := &cobra.Command{
		Use: "verify", Short: "Check every event against the chain of hashes", Args: cobra.NoArgs,
		Long: "Verify recomputes the hash of every event and its tie to the one before it, stream by stream, and names the first event that was\n" +
			"changed, dropped or moved. It exits with 1 when the log is not intact.",
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.connect()
		if err != nil {
			return err
		}
		report, err := api.VerifyAudit(cmd.Context())
		if err != nil {
			return err
		}
		if err := i.show(report, func(p *printer) { p.audit(report) }); err != nil {
			return err
		}
		if !report.Valid {
			return &ended{ExitInternal}
		}
		return nil
	}
	return c
}

// audit writes what a verification found.
func (p *printer) audit(r client.AuditReport) {
	if r.Valid {
		p.line("%s the log is intact: %d events checked, the last is %s", p.paint(green, "✓"), r.Checked, first(r.LastHash.String(), "none"))
		return
	}
	p.line("%s the log was changed", p.paint(red, "✗"))
	if m := r.Mismatch; m != nil {
		p.fields("stream", m.StreamType+" "+m.StreamID, "place", fmt.Sprint(m.StreamSeq), "event", string(m.Event), "what", m.Kind,
			"expected", m.Expected, "found", m.Actual)
	}
}
