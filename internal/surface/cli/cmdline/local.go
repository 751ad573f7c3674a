package cmdline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/host"
	"agentbox/internal/surface/cli/term"
)

// Located is the content of the file that a daemon writes into its data directory while it serves.
type Located struct {
	Addr  string `json:"addr"` // host:port
	PID   int    `json:"pid"`
	Phase string `json:"phase"` // its present step before it can work; "" once it can
}

// URL returns the address of the API.
func (l Located) URL() string { return "http://" + l.Addr }

const advice = "start one with: agentbox up"

// codeNotRunning is the error code of a data directory on which no daemon runs.
const codeNotRunning = "daemon_not_running"

// locate finds the daemon of a data directory and makes sure that it lives.
func locate(dir string) (Located, error) {
	text, err := ReadOrdinary(filepath.Join(dir, "daemon.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Located{}, fault.New(fault.Unavailable, codeNotRunning, "no daemon runs on %s", dir).With(advice)
	}
	if errors.Is(err, fs.ErrPermission) {
		return Located{}, fault.Wrap(err, fault.Denied, "data_forbidden", "the data directory %s is not yours to read", dir).
			With("run this as the user who runs the daemon, or set AGENTBOX_URL and AGENTBOX_KEY")
	}
	if err != nil {
		return Located{}, fault.Wrap(err, fault.Unavailable, codeNotRunning, "the daemon's address cannot be read from %s",
			dir).With(advice)
	}
	var l Located
	if err := json.Unmarshal(text, &l); err != nil || l.Addr == "" || l.PID <= 0 {
		return Located{}, fault.New(fault.Unavailable, codeNotRunning, "daemon.json in %s does not say where a daemon serves",
			dir).With(advice)
	}
	if !host.Lives(l.PID) {
		return Located{}, fault.New(fault.Unavailable, codeNotRunning, "the daemon of %s (process %d) has ended without saying so", dir,
			l.PID).With(advice)
	}
	return l, nil
}

// look is how long it waits before it looks again at a daemon that is starting.
const look = 50 * time.Millisecond

// Serving finds the daemon of a data directory and waits for it while it starts: as long as it lives, for only the daemon knows how much
// there is to do. It reports its state once, and again when the state changes.
func (i *Invocation) Serving(ctx context.Context, dir string) (Located, error) {
	said := ""
	for {
		l, err := locate(dir)
		if f, ok := AsFault(err); ok && f.Suggestion == advice && i.Data != "" {
			err = f.With(advice + " --data " + Word(i.Data))
		}
		if err != nil || l.Phase == "" {
			return l, err
		}
		if l.Phase != said && !i.JSON {
			said = l.Phase
			fmt.Fprintf(i.Err, "agentbox: the daemon (process %d) is starting: it %s\n", l.PID, term.OneLine(l.Phase, 100))
		}
		again, stop := i.Clock.NewTimer(look)
		select {
		case <-again:
		case <-ctx.Done():
			stop()
			return l, fault.Wrap(ctx.Err(), fault.Unavailable, "interrupted", "the daemon was still starting: it %s", term.OneLine(l.Phase, 100))
		}
	}
}

// Word is a text as one word of a shell.
func Word(s string) string {
	if s = term.Plain(s); strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:@%+=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// OwnerKey reads the key that the daemon made for its owner, and refuses one that others can read.
func OwnerKey(dir string) (string, error) {
	path := filepath.Join(dir, "owner.key")
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errNotOrdinary
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Denied, "key_missing", "the owner's key cannot be read from %s", dir).
			With("run this as the user who runs the daemon, or set AGENTBOX_KEY")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fault.New(fault.Denied, "key_exposed", "%s can be read by other users (mode %04o)", path,
			info.Mode().Perm()).With("mend it with: chmod 600 " + path)
	}
	text, err := ReadOrdinary(path)
	if err == nil && strings.TrimSpace(string(text)) == "" {
		return "", fault.New(fault.Denied, "key_missing", "%s is empty",
			path).With("restart the daemon, which makes a new key, or set AGENTBOX_KEY")
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Denied, "key_missing", "the owner's key cannot be read from %s", dir)
	}
	return strings.TrimSpace(string(text)), nil
}

var errNotOrdinary = errors.New("it is not an ordinary file")

// ReadOrdinary reads a small file. It waits for nothing, which opening a pipe would, and follows no link.
func ReadOrdinary(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|host.NoFollow|host.Prompt, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errNotOrdinary)
	}
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// Absolute returns a path from the root of the file system.
func Absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "usage", "%s is not a path", term.OneLine(path, 80))
	}
	return abs, nil
}
