package filestest

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

var writing = map[string]func(*testing.T, *House){
	"makes the file and its folders": func(t *testing.T, h *House) {
		e, err := h.Write(t, "a/b/c.txt", "hello", false)
		if err != nil || e.Path != "a/b/c.txt" || e.Size != 5 || e.Type != "file" || e.Mode != "0644" {
			t.Errorf("wrote %+v, %v", e, err)
		}
		wantText(t, h, "a/b/c.txt", "hello")
	},
	"takes an empty file": func(t *testing.T, h *House) {
		if _, err := h.Write(t, "empty", "", false); err != nil {
			t.Error(err)
		}
		wantText(t, h, "empty", "")
	},
	"replaces only if asked": func(t *testing.T, h *House) {
		h.Host(t, "f", "old")
		_, err := h.Write(t, "f", "new", false)
		wantCode(t, "without overwrite", err, "file_exists")
		wantText(t, h, "f", "old")
		if _, err := h.Write(t, "f", "new", true); err != nil {
			t.Error(err)
		}
		wantText(t, h, "f", "new")
	},
	"keeps the executable bit": func(t *testing.T, h *House) {
		h.Host(t, "run.sh", "old")
		if err := os.Chmod(filepath.Join(h.Dir, "run.sh"), 0o700); err != nil {
			t.Fatal(err)
		}
		if e, err := h.Write(t, "run.sh", "new", true); err != nil || e.Mode != "0744" {
			t.Errorf("wrote %+v, %v, want mode 0744", e, err)
		}
	},
	"has the mode that was decided on": func(t *testing.T, h *House) {
		h.Host(t, "old", "old")
		if err := os.Chmod(filepath.Join(h.Dir, "old"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ path, mode, want string }{
			{"a/run", "0755", "0755"}, {"a/run", "", "0755"}, {"a/run", "0644", "0644"}, {"a/run", "", "0644"}, {"old", "0644", "0644"},
			{"plain", "0644", "0644"},
		} {
			a := Action(policy.FileCreate, c.path)
			a.Content, a.Size, a.Overwrite, a.Mode = event.DigestOf([]byte("new")), 3, true, c.mode
			if e, err := h.Files.Write(t.Context(), h.Issue(a), strings.NewReader("new")); err != nil || e.Mode != c.want {
				t.Errorf("%s with the mode %q: wrote %+v, %v, want mode %s", c.path, c.mode, e, err, c.want)
			}
		}
		for _, mode := range []string{"755", "0777", "0600", "04755", "x"} {
			a := Action(policy.FileCreate, "other")
			a.Content, a.Size, a.Mode = event.DigestOf([]byte("new")), 3, mode
			_, err := h.Files.Write(t.Context(), h.Issue(a), strings.NewReader("new"))
			wantCode(t, "the mode "+mode, err, "invalid_mode")
		}
	},
	"replaces no folder, link or pipe": func(t *testing.T, h *House) {
		h.Host(t, "dir/f", "x")
		h.Link(t, "link", "dir/f")
		for path, code := range map[string]string{"dir": "not_a_file", "link": "link_refused", "dir/f/g": "not_a_directory"} {
			_, err := h.Write(t, path, "new", true)
			wantCode(t, path, err, code)
		}
		wantText(t, h, "dir/f", "x")
	},
	"takes only what was decided on": func(t *testing.T, h *House) {
		a := Action(policy.FileCreate, "f")
		a.Content, a.Size = event.DigestOf([]byte("hello")), 5
		for _, sent := range []string{"hellO", "hell", "hello!", ""} {
			_, err := h.Files.Write(t.Context(), h.Issue(a), strings.NewReader(sent))
			wantCode(t, sent, err, "approval_mismatch")
		}
		a.Size = 6
		_, err := h.Files.Write(t.Context(), h.Issue(a), strings.NewReader("hello"))
		wantCode(t, "another size", err, "approval_mismatch")
		a.Content, a.Size = event.Digest{}, 5
		_, err = h.Files.Write(t.Context(), h.Issue(a), strings.NewReader("hello"))
		wantCode(t, "no hash", err, "approval_mismatch")
		got, err := h.List(t, ".", true, 0)
		wantPaths(t, got, err)
	},
	"leaves nothing of content that breaks off": func(t *testing.T, h *House) {
		a := Action(policy.FileCreate, "f")
		a.Content, a.Size = event.DigestOf([]byte("hello")), 5
		broken := errors.New("cut off")
		_, err := h.Files.Write(t.Context(), h.Issue(a), io.MultiReader(strings.NewReader("he"), failing{broken}))
		if !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
		got, err := h.List(t, ".", true, 0)
		wantPaths(t, got, err)
	},
	"names both numbers at the edge of its bounds": func(t *testing.T, h *House) {
		a := Action(policy.FileCreate, "f")
		text := strings.Repeat("x", 100)
		a.Content, a.Size, a.MaxBytes, a.Overwrite = event.DigestOf([]byte(text)), 100, 100, true
		if _, err := h.Files.Write(t.Context(), h.Issue(a), strings.NewReader(text)); err != nil {
			t.Errorf("at the bound: %v", err)
		}
		a.MaxBytes = 99
		_, err := h.Files.Write(t.Context(), h.Issue(a), strings.NewReader(text))
		wantCode(t, "beyond it", err, "file_too_large")
		if !strings.Contains(err.Error(), "100") || !strings.Contains(err.Error(), "99") {
			t.Errorf("%v does not name 100 and 99", err)
		}
		big := strings.Repeat("x", int(Limits.FileBytes))
		if _, err := h.Write(t, "big", big, false); err != nil {
			t.Errorf("at the space's bound: %v", err)
		}
		_, err = h.Write(t, "bigger", big+"x", false)
		wantCode(t, "beyond the space's bound", err, "file_too_large")
	},
	"keeps to the disk limit": func(t *testing.T, h *House) {
		var err error
		part := strings.Repeat("x", 1<<20)
		n := 0
		for ; err == nil && n < 20; n++ {
			_, err = h.Write(t, fmt.Sprint(n), part, false)
		}
		wantCode(t, "writing on", err, "quota_exceeded")
		if n < 7 || n > 8 {
			t.Errorf("%d writes of 1 MiB before 8 MiB were full", n-1)
		}
		if err := h.Delete(t, "0"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Write(t, "again", part, false); err != nil {
			t.Errorf("after a file was deleted: %v", err)
		}
	},
}

var reading = map[string]func(*testing.T, *House){
	"returns content and what it is": func(t *testing.T, h *House) {
		h.Host(t, "a/f", "0123456789")
		f, err := h.Files.Read(t.Context(), h.Issue(Action(policy.FileRead, "a/f")))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if e := f.Entry(); e.Path != "a/f" || e.Size != 10 || e.Type != "file" || e.Modified.IsZero() {
			t.Errorf("entry %+v", e)
		}
		if at, err := f.Seek(-3, io.SeekEnd); at != 7 || err != nil {
			t.Errorf("seek to %d, %v", at, err)
		}
		if got, err := io.ReadAll(f); string(got) != "789" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
	},
	"is bounded by the permit": func(t *testing.T, h *House) {
		h.Host(t, "f", "0123456789")
		for max, code := range map[int64]string{0: "", 9: "file_too_large", 10: "", 11: ""} {
			a := Action(policy.FileRead, "f")
			a.MaxBytes = max
			f, err := h.Files.Read(t.Context(), h.Issue(a))
			wantCode(t, fmt.Sprint("at most ", max), err, code)
			if err == nil {
				f.Close()
			} else if !strings.Contains(err.Error(), "10") || !strings.Contains(err.Error(), "9") {
				t.Errorf("%v does not name 10 and 9", err)
			}
		}
	},
	"stops at the size the file had": func(t *testing.T, h *House) {
		h.Host(t, "f", "0123456789")
		f, err := h.Files.Read(t.Context(), h.Issue(Action(policy.FileRead, "f")))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		h.Host(t, "f", strings.Repeat("x", 1000))
		if got, err := io.ReadAll(f); len(got) != 10 || err != nil {
			t.Errorf("read %d bytes, %v, want 10", len(got), err)
		}
	},
	"says so when the file becomes shorter": func(t *testing.T, h *House) {
		h.Host(t, "f", "0123456789")
		f, err := h.Files.Read(t.Context(), h.Issue(Action(policy.FileRead, "f")))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		h.Host(t, "f", "0123")
		_, err = io.ReadAll(f)
		wantCode(t, "reading on", err, "file_changed")
	},
	"refuses what is not a file": func(t *testing.T, h *House) {
		h.Host(t, "dir/f", "x")
		h.Link(t, "link", "dir/f")
		h.Link(t, "folder", "dir")
		h.Link(t, "loop", "loop")
		for path, code := range map[string]string{
			"dir": "not_a_file", "none": "file_not_found", "none/f": "file_not_found", "dir/f/g": "not_a_directory",
			"link": "link_refused", "folder/f": "link_refused", "loop": "link_refused", "loop/f": "link_refused",
		} {
			_, err := h.Read(t, path)
			wantCode(t, path, err, code)
		}
	},
}

var editing = map[string]func(*testing.T, *House){
	"replaces first occurrences in order": func(t *testing.T, h *House) {
		h.Host(t, "f", "one two one")
		e, err := h.Edit(t, "f", space.Edit{Old: "one", New: "two"}, space.Edit{Old: "two", New: "three"})
		if err != nil || e.Size != int64(len("three two one")) {
			t.Errorf("edited %+v, %v", e, err)
		}
		wantText(t, h, "f", "three two one")
	},
	"does all or nothing": func(t *testing.T, h *House) {
		h.Host(t, "f", "one two")
		_, err := h.Edit(t, "f", space.Edit{Old: "one", New: "1"}, space.Edit{Old: "three", New: "3"})
		wantCode(t, "the second edit", err, "edit_not_found")
		if !strings.Contains(err.Error(), "edit 2 of 2 (index 1)") {
			t.Errorf("%v does not name the edit", err)
		}
		wantText(t, h, "f", "one two")
	},
	"keeps the mode": func(t *testing.T, h *House) {
		h.Host(t, "f", "one")
		if err := os.Chmod(filepath.Join(h.Dir, "f"), 0o751); err != nil {
			t.Fatal(err)
		}
		if e, err := h.Edit(t, "f", space.Edit{Old: "one", New: "1"}); err != nil || e.Mode != "0751" {
			t.Errorf("edited %+v, %v, want mode 0751", e, err)
		}
	},
	"refuses what cannot be edited": func(t *testing.T, h *House) {
		h.Host(t, "binary", "\xff\xfe one")
		h.Host(t, "f", "one")
		h.Link(t, "link", "f")
		edit := space.Edit{Old: "one", New: "1"}
		for path, code := range map[string]string{"binary": "not_text", "none": "file_not_found", "link": "link_refused", ".": "invalid_path"} {
			_, err := h.Edit(t, path, edit)
			wantCode(t, path, err, code)
		}
		_, err := h.Edit(t, "f", space.Edit{Old: "", New: "1"})
		wantCode(t, "no text to replace", err, "invalid_edit")
		_, err = h.Edit(t, "f")
		wantCode(t, "no edits", err, "invalid_edit")
		a := Action(policy.FileEdit, "f")
		a.Content, _ = space.EditsDigest([]space.Edit{{Old: "one", New: "2"}})
		_, err = h.Files.Edit(t.Context(), h.Issue(a), []space.Edit{edit})
		wantCode(t, "other edits than decided", err, "approval_mismatch")
		a.Content, _ = space.EditsDigest([]space.Edit{edit})
		a.MaxBytes = 2
		_, err = h.Files.Edit(t.Context(), h.Issue(a), []space.Edit{edit})
		wantCode(t, "a file beyond the bound", err, "file_too_large")
		wantText(t, h, "f", "one")
	},
}

var deleting = map[string]func(*testing.T, *House){
	"removes files and links": func(t *testing.T, h *House) {
		h.Host(t, "dir/f", "x")
		h.Link(t, "link", "dir/f")
		h.Link(t, "dangling", "/none")
		for _, path := range []string{"link", "dangling", "dir/f"} {
			if err := h.Delete(t, path); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		got, err := h.List(t, ".", true, 0)
		wantPaths(t, got, err, "dir")
	},
	"removes nothing else": func(t *testing.T, h *House) {
		h.Host(t, "dir/f", "x")
		h.Link(t, "folder", "dir")
		for path, code := range map[string]string{"dir": "not_a_file", "none": "file_not_found", "folder/f": "link_refused",
			".": "invalid_path"} {
			wantCode(t, path, h.Delete(t, path), code)
		}
		wantText(t, h, "dir/f", "x")
	},
}

var listing = map[string]func(*testing.T, *House){
	"lists in the order of the paths": func(t *testing.T, h *House) {
		for _, path := range []string{"b", "a/z", "a-b", "a.txt", "a/b/c", "a/b-c", ".hidden"} {
			h.Host(t, path, "x")
		}
		got, err := h.List(t, ".", true, 0)
		wantPaths(t, got, err, ".hidden", "a", "a-b", "a.txt", "a/b", "a/b-c", "a/b/c", "a/z", "b")
		got, err = h.List(t, ".", true, 4)
		wantPaths(t, got, err, ".hidden", "a", "a-b", "a.txt")
		got, err = h.List(t, ".", false, 0)
		wantPaths(t, got, err, ".hidden", "a", "a-b", "a.txt", "b")
		got, err = h.List(t, "a", true, 3)
		wantPaths(t, got, err, "a/b", "a/b-c", "a/b/c")
	},
	"does not follow links": func(t *testing.T, h *House) {
		h.Host(t, "dir/f", "x")
		h.Link(t, "up", "..")
		h.Link(t, "same", ".")
		entries, err := h.Files.List(t.Context(), h.Issue(Action(policy.FileList, ".")), true, 0)
		if err != nil || len(entries) != 4 || entries[3].Type != "symlink" || entries[3].Target != ".." || entries[0].Type != "directory" ||
			entries[1].Size != 1 {
			t.Errorf("listed %+v, %v", entries, err)
		}
		_, err = h.List(t, "up", false, 0)
		wantCode(t, "a link", err, "link_refused")
		_, err = h.List(t, "dir/f", false, 0)
		wantCode(t, "a file", err, "not_a_directory")
		_, err = h.List(t, "none", false, 0)
		wantCode(t, "nothing", err, "file_not_found")
	},
	"shows names of any bytes": func(t *testing.T, h *House) {
		h.Host(t, "new\nline", "x")
		h.Host(t, "bad\xffname", "x")
		got, err := h.List(t, ".", false, 0)
		wantPaths(t, got, err, `bad\xffname`, "new\nline")
	},
}

var archiving = map[string]func(*testing.T, *House){
	"holds what is in the folder": func(t *testing.T, h *House) {
		h.Host(t, "top/a/f", "hello")
		h.Host(t, "top/g", strings.Repeat("x", 100_000))
		h.Host(t, "elsewhere", "x")
		h.Link(t, "top/in", "a/f")
		h.Link(t, "top/out", "../elsewhere")
		var raw bytes.Buffer
		if err := h.Files.Archive(t.Context(), h.Issue(Action(policy.FileArchive, "top")), &raw, nil); err != nil {
			t.Fatal(err)
		}
		z, err := zip.NewReader(bytes.NewReader(raw.Bytes()), int64(raw.Len()))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range z.File {
			content, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(content)
			if err != nil {
				t.Error(err)
			}
			got = append(got, fmt.Sprintf("%s %v %d", f.Name, f.Mode().Type(), len(text)))
		}
		want := "a/ d--------- 0\na/f ---------- 5\ng ---------- 100000\nin L--------- 3"
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("the archive holds\n%s\nwant\n%s", text, want)
		}
		if !strings.Contains(z.Comment, "left out: 1 ") {
			t.Errorf("comment %q does not say that a link was left out", z.Comment)
		}
	},
	"writes nothing beyond its bound": func(t *testing.T, h *House) {
		h.Host(t, "f", strings.Repeat("x", 1001))
		a := Action(policy.FileArchive, ".")
		a.MaxBytes = 1000
		var raw bytes.Buffer
		err := h.Files.Archive(t.Context(), h.Issue(a), &raw, nil)
		wantCode(t, "1001 bytes", err, "archive_too_large")
		if raw.Len() != 0 {
			t.Errorf("%d bytes were written", raw.Len())
		}
		a.MaxBytes = 1001
		if err := h.Files.Archive(t.Context(), h.Issue(a), &raw, nil); err != nil {
			t.Errorf("at the bound: %v", err)
		}
	},
}

var permitting = map[string]func(*testing.T, *House){
	"is needed, for this, once": func(t *testing.T, h *House) {
		h.Host(t, "f", "x")
		var zero policy.Permit
		_, err := h.Files.Read(t.Context(), zero)
		wantCode(t, "no permit", err, "permit_missing")
		_, err = h.Files.Read(t.Context(), h.Issue(Action(policy.FileDelete, "f")))
		wantCode(t, "a permit for something else", err, "approval_mismatch")
		other := Action(policy.FileDelete, "f")
		other.Space = Two
		wantCode(t, "a permit for another space", h.Files.Delete(t.Context(), h.Issue(other)), "approval_mismatch")
		p := h.Issue(Action(policy.FileRead, "f"))
		f, err := h.Files.Read(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		_, err = h.Files.Read(t.Context(), p)
		wantCode(t, "a spent permit", err, "permit_spent")
		wantText(t, h, "f", "x")
	},
	"names a path in its clean form": func(t *testing.T, h *House) {
		h.Host(t, "f", "x")
		for _, path := range []string{"", "/f", "../f", "./f", "a//f", "a/../f", "f/", "f\x00", `a\f`, "a\nf", strings.Repeat("f", 256)} {
			_, err := h.Read(t, path)
			wantCode(t, fmt.Sprintf("%.20q", path), err, "invalid_path")
		}
	},
	"is no longer used when the context has ended": func(t *testing.T, h *House) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := h.Issue(Action(policy.FileRead, "f"))
		if _, err := h.Files.Read(ctx, p); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		_, err := h.Files.Read(t.Context(), p)
		wantCode(t, "afterwards", err, "file_not_found")
	},
}

var storing = map[string]func(*testing.T, *House){
	"makes a space once": func(t *testing.T, h *House) {
		_, err := h.Store.Create(t.Context(), h.Issue(policy.Action{Type: policy.SpaceCreate, Space: One}), h.UID, Limits, space.Seed{})
		wantCode(t, "again", err, "space_exists")
		_, err = h.Store.Create(t.Context(), policy.Permit{}, h.UID, Limits, space.Seed{})
		wantCode(t, "without a permit", err, "permit_missing")
		for _, bad := range []string{"", "..", "spc_", "../spc_01ARZ3NDEKTSV4RRFFQ69G5FAV", "room_01ARZ3NDEKTSV4RRFFQ69G5FAV"} {
			a := policy.Action{Type: policy.SpaceCreate}
			a.Space = id.Space(bad)
			if _, err := h.Store.Create(t.Context(), h.Issue(a), h.UID, Limits, space.Seed{}); fault.KindOf(err) != fault.Invalid {
				t.Errorf("space %q: %v", bad, err)
			}
		}
	},
	"keeps spaces apart, lists them, and removes them whole": func(t *testing.T, h *House) {
		if _, err := h.Store.Create(t.Context(), h.Issue(policy.Action{Type: policy.SpaceCreate, Space: Two}), h.UID, Limits,
			space.Seed{}); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Store.List(t.Context()); err != nil || len(got) != 2 || got[0] != One || got[1] != Two {
			t.Errorf("listed %v, %v", got, err)
		}
		h.Host(t, "a/b/c", "x")
		for range 2 {
			if err := h.Store.Remove(t.Context(), One); err != nil {
				t.Errorf("remove: %v", err)
			}
		}
		if got, err := h.Store.List(t.Context()); err != nil || len(got) != 1 || got[0] != Two {
			t.Errorf("listed %v, %v", got, err)
		}
		if _, _, err := h.Store.Open(One, h.UID, Limits); fault.KindOf(err) != fault.NotFound {
			t.Errorf("open what was removed: %v", err)
		}
		_, err := h.Read(t, "a/b/c")
		wantCode(t, "read what was removed", err, "space_files_missing")
	},
	"begins with nothing of a seed that was not decided on": func(t *testing.T, h *House) {
		a := policy.Action{Type: policy.SpaceCreate, Space: Two}
		_, err := h.Store.Create(t.Context(), h.Issue(a), h.UID, Limits, space.Seed{Folder: "/"})
		wantCode(t, "a folder", err, "approval_mismatch")
		_, err = h.Store.Create(t.Context(), h.Issue(a), h.UID, Limits, space.Seed{Archive: strings.NewReader("x")})
		wantCode(t, "an archive", err, "approval_mismatch")
		a.Content = event.DigestOf([]byte("y"))
		_, err = h.Store.Create(t.Context(), h.Issue(a), h.UID, Limits, space.Seed{Archive: strings.NewReader("x")})
		wantCode(t, "another archive", err, "approval_mismatch")
		if got, err := h.Store.List(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("listed %v, %v: something was left behind", got, err)
		}
	},
}

// failing is a reader that fails.
type failing struct{ err error }

// Read fails.
func (f failing) Read([]byte) (int, error) { return 0, f.err }
