package cmdline

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/host"
)

// Saved is a session that login left for the other commands.
type Saved struct {
	URL string `json:"url"` // of the daemon that it is of
	client.Tokens
}

// early is how long before the end of an access token it is exchanged.
const early = time.Minute

// SessionFile is where the session of the user lies: in AGENTBOX_CONFIG, else agentbox in XDG_CONFIG_HOME, else ~/.config/agentbox; ""
// where there is no such place.
func (i *Invocation) SessionFile() string {
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
func (i *Invocation) session(address string) (s Saved, found bool, err error) {
	path := i.SessionFile()
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
	text, err := ReadOrdinary(path)
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

// Save keeps a session for the user alone, in one step.
func (i *Invocation) Save(s Saved) error {
	path := i.SessionFile()
	if path == "" {
		return Usage("there is no place for the session: set HOME or AGENTBOX_CONFIG")
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
func (i *Invocation) bearer(ctx context.Context, address string) (string, error) {
	s, found, err := i.session(address)
	if err != nil || !found || i.Clock.Now().Add(early).Before(s.AccessUntil) {
		return s.only(found), err
	}
	lock, err := os.OpenFile(i.SessionFile()+".lock", os.O_CREATE|os.O_RDWR|host.NoFollow, 0o600)
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
	return s.Access, i.Save(s)
}

func (s Saved) only(found bool) string {
	if !found {
		return ""
	}
	return s.Access
}

// Address returns where the daemon serves, for what needs no key.
func (i *Invocation) Address(ctx context.Context) (string, error) {
	if address := First(i.URL, i.Getenv("AGENTBOX_URL")); address != "" {
		return address, nil
	}
	dir, err := i.DataDir()
	if err != nil {
		return "", err
	}
	found, err := i.Serving(ctx, dir)
	return found.URL(), err
}
