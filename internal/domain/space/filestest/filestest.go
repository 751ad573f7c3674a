// Package filestest is the conformance suite of stores of spaces' files.
//
// Every store that passes it can replace any other.
package filestest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// The spaces of the suite.
const (
	One id.Space = "spc_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	Two id.Space = "spc_01ARZ3NDEKTSV4RRFFQ69G5FAW"
)

// Limits are those of the suite's spaces.
var Limits = space.Limits{DiskBytes: 8 << 20, FileBytes: 2 << 20}

// Subject is a store under test.
type Subject struct {
	Store space.Store
	UID   int                               // host uid of the spaces; 0 for the test's own
	Issue func(policy.Action) policy.Permit // makes a permit, as only the gate does otherwise
}

// Run tests the store that open makes.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, group := range []struct {
		name  string
		tests map[string]func(*testing.T, *House)
	}{
		{"write", writing}, {"read", reading}, {"edit", editing}, {"delete", deleting}, {"list", listing}, {"archive", archiving},
		{"permit", permitting}, {"store", storing}, {"snapshot", travelling},
	} {
		t.Run(group.name, func(t *testing.T) {
			for name, test := range group.tests {
				t.Run(name, func(t *testing.T) { test(t, NewHouse(t, open(t))) })
			}
		})
	}
}

// House is a space with its files.
type House struct {
	Subject
	Files space.Files
	Past  space.History
	Dir   string // of the files, on the host
}

// NewHouse makes space One of a subject.
func NewHouse(t testing.TB, s Subject) *House {
	t.Helper()
	if _, err := s.Store.Create(t.Context(), s.Issue(policy.Action{Type: policy.SpaceCreate, Space: One}), s.UID, Limits,
		space.Seed{}); err != nil {
		t.Fatal(err)
	}
	files, dir, err := s.Store.Open(One, s.UID, Limits)
	if err != nil {
		t.Fatal(err)
	}
	past, err := s.Store.History(One, s.UID, Limits)
	if err != nil {
		t.Fatal(err)
	}
	return &House{s, files, past, dir}
}

// Action is an action on a path of space One.
func Action(kind, path string) policy.Action {
	return policy.Action{Type: kind, Workspace: id.DefaultWorkspace, Space: One, Path: path}
}

// Write writes text to a path.
func (h *House) Write(t testing.TB, path, text string, overwrite bool) (space.Entry, error) {
	a := Action(policy.FileCreate, path)
	a.Content, a.Size, a.Overwrite = event.DigestOf([]byte(text)), int64(len(text)), overwrite
	return h.Files.Write(t.Context(), h.Issue(a), strings.NewReader(text))
}

// Read reads the whole file at a path.
func (h *House) Read(t testing.TB, path string) (string, error) {
	f, err := h.Files.Read(t.Context(), h.Issue(Action(policy.FileRead, path)))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), errors.Join(err, f.Close())
}

// Edit edits the file at a path.
func (h *House) Edit(t testing.TB, path string, edits ...space.Edit) (space.Entry, error) {
	digest, err := space.EditsDigest(edits)
	if err != nil {
		t.Fatal(err)
	}
	a := Action(policy.FileEdit, path)
	a.Content = digest
	return h.Files.Edit(t.Context(), h.Issue(a), edits)
}

// Delete deletes the file at a path.
func (h *House) Delete(t testing.TB, path string) error {
	return h.Files.Delete(t.Context(), h.Issue(Action(policy.FileDelete, path)))
}

// List lists a folder and returns the paths.
func (h *House) List(t testing.TB, path string, recursive bool, limit int) ([]string, error) {
	entries, err := h.Files.List(t.Context(), h.Issue(Action(policy.FileList, path)), recursive, limit)
	paths := []string{}
	for _, e := range entries {
		paths = append(paths, e.Path)
	}
	return paths, err
}

// Host makes a file in the space's folder as code inside would.
func (h *House) Host(t testing.TB, path, text string) {
	t.Helper()
	full := filepath.Join(h.Dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Link makes a symbolic link in the space's folder as code inside would.
func (h *House) Link(t testing.TB, path, target string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(h.Dir, path)); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, what string, err error, code string) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, code)
	}
}

func wantText(t testing.TB, h *House, path, want string) {
	t.Helper()
	if got, err := h.Read(t, path); err != nil || got != want {
		t.Errorf("%s holds %.80q, %v, want %.80q", path, got, err, want)
	}
}

func wantPaths(t testing.TB, got []string, err error, want ...string) {
	t.Helper()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("listed %q, %v, want %q", got, err, want)
	}
}
