package cli

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
)

// Proof is the result of verifying a workspace's log. The log is read from the data directory without a daemon.
type Proof struct {
	Workspace   id.Workspace `json:"workspace_id"`
	Valid       bool         `json:"valid"`       // everything was checked, and nothing is wrong
	Checked     int          `json:"checked"`     // events held against their hashes
	Redacted    int          `json:"redacted"`    // of them, whose data were destroyed, as the log says: their headers hold
	Sealed      int          `json:"sealed"`      // of them, whose data cannot be opened here, and were not checked
	Streams     int          `json:"streams"`     // chains of hashes
	Documents   int          `json:"documents"`   // documents held against what the log folds to, byte for byte
	Contents    int          `json:"contents"`    // contents that events name, read and held against their hashes
	Snapshots   int          `json:"snapshots"`   // snapshots of spaces that events name, read and held against their hashes
	Checkpoints []Held       `json:"checkpoints"` // that the log was held against
	Flaws       []Flaw       `json:"findings"`    // the first is where to look

	SnapshotBytes  int64    `json:"snapshot_bytes"`      // of snapshots that were read
	SealedContents int      `json:"sealed_contents"`     // contents that events name and that could not be opened
	Unchecked      []string `json:"unchecked,omitempty"` // what could not be checked, each as a sentence
	Notes          []string `json:"notes,omitempty"`     // what is not here and may be so, each as a sentence
}

// Held is a checkpoint that the log was compared with, and its source.
type Held struct {
	By   string `json:"by"`
	Size uint64 `json:"size"`
	Root string `json:"root_hash,omitempty"`
	OK   bool   `json:"ok"`
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
	return group("audit", "Verify the log, and make and check proofs", auditVerify(i), auditProve(i), auditCheck(i), auditCheckpoint(i),
		auditKey(i),
		auditExport(i), auditWitness(i), auditServeWitness(i), auditAbandon(i), auditRedact(i), auditRedactions(i))
}

func auditVerify(i *invocation) *cobra.Command {
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
			"as a whole was set back: name its keeper with --against. It reads the data directory itself and needs no daemon; with --url or\n" +
			"AGENTBOX_URL it asks that daemon instead. It exits with 1 when the log is not intact, and with 10\n" +
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
		if first(i.url, i.Getenv("AGENTBOX_URL")) != "" && publicKey == "" && len(against) == 0 {
			return i.verifyRemote(cmd)
		}
		most, err := parseBound(snapshots)
		if err != nil {
			return err
		}
		q, err := i.auditOf(publicKey, "")
		if err != nil {
			return err
		}
		for _, where := range against {
			if where, err = witnessed(where); err != nil {
				return err
			}
			q.Against = append(q.Against, where)
		}
		tell, done := i.progress("of snapshots read")
		q.SnapshotBytes, q.Progress = most, tell
		proofs, err := i.Audit.Verify(cmd.Context(), q)
		done()
		if err != nil {
			return err
		}
		code := proven(proofs)
		if err := i.show(map[string]any{"valid": code == ExitOK, "unchecked": code == ExitUnchecked, "workspaces": proofs}, func(p *printer) {
			for _, proof := range proofs {
				p.proof(proof)
			}
		}); err != nil {
			return err
		}
		if code != ExitOK {
			return &ended{code}
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
	return parseSize(text)
}

// proven returns the exit code of a verification. A wrong log outweighs a log that could not be checked.
func proven(proofs []Proof) int {
	code := ExitOK
	for _, proof := range proofs {
		switch {
		case len(proof.Flaws) > 0 || !proof.Valid && len(proof.Unchecked) == 0:
			return ExitInternal
		case len(proof.Unchecked) > 0:
			code = ExitUnchecked
		}
	}
	return code
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
	switch {
	case !report.Valid:
		return &ended{ExitInternal}
	case report.Sealed > 0:
		return &ended{ExitUnchecked}
	}
	return nil
}

// proof writes what an offline verification found.
func (p *printer) proof(proof Proof) {
	switch proven([]Proof{proof}) {
	case ExitOK:
		p.line("%s %s: the log is intact: %s in %s checked, %s equal what the log says", p.paint(green, "✓"),
			plain(string(proof.Workspace)), count(proof.Checked, "event"), count(proof.Streams, "chain"), count(proof.Documents, "document"))
	case ExitUnchecked:
		p.line("%s %s: nothing was found to be changed, but not everything could be checked: %s in %s checked, %s equal what the log says",
			p.paint(yellow, "?"),
			plain(string(proof.Workspace)), count(proof.Checked, "event"), count(proof.Streams, "chain"), count(proof.Documents, "document"))
	default:
		p.line("%s %s: the log was changed", p.paint(red, "✗"), plain(string(proof.Workspace)))
	}
	if proof.Snapshots > 0 {
		p.line("  %s of spaces are what their hashes name; %s of them were read", count(proof.Snapshots, "snapshot"),
			bytesize(proof.SnapshotBytes))
	}
	p.withheld(uint64(proof.Redacted))
	for _, what := range proof.Unchecked {
		p.line("  %s", p.paint(yellow, what))
	}
	for _, what := range proof.Notes {
		p.line("  %s", what)
	}
	for _, held := range proof.Checkpoints {
		if held.OK {
			p.line("  %s it continues the checkpoint of %d events that %s holds", p.paint(green, "✓"), held.Size, oneLine(held.By, 0))
		} else {
			p.line("  %s it does not continue the checkpoint of %d events that %s holds", p.paint(red, "✗"), held.Size, oneLine(held.By, 0))
		}
	}
	if len(proof.Flaws) == 0 && len(proof.Checkpoints) == 0 {
		p.line("  %s", p.paint(yellow, "no checkpoint has been signed yet, so that a log that was set back as a whole would not be noticed"))
	}
	for _, f := range proof.Flaws {
		p.fields("what", f.Kind, "place", fmt.Sprint(f.Seq), "stream", first(f.Stream, "-")+" "+fmt.Sprint(f.Place), "event",
			first(string(f.Event), "-"),
			"document", first(f.Document, "-"), "detail", f.Detail)
	}
}

// withheld says of how many events only the header was checked.
func (p *printer) withheld(redacted uint64) {
	if redacted > 0 {
		p.line("  the data of %d of them were redacted, as the log says; their headers and the chain hold", redacted)
	}
}

// audit writes what a verification by the daemon found.
func (p *printer) audit(r client.AuditReport) {
	switch {
	case r.Valid && r.Sealed == 0:
		p.line("%s the log is intact: %s checked, the last is %s", p.paint(green, "✓"), count(r.Checked, "event"), first(r.LastHash.String(),
			"none"))
		p.withheld(r.Redacted)
		return
	case r.Valid:
		p.line("%s nothing was found to be changed, but the data of %d of %s cannot be opened and were not checked; the last is %s",
			p.paint(yellow, "?"), r.Sealed, count(r.Checked, "event"), first(r.LastHash.String(), "none"))
		p.withheld(r.Redacted)
		return
	}
	p.line("%s the log was changed", p.paint(red, "✗"))
	if m := r.Mismatch; m != nil {
		p.fields("stream", m.StreamType+" "+m.StreamID, "place", fmt.Sprint(m.StreamSeq), "event", string(m.Event), "what", m.Kind,
			"expected", m.Expected, "found", m.Actual, "detail", m.Detail)
	}
}
