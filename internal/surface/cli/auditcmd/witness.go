package auditcmd

import (
	"io"

	"github.com/spf13/cobra"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

func auditWitness(i *cmdline.Invocation) *cobra.Command {
	var publicKey, out string
	c := &cobra.Command{
		Use: "witness WHERE", Short: "Send the latest checkpoints to a witness", Args: cobra.ExactArgs(1),
		Long: "Witness brings the last signed checkpoint of every workspace to a witness: a folder (on another host, or a stick), or the http " +
			"address of a\n" +
			"server that speaks C2SP tlog-witness, such as agentbox audit serve-witness. A witness takes a checkpoint only with the proof that it " +
			"continues\n" +
			"the one it holds, so that a log that was changed or set back cannot be brought; then it exits with 3 and names the first bad event.",
		Example: "  agentbox audit witness /media/stick\n  agentbox audit witness https://witness.example.org",
	}
	c.Flags().StringVar(&publicKey, "public-key", "", keyFlag)
	c.Flags().StringVar(&out, "out", "", "file for the checkpoints with the witness's signatures")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := auditOf(i, publicKey, "")
		if err != nil {
			return err
		}
		where, err := Witnessed(args[0])
		if err != nil {
			return err
		}
		visits, err := i.Audit.Visit(cmd.Context(), q, where)
		if err != nil {
			return err
		}
		if out != "" {
			if err := toFile(i, out, func(to io.Writer) error {
				for _, v := range visits {
					if _, err := io.WriteString(to, v.Note); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return i.Show(map[string]any{"witness": where, "visits": visits}, func(p *term.Printer) {
			for _, v := range visits {
				switch v.Old {
				case v.New:
					p.Line("%s %s: the witness holds already all of it, %s", p.Paint(term.Green, "✓"), term.Plain(string(v.Workspace)), term.Count(v.New,
						"event"))
				case 0:
					p.Line("%s %s: the witness holds %s, for the first time", p.Paint(term.Green, "✓"), term.Plain(string(v.Workspace)), term.Count(v.New,
						"event"))
				default:
					p.Line("%s %s: the witness holds %d events, which continue the %d that it held", p.Paint(term.Green, "✓"),
						term.Plain(string(v.Workspace)),
						v.New, v.Old)
				}
			}
		})
	}
	return c
}

func auditServeWitness(i *cmdline.Invocation) *cobra.Command {
	var w cmdline.Witness
	c := &cobra.Command{
		Use: "serve-witness", Short: "Serve as a witness for other installations; Ctrl-C stops it", Args: cobra.NoArgs,
		Long: "Serve-witness keeps the newest checkpoint of each installation whose public key it is given, takes a newer one only with the " +
			"proof that it\n" +
			"continues the old one, and signs what it takes, with the time (C2SP tlog-witness and cosignature/v1). It belongs on another host " +
			"than the\n" +
			"installation, under another user's hands. It sees checkpoints only, never events.",
		Example: "  agentbox audit serve-witness --dir ./witness --trust agentbox.pub",
	}
	f := c.Flags()
	f.StringVar(&w.Dir, "dir", "", "folder for its own key and for what it keeps (required)")
	f.StringVar(&w.Listen, "listen", "127.0.0.1:7434", "host:port; put a TLS proxy in front of it where others reach it")
	f.StringArrayVar(&w.Keys, "trust", nil, "public key of an installation, or a file that holds it; repeatable")
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if w.Dir == "" || len(w.Keys) == 0 {
			return cmdline.Usage("serve-witness needs --dir and --trust").With("see: agentbox audit serve-witness --help")
		}
		if w.Dir, err = cmdline.Absolute(w.Dir); err != nil {
			return err
		}
		for n := range w.Keys {
			if w.Keys[n], err = KeyText(w.Keys[n]); err != nil {
				return err
			}
		}
		return i.Audit.Witness(cmd.Context(), w, func(address, publicKey string) {
			_ = i.Show(map[string]string{"url": "http://" + address, "public_key": publicKey}, func(p *term.Printer) {
				p.Line("the witness serves on %s", p.Paint(term.Cyan, "http://"+address))
				p.Fields("key", publicKey)
			})
		})
	}
	return c
}

func auditAbandon(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "abandon", Short: "Give up checkpoints that the log does not continue", Args: cobra.NoArgs,
		Long: "Abandon is for a log that was set back on purpose, as by an old backup, or whose signing key is lost: the daemon refuses to " +
			"start on it. It\n" +
			"records in the log which checkpoint is given up and why, and puts it aside as evidence. Proofs that rest on old checkpoints stay " +
			"valid for\n" +
			"the log that they were made of; witnesses will go on refusing the new one, and rightly so. No daemon may run meanwhile.",
		Example: "  agentbox audit abandon --reason 'restored the backup of 3 May after the disk failed'",
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log (required)")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if reason == "" || len(reason) > 1000 {
			return cmdline.Usage("say why with --reason, in at most 1000 bytes")
		}
		q, err := auditOf(i, "", "")
		if err != nil {
			return err
		}
		n, err := i.Audit.Abandon(cmd.Context(), q, reason)
		if err != nil {
			return err
		}
		return i.Show(map[string]any{"abandoned": n}, func(p *term.Printer) {
			p.Line("%s %s given up; the next start begins to sign anew", p.Paint(term.Green, "✓"), term.Count(n, "checkpoint"))
		})
	}
	return c
}
