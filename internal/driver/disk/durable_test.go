package disk_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
	"agentbox/internal/driver/disk"
)

// TestARemovedSpaceHasNothingToMakeDurable: a space that goes while snapshots are made durable is no error; one whose folder is lost is.
func TestARemovedSpaceHasNothingToMakeDurable(t *testing.T) {
	for name, c := range map[string]struct {
		remove func(s *disk.Spaces, dir string) error
		fails  bool
	}{
		"removed": {func(s *disk.Spaces, _ string) error { return s.Remove(t.Context(), origin) }, false},
		"lost": {func(_ *disk.Spaces, dir string) error {
			return os.Rename(filepath.Join(dir, string(origin)), filepath.Join(dir, "elsewhere"))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := disk.OpenSpaces(t.Context(), dir, keys(t), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			made := policy.Action{Type: policy.SpaceCreate, Space: origin}
			if _, err := s.Create(t.Context(), issue(t)(made), spaceUID(), filestest.Limits, space.Seed{}); err != nil {
				t.Fatal(err)
			}
			past, err := s.History(origin, spaceUID(), filestest.Limits)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := past.Keep(t.Context()); err != nil {
				t.Fatal(err)
			}
			err = s.SyncAround(t.Context(), func() {
				if err := c.remove(s, dir); err != nil {
					t.Error(err)
				}
			})
			if (err != nil) != c.fails {
				t.Errorf("got %v, want an error: %t", err, c.fails)
			}
		})
	}
}
