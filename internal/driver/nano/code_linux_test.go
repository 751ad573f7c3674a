package nano

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCodeThatCannotBeSharedStaysWhereItIs: a worker does not end for a file of which it could only save memory.
func TestCodeThatCannotBeSharedStaysWhereItIs(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	page := os.Getpagesize()
	for what, path := range map[string]string{
		"none": filepath.Join(dir, "none"), "below a file": filepath.Join(write("file", nil), "x"), "a folder": dir, "empty": write("empty", nil),
		"a part of a page": write("part", make([]byte, page-1)), "code of nobody's": write("other", bytes.Repeat([]byte{0xf4}, page)),
	} {
		if err := shareCode(path); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
