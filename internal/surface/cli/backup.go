package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// Kept says what a backup holds.
type Kept struct {
	MadeAt  time.Time `json:"made_at"`
	Program string    `json:"agentbox"` // the version that made it
	Keys    bool      `json:"keys"`     // whether keys are inside
	Files   int       `json:"files"`
	Bytes   int64     `json:"size_bytes"` // before compression
	Skipped int       `json:"skipped"`    // pipes, sockets and devices, which have no content
	Changed int       `json:"changed"`    // files that were written to while they were read
}

func backups(i *invocation) *cobra.Command {
	var keys bool
	c := &cobra.Command{
		Use: "backup FILE.tar.gz", Short: "Back up a data directory into one file", Args: cobra.ExactArgs(1),
		Long: "Backup writes the log of one moment, stored contents and the files of spaces into one compressed tar archive with a hash for " +
			"each entry.\n" +
			"It reads the data directory itself. Keys stay out of it unless --with-keys is given: whoever has such a file has the keys' power.\n" +
			"Files of spaces that are written to meanwhile are kept as they were read; the answer counts them.",
		Example: "  agentbox backup /mnt/stick/agentbox.tar.gz\n  agentbox restore /mnt/stick/agentbox.tar.gz --data ~/restored",
	}
	c.Flags().BoolVar(&keys, "with-keys", false, "put keys into it too")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := i.place()
		if err != nil {
			return err
		}
		target, err := filepath.Abs(args[0])
		if err != nil {
			return usage("%s is no path of a file", oneLine(args[0], 80))
		}
		tell, done := i.progress("kept")
		kept, err := i.Backup(cmd.Context(), Daemon{Place: at}, target, keys, tell)
		done()
		if err != nil {
			return err
		}
		return i.show(kept, func(p *printer) {
			p.line("%s %s: %s, %s", p.paint(green, "✓"), plain(target), count(kept.Files, "file"), bytesize(kept.Bytes))
			if kept.Changed > 0 {
				p.line("%s", p.paint(yellow, fmt.Sprintf("%d files of spaces were written to meanwhile; they are kept as they were read",
					kept.Changed)))
			}
			p.line("%s", p.paint(faint, map[bool]string{true: "It holds keys: keep it where only you can read it.",
				false: "It holds no keys, and what it holds is sealed: keep the folder keys of the data directory too, elsewhere."}[keys]))
		})
	}
	return c
}

func restore(i *invocation) *cobra.Command {
	var keys string
	c := &cobra.Command{
		Use: "restore [FILE.tar.gz]", Short: "Restore a data directory from a backup", Args: cobra.MaximumNArgs(1),
		Long: "Restore makes the data directory that --data or AGENTBOX_HOME names, which must be empty or not there yet. It holds every file " +
			"against\n" +
			"the backup's own hashes and proves the log before the directory gets its name; after an error nothing is left.\n" +
			"What the log holds is sealed, and a backup has no keys unless it was made with them: name their folder with --keys, now or later. " +
			"Without\n" +
			"keys the log is verified and proved, and its headers are exported, but no daemon starts on it. What was redacted since the backup " +
			"was made\n" +
			"is gone in it too when the keys are those of today.",
		Example: "  agentbox restore /mnt/stick/agentbox.tar.gz --data ~/restored --keys ~/.agentbox/keys\n  agentbox restore --keys " +
			"/mnt/safe/keys --data ~/restored",
	}
	c.Flags().StringVar(&keys, "keys", "", "folder of the keys that open the log, which is keys in the data directory that was backed up")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := i.place()
		if err != nil {
			return err
		}
		if keys != "" {
			if keys, err = filepath.Abs(keys); err != nil {
				return usage("%s is no path of a folder", oneLine(keys, 80))
			}
		}
		file := ""
		switch {
		case len(args) == 1:
			file = args[0]
		case keys == "":
			return usage("name the backup, or the keys with --keys")
		}
		tell, done := i.progress("restored")
		kept, proofs, err := i.Restore(cmd.Context(), Daemon{Place: at}, file, keys, tell)
		done()
		if err != nil {
			return err
		}
		return i.show(struct {
			Kept
			DataDir string  `json:"data_directory"`
			Proofs  []Proof `json:"workspaces"`
		}{kept, at.DataDir, proofs}, func(p *printer) {
			if file != "" {
				p.line("%s %s: %s, %s, as of %s", p.paint(green, "✓"), plain(at.DataDir), count(kept.Files, "file"), bytesize(kept.Bytes),
					moment(kept.MadeAt))
			}
			sealed := false
			for _, proof := range proofs {
				p.proof(proof)
				sealed = sealed || proof.Sealed > 0 && proof.Documents == 0
			}
			if sealed {
				p.line("bring its keys, then it can be started: agentbox restore --keys PATH --data %s", plain(at.DataDir))
				return
			}
			p.line("start it with: agentbox up --data %s", plain(at.DataDir))
		})
	}
	return c
}

// progress returns a function that shows on a terminal how far a long work is, and one that clears the line.
func (i *invocation) progress(word string) (tell func(files int, bytes int64), done func()) {
	if !i.Terminal || i.json {
		return func(int, int64) {}, func() {}
	}
	var last time.Time
	shown := false
	return func(files int, bytes int64) {
			if now := i.Clock.Now(); now.Sub(last) > 200*time.Millisecond {
				last, shown = now, true
				fmt.Fprintf(i.Err, "\r\x1b[K%s, %s %s", count(files, "file"), bytesize(bytes), word)
			}
		}, func() {
			if shown {
				fmt.Fprint(i.Err, "\r\x1b[K")
			}
		}
}
