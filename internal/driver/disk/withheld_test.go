package disk_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/snapshots"
)

var secrets = policy.Withhold{Paths: []string{"*.env", "*.key"}, Except: []string{"site-packages/**"}}

// entry is one of an archive: a text, or where it links to.
type entry struct {
	name, text string
	kind       byte
}

func archived(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Linkname: e.text}
		if e.kind == tar.TypeReg {
			h.Linkname, h.Size = "", int64(len(e.text))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			_, _ = w.Write([]byte(e.text))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

// sown makes a space from an archive of which secrets are withheld.
func sown(t *testing.T, s filestest.Subject, limits space.Limits, entries ...entry) (space.Sown, string, error) {
	t.Helper()
	raw := archived(t, entries...)
	made, err := s.Store.Create(t.Context(), s.Issue(policy.Action{Type: policy.SpaceCreate, Space: filestest.One,
		Content: event.DigestOf(raw)}), s.UID, limits,
		space.Seed{Archive: bytes.NewReader(raw), Withhold: &secrets})
	if err != nil {
		return made, "", err
	}
	_, dir, err := s.Store.Open(filestest.One, s.UID, limits)
	return made, dir, err
}

// seen returns the texts of the files below a folder.
func seen(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			raw, failed := os.ReadFile(name)
			rel, _ := filepath.Rel(dir, name)
			found[rel], err = string(raw), failed
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// held reads a withheld file.
func held(t *testing.T, s filestest.Subject, in id.Space, path string) string {
	t.Helper()
	aside, err := s.Store.Aside(in, s.UID, filestest.Limits, secrets)
	if err != nil {
		t.Fatal(err)
	}
	file, err := aside.Read(t.Context(), s.Issue(policy.Action{Type: policy.FileRead, Space: in, Path: path, Method: space.MethodWithheld}))
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if !file.Entry().Withheld {
		t.Errorf("the entry of %s does not say that it is withheld", path)
	}
	raw, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestThreatASeedSmugglesNoWithheldFile(t *testing.T) {
	s := openSpaces(t)
	made, dir, err := sown(t, s, filestest.Limits,
		entry{"first.txt", "secret 1", tar.TypeReg}, entry{"second.txt", "first.txt", tar.TypeLink}, entry{"x.env", "second.txt", tar.TypeLink},
		entry{"third.txt", "first.txt", tar.TypeLink},
		entry{".env", "secret 2", tar.TypeReg}, entry{"hard.txt", ".env", tar.TypeLink}, entry{"harder.txt", "hard.txt", tar.TypeLink},
		entry{"link", ".env", tar.TypeSymlink},
		entry{"a/B.KEY/in/ner", "secret 3", tar.TypeReg}, entry{"lib/site-packages/p/test.key", "own", tar.TypeReg}, entry{"plain", "plain",
			tar.TypeReg},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := seen(t, dir); len(got) != 2 || got["plain"] != "plain" || got["lib/site-packages/p/test.key"] != "own" {
		t.Errorf("code sees %v", got)
	}
	if _, err := os.ReadFile(filepath.Join(dir, "link")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link leads somewhere: %v", err)
	}
	for path, want := range map[string]string{"x.env": "secret 1", "third.txt": "secret 1", ".env": "secret 2", "harder.txt": "secret 2",
		"a/B.KEY/in/ner": "secret 3"} {
		if got := held(t, s, filestest.One, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if made.Files != 2 || made.Withheld < 5 {
		t.Errorf("it tells of %+v", made)
	}
}

func TestThreatAFolderOfTheHostSmugglesNoWithheldFile(t *testing.T) {
	host := t.TempDir()
	for name, text := range map[string]string{".env": "secret", "plain": "plain"} {
		if err := os.WriteFile(filepath.Join(host, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Link(filepath.Join(host, ".env"), filepath.Join(host, "+first")), os.Symlink(".env", filepath.Join(host,
		"link"))); err != nil {
		t.Fatal(err)
	}
	s := openSpaces(t, host)
	if _, err := s.Store.Create(t.Context(), s.Issue(policy.Action{Type: policy.SpaceCreate, Space: filestest.One, Target: host}), s.UID,
		filestest.Limits, space.Seed{Folder: host, Withhold: &secrets}); err != nil {
		t.Fatal(err)
	}
	_, dir, err := s.Store.Open(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	if got := seen(t, dir); len(got) != 1 || got["plain"] != "plain" {
		t.Errorf("code sees %v", got)
	}
	if got := held(t, s, filestest.One, "+first"); got != "secret" {
		t.Errorf("the other name of the withheld file is %q", got)
	}
}

func TestWithheldFilesCountTowardsTheBounds(t *testing.T) {
	limits := filestest.Limits
	limits.DiskBytes, limits.FileBytes = 64<<10, 64<<10
	s := openSpaces(t)
	if _, _, err := sown(t, s, limits, entry{".env", strings.Repeat("x", 40<<10), tar.TypeReg}, entry{"plain", strings.Repeat("x", 25<<10),
		tar.TypeReg}); !errors.Is(err, space.ErrArchiveTooLarge) {
		t.Errorf("a seed of more than the disk limit: %v", err)
	}
	if _, _, err := sown(t, s, limits, entry{".env", strings.Repeat("x", 40<<10), tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	files, _, err := s.Store.Open(filestest.One, s.UID, limits)
	if err != nil {
		t.Fatal(err)
	}
	aside, err := s.Store.Aside(filestest.One, s.UID, limits, secrets)
	if err != nil {
		t.Fatal(err)
	}
	write := func(to space.Files, method, path string, n int) error {
		text := strings.Repeat("y", n)
		_, err := to.Write(t.Context(), s.Issue(policy.Action{Type: policy.FileCreate, Space: filestest.One, Path: path, Method: method,
			Size: int64(n), Content: event.DigestOf([]byte(text))}), strings.NewReader(text))
		return err
	}
	for _, n := range []int{30 << 10, 12 << 10} {
		if err := write(files, "", "plain", n); (n == 30<<10) != errors.Is(err, space.ErrQuota) {
			t.Errorf("%d bytes beside the withheld ones: %v", n, err)
		}
	}
	if err := write(aside, space.MethodWithheld, "b.key", 8<<10); !errors.Is(err, space.ErrQuota) {
		t.Errorf("a withheld file more: %v", err)
	}
	// A permit for one of two files of a path is none for the other.
	if err := write(aside, "", "c.key", 1); !errors.Is(err, policy.ErrPermitMismatch) {
		t.Errorf("a permit for what code sees: %v", err)
	}
	if err := write(files, space.MethodWithheld, "c.key", 1); !errors.Is(err, policy.ErrPermitMismatch) {
		t.Errorf("a permit for what is withheld: %v", err)
	}
}

func TestAStricterPolicyHoldsAfterRewindForkAndRestart(t *testing.T) {
	root := t.TempDir()
	s := openSpacesIn(t, root)
	if _, err := s.Store.Create(t.Context(), s.Issue(policy.Action{Type: policy.SpaceCreate, Space: filestest.One}), s.UID, filestest.Limits,
		space.Seed{}); err != nil {
		t.Fatal(err)
	}
	_, dir, err := s.Store.Open(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a.key"), 0o755), os.WriteFile(filepath.Join(dir, ".env"), []byte("old secret"), 0o644),
		os.WriteFile(filepath.Join(dir, "a.key/x"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(dir, "plain"), []byte("plain"), 0o644), os.Link(filepath.Join(dir, ".env"), filepath.Join(dir,
			"other name"))); err != nil {
		t.Fatal(err)
	}
	history := func() space.History {
		h, err := s.Store.History(filestest.One, s.UID, filestest.Limits)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := history()
	h.Disturb()
	before, err := h.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	swept, err := s.Store.KeepAside(t.Context(), filestest.One, s.UID, filestest.Limits, secrets, true)
	moved := swept.Withheld
	if err != nil || !slices.Equal(moved, []string{".env", "a.key/x", "other name"}) {
		t.Fatalf("moved %q, %v", moved, err)
	}
	clean := func(when, dir string) {
		t.Helper()
		if got := seen(t, dir); len(got) != 1 || got["plain"] != "plain" {
			t.Errorf("%s code sees %v", when, got)
		}
	}
	clean("after the change", dir)
	if got := held(t, s, filestest.One, ".env"); got != "old secret" {
		t.Errorf("what was moved is %q", got)
	}
	h = history()
	_, now, err := h.Rewind(t.Context(), s.Issue(policy.Action{Type: policy.SpaceRewind, Space: filestest.One, Content: before.Root}))
	if err != nil || now.Root == before.Root {
		t.Errorf("after a rewind to before: %+v, %v", now, err)
	}
	clean("after a rewind", dir)
	fork := policy.Action{Type: policy.SpaceFork, Space: filestest.Two, Target: string(filestest.One), Content: before.Root}
	made, err := s.Store.Create(t.Context(), s.Issue(fork), s.UID, filestest.Limits, space.Seed{Space: filestest.One, Snapshot: before.Root,
		Withhold: &secrets})
	if err != nil || made.Withheld == 0 {
		t.Fatalf("a fork of before: %+v, %v", made, err)
	}
	_, forked, err := s.Store.Open(filestest.Two, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	clean("in a fork", forked)
	if got := held(t, s, filestest.Two, ".env"); got != "old secret" {
		t.Errorf("what the fork withholds is %q", got)
	}
	// The daemon ends while files are on their way out of the view: the next one goes on before anything runs.
	rules := filepath.Join(root, string(filestest.One), "withheld", "rules.json")
	raw, err := os.ReadFile(rules)
	if err == nil {
		err = errors.Join(os.WriteFile(rules, bytes.Replace(raw, []byte(`{`), []byte(`{"sweeping":true,`), 1), 0o600),
			os.WriteFile(filepath.Join(dir, "late.key"), []byte("late"), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	s = openSpacesIn(t, root)
	if _, dir, err = s.Store.Open(filestest.One, s.UID, filestest.Limits); err != nil {
		t.Fatal(err)
	}
	clean("after a restart", dir)
	if got := held(t, s, filestest.One, "late.key"); got != "late" {
		t.Errorf("what was on its way is %q", got)
	}
	if err := s.Store.Remove(t.Context(), filestest.One); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(root, string(filestest.One))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the withheld files outlive their space: %v", err)
	}
}

// A stricter policy finds files that code hides deep, or under a name that is not a text, also after a rewind and a restart.
func TestThreatAStricterPolicyReachesEveryName(t *testing.T) {
	root := t.TempDir()
	s := openSpacesIn(t, root)
	if _, err := s.Store.Create(t.Context(), s.Issue(policy.Action{Type: policy.SpaceCreate, Space: filestest.One}), s.UID, filestest.Limits,
		space.Seed{}); err != nil {
		t.Fatal(err)
	}
	_, dir, err := s.Store.Open(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat(strings.Repeat("n", 200)+"/", 24) // more than the 4,096 bytes of a path
	deep := strings.Repeat("d/", 255)
	names := []string{"a\n.env", "\xff.env", "\xffB.KeY", "\u212aey.\u212aEY", ".EnV", " .env", long + ".env", long + "x.key/y", deep + ".env"}
	for _, name := range names {
		digs(t, dir, name, "secret")
	}
	digs(t, dir, "plain", "plain")
	if err := os.Link(filepath.Join(dir, ".EnV"), filepath.Join(dir, "other\xfe\xff")); err != nil {
		t.Fatal(err)
	}
	h, err := s.Store.History(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	h.Disturb()
	before, err := h.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	swept, err := s.Store.KeepAside(t.Context(), filestest.One, s.UID, filestest.Limits, secrets, true)
	moved := swept.Withheld
	if err != nil || len(moved) != len(names)+1 {
		t.Errorf("moved %d files, %v, want %d", len(moved), err, len(names)+1)
	}
	clean := func(when, dir string) {
		t.Helper()
		for _, name := range append(slices.Clone(names), "other\xfe\xff") {
			if digsUp(t, dir, name) {
				t.Errorf("%s code sees %.100q", when, name)
			}
		}
		if !digsUp(t, dir, "plain") {
			t.Errorf("%s code does not see what is not withheld", when)
		}
	}
	clean("after the change", dir)
	if got := digsUp(t, filepath.Join(root, string(filestest.One), "withheld", "files"), long+".env"); !got {
		t.Error("what was deep is not among the withheld files")
	}
	s = openSpacesIn(t, root) // what is remembered is on the disk
	if h, err = s.Store.History(filestest.One, s.UID, filestest.Limits); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Rewind(t.Context(), s.Issue(policy.Action{Type: policy.SpaceRewind, Space: filestest.One,
		Content: before.Root})); err != nil {
		t.Errorf("rewind to before: %v", err)
	}
	if _, dir, err = s.Store.Open(filestest.One, s.UID, filestest.Limits); err != nil {
		t.Fatal(err)
	}
	clean("after a rewind", dir)
}

// Where not all of a space can be looked at, a stricter policy is refused, and the space is what it was. The bound is 1,024 folders in
// one another: 1,023 and the one of all files.
func TestThreatAStricterPolicyIsRefusedWhereNotAllCanBeSeen(t *testing.T) {
	if beneath.MaxDepth != 1024 {
		t.Fatalf("the documented bound is 1,024, the real one %d", beneath.MaxDepth)
	}
	s, root, dir := inMemory(t)
	digs(t, dir, strings.Repeat("d/", 1024)+".env", "secret")
	sweepsOrRefuses(t, s, root, strings.Repeat("d/", 1024)+".env", "tree_too_deep")
	top := filepath.Join(dir, "d")
	if err := errors.Join(os.Rename(filepath.Join(top, "d"), top+"d"), os.Remove(top), os.Rename(top+"d", top)); err != nil {
		// one folder less
		t.Fatal(err)
	}
	sweepsOrRefuses(t, s, root, strings.Repeat("d/", 1023)+".env", "")
}

// The bound of the names in a folder is 200,000.
func TestThreatAStricterPolicyIsRefusedWhereAFolderHasTooManyNames(t *testing.T) {
	if snapshots.MaxEntries != 200_000 {
		t.Fatalf("the documented bound is 200,000, the real one %d", snapshots.MaxEntries)
	}
	s, root, dir := inMemory(t)
	digs(t, dir, "wide/z.env", "secret") // the last in the order of the names
	wide, err := os.Open(filepath.Join(dir, "wide"))
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Close()
	for i := range 200_000 { // another name of a file is the cheapest, and a file may have 65,000 of them
		if first := i - i%50_000; i == first {
			digs(t, dir, "wide/"+strconv.Itoa(i), "")
		} else if err := unix.Linkat(int(wide.Fd()), strconv.Itoa(first), int(wide.Fd()), strconv.Itoa(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	sweepsOrRefuses(t, s, root, "wide/z.env", "folder_too_large")
	if err := unix.Unlinkat(int(wide.Fd()), "199999", 0); err != nil {
		t.Fatal(err)
	}
	sweepsOrRefuses(t, s, root, "wide/z.env", "")
}

// inMemory makes an empty space whose files lie in memory, where the host has such a file system.
func inMemory(t *testing.T) (s filestest.Subject, root, dir string) {
	t.Helper()
	root = quickDir(t)
	s = openSpacesIn(t, root)
	if _, err := s.Store.Create(t.Context(), s.Issue(policy.Action{Type: policy.SpaceCreate, Space: filestest.One}), s.UID, filestest.Limits,
		space.Seed{}); err != nil {
		t.Fatal(err)
	}
	_, dir, err := s.Store.Open(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	return s, root, dir
}

// sweepsOrRefuses makes the policy of a space stricter: what lies at the path is moved aside, and nothing else, or the change is refused
// with a code and leaves nothing behind.
func sweepsOrRefuses(t *testing.T, s filestest.Subject, root, at, want string) {
	t.Helper()
	swept, err := s.Store.KeepAside(t.Context(), filestest.One, s.UID, filestest.Limits, secrets, true)
	moved := swept.Withheld
	if got := fault.CodeOf(err); got != want || want == "" && !slices.Equal(moved, []string{at}) {
		t.Errorf("want %q: %d moved, %v", want, len(moved), err)
	}
	_, dir, err := openSpacesIn(t, root).Store.Open(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatalf("want %q: the space is not usable any more: %v", want, err)
	}
	if digsUp(t, dir, at) != (want != "") {
		t.Errorf("want %q: code sees it: %t", want, want == "")
	}
	if _, err := os.Lstat(filepath.Join(root, string(filestest.One), "withheld")); (err == nil) != (want == "") {
		t.Errorf("want %q: of a refusal something is left: %v", want, err)
	}
}

// digs makes a file at a path of any length, as code does it: folder by folder.
func digs(t *testing.T, dir, name, text string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	folders := strings.Split(name, "/")
	for _, folder := range folders[:len(folders)-1] {
		if err := root.Mkdir(folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
		next, err := root.OpenRoot(folder)
		if err = errors.Join(err, root.Close()); err != nil {
			t.Fatal(err)
		}
		root = next
	}
	defer root.Close()
	if err := root.WriteFile(folders[len(folders)-1], []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// digsUp reports whether there is a file at a path of any length.
func digsUp(t *testing.T, dir, name string) bool {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	folders := strings.Split(name, "/")
	for _, folder := range folders[:len(folders)-1] {
		next, err := root.OpenRoot(folder)
		root.Close()
		if errors.Is(err, os.ErrNotExist) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		root = next
	}
	defer root.Close()
	_, err = root.Lstat(folders[len(folders)-1])
	return err == nil
}
