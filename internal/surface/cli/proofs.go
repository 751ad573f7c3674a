package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Audit proves a log from its files. The app provides it.
type Audit struct {
	// Verify verifies every workspace.
	Verify func(ctx context.Context, q AuditQuery) ([]Proof, error)
	// Key returns the public key of the checkpoints.
	Key func(ctx context.Context, q AuditQuery) (PublicKey, error)
	// Checkpoint returns the last checkpoint of a workspace.
	Checkpoint func(ctx context.Context, q AuditQuery) (Checkpoint, error)
	// Prove returns the proof of an event, or, with Since, of consistency, as a JSON document; text is the C2SP tlog-proof of an event.
	Prove func(ctx context.Context, q AuditQuery) (document json.RawMessage, text string, err error)
	// Check verifies a document of proof with nothing but the public key.
	Check func(ctx context.Context, q AuditQuery, document io.Reader) (Checked, error)
	// Export writes events with what proves them, and returns how many.
	Export func(ctx context.Context, q AuditQuery, to io.Writer) (int, error)
	// Visit brings the last checkpoints to a witness, and returns what each workspace's visit came to.
	Visit func(ctx context.Context, q AuditQuery, witness string) ([]Visit, error)
	// Witness runs a witness until ctx ends.
	Witness func(ctx context.Context, w Witness, ready func(address, publicKey string)) error
	// Abandon gives up the checkpoints, and returns how many.
	Abandon func(ctx context.Context, q AuditQuery, reason string) (int, error)
}

// AuditQuery says what is proven.
type AuditQuery struct {
	Place
	PublicKey string // "" for the one in the data directory
	Workspace id.Workspace
	Event     id.Event // or Seq
	Seq       uint64
	Since     *uint64 // an earlier size
	Run       id.Run
	First     uint64
	Last      uint64
	Against   []string

	SnapshotBytes int64                        // how much of the snapshots of a workspace is read at most
	Progress      func(files int, bytes int64) // is told how many snapshots were looked at, and how much of them was read
}

// PublicKey is the key of the checkpoints in the forms that tools read.
type PublicKey struct {
	Name string `json:"name"`       // of the installation
	Key  string `json:"public_key"` // C2SP signed-note
	PEM  string `json:"pem"`        // for openssl and most libraries
}

// Checkpoint is a signed checkpoint and what it says.
type Checkpoint struct {
	Origin    string `json:"origin"`
	Size      uint64 `json:"size"`
	Root      string `json:"root_hash"`
	Note      string `json:"checkpoint"`
	PublicKey string `json:"public_key"`
}

// Checked is what a document of proof proves.
type Checked struct {
	Kind     string       `json:"kind"` // event, consistency, export
	Origin   string       `json:"origin"`
	Size     uint64       `json:"size"` // of the checkpoint
	Events   int          `json:"events"`
	Complete bool         `json:"complete"`
	Old      uint64       `json:"old_size,omitempty"`
	OldRoot  string       `json:"old_root_hash,omitempty"`
	Seq      uint64       `json:"seq,omitempty"`
	Event    id.Event     `json:"event_id,omitempty"`
	Type     string       `json:"event_type,omitempty"`
	Occurred string       `json:"occurred_at,omitempty"`
	HasData  bool         `json:"has_data"`
	Hash     event.Digest `json:"event_hash,omitzero"`
}

// Visit is the result of sending a checkpoint to a witness.
type Visit struct {
	Workspace id.Workspace `json:"workspace_id"`
	Old       uint64       `json:"old_size"`
	New       uint64       `json:"size"`
	Note      string       `json:"checkpoint"` // with the witness's signature, if it signs
}

// Witness is the configuration of a witness.
type Witness struct {
	Dir    string
	Listen string
	Keys   []string // public keys of the installations that it knows
}

// auditOf names the data directory, the public key and the workspace.
func (i *invocation) auditOf(publicKey, workspace string) (AuditQuery, error) {
	q := AuditQuery{Workspace: id.DefaultWorkspace}
	var err error
	if q.Place, err = i.place(); err != nil {
		return q, err
	}
	if workspace != "" {
		if q.Workspace, err = id.ParseWorkspace(workspace); err != nil {
			return q, usage("--workspace: %v", err)
		}
	}
	q.PublicKey, err = keyText(publicKey)
	return q, err
}

// keyText returns the public key that was named, by itself or by its file.
func keyText(named string) (string, error) {
	if named == "" || strings.Count(named, "+") >= 2 && !strings.HasSuffix(named, ".pub") {
		return named, nil
	}
	text, err := os.ReadFile(named)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "public_key_unreadable", "%s is neither a public key nor a file that holds one", oneLine(named,
			80))
	}
	return strings.TrimSpace(string(text)), nil
}

// witnessed makes the folder or file of a witness absolute, and leaves an address as it is.
func witnessed(where string) (string, error) {
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		return where, nil
	}
	return absolute(where)
}

const (
	keyFlag       = "public key of the checkpoints, or a file that holds it (default: the one in the data directory)"
	workspaceFlag = "which workspace (default ws_dev)"
)

func auditKey(i *invocation) *cobra.Command {
	var pem bool
	c := &cobra.Command{
		Use: "key", Short: "Print the public key that verifies the checkpoints", Args: cobra.NoArgs,
		Long: "Key prints the public key of this installation. Keep a copy where nobody who can change the data directory can change it: " +
			"whoever can\n" +
			"write there can sign with another key and put that one's public key beside it.",
	}
	c.Flags().BoolVar(&pem, "pem", false, "as PEM, for openssl and other stock tools")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := i.auditOf("", "")
		if err != nil {
			return err
		}
		key, err := i.Audit.Key(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.show(key, func(p *printer) {
			if pem {
				p.line("%s", strings.TrimSuffix(key.PEM, "\n"))
			} else {
				p.line("%s", plain(key.Key))
			}
		})
	}
	return c
}

func auditCheckpoint(i *invocation) *cobra.Command {
	var workspace string
	c := &cobra.Command{
		Use: "checkpoint", Short: "Print the last signed checkpoint", Args: cobra.NoArgs,
		Long: "Checkpoint prints the last signed checkpoint of a workspace, a note of the C2SP form tlog-checkpoint: origin, number of events, " +
			"root of the\n" +
			"tree over them, and the signature. Kept anywhere else, it is a witness; the log is held against it with: agentbox audit verify " +
			"--against FILE",
		Example: "  agentbox audit checkpoint > /media/stick/checkpoint",
	}
	c.Flags().StringVar(&workspace, "workspace", "", workspaceFlag)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := i.auditOf("", workspace)
		if err != nil {
			return err
		}
		signed, err := i.Audit.Checkpoint(cmd.Context(), q)
		if err != nil {
			return err
		}
		if i.json {
			return i.show(signed, nil)
		}
		_, err = io.WriteString(i.Out, signed.Note) // byte for byte: the signature covers it
		return err
	}
	return c
}

func auditProve(i *invocation) *cobra.Command {
	var workspace, publicKey, out string
	var since uint64
	var text bool
	c := &cobra.Command{
		Use: "prove [EVENT]", Short: "Write a proof that an event is in the log", Args: cobra.MaximumNArgs(1),
		Long: "Prove writes a document that proves that an event, named by its id or its place, is in the log for which the last checkpoint " +
			"was signed.\n" +
			"Whoever has the public key checks it without this log: with agentbox audit check, or with stock tools as docs/PROOFS.md shows. With\n" +
			"--since it proves instead that the log continues the one of an earlier checkpoint.",
		Example: "  agentbox audit prove 42 --out proof.json\n  agentbox audit prove --since 1000",
	}
	f := c.Flags()
	f.StringVar(&workspace, "workspace", "", workspaceFlag)
	f.StringVar(&publicKey, "public-key", "", keyFlag)
	f.StringVar(&out, "out", "", "file to write it to, 0600 (default: the terminal)")
	f.Uint64Var(&since, "since", 0, "number of events of an earlier checkpoint")
	f.BoolVar(&text, "text", false, "as a C2SP tlog-proof, without the event itself")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := i.auditOf(publicKey, workspace)
		if err != nil {
			return err
		}
		switch {
		case cmd.Flags().Changed("since") == (len(args) == 1), text && len(args) == 0:
			return usage("prove takes an event, or --since and a number").With("see: agentbox audit prove --help")
		case len(args) == 0:
			q.Since = &since
		default:
			if n, err := strconv.ParseUint(args[0], 10, 63); err == nil {
				q.Seq = n
			} else {
				q.Event = id.Event(args[0])
			}
		}
		document, tlog, err := i.Audit.Prove(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.toFile(out, func(to io.Writer) error {
			if text {
				_, err := io.WriteString(to, tlog)
				return err
			}
			return (&printer{out: to}).object(document)
		})
	}
	return c
}

// toFile writes to a file that only its owner can read, or to the terminal where none is named.
func (i *invocation) toFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return write(i.Out)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", oneLine(path, 80))
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

func auditCheck(i *invocation) *cobra.Command {
	var publicKey string
	c := &cobra.Command{
		Use: "check FILE", Short: "Check a proof or an export with nothing but a public key", Args: cobra.ExactArgs(1),
		Long: "Check verifies what agentbox audit prove and agentbox audit export wrote; - reads standard input. It needs no data directory " +
			"and no daemon,\n" +
			"only the public key, which must not come with the proof. It exits with 2 when the proof does not hold.",
		Example: "  agentbox audit check proof.json --public-key agentbox.pub",
	}
	c.Flags().StringVar(&publicKey, "public-key", "", "public key of the checkpoints, or a file that holds it")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		key, err := keyText(publicKey)
		if err != nil {
			return err
		}
		if key == "" {
			return usage("name the public key with --public-key").With("the installation's owner prints it with: agentbox audit key")
		}
		in := i.In
		if args[0] != "-" {
			file, err := os.Open(args[0])
			if err != nil {
				return unreadable(err, args[0])
			}
			defer func() { _ = file.Close() }()
			in = file
		}
		checked, err := i.Audit.Check(cmd.Context(), AuditQuery{PublicKey: key}, in)
		if err != nil {
			return err
		}
		return i.show(checked, func(p *printer) { p.checked(checked) })
	}
	return c
}

// checked writes what a proof proves.
func (p *printer) checked(c Checked) {
	mark := p.paint(green, "✓")
	switch c.Kind {
	case "event":
		p.line("%s event %d is in the log of %s", mark, c.Seq, oneLine(c.Origin, 0))
		data := "held against their commitment"
		if !c.HasData {
			data = "not in the proof"
		}
		p.fields("event", string(c.Event), "type", c.Type, "occurred", c.Occurred, "hash", c.Hash.String(), "data", data, "checkpoint",
			strconv.FormatUint(c.Size, 10)+" events")
	case "consistency":
		p.line("%s the log of %s with %d events continues the one with %d", mark, oneLine(c.Origin, 0), c.Size, c.Old)
		p.fields("then", c.OldRoot+" (compare it with the checkpoint that you hold)")
	default:
		whole := "a part of the log"
		if c.Complete {
			whole = "the whole log"
		}
		p.line("%s %s, %s, are what the checkpoint of %s over %s was signed for", mark, count(c.Events, "event"), whole, oneLine(c.Origin, 0),
			count(c.Size, "event"))
	}
}

func auditExport(i *invocation) *cobra.Command {
	var workspace, publicKey, out, run string
	var from, to uint64
	c := &cobra.Command{
		Use: "export", Short: "Export events with their proofs", Args: cobra.NoArgs,
		Long: "Export writes JSON Lines: the signed checkpoint, then each event with its data and, unless all events are there, the hashes " +
			"that prove it.\n" +
			"agentbox audit check verifies it without this log; docs/PROOFS.md shows how stock tools do.",
		Example: "  agentbox audit export --out audit.jsonl\n  agentbox audit export --run run_... --out run.jsonl",
	}
	f := c.Flags()
	f.StringVar(&workspace, "workspace", "", workspaceFlag)
	f.StringVar(&publicKey, "public-key", "", keyFlag)
	f.StringVar(&out, "out", "", "file to write it to, 0600 (default: the terminal)")
	f.StringVar(&run, "run", "", "only events of this run")
	f.Uint64Var(&from, "from", 0, "from this place in the workspace on")
	f.Uint64Var(&to, "to", 0, "up to this place, inclusive")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := i.auditOf(publicKey, workspace)
		if err != nil {
			return err
		}
		q.Run, q.First, q.Last = id.Run(run), from, to
		n := 0
		if err := i.toFile(out, func(to io.Writer) (err error) {
			n, err = i.Audit.Export(cmd.Context(), q, to)
			return err
		}); err != nil {
			return err
		}
		if out != "" {
			return i.show(map[string]any{"events": n, "file": out}, func(p *printer) {
				p.line("%s %s written to %s", p.paint(green, "✓"), count(n, "event"), oneLine(out, 0))
			})
		}
		return nil
	}
	return c
}
