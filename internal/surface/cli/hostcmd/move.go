package hostcmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/auditcmd"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// ExportWorkspace is the command that writes a workspace as one file.
func ExportWorkspace(i *cmdline.Invocation) *cobra.Command {
	ws := string(id.DefaultWorkspace)
	c := &cobra.Command{
		Use: "export FILE", Short: "Export a workspace into one file", Args: cobra.ExactArgs(1),
		Long: "Export writes every event of a workspace as it is, with its hashes and salts, the contents that the events name, and the last " +
			"signed checkpoint.\n" +
			"It reads the data directory itself, whether or not a daemon runs on it. Files of spaces and snapshots are not in it, and neither are " +
			"keys of\n" +
			"the installation; what the events say is, in the clear: keep the file where only those can read it who may read the workspace.",
		Example: "  agentbox export ws.tar.gz\n  agentbox export team.tar.gz --workspace ws_team",
	}
	c.Flags().StringVar(&ws, "workspace", ws, "the workspace")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := i.Place()
		if err != nil {
			return err
		}
		target, err := filepath.Abs(args[0])
		if err != nil {
			return cmdline.Usage("%s is not a path of a file", term.OneLine(args[0], 80))
		}
		moved, err := i.ExportWorkspace(cmd.Context(), cmdline.Daemon{Place: at}, id.Workspace(ws), target)
		if err != nil {
			return err
		}
		return i.Show(moved, func(p *term.Printer) {
			p.Line("%s %s: %s and %s of %s", p.Paint(term.Green, "✓"), term.Plain(target), term.Count(moved.Events, "event"),
				term.Count(moved.Contents, "content"),
				moved.Workspace)
			writeMoved(p, moved)
		})
	}
	return c
}

// ImportWorkspace is the command that takes a workspace from a file.
func ImportWorkspace(i *cmdline.Invocation) *cobra.Command {
	var public, key string
	c := &cobra.Command{
		Use: "import FILE", Short: "Import a workspace from a file", Args: cobra.ExactArgs(1),
		Long: "Import records the events exactly as they were, so that every proof that was made elsewhere holds here, and goes on from there. " +
			"Everything is held\n" +
			"against its hashes and the checkpoint in the file before any of it is seen; after an error, or a crash, nothing is there and it may " +
			"be repeated.\n" +
			"The workspace must not exist there. Spaces do not come along: those that lived end as moved. If a daemon runs on the data " +
			"directory, or --url names\n" +
			"one, the command sends the file to it, and other writes wait until it is imported. Otherwise the command itself writes the data " +
			"directory.",
		Example: "  agentbox import ws.tar.gz --data ~/second\n  agentbox import ws.tar.gz --public-key agentbox.pub",
	}
	c.Flags().StringVar(&key, "idempotency-key", "", "the same key and file are imported once, however often they are sent to a daemon")
	c.Flags().StringVar(&public, "public-key", "",
		"the key that must have signed the checkpoint in the file, or a file that holds it (default: the one in the file)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		public, err := auditcmd.KeyText(public)
		if err != nil {
			return err
		}
		moved, dir, err := takeWorkspace(cmd.Context(), i, args[0], public, key)
		if err != nil {
			return err
		}
		return i.Show(moved, func(p *term.Printer) {
			p.Line("%s %s: %s and %s of %s", p.Paint(term.Green, "✓"), term.Plain(dir), term.Count(moved.Events, "event"), term.Count(moved.Contents,
				"content"),
				moved.Workspace)
			writeMoved(p, moved)
			if moved.Ended > 0 {
				p.Line("%d spaces ended: their files stayed where they were", moved.Ended)
			}
		})
	}
	return c
}

// takeWorkspace imports a file, through the daemon where one runs, and says where to.
func takeWorkspace(ctx context.Context, i *cmdline.Invocation, name, public, key string) (cmdline.Moved, string, error) {
	api, err := i.Connect(ctx)
	if fault.CodeOf(err) == "daemon_not_running" {
		at, err := i.Place()
		if err != nil {
			return cmdline.Moved{}, at.DataDir, err
		}
		moved, err := i.ImportWorkspace(ctx, cmdline.Daemon{Place: at}, name, public)
		return moved, at.DataDir, err
	}
	if err != nil {
		return cmdline.Moved{}, "", err
	}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return cmdline.Moved{}, "", fault.New(fault.NotFound, "file_not_found", "there is no file %s", term.OneLine(name, 80))
	}
	if err != nil {
		return cmdline.Moved{}, "", cmdline.Unreadable(err, name)
	}
	defer file.Close()
	size := int64(-1)
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	done, err := api.ImportWorkspace(ctx, file, size, public, key)
	return cmdline.Moved{
		Workspace: done.Workspace, Events: done.Events, Contents: done.Contents, Missing: done.Missing, Root: done.Root, Size: done.Signed,
		PublicKey: done.PublicKey, Ended: done.Spaces,
	}, "the running daemon", err
}

// writeMoved shows the signed checkpoint of a workspace, and the missing parts.
func writeMoved(p *term.Printer, m cmdline.Moved) {
	if m.Size > 0 {
		p.Line("%s", term.Wrapped("the first "+strconv.FormatUint(m.Size,
			10)+" events are those of the checkpoint that "+term.Plain(m.PublicKey)+" signed",
			p.Width, 2))
	} else {
		p.Line("no checkpoint was signed for it")
	}
	if m.Missing > 0 {
		p.Line("%s %d contents that events name are not there any more", p.Paint(term.Yellow, "!"), m.Missing)
	}
}
