package lineedit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheHistoryIsKeptForItsUserAlone types lines in two sessions.
func TestTheHistoryIsKeptForItsUserAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "agentbox", "shell_history")
	h, err := OpenHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"one", " secret", "", "two", "two", strings.Repeat("x", maxHistoryLine+1)} {
		h.Add(line)
	}
	h.Mute = true
	h.Add("yes")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || h.wrong != nil {
		t.Fatalf("got %v (%v, %v), want a file for its user alone", info, err, h.wrong)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := OpenHistory(file)
	if err != nil || !slices.Equal(again.lines, []string{"one", "two"}) || again.Len() != 2 || again.At(0) != "two" {
		t.Errorf("got %q (%v), want one and two", again.lines, err)
	}
	for n := range 2*maxHistory + 1 {
		again.Add(strings.Repeat("y", 1+n%7))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v (%v), want what others could read closed to them", info, err)
	}
	cut, err := OpenHistory(file)
	if err != nil || len(cut.lines) != maxHistory {
		t.Errorf("got %d lines (%v), want %d", len(cut.lines), err, maxHistory)
	}
	if raw, _ := os.ReadFile(file); bytes.Count(raw, []byte("\n")) != maxHistory {
		t.Errorf("the file has %d lines, want it cut to %d", bytes.Count(raw, []byte("\n")), maxHistory)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if h, err := OpenHistory(link); err == nil || h.file != "" {
		t.Error("a link is followed")
	}
	if h, err := OpenHistory(t.TempDir()); err == nil || h.file != "" {
		t.Error("a folder is a history")
	}
}
