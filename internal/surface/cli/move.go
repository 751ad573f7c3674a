package cli

import (
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"agentbox/internal/domain/id"
)

// Moved says what a file of a workspace holds.
type Moved struct {
	Workspace id.Workspace `json:"workspace_id"`
	Events    uint64       `json:"events"`
	Contents  int          `json:"contents"`
	Missing   int          `json:"contents_missing"`
	Root      string       `json:"root_hash"`
	Size      uint64       `json:"checkpoint_size"` // 0 where none was signed
	PublicKey string       `json:"public_key"`
	Ended     int          `json:"spaces_ended"` // living spaces, whose files stayed where they were
}

func exportWorkspace(i *invocation) *cobra.Command {
	ws := string(id.DefaultWorkspace)
	c := &cobra.Command{
		Use: "export FILE", Short: "Write a workspace as one file, to be imported into another data directory", Args: cobra.ExactArgs(1),
		Long: "Export writes every event of a workspace as it is, with its hashes and salts, the contents that the events name, and the last signed checkpoint.\n" +
			"It reads the data directory itself, whether or not a daemon runs on it. Files of spaces and snapshots are not in it, and neither are keys of\n" +
			"the installation; what the events say is, in the clear: keep the file where only those can read it who may read the workspace.",
		Example: "  agentbox export ws.tar.gz\n  agentbox export team.tar.gz --workspace ws_team",
	}
	c.Flags().StringVar(&ws, "workspace", ws, "the workspace")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		dir, err := i.dataDir()
		if err != nil {
			return err
		}
		target, err := filepath.Abs(args[0])
		if err != nil {
			return usage("%s is no path of a file", oneLine(args[0], 80))
		}
		moved, err := i.ExportWorkspace(cmd.Context(), Daemon{DataDir: dir}, id.Workspace(ws), target)
		if err != nil {
			return err
		}
		return i.show(moved, func(p *printer) {
			p.line("%s %s: %d events and %d contents of %s", p.paint(green, "✓"), plain(target), moved.Events, moved.Contents, moved.Workspace)
			p.moved(moved)
		})
	}
	return c
}

func importWorkspace(i *invocation) *cobra.Command {
	var key string
	c := &cobra.Command{
		Use: "import FILE", Short: "Take a workspace from a file into a data directory", Args: cobra.ExactArgs(1),
		Long: "Import records the events exactly as they were, so that every proof that was made elsewhere holds here, and goes on from there. Everything is held\n" +
			"against its hashes and the checkpoint in the file before any of it is seen; after an error, or a crash, nothing is there and it may be repeated.\n" +
			"No daemon may run on the data directory, and the workspace must not exist in it. Spaces do not come along: those that lived end as moved.",
		Example: "  agentbox import ws.tar.gz --data ~/second\n  agentbox import ws.tar.gz --public-key agentbox.pub",
	}
	c.Flags().StringVar(&key, "public-key", "", "the key that must have signed the checkpoint in the file, or a file that holds it (default: the one in the file)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		dir, err := i.dataDir()
		if err != nil {
			return err
		}
		key, err := keyText(key)
		if err != nil {
			return err
		}
		moved, err := i.ImportWorkspace(cmd.Context(), Daemon{DataDir: dir}, args[0], key)
		if err != nil {
			return err
		}
		return i.show(moved, func(p *printer) {
			p.line("%s %s: %d events and %d contents of %s", p.paint(green, "✓"), plain(dir), moved.Events, moved.Contents, moved.Workspace)
			p.moved(moved)
			if moved.Ended > 0 {
				p.line("%d spaces ended: their files stayed where they were", moved.Ended)
			}
		})
	}
	return c
}

// moved says what was signed of a workspace, and what is not there.
func (p *printer) moved(m Moved) {
	if m.Size > 0 {
		p.line("%s", wrapped("the first "+strconv.FormatUint(m.Size, 10)+" events are those of the checkpoint that "+plain(m.PublicKey)+" signed", p.width, 2))
	} else {
		p.line("no checkpoint was signed for it")
	}
	if m.Missing > 0 {
		p.line("%s %d contents that events name are not there any more", p.paint(yellow, "!"), m.Missing)
	}
}
