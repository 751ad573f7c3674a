package cli

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
)

// saved is a session that login left for the other commands.
type saved struct {
	URL string `json:"url"` // of the daemon that it is of
	client.Tokens
}

// early is how long before the end of an access token it is exchanged.
const early = time.Minute

// sessionFile is where the session of the user lies: in AGENTBOX_CONFIG, else agentbox in XDG_CONFIG_HOME, else ~/.config/agentbox; ""
// where there is no such place.
func (i *invocation) sessionFile() string {
	dir := i.Getenv("AGENTBOX_CONFIG")
	if config := i.Getenv("XDG_CONFIG_HOME"); dir == "" && filepath.IsAbs(config) {
		dir = filepath.Join(config, "agentbox")
	}
	if home := i.Getenv("HOME"); dir == "" && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".config", "agentbox")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "session.json")
}

// session reads the saved session for a daemon; false where there is none. A file that others can read is refused.
func (i *invocation) session(address string) (s saved, found bool, err error) {
	path := i.sessionFile()
	if path == "" {
		return s, false, nil
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return s, false, fault.New(fault.Denied, "session_exposed", "%s can be read by other users (mode %04o)", path,
			info.Mode().Perm()).With("log in again, after: agentbox logout")
	}
	text, err := readOrdinary(path)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, false, fault.Wrap(err, fault.Invalid, "session_unreadable", "the session in %s cannot be read",
			path).With("remove it with: agentbox logout")
	}
	return s, sameDaemon(s.URL, address), nil
}

func sameDaemon(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// save keeps a session for the user alone, in one step.
func (i *invocation) save(s saved) error {
	path := i.sessionFile()
	if path == "" {
		return usage("there is no place for the session: set HOME or AGENTBOX_CONFIG")
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.Wrap(err, fault.Unavailable, "session_not_kept", "the session cannot be kept in %s", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".session-*") // which is made with mode 0600
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "session_not_kept", "the session cannot be kept in %s", path)
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fault.Wrap(err, fault.Unavailable, "session_not_kept", "the session cannot be kept in %s", path), os.Remove(f.Name()))
	}
	return nil
}

// bearer returns the access token of the saved session for a daemon, after it has exchanged one whose time is nearly over; "" where there
// is none. Of several commands at once one exchanges it, for a refresh token that is used twice ends the session.
func (i *invocation) bearer(ctx context.Context, address string) (string, error) {
	s, found, err := i.session(address)
	if err != nil || !found || i.Clock.Now().Add(early).Before(s.AccessUntil) {
		return s.only(found), err
	}
	lock, err := os.OpenFile(i.sessionFile()+".lock", os.O_CREATE|os.O_RDWR|host.NoFollow, 0o600)
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "session_not_kept", "the session cannot be refreshed")
	}
	defer lock.Close()
	if err := host.Lock(lock, host.Exclusive); err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "session_not_kept", "the session cannot be refreshed")
	}
	if s, found, err = i.session(address); err != nil || !found || i.Clock.Now().Add(early).Before(s.AccessUntil) {
		return s.only(found), err // another command was first
	}
	if s.Tokens, err = client.New(address, "").Refresh(ctx, s.Refresh); err != nil {
		if fault.KindOf(err) == fault.Denied {
			err = fault.Wrap(err, fault.Denied, "session_ended", "your session has ended").With("log in again with: agentbox login")
		}
		return "", err
	}
	return s.Access, i.save(s)
}

func (s saved) only(found bool) string {
	if !found {
		return ""
	}
	return s.Access
}

// asked reads a passphrase: a line of the input, which a terminal does not show.
func (i *invocation) asked(what string) (string, error) {
	if f, ok := i.In.(*os.File); ok && i.Asks {
		i.printer(i.Err).line("%s:", what)
		restore, err := host.Unseen(f)
		if err != nil {
			return "", fault.Wrap(err, fault.Unavailable, "terminal_unusable", "the terminal would show the passphrase").With(
				"send it on the standard input")
		}
		defer restore()
	}
	if i.lines == nil {
		i.lines = bufio.NewReader(i.In)
	}
	line, err := i.lines.ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.Join(usage("%s is missing: it is a line of the standard input", strings.ToLower(what)), ignoreEOF(err))
	}
	return line, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// address returns where the daemon serves, for what needs no key.
func (i *invocation) address(ctx context.Context) (string, error) {
	if address := first(i.url, i.Getenv("AGENTBOX_URL")); address != "" {
		return address, nil
	}
	dir, err := i.dataDir()
	if err != nil {
		return "", err
	}
	found, err := i.serving(ctx, dir)
	return found.URL(), err
}

// bootstrap gives the owner a passphrase.
func bootstrap(i *invocation) *cobra.Command {
	var ws, name string
	c := &cobra.Command{
		Use: "bootstrap", Short: "Set the first passphrase of the owner", Args: cobra.NoArgs,
		Long: "Bootstrap is for who runs the daemon: it takes the token in bootstrap.key in the data directory. The passphrase is a line of " +
			"the standard\n" +
			"input, which a terminal does not show. The owner logs in with it from anywhere: agentbox login.",
	}
	c.Flags().StringVar(&ws, "workspace", string(id.DefaultWorkspace), "the workspace")
	c.Flags().StringVar(&name, "name", "owner", "how an owner is called who is made because there is none")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := i.dataDir()
		if err != nil {
			return err
		}
		token, err := readOrdinary(filepath.Join(dir, "bootstrap.key"))
		if err != nil {
			return fault.Wrap(err, fault.Denied, "key_missing", "the bootstrap token cannot be read from %s",
				dir).With("run this as the user who runs the daemon")
		}
		found, err := i.serving(cmd.Context(), dir) // the token is sent to that daemon and to no other
		if err != nil {
			return err
		}
		passphrase, err := i.asked("Passphrase")
		if err != nil {
			return err
		}
		owner, err := client.New(found.URL(), "").Bootstrap(cmd.Context(), strings.TrimSpace(string(token)), id.Workspace(ws), name, passphrase)
		if err != nil {
			return err
		}
		return i.show(map[string]string{"principal_id": string(owner), "workspace_id": ws}, func(p *printer) {
			p.line("%s", owner)
			i.printer(i.Err).line("the owner logs in with: agentbox login")
		})
	}
	return c
}

// login opens a session and keeps it for the other commands.
func login(i *invocation) *cobra.Command {
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
	c.Flags().StringVar(&as, "as", "", "who you are, an id (default: the owner)")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		address, err := i.address(cmd.Context())
		if err != nil {
			return err
		}
		passphrase, err := i.asked("Passphrase")
		if err != nil {
			return err
		}
		tokens, err := client.New(address, "").Login(cmd.Context(), id.Workspace(ws), id.Principal(as), passphrase)
		if err != nil {
			return err
		}
		if err := i.save(saved{address, tokens}); err != nil {
			return errors.Join(err, client.New(address, tokens.Access).Logout(context.WithoutCancel(cmd.Context())))
		}
		return i.show(map[string]any{"principal_id": tokens.Principal, "workspace_id": tokens.Workspace, "session_id": tokens.Session,
			"expires_at": tokens.RefreshUntil}, func(p *printer) {
			p.line("%s", tokens.Principal)
			i.printer(i.Err).line("you are logged in to %s at %s, until: agentbox logout", tokens.Workspace, address)
		})
	}
	return c
}

var errNotLoggedIn = fault.New(fault.NotFound, "not_logged_in", "you are not logged in")

// logout ends the saved session.
func logout(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Log out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := i.sessionFile()
			if path == "" {
				return errNotLoggedIn
			}
			text, err := readOrdinary(path)
			if errors.Is(err, fs.ErrNotExist) {
				return errNotLoggedIn
			}
			var s saved
			var ended error
			if err == nil && json.Unmarshal(text, &s) == nil && s.URL != "" {
				ended = client.New(s.URL, s.Access).Logout(cmd.Context())
			}
			if err := os.Remove(path); err != nil {
				return fault.Wrap(err, fault.Unavailable, "session_not_removed", "%s cannot be removed", path)
			}
			return i.show(map[string]bool{"ok": true, "ended": ended == nil}, func(p *printer) {
				p.line("You are logged out.")
				if ended != nil {
					i.printer(i.Err).line("the daemon did not end the session: %s. It ends by itself at %s", ended, s.RefreshUntil.Format(time.RFC3339))
				}
			})
		},
	}
}

// passphrase sets the caller's own passphrase.
func passphrase(i *invocation) *cobra.Command {
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
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		current := ""
		if change {
			if current, err = i.asked("Current passphrase"); err != nil {
				return err
			}
		}
		next, err := i.asked("New passphrase")
		if err != nil {
			return err
		}
		who, err := api.SetPassphrase(cmd.Context(), current, next)
		if err != nil {
			return err
		}
		return i.show(map[string]string{"principal_id": string(who)}, func(p *printer) { p.line("%s", who) })
	}
	return c
}
