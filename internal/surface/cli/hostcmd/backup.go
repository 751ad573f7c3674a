package hostcmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentbox/internal/surface/cli/auditcmd"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Backups is the command that keeps a data directory as one file.
func Backups(i *cmdline.Invocation) *cobra.Command {
	var keys bool
	c := &cobra.Command{
		Use: "backup FILE.tar.gz", Short: "Back up a data directory into one file", Args: cobra.ExactArgs(1),
		Long: "Backup writes the log of one moment, stored contents and the files of spaces into one compressed tar archive with a hash for " +
			"each entry.\n" +
			"It reads the data directory itself. The file has no keys without --with-keys. With keys it gives its holder their power.\n" +
			"Files of spaces that are written to meanwhile are kept as they were read; the answer counts them.",
		Example: "  agentbox backup /mnt/stick/agentbox.tar.gz\n  agentbox restore /mnt/stick/agentbox.tar.gz --data ~/restored",
	}
	c.Flags().BoolVar(&keys, "with-keys", false, "put keys into it too")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := i.Place()
		if err != nil {
			return err
		}
		target, err := filepath.Abs(args[0])
		if err != nil {
			return cmdline.Usage("%s is not a path of a file", term.OneLine(args[0], 80))
		}
		tell, done := cmdline.Progress(i, "kept")
		kept, err := i.Backup(cmd.Context(), cmdline.Daemon{Place: at}, target, keys, tell)
		done()
		if err != nil {
			return err
		}
		return i.Show(kept, func(p *term.Printer) {
			p.Line("%s %s: %s, %s", p.Paint(term.Green, "✓"), term.Plain(target), term.Count(kept.Files, "file"), term.Bytesize(kept.Bytes))
			if kept.Changed > 0 {
				p.Line("%s", p.Paint(term.Yellow, fmt.Sprintf("%d files of spaces were written to meanwhile; they are kept as they were read",
					kept.Changed)))
			}
			p.Line("%s", p.Paint(term.Faint, map[bool]string{true: "It holds keys: keep it where only you can read it.",
				false: "It holds no keys, and what it holds is sealed: keep the folder keys of the data directory too, elsewhere."}[keys]))
		})
	}
	return c
}

// Restore is the command that makes a data directory from a backup.
func Restore(i *cmdline.Invocation) *cobra.Command {
	var keys string
	c := &cobra.Command{
		Use: "restore [FILE.tar.gz]", Short: "Restore a data directory from a backup", Args: cobra.MaximumNArgs(1),
		Long: "Restore makes the data directory that --data or AGENTBOX_HOME names, which must be empty or not there yet. It holds every file " +
			"against\n" +
			"the backup's own hashes and proves the log before the directory gets its name; after an error nothing is left.\n" +
			"The data of the log are sealed, and a backup has no keys unless it was made with them: name their folder with --keys, now or later. " +
			"Without\n" +
			"keys the log is verified and proved, and its headers are exported, but no daemon starts on it. Data redacted since the backup " +
			"was made\n" +
			"is gone in it too when the keys are those of today.",
		Example: "  agentbox restore /mnt/stick/agentbox.tar.gz --data ~/restored --keys ~/.agentbox/keys\n  agentbox restore --keys " +
			"/mnt/safe/keys --data ~/restored",
	}
	c.Flags().StringVar(&keys, "keys", "", "folder of the keys that open the log, which is keys in the data directory that was backed up")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := i.Place()
		if err != nil {
			return err
		}
		if keys != "" {
			if keys, err = filepath.Abs(keys); err != nil {
				return cmdline.Usage("%s is not a path of a folder", term.OneLine(keys, 80))
			}
		}
		file := ""
		switch {
		case len(args) == 1:
			file = args[0]
		case keys == "":
			return cmdline.Usage("name the backup, or the keys with --keys")
		}
		tell, done := cmdline.Progress(i, "restored")
		kept, proofs, err := i.Restore(cmd.Context(), cmdline.Daemon{Place: at}, file, keys, tell)
		done()
		if err != nil {
			return err
		}
		return i.Show(struct {
			cmdline.Kept
			DataDir string          `json:"data_directory"`
			Proofs  []cmdline.Proof `json:"workspaces"`
		}{kept, at.DataDir, proofs}, func(p *term.Printer) {
			if file != "" {
				p.Line("%s %s: %s, %s, as of %s", p.Paint(term.Green, "✓"), term.Plain(at.DataDir), term.Count(kept.Files, "file"),
					term.Bytesize(kept.Bytes),
					term.Moment(kept.MadeAt))
			}
			sealed := false
			for _, proof := range proofs {
				auditcmd.WriteProof(p, proof)
				sealed = sealed || proof.Sealed > 0 && proof.Documents == 0
			}
			if sealed {
				p.Line("bring its keys, then it can be started: agentbox restore --keys PATH --data %s", term.Plain(at.DataDir))
				return
			}
			p.Line("start it with: agentbox up --data %s", term.Plain(at.DataDir))
		})
	}
	return c
}
