package auditcmd

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// auditOf names the data directory, the public key and the workspace.
func auditOf(i *cmdline.Invocation, publicKey, workspace string) (cmdline.AuditQuery, error) {
	q := cmdline.AuditQuery{Workspace: id.DefaultWorkspace}
	var err error
	if q.Place, err = i.Place(); err != nil {
		return q, err
	}
	if workspace != "" {
		if q.Workspace, err = id.ParseWorkspace(workspace); err != nil {
			return q, cmdline.Usage("--workspace: %v", err)
		}
	}
	q.PublicKey, err = KeyText(publicKey)
	return q, err
}

// KeyText returns the public key that was named, by itself or by its file.
func KeyText(named string) (string, error) {
	if named == "" || strings.Count(named, "+") >= 2 && !strings.HasSuffix(named, ".pub") {
		return named, nil
	}
	text, err := os.ReadFile(named)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "public_key_unreadable", "%s is neither a public key nor a file that holds one",
			term.OneLine(named,
				80))
	}
	return strings.TrimSpace(string(text)), nil
}

// Witnessed makes the folder or file of a witness absolute, and leaves an address as it is.
func Witnessed(where string) (string, error) {
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		return where, nil
	}
	return cmdline.Absolute(where)
}

const (
	keyFlag       = "public key of the checkpoints, or a file that holds it (default: the one in the data directory)"
	workspaceFlag = "which workspace (default ws_dev)"
)

func auditKey(i *cmdline.Invocation) *cobra.Command {
	var pem bool
	c := &cobra.Command{
		Use: "key", Short: "Print the public key that verifies the checkpoints", Args: cobra.NoArgs,
		Long: "Key prints the public key of this installation. Keep a copy in a place where nobody can change it who\n" +
			"can change the data directory. Such a person could sign with another key and put its public key beside it.",
	}
	c.Flags().BoolVar(&pem, "pem", false, "as PEM, for openssl and other stock tools")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := auditOf(i, "", "")
		if err != nil {
			return err
		}
		key, err := i.Audit.Key(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.Show(key, func(p *term.Printer) {
			if pem {
				p.Line("%s", strings.TrimSuffix(key.PEM, "\n"))
			} else {
				p.Line("%s", term.Plain(key.Key))
			}
		})
	}
	return c
}

func auditCheckpoint(i *cmdline.Invocation) *cobra.Command {
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
		q, err := auditOf(i, "", workspace)
		if err != nil {
			return err
		}
		signed, err := i.Audit.Checkpoint(cmd.Context(), q)
		if err != nil {
			return err
		}
		if i.JSON {
			return i.Show(signed, nil)
		}
		_, err = io.WriteString(i.Out, signed.Note) // byte for byte: the signature covers it
		return err
	}
	return c
}

func auditProve(i *cmdline.Invocation) *cobra.Command {
	var workspace, publicKey, out string
	var since uint64
	var text bool
	c := &cobra.Command{
		Use: "prove [EVENT]", Short: "Write a proof that an event is in the log", Args: cobra.MaximumNArgs(1),
		Long: "Prove writes a document that proves that an event, named by its id or its place, is in the log for which the last checkpoint " +
			"was signed.\n" +
			"Anybody with the public key can check it without this log: with agentbox audit check, or with stock tools as docs/PROOFS.md shows.\n" +
			"With --since it proves instead that the log continues the one of an earlier checkpoint.",
		Example: "  agentbox audit prove 42 --out proof.json\n  agentbox audit prove --since 1000",
	}
	f := c.Flags()
	f.StringVar(&workspace, "workspace", "", workspaceFlag)
	f.StringVar(&publicKey, "public-key", "", keyFlag)
	f.StringVar(&out, "out", "", "file to write it to, 0600 (default: the terminal)")
	f.Uint64Var(&since, "since", 0, "number of events of an earlier checkpoint")
	f.BoolVar(&text, "text", false, "as a C2SP tlog-proof, without the event itself")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := auditOf(i, publicKey, workspace)
		if err != nil {
			return err
		}
		switch {
		case cmd.Flags().Changed("since") == (len(args) == 1), text && len(args) == 0:
			return cmdline.Usage("prove takes an event, or --since and a number").With("see: agentbox audit prove --help")
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
		return toFile(i, out, func(to io.Writer) error {
			if text {
				_, err := io.WriteString(to, tlog)
				return err
			}
			return (&term.Printer{Out: to}).Object(document)
		})
	}
	return c
}

// toFile writes to a file that only its owner can read, or to the terminal where none is named.
func toFile(i *cmdline.Invocation, path string, write func(io.Writer) error) error {
	if path == "" {
		return write(i.Out)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", term.OneLine(path, 80))
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

func auditCheck(i *cmdline.Invocation) *cobra.Command {
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
		key, err := KeyText(publicKey)
		if err != nil {
			return err
		}
		if key == "" {
			return cmdline.Usage("name the public key with --public-key").With("the installation's owner prints it with: agentbox audit key")
		}
		in := i.In
		if args[0] != "-" {
			file, err := os.Open(args[0])
			if err != nil {
				return cmdline.Unreadable(err, args[0])
			}
			defer func() { _ = file.Close() }()
			in = file
		}
		checked, err := i.Audit.Check(cmd.Context(), cmdline.AuditQuery{PublicKey: key}, in)
		if err != nil {
			return err
		}
		return i.Show(checked, func(p *term.Printer) { writeChecked(p, checked) })
	}
	return c
}

// writeChecked writes the result of a checked proof.
func writeChecked(p *term.Printer, c cmdline.Checked) {
	mark := p.Paint(term.Green, "✓")
	switch c.Kind {
	case "event":
		p.Line("%s event %d is in the log of %s", mark, c.Seq, term.OneLine(c.Origin, 0))
		data := "held against their commitment"
		if !c.HasData {
			data = "not in the proof"
		}
		p.Fields("event", string(c.Event), "type", c.Type, "occurred", c.Occurred, "hash", c.Hash.String(), "data", data, "checkpoint",
			strconv.FormatUint(c.Size, 10)+" events")
	case "consistency":
		p.Line("%s the log of %s with %d events continues the one with %d", mark, term.OneLine(c.Origin, 0), c.Size, c.Old)
		p.Fields("then", c.OldRoot+" (compare it with the checkpoint that you hold)")
	default:
		whole := "a part of the log"
		if c.Complete {
			whole = "the whole log"
		}
		p.Line("%s %s, %s, are what the checkpoint of %s over %s was signed for", mark, term.Count(c.Events, "event"), whole,
			term.OneLine(c.Origin, 0),
			term.Count(c.Size, "event"))
	}
}

func auditExport(i *cmdline.Invocation) *cobra.Command {
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
		q, err := auditOf(i, publicKey, workspace)
		if err != nil {
			return err
		}
		q.Run, q.First, q.Last = id.Run(run), from, to
		n := 0
		if err := toFile(i, out, func(to io.Writer) (err error) {
			n, err = i.Audit.Export(cmd.Context(), q, to)
			return err
		}); err != nil {
			return err
		}
		if out != "" {
			return i.Show(map[string]any{"events": n, "file": out}, func(p *term.Printer) {
				p.Line("%s %s written to %s", p.Paint(term.Green, "✓"), term.Count(n, "event"), term.OneLine(out, 0))
			})
		}
		return nil
	}
	return c
}
