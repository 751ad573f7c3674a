package app_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/fault"
)

// TestADirectoryThatIsBrokenIsRefused is about starts that cannot be: each ends with an error, destroys nothing, and leaves the directory
// to the next try.
func TestADirectoryThatIsBrokenIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(log string) error
		code string // "" for an error without one
	}{
		{"a log that is not a database", func(log string) error {
			return os.WriteFile(log, []byte("this is not a database, and it is long enough to be read as one"), 0o600)
		}, ""},
		{"no log beside spaces", func(string) error { return nil }, "log_missing"},
		{"an empty log beside spaces", func(log string) error { return os.WriteFile(log, nil, 0o600) }, "log_missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "spaces", "spc_01ARZ3NDEKTSV4RRFFQ69G5FAV", "files", "report.md")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.make(filepath.Join(dir, "log.db")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				a, err := app.Open(t.Context(), app.Default(dir), app.Clock{}, slog.New(slog.DiscardHandler))
				if err == nil || a != nil {
					t.Fatalf("got %v, %v, want an error", a, err)
				}
				if c.code != "" && fault.CodeOf(err) != c.code {
					t.Errorf("got %v, want the code %s", err, c.code)
				}
			}
			if kept, err := os.ReadFile(file); err != nil || string(kept) != "kept" {
				t.Errorf("the file of a space: got %q, %v", kept, err)
			}
		})
	}
}
