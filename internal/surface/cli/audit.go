package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
)

// Proof is what the verification of a workspace's log found, read from the data directory without a daemon.
type Proof struct {
	Workspace id.Workspace `json:"workspace_id"`
	Valid     bool         `json:"valid"`
	Checked   int          `json:"checked"`   // events held against their hashes
	Streams   int          `json:"streams"`   // chains of hashes
	Documents int          `json:"documents"` // documents held against what the log folds to, byte for byte
	Flaws     []Flaw       `json:"findings"`  // the first is where to look
}

// Flaw is one thing that is wrong with a log.
type Flaw struct {
	Kind     string   `json:"kind"`
	Seq      uint64   `json:"seq,omitempty"` // place in the workspace
	Stream   string   `json:"stream,omitempty"`
	Place    uint64   `json:"stream_seq,omitempty"`
	Event    id.Event `json:"event_id,omitempty"`
	Document string   `json:"document,omitempty"`
	Detail   string   `json:"detail"`
}

// audit are the commands that prove the log.
func audit(i *invocation) *cobra.Command {
	return group("audit", "Prove that the log is what it was", auditVerify(i))
}

func auditVerify(i *invocation) *cobra.Command {
	c := &cobra.Command{
		Use: "verify", Short: "Check every event against the chain of hashes, and every document against the log", Args: cobra.NoArgs,
		Long: "Verify recomputes the hash of every event and its tie to the one before it, stream by stream, folds the log anew and compares every\n" +
			"document, and reads the contents that events name by their hash. It names the first event that was changed, dropped or moved. It reads the data directory itself and needs no daemon; with\n" +
			"--url or AGENTBOX_URL it asks that daemon instead. It exits with 1 when the log is not intact.",
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if first(i.url, i.Getenv("AGENTBOX_URL")) != "" {
			return i.verifyRemote(cmd)
		}
		dir, err := i.dataDir()
		if err != nil {
			return err
		}
		proofs, err := i.Verify(cmd.Context(), Daemon{DataDir: dir})
		if err != nil {
			return err
		}
		valid := true
		for _, proof := range proofs {
			valid = valid && proof.Valid
		}
		if err := i.show(map[string]any{"valid": valid, "workspaces": proofs}, func(p *printer) {
			for _, proof := range proofs {
				p.proof(proof)
			}
		}); err != nil {
			return err
		}
		if !valid {
			return &ended{ExitInternal}
		}
		return nil
	}
	return c
}

func (i *invocation) verifyRemote(cmd *cobra.Command) error {
	api, err := i.connect(cmd.Context())
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

// proof writes what an offline verification found.
func (p *printer) proof(proof Proof) {
	if proof.Valid {
		p.line("%s %s: the log is intact: %d events in %d chains checked, %d documents equal what the log says", p.paint(green, "✓"),
			plain(string(proof.Workspace)), proof.Checked, proof.Streams, proof.Documents)
		return
	}
	p.line("%s %s: the log was changed", p.paint(red, "✗"), plain(string(proof.Workspace)))
	for _, f := range proof.Flaws {
		p.fields("what", f.Kind, "place", fmt.Sprint(f.Seq), "stream", first(f.Stream, "-")+" "+fmt.Sprint(f.Place), "event", first(string(f.Event), "-"),
			"document", first(f.Document, "-"), "detail", f.Detail)
	}
}

// audit writes what a verification by the daemon found.
func (p *printer) audit(r client.AuditReport) {
	if r.Valid {
		p.line("%s the log is intact: %d events checked, the last is %s", p.paint(green, "✓"), r.Checked, first(r.LastHash.String(), "none"))
		return
	}
	p.line("%s the log was changed", p.paint(red, "✗"))
	if m := r.Mismatch; m != nil {
		p.fields("stream", m.StreamType+" "+m.StreamID, "place", fmt.Sprint(m.StreamSeq), "event", string(m.Event), "what", m.Kind,
			"expected", m.Expected, "found", m.Actual, "detail", m.Detail)
	}
}
