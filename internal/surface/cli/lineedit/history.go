package lineedit

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/host"
	"agentbox/internal/surface/cli/cmdline"
)

// Bounds of the history.
const (
	maxHistory     = 1000    // lines
	maxHistoryLine = 4096    // bytes of a line that is kept
	maxHistoryFile = 8 << 20 // bytes of the file that are read
)

// History holds the lines that were typed in sessions, the newest last. It implements the History of an xterm terminal.
type History struct {
	file  string // "" keeps it for as long as the session lasts
	lines []string
	Mute  bool // the person types an answer now, not a line
	wrong error
}

// File is where a history of the user lies: agentbox in XDG_STATE_HOME, else in ~/.local/state; "" where there is no such place.
func File(i *cmdline.Invocation, name string) string {
	if state := i.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "agentbox", name)
	}
	if home := i.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "agentbox", name)
	}
	return ""
}

// OpenHistory reads the history, and cuts a file that has grown to twice what is kept.
func OpenHistory(file string) (*History, error) {
	h := &History{file: file}
	if file == "" {
		return h, nil
	}
	f, err := os.OpenFile(file, os.O_RDONLY|host.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		h.file = ""
		return h, fault.Wrap(err, fault.Unavailable, "history_unreadable", "the history in %s cannot be read, and is not kept", file)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		h.file = ""
		return h, fault.New(fault.Invalid, "history_unreadable", "%s is not a file; the history is not kept", file)
	}
	read := 0
	for lines := bufio.NewScanner(io.LimitReader(f, maxHistoryFile)); lines.Scan(); read++ {
		h.remember(lines.Text())
	}
	if read > 2*maxHistory {
		return h, h.rewrite()
	}
	return h, nil
}

// Add takes a line that was typed.
func (h *History) Add(line string) {
	if h.Mute || !h.remember(line) || h.file == "" {
		return
	}
	if err := h.append(line); err != nil { // printed once, at the end of the session
		h.wrong, h.file = fault.Wrap(err, fault.Unavailable, "history_not_kept", "the history could not be kept in %s", h.file), ""
	}
}

// remember keeps a line in memory, and reports whether it did. It does not keep a line that begins with a space.
func (h *History) remember(line string) bool {
	if strings.TrimSpace(line) == "" || line[0] == ' ' || len(line) > maxHistoryLine || strings.ContainsAny(line, "\n\r\x00") {
		return false
	}
	if n := len(h.lines); n > 0 && h.lines[n-1] == line {
		return false
	}
	h.lines = append(h.lines, line)
	h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
	return true
}

func (h *History) append(line string) error {
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY|host.NoFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Chmod(0o600), f.Close()) // it may be an older one that others could read
}

func (h *History) rewrite() error {
	f, err := os.CreateTemp(filepath.Dir(h.file), ".history-*") // which is made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(h.lines, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), h.file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Len is how many lines there are.
func (h *History) Len() int {
	if h.Mute {
		return 0
	}
	return len(h.lines)
}

// At returns a line; 0 is the newest.
func (h *History) At(n int) string { return h.lines[len(h.lines)-1-n] }
