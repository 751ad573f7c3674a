// Package auditcmd has the commands about the log: events, causes, proofs, redactions and witnesses.
package auditcmd

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Audit are the commands that prove the log.
func Audit(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("audit", "Verify the log, and make and check proofs", auditVerify(i), auditProve(i), auditCheck(i),
		auditCheckpoint(i),
		auditKey(i),
		auditExport(i), auditWitness(i), auditServeWitness(i), auditAbandon(i), auditRedact(i), auditRedactions(i))
}

func auditVerify(i *cmdline.Invocation) *cobra.Command {
	var publicKey, snapshots string
	var against []string
	c := &cobra.Command{
		Use: "verify", Short: "Check every event against the chain of hashes, every document against the log, and all of it against signed " +
			"checkpoints", Args: cobra.NoArgs,
		Long: "Verify recomputes the hash of every event and its tie to the one before it, stream by stream, folds the log anew and compares " +
			"every\n" +
			"document, reads the contents and the snapshots of spaces that events name by their hash, and compares the tree over all events with " +
			"the\n" +
			"last checkpoint that was signed. Of snapshots it reads as much as --snapshots says, and it says what it left out. It names the first " +
			"event that was changed, dropped or moved. Only a checkpoint that lies elsewhere can show that the data directory\n" +
			"as a whole was set back: name a witness that keeps one with --against. It reads the data directory itself and needs no\n" +
			"daemon; with --url or AGENTBOX_URL it asks that daemon instead. It exits with 1 when the log is not intact, and with 10\n" +
			"when it found nothing wrong but could not check everything, for instance because keys are missing.",
		Example: "  agentbox audit verify\n  agentbox audit verify --public-key agentbox.pub --against /media/stick",
	}
	c.Flags().StringVar(&publicKey, "public-key", "",
		"public key of the checkpoints, or a file that holds it (default: the one in the data directory, which proves less)")
	c.Flags().StringArrayVar(&against, "against", nil,
		"who else holds a checkpoint: a witness's folder or http address, or a file; repeatable")
	c.Flags().StringVar(&snapshots, "snapshots", "1GiB",
		"how much of the snapshots of a workspace is read, the newest of each space first: a size, all, or none")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmdline.First(i.URL, i.Getenv("AGENTBOX_URL")) != "" && publicKey == "" && len(against) == 0 {
			return verifyRemote(i, cmd)
		}
		most, err := parseBound(snapshots)
		if err != nil {
			return err
		}
		q, err := auditOf(i, publicKey, "")
		if err != nil {
			return err
		}
		for _, where := range against {
			if where, err = Witnessed(where); err != nil {
				return err
			}
			q.Against = append(q.Against, where)
		}
		tell, done := cmdline.Progress(i, "of snapshots read")
		q.SnapshotBytes, q.Progress = most, tell
		proofs, err := i.Audit.Verify(cmd.Context(), q)
		done()
		if err != nil {
			return err
		}
		code := proven(proofs)
		if err := i.Show(map[string]any{"valid": code == cmdline.ExitOK, "unchecked": code == cmdline.ExitUnchecked, "workspaces": proofs},
			func(p *term.Printer) {
				for _, proof := range proofs {
					WriteProof(p, proof)
				}
			}); err != nil {
			return err
		}
		if code != cmdline.ExitOK {
			return &cmdline.Ended{Code: code}
		}
		return nil
	}
	return c
}

// parseBound reads how much of something is read: a size, all or none.
func parseBound(text string) (int64, error) {
	switch text {
	case "all":
		return math.MaxInt64, nil
	case "none":
		return 0, nil
	}
	return cmdline.ParseSize(text)
}

// proven returns the exit code of a verification. A wrong log outweighs a log that could not be checked.
func proven(proofs []cmdline.Proof) int {
	code := cmdline.ExitOK
	for _, proof := range proofs {
		switch {
		case len(proof.Flaws) > 0 || !proof.Valid && len(proof.Unchecked) == 0:
			return cmdline.ExitInternal
		case len(proof.Unchecked) > 0:
			code = cmdline.ExitUnchecked
		}
	}
	return code
}

func verifyRemote(i *cmdline.Invocation, cmd *cobra.Command) error {
	api, err := i.Connect(cmd.Context())
	if err != nil {
		return err
	}
	report, err := api.VerifyAudit(cmd.Context())
	if err != nil {
		return err
	}
	if err := i.Show(report, func(p *term.Printer) { writeAudit(p, report) }); err != nil {
		return err
	}
	switch {
	case !report.Valid:
		return &cmdline.Ended{Code: cmdline.ExitInternal}
	case report.Sealed > 0:
		return &cmdline.Ended{Code: cmdline.ExitUnchecked}
	}
	return nil
}

// WriteProof writes what an offline verification found.
func WriteProof(p *term.Printer, proof cmdline.Proof) {
	switch proven([]cmdline.Proof{proof}) {
	case cmdline.ExitOK:
		p.Line("%s %s: the log is intact: %s in %s checked, %s equal what the log says", p.Paint(term.Green, "✓"),
			term.Plain(string(proof.Workspace)), term.Count(proof.Checked, "event"), term.Count(proof.Streams, "chain"), term.Count(proof.Documents,
				"document"))
	case cmdline.ExitUnchecked:
		p.Line("%s %s: nothing was found to be changed, but not everything could be checked: %s in %s checked, %s equal what the log says",
			p.Paint(term.Yellow, "?"),
			term.Plain(string(proof.Workspace)), term.Count(proof.Checked, "event"), term.Count(proof.Streams, "chain"), term.Count(proof.Documents,
				"document"))
	default:
		p.Line("%s %s: the log was changed", p.Paint(term.Red, "✗"), term.Plain(string(proof.Workspace)))
	}
	if proof.Snapshots > 0 {
		p.Line("  %s of spaces are what their hashes name; %s of them were read", term.Count(proof.Snapshots, "snapshot"),
			term.Bytesize(proof.SnapshotBytes))
	}
	writeWithheld(p, uint64(proof.Redacted))
	for _, what := range proof.Unchecked {
		p.Line("  %s", p.Paint(term.Yellow, what))
	}
	for _, what := range proof.Notes {
		p.Line("  %s", what)
	}
	for _, held := range proof.Checkpoints {
		if held.OK {
			p.Line("  %s it continues the checkpoint of %d events that %s holds", p.Paint(term.Green, "✓"), held.Size, term.OneLine(held.By, 0))
		} else {
			p.Line("  %s it does not continue the checkpoint of %d events that %s holds", p.Paint(term.Red, "✗"), held.Size, term.OneLine(held.By,
				0))
		}
	}
	if len(proof.Flaws) == 0 && len(proof.Checkpoints) == 0 {
		p.Line("  %s", p.Paint(term.Yellow, "no checkpoint has been signed yet, so that a log that was set back as a whole would not be noticed"))
	}
	for _, f := range proof.Flaws {
		p.Fields("what", f.Kind, "place", fmt.Sprint(f.Seq), "stream", cmdline.First(f.Stream, "-")+" "+fmt.Sprint(f.Place), "event",
			cmdline.First(string(f.Event), "-"),
			"document", cmdline.First(f.Document, "-"), "detail", f.Detail)
	}
}

// writeWithheld says of how many events only the header was checked.
func writeWithheld(p *term.Printer, redacted uint64) {
	if redacted > 0 {
		p.Line("  the data of %d of them were redacted, as the log says; their headers and the chain hold", redacted)
	}
}

// writeAudit writes the result of a verification by the daemon.
func writeAudit(p *term.Printer, r client.AuditReport) {
	switch {
	case r.Valid && r.Sealed == 0:
		p.Line("%s the log is intact: %s checked, the last is %s", p.Paint(term.Green, "✓"), term.Count(r.Checked, "event"),
			cmdline.First(r.LastHash.String(),
				"none"))
		writeWithheld(p, r.Redacted)
		return
	case r.Valid:
		p.Line("%s nothing was found to be changed, but the data of %d of %s cannot be opened and were not checked; the last is %s",
			p.Paint(term.Yellow, "?"), r.Sealed, term.Count(r.Checked, "event"), cmdline.First(r.LastHash.String(), "none"))
		writeWithheld(p, r.Redacted)
		return
	}
	p.Line("%s the log was changed", p.Paint(term.Red, "✗"))
	if m := r.Mismatch; m != nil {
		p.Fields("stream", m.StreamType+" "+m.StreamID, "place", fmt.Sprint(m.StreamSeq), "event", string(m.Event), "what", m.Kind,
			"expected", m.Expected, "found", m.Actual, "detail", m.Detail)
	}
}
