package disk_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
	"agentbox/internal/driver/disk/internal/snapshots"
)

// withContexts makes an empty space in which code has run cells that read a secret.
func withContexts(t *testing.T, s filestest.Subject) (dir string) {
	t.Helper()
	if _, err := s.Store.Create(t.Context(), s.Issue(policy.Action{Type: policy.SpaceCreate, Space: filestest.One}), s.UID, filestest.Limits,
		space.Seed{}); err != nil {
		t.Fatal(err)
	}
	_, dir, err := s.Store.Open(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".env": "secret", ".agentbox/contexts/c.py": "memory of secret", ".agentbox/contexts/c.js": "memory of secret",
		".agentbox/contexts/d.py.new":  "memory of secret",
		".agentbox/contexts/notes.txt": "plain", ".agentbox/contexts/x.key": "key", ".agentbox/other": "plain",
		"src/.agentbox/contexts/c.py": "plain",
	} {
		digs(t, dir, name, text)
	}
	return dir
}

// kept makes a snapshot of the files as they are.
func kept(t *testing.T, s filestest.Subject, in id.Space) space.Snapshot {
	t.Helper()
	h, err := s.Store.History(in, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	h.Disturb()
	now, err := h.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// rewound makes the files what they were in a snapshot.
func rewound(t *testing.T, s filestest.Subject, to space.Snapshot) {
	t.Helper()
	h, err := s.Store.History(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Rewind(t.Context(), s.Issue(policy.Action{Type: policy.SpaceRewind, Space: filestest.One,
		Content: to.Root})); err != nil {
		t.Fatal(err)
	}
}

// forked makes a fork of a snapshot and returns its folder.
func forked(t *testing.T, s filestest.Subject, to id.Space, at space.Snapshot, strict bool) string {
	t.Helper()
	fork := policy.Action{Type: policy.SpaceFork, Space: to, Target: string(filestest.One), Content: at.Root}
	if _, err := s.Store.Create(t.Context(), s.Issue(fork), s.UID, filestest.Limits, space.Seed{Space: filestest.One, Snapshot: at.Root,
		Withhold: &secrets, Strict: strict}); err != nil {
		t.Fatal(err)
	}
	_, dir, err := s.Store.Open(to, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestThreatAContextOutlivesAStricterPolicy changes the withheld paths. Then the interpreter contexts are gone, after a rewind to before,
// in a fork of before, and where the daemon ended on the way. Files beside them stay.
func TestThreatAContextOutlivesAStricterPolicy(t *testing.T) {
	root := t.TempDir()
	s := openSpacesIn(t, root)
	dir := withContexts(t, s)
	before := kept(t, s, filestest.One)
	swept, err := s.Store.KeepAside(t.Context(), filestest.One, s.UID, filestest.Limits, secrets, true)
	if err != nil || swept.Contexts != 3 || !slices.Equal(swept.Withheld, []string{".agentbox/contexts/x.key", ".env"}) {
		t.Errorf("got %+v, %v, want three contexts and two files", swept, err)
	}
	clean := func(when, dir string) {
		t.Helper()
		want := map[string]string{".agentbox/contexts/notes.txt": "plain", ".agentbox/other": "plain", "src/.agentbox/contexts/c.py": "plain"}
		if got := seen(t, dir); len(got) != len(want) {
			t.Errorf("%s code sees %v, want %v", when, got, want)
		}
	}
	clean("after the change", dir)
	if got := seen(t, filepath.Join(root, string(filestest.One), "withheld", "files")); len(got) != 2 {
		t.Errorf("withheld are %v, want .env and x.key", got)
	}
	rewound(t, s, before)
	clean("after a rewind", dir)
	clean("in a fork", forked(t, s, filestest.Two, before, false))

	// A context of after the change is one of the new policy.
	digs(t, dir, ".agentbox/contexts/fresh.py", "nothing")
	after := kept(t, s, filestest.One)
	rewound(t, s, before)
	rewound(t, s, after)
	if got := seen(t, dir); got[".agentbox/contexts/fresh.py"] != "nothing" {
		t.Errorf("a context of after the change is gone: code sees %v", got)
	}

	// The daemon ends in the middle of a sweep.
	rules := filepath.Join(root, string(filestest.One), "withheld", "rules.json")
	raw, err := os.ReadFile(rules)
	if err == nil {
		digs(t, dir, ".agentbox/contexts/late.js", "memory of secret")
		err = os.WriteFile(rules, bytes.Replace(raw, []byte(`{`), []byte(`{"sweeping":true,"ends_contexts":true,`), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = openSpacesIn(t, root)
	if _, dir, err = s.Store.Open(filestest.One, s.UID, filestest.Limits); err != nil {
		t.Fatal(err)
	}
	clean("after a restart", dir)
}

// TestAContextStaysWhereNothingElseIsWithheld pins another policy that withholds the same: contexts stay, also after a rewind and in a
// fork, until one withholds something else.
func TestAContextStaysWhereNothingElseIsWithheld(t *testing.T) {
	root := t.TempDir()
	s := openSpacesIn(t, root)
	dir := withContexts(t, s)
	before := kept(t, s, filestest.One)
	holds := func(when, dir string, want bool) {
		t.Helper()
		if got := seen(t, dir)[".agentbox/contexts/c.py"] != ""; got != want {
			t.Errorf("%s there is a context: %t, want %t", when, got, want)
		}
	}
	for range 2 {
		swept, err := s.Store.KeepAside(t.Context(), filestest.One, s.UID, filestest.Limits, secrets, false)
		if err != nil || swept.Contexts != 0 {
			t.Fatalf("got %+v, %v", swept, err)
		}
	}
	holds("after the change", dir, true)
	rewound(t, s, before)
	holds("after a rewind", dir, true)
	holds("in a fork", forked(t, s, filestest.Two, before, false), true)
	if _, err := s.Store.KeepAside(t.Context(), filestest.One, s.UID, filestest.Limits, secrets, true); err != nil {
		t.Fatal(err)
	}
	holds("after a policy that withholds something else", dir, false)
	rewound(t, s, before)
	holds("after a rewind to before that", dir, false)
}

// TestALinkInPlaceOfTheContextsGoes leads the folder of the contexts elsewhere before the policy comes.
func TestALinkInPlaceOfTheContextsGoes(t *testing.T) {
	for _, link := range []string{".agentbox", ".agentbox/contexts"} {
		s := openSpaces(t)
		dir := withContexts(t, s)
		if err := errors.Join(os.Rename(filepath.Join(dir, link), filepath.Join(dir, "kept")), os.Symlink(filepath.Join(dir, "kept"),
			filepath.Join(dir, link))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Store.KeepAside(t.Context(), filestest.One, s.UID, filestest.Limits, secrets, true); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, link)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the link %s is still there: %v", link, err)
		}
	}
}

// TestAForkLosesNoWithheldFile forks a space with withheld files in every place and form in which they can lie.
func TestAForkLosesNoWithheldFile(t *testing.T) {
	s, root, dir := inMemory(t)
	long := strings.Repeat(strings.Repeat("n", 200)+"/", 24) // more than the 4,096 bytes of a path
	deep := strings.Repeat("d/", 1022)
	names := []string{".env", "a.key/b/c", "\xff.env", "a\n.env", long + ".env", deep + ".env"}
	for _, name := range names {
		digs(t, dir, name, "secret of "+name)
	}
	if err := os.Chmod(filepath.Join(dir, ".env"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.KeepAside(t.Context(), filestest.One, s.UID, filestest.Limits, secrets, true); err != nil {
		t.Fatal(err)
	}
	aside := filepath.Join(root, string(filestest.One), "withheld", "files")
	if err := errors.Join(os.Mkdir(filepath.Join(aside, "empty.key"), 0o700), os.Symlink("../nowhere", filepath.Join(aside,
		"link.env"))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil { // of folders that deep there is no snapshot
		t.Fatal(err)
	}
	forked(t, s, filestest.Two, kept(t, s, filestest.One), false)
	copied := filepath.Join(root, string(filestest.Two), "withheld", "files")
	for _, name := range names {
		if !digsUp(t, copied, name) {
			t.Errorf("the fork has lost %.60q", name)
		}
	}
	if st, err := os.Lstat(filepath.Join(copied, "empty.key")); err != nil || !st.IsDir() {
		t.Errorf("the fork has lost the empty folder: %v", err)
	}
	if to, err := os.Readlink(filepath.Join(copied, "link.env")); err != nil || to != "../nowhere" {
		t.Errorf("the fork has lost the link: %q, %v", to, err)
	}
	if st, err := os.Stat(filepath.Join(copied, ".env")); err != nil || st.Mode().Perm()&0o100 == 0 {
		t.Errorf("the copy cannot be executed any more: %v, %v", st, err)
	}
}

// TestAForkOfAWideFolderLosesNothingWithheld has more withheld names in a folder than code may have there. They are links, which are the
// cheapest.
func TestAForkOfAWideFolderLosesNothingWithheld(t *testing.T) {
	s, root, _ := inMemory(t)
	aside, err := s.Store.Aside(filestest.One, s.UID, filestest.Limits, secrets)
	if err != nil {
		t.Fatal(err)
	}
	first := policy.Action{Type: policy.FileCreate, Space: filestest.One, Path: "wide.key/first", Method: space.MethodWithheld,
		Content: event.DigestOf(nil)}
	if _, err := aside.Write(t.Context(), s.Issue(first), strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	wide := filepath.Join(root, string(filestest.One), "withheld", "files", "wide.key")
	for i := range snapshots.MaxEntries + 10 {
		if err := os.Symlink("first", filepath.Join(wide, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	forked(t, s, filestest.Two, kept(t, s, filestest.One), false)
	found, err := os.ReadDir(filepath.Join(root, string(filestest.Two), "withheld", "files", "wide.key"))
	if err != nil || len(found) != snapshots.MaxEntries+11 {
		t.Errorf("the fork has %d of %d names, %v", len(found), snapshots.MaxEntries+11, err)
	}
}
