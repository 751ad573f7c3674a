package peoplecmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/host"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// asked reads a passphrase: a line of the input, which a terminal does not show.
func asked(i *cmdline.Invocation, what string) (string, error) {
	if f, ok := i.In.(*os.File); ok && i.Asks {
		i.Printer(i.Err).Line("%s:", what)
		restore, err := host.Unseen(f)
		if err != nil {
			return "", fault.Wrap(err, fault.Unavailable, "terminal_unusable", "the terminal would show the passphrase").With(
				"send it on the standard input")
		}
		defer restore()
	}
	if i.Lines == nil {
		i.Lines = bufio.NewReader(i.In)
	}
	line, err := i.Lines.ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.Join(cmdline.Usage("%s is missing: it is a line of the standard input", strings.ToLower(what)), ignoreEOF(err))
	}
	return line, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Bootstrap gives the owner a passphrase.
func Bootstrap(i *cmdline.Invocation) *cobra.Command {
	var ws, name string
	c := &cobra.Command{
		Use: "bootstrap", Short: "Set the first passphrase of the owner", Args: cobra.NoArgs,
		Long: "Bootstrap is for the person who runs the daemon: it takes the token in bootstrap.key in the data directory. The passphrase is " +
			"a line\nof the standard input, which a terminal does not show. The owner logs in with it from anywhere: agentbox login.",
	}
	c.Flags().StringVar(&ws, "workspace", string(id.DefaultWorkspace), "the workspace")
	c.Flags().StringVar(&name, "name", "owner", "name of the owner, if the workspace has none yet")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := i.DataDir()
		if err != nil {
			return err
		}
		token, err := cmdline.ReadOrdinary(filepath.Join(dir, "bootstrap.key"))
		if err != nil {
			return fault.Wrap(err, fault.Denied, "key_missing", "the bootstrap token cannot be read from %s",
				dir).With("run this as the user who runs the daemon")
		}
		found, err := i.Serving(cmd.Context(), dir) // the token is sent to that daemon and to no other
		if err != nil {
			return err
		}
		passphrase, err := asked(i, "Passphrase")
		if err != nil {
			return err
		}
		owner, err := client.New(found.URL(), "").Bootstrap(cmd.Context(), strings.TrimSpace(string(token)), id.Workspace(ws), name, passphrase)
		if err != nil {
			return err
		}
		return i.Show(map[string]string{"principal_id": string(owner), "workspace_id": ws}, func(p *term.Printer) {
			p.Line("%s", owner)
			i.Printer(i.Err).Line("the owner logs in with: agentbox login")
		})
	}
	return c
}

// Login opens a session and keeps it for the other commands.
func Login(i *cmdline.Invocation) *cobra.Command {
	var ws, as string
	c := &cobra.Command{
		Use: "login", Short: "Log in with a passphrase; the commands that follow use the session", Args: cobra.NoArgs,
		Long: "Login keeps the session in session.json in your configuration directory, which only you can read; the other commands use it " +
			"until agentbox\n" +
			"logout, unless a key is named. The passphrase is a line of the standard input, which a terminal does not show. The owner gets one " +
			"with agentbox\n" +
			"bootstrap, everybody else sets their own with agentbox passphrase.",
		Example: "  agentbox login --as usr_01M7YNAYM0SM228XA4K3G6VDD4",
	}
	c.Flags().StringVar(&ws, "workspace", string(id.DefaultWorkspace), "the workspace")
	c.Flags().StringVar(&as, "as", "", "your id (default: the owner's)")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		address, err := i.Address(cmd.Context())
		if err != nil {
			return err
		}
		passphrase, err := asked(i, "Passphrase")
		if err != nil {
			return err
		}
		tokens, err := client.New(address, "").Login(cmd.Context(), id.Workspace(ws), id.Principal(as), passphrase)
		if err != nil {
			return err
		}
		if err := i.Save(cmdline.Saved{URL: address, Tokens: tokens}); err != nil {
			return errors.Join(err, client.New(address, tokens.Access).Logout(context.WithoutCancel(cmd.Context())))
		}
		return i.Show(map[string]any{"principal_id": tokens.Principal, "workspace_id": tokens.Workspace, "session_id": tokens.Session,
			"expires_at": tokens.RefreshUntil}, func(p *term.Printer) {
			p.Line("%s", tokens.Principal)
			i.Printer(i.Err).Line("you are logged in to %s at %s, until: agentbox logout", tokens.Workspace, address)
		})
	}
	return c
}

var errNotLoggedIn = fault.New(fault.NotFound, "not_logged_in", "you are not logged in")

// Logout ends the saved session.
func Logout(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Log out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := i.SessionFile()
			if path == "" {
				return errNotLoggedIn
			}
			text, err := cmdline.ReadOrdinary(path)
			if errors.Is(err, fs.ErrNotExist) {
				return errNotLoggedIn
			}
			var s cmdline.Saved
			var ended error
			if err == nil && json.Unmarshal(text, &s) == nil && s.URL != "" {
				ended = client.New(s.URL, s.Access).Logout(cmd.Context())
			}
			if err := os.Remove(path); err != nil {
				return fault.Wrap(err, fault.Unavailable, "session_not_removed", "%s cannot be removed", path)
			}
			return i.Show(map[string]bool{"ok": true, "ended": ended == nil}, func(p *term.Printer) {
				p.Line("You are logged out.")
				if ended != nil {
					i.Printer(i.Err).Line("the daemon did not end the session: %s. It ends by itself at %s", ended, s.RefreshUntil.Format(time.RFC3339))
				}
			})
		},
	}
}

// Passphrase sets the caller's own passphrase.
func Passphrase(i *cmdline.Invocation) *cobra.Command {
	var change bool
	c := &cobra.Command{
		Use: "passphrase", Short: "Set your own passphrase", Args: cobra.NoArgs,
		Long: "Passphrase reads the new passphrase as a line of the standard input, which a terminal does not show; with --change the one that " +
			"holds so far\n" +
			"comes first. It prints the id by which you log in.",
		Example: "  AGENTBOX_KEY=abk_... agentbox passphrase\n  agentbox passphrase --change",
	}
	c.Flags().BoolVar(&change, "change", false, "you have a passphrase, and show it first")
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		current := ""
		if change {
			if current, err = asked(i, "Current passphrase"); err != nil {
				return err
			}
		}
		next, err := asked(i, "New passphrase")
		if err != nil {
			return err
		}
		who, err := api.SetPassphrase(cmd.Context(), current, next)
		if err != nil {
			return err
		}
		return i.Show(map[string]string{"principal_id": string(who)}, func(p *term.Printer) { p.Line("%s", who) })
	}
	return c
}
