package space_test

import (
	"reflect"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// The bounds of a space that asks for none, each under its name, and how many files follow from its bytes.
func TestTheBoundsOfASpace(t *testing.T) {
	if got, want := space.DefaultLimits().Bounds(), []space.Bound{
		{"memory_bytes", 512 << 20}, {"cpu_millis", 1000}, {"pids", 128}, {"disk_bytes", 1 << 30}, {"file_bytes", 256 << 20},
		{"output_bytes", 10 << 20}, {"open_files", 1024}, {"tmp_bytes", 64 << 20},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for bytes, want := range map[int64]int64{0: 16384, 16384 * 4096: 16384, 16385 * 4096: 16385, 1 << 30: 262144} {
		if got := space.MaxFiles(bytes); got != want {
			t.Errorf("%d bytes: got %d files, want %d", bytes, got, want)
		}
	}
	for mode, want := range map[string]string{"": "", "0644": "", "0755": "", "644": "invalid_mode", "4755": "invalid_mode"} {
		if err := space.CheckFileMode(mode); fault.CodeOf(err) != want {
			t.Errorf("the mode %q: %v", mode, err)
		}
	}
	for text, want := range map[string]bool{"spc_": true, "SPC_x": true, "spc": false, "": false, "xspc_": false, "sp": false} {
		if got := space.IsID(text); got != want {
			t.Errorf("%q is an id: %t", text, got)
		}
	}
}

// The size of base64 is known before it is decoded.
func TestTheSizeOfContentIsKnownBefore(t *testing.T) {
	for content, size := range map[string]int64{"AAAA": 3, "AAA=": 2, "AA==": 1, "AAAAAAA=": 5} {
		if got, err := space.DecodeContent(content, space.Base64, size); err != nil || int64(len(got)) != size {
			t.Errorf("%s: got %d bytes, %v, want %d", content, len(got), err, size)
		}
		if _, err := space.DecodeContent(content, space.Base64, size-1); fault.CodeOf(err) != space.ErrFileTooLarge.Code {
			t.Errorf("%s of at most %d bytes: %v", content, size-1, err)
		}
	}
	for _, content := range []string{"AAAAA", "A", "AAA"} {
		if _, err := space.DecodeContent(content, space.Base64, 0); fault.CodeOf(err) != "invalid_base64" {
			t.Errorf("%s, of which nothing is taken: %v", content, err)
		}
	}
}

// A path is cleaned, and shown so that it is one text.
func TestAPathThatNamesAFile(t *testing.T) {
	for path, want := range map[string]string{"a//b": "a/b", "./a": "a", "a": "a"} {
		if got, err := space.CleanFilePath(path); err != nil || got != want {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
	for _, path := range []string{".", "./.", "a/../b"} {
		if got, err := space.CleanFilePath(path); fault.CodeOf(err) != "invalid_path" || got != "" {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
	for _, n := range []int{space.MaxShownPathRune, space.MaxShownPathRune + 1} {
		_, err := space.CleanPath(strings.Repeat("ä", n-3) + "/..")
		if err == nil || strings.Contains(err.Error(), "...") != (n > space.MaxShownPathRune) ||
			!strings.Contains(err.Error(), `the path "\u00e4\u00e4`) {
			t.Errorf("a path of %d characters is shown as %v", n, err)
		}
	}
	for n, want := range map[int]bool{space.MaxDisplayType: true, space.MaxDisplayType + 1: false} {
		if got := (space.Display{Type: strings.Repeat("x", n), Media: space.DisplayText, Value: 1}).Fits(nil); got != want {
			t.Errorf("the name of a type of %d bytes fits: %t", n, got)
		}
	}
	r := space.Route{Needs: []space.Need{{}, {}}}
	r.Needs[0].Kind, r.Needs[0].Name, r.Needs[1].Name = "command", "git", "gcc"
	if got := r.Lacks(); len(got) != 2 || got[0] != r.Needs[0].Lack() || got[1] != r.Needs[1].Lack() || got[0].Name == got[1].Name {
		t.Errorf("got %+v", got)
	}
}

// The size of a file that edits leave is bounded by what is permitted, or by what it was.
func TestTheSizeThatEditsLeave(t *testing.T) {
	for _, c := range []struct {
		text, old, new string
		max            int64
		want           bool
	}{
		{"abc", "b", "bb", 4, true}, {"abc", "b", "bb", 3, false}, {"abcd", "b", "x", 2, true}, {"abcd", "b", "", 2, true},
		{"abcd", "d", "ef", 4, false}, {"abcd", "a", "ef", 5, true},
	} {
		if got, err := space.ApplyEdits("f", c.text, []space.Edit{{Old: c.old, New: c.new}}, c.max); (err == nil) != c.want || err == nil &&
			got != strings.Replace(c.text, c.old, c.new, 1) {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
	if got, err := space.EditsDigest([]space.Edit{{Old: "a", New: "b"}}); err != nil ||
		got != event.DigestOf([]byte(`[{"newContent":"b","oldContent":"a"}]`)) {
		t.Errorf("got %s, %v", got, err)
	}
}
