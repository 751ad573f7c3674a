package zstandard_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/userland"
)

// TestAgainstTheRealOne compares output and exit codes with those of the real zstd and tar.
func TestAgainstTheRealOne(t *testing.T) {
	haveReal(t)
	for _, script := range []string{
		`echo hello >f; zstd -q f; ls; zstdcat f.zst; rm f; zstd -dq f.zst; cat f`,
		`seq 100000 >f; zstd -q --rm f; ls; unzstd -q f.zst; md5sum f`,
		`seq 1000 >f; zstd -q -19 f -o g.zst; zstd -dc g.zst | md5sum`,
		`seq 1000 | zstd -qc | zstd -dc | md5sum`,
		`seq 1000 | zstd -q | zstdcat | tail -n 1`,
		`: >f; zstd -q f; zstdcat f.zst | wc -c`,
		`echo a >f; zstd -q f; zstd -tq f.zst; echo $?; echo x >bad.zst; zstd -tq bad.zst 2>/dev/null; echo $?`,
		`zstd -q nothing 2>/dev/null; echo $?; echo a >f; unzstd -q f 2>/dev/null; echo $?`,
		`echo a >f; zstd -q f; echo b >f; zstd -qf f; zstdcat f.zst`,
		`echo a >a; echo b >b; zstd -q a b; ls; cat a.zst b.zst | zstdcat`,
		`seq 5000 >f; zstd -q f; head -c 200 f.zst >g.zst; zstd -dqc g.zst >/dev/null 2>&1; echo $?`,
		`mkdir d; echo x >d/x; seq 3000 >d/y; tar --zstd -cf a.tar.zst d; rm -r d; tar -xf a.tar.zst; ` +
			`cat d/x; md5sum d/y; tar --zstd -tf a.tar.zst`,
		`echo x >x; tar -cf - x | zstd -q >a.tzst; zstdcat a.tzst | tar -tf -`,
	} {
		real := exec.CommandContext(t.Context(), "bash", "-c", script)
		real.Dir = t.TempDir()
		want, err := real.Output()
		if err != nil {
			t.Fatalf("%s: the real one: %v", script, err)
		}
		got, err := userland.Run(script, userland.Options{})
		if err != nil || got.Stdout != string(want) {
			t.Errorf("%s:\n got %q, %v, stderr %q\nwant %q", script, got.Stdout, err, got.Stderr, want)
		}
	}
}

// TestBothReadWhatTheOtherPacks exchanges files with the real zstd.
func TestBothReadWhatTheOtherPacks(t *testing.T) {
	haveReal(t)
	text := strings.Repeat("some text that repeats, and more of it\n", 20_000)
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"-1", "-3", "-19"} {
		packed, err := exec.CommandContext(t.Context(), "zstd", "-qc", level, name).Output()
		if err != nil {
			t.Fatal(err)
		}
		r, err := userland.Run("zstdcat f.zst", userland.Options{Files: map[string]string{"f.zst": string(packed)}})
		if err != nil || r.Stdout != text {
			t.Errorf("%s: got %d bytes, %v, %s", level, len(r.Stdout), err, r.Stderr)
		}
		r, err = userland.Run("zstd -q "+level+" f", userland.Options{Files: map[string]string{"f": text}})
		if err != nil {
			t.Fatal(err)
		}
		real := exec.CommandContext(t.Context(), "zstd", "-qdc")
		real.Stdin = strings.NewReader(r.Files["f.zst"])
		if out, err := real.Output(); err != nil || string(out) != text {
			t.Errorf("%s: the real one got %d bytes, %v", level, len(out), err)
		}
	}
}

// TestABombStopsAtTheBounds unpacks gigabytes of zeros into a file, the output and a test.
func TestABombStopsAtTheBounds(t *testing.T) {
	limits := userland.Defaults
	limits.FileBytes, limits.OutputBytes = 4<<20, 1<<20
	for script, stops := range map[string]bool{"zstdcat b.zst": true, "zstd -dq b.zst": false, "zstd -tq b.zst": false} {
		r, err := userland.Run("head -c 3000000 /dev/zero | zstd -q >a.zst; for i in 1 2 3 4 5 6 7 8; do cat a.zst; done >b.zst; "+
			"rm a.zst; "+script,
			userland.Options{Limits: limits})
		if stops && err == nil || !stops && r.Code == 0 {
			t.Errorf("%s: got code %d, %v, %d bytes of output, stderr %s", script, r.Code, err, len(r.Stdout), r.Stderr)
		}
	}
}

// haveReal skips a test where Debian's zstd is not installed, but not in CI.
func haveReal(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("zstd"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("zstd is not installed here: apt-get install zstd")
	}
}
