package nano

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/driver/nano/javascript"
	"agentbox/internal/userland/program"
)

// TestSweep holds that files in use stay and are reported as used, that files unused for a month go, and that files of others are not
// touched.
func TestSweep(t *testing.T) {
	cache := t.TempDir()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	if err := os.Mkdir(filepath.Join(cache, "wazero-v1"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string, written, read time.Time) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(cache, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(cache, name), read, written); err != nil {
			t.Fatal(err)
		}
	}
	long, lately := now.Add(-keptFor), now.Add(time.Minute-keptFor)
	for _, old := range []string{"prepared-old", "python-1-old.image", "python-1-old.code", "javascript-1-old.module", ".new-123",
		"wazero-v1/old"} {
		write(old, long, long)
	}
	stay := []string{"notes.txt", "python-1-used.image", "python-1-used.code", "python-1-young.zip", "wazero-v1/young", "wazero-v1/read"}
	for _, name := range stay {
		write(name, long, long)
	}
	write("python-1-young.zip", lately, lately)
	write("wazero-v1/young", lately, lately)
	write("wazero-v1/read", long, lately)
	if err := os.Mkdir(filepath.Join(cache, "python-folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(cache, "python-folder"), long, long); err != nil {
		t.Fatal(err)
	}
	used := []string{filepath.Join(cache, "python-1-used.image"), filepath.Join(cache, "python-1-missing.zip")}
	if err := sweep(cache, used, now); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, pattern := range []string{"*", "*/*", ".new-*"} {
		found, err := filepath.Glob(filepath.Join(cache, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				left = append(left, strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(cache)+"/"))
			}
		}
	}
	slices.Sort(left)
	slices.Sort(stay)
	if !slices.Equal(slices.Compact(left), stay) {
		t.Errorf("got %v, want %v", left, stay)
	}
	for _, name := range []string{"python-1-used.image", "python-1-used.code"} {
		if info, err := os.Stat(filepath.Join(cache, name)); err != nil || !info.ModTime().Equal(now) {
			t.Errorf("%s is not said to be used: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(cache, "python-folder")); err != nil {
		t.Error(err)
	}
	if err := sweep(filepath.Join(cache, "none"), nil, now); err != nil {
		t.Errorf("without a folder: %v", err)
	}
}

// TestTheTierTendsItsCache: a tier that makes spaces removes what nobody uses, and says of its own files that they are used.
func TestTheTierTendsItsCache(t *testing.T) {
	needPython(t)
	tier := openTier(t, 1) // it is not warm: nothing tends its cache but this test
	old := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	tier.o.Cache, tier.files = old, func() []string { return keptFiles(old) }
	own := append(keptFiles(old), tier.mark())
	if len(own) != 7 {
		t.Fatalf("it keeps %v", own)
	}
	long := time.Now().Add(-2 * keptFor)
	stale := filepath.Join(old, "python-0-0000.image")
	for _, name := range append(own, stale) {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	tier.tend(ended)
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("what nobody uses is there: %v", err)
	}
	for _, name := range own {
		if info, err := os.Stat(name); err != nil || time.Since(info.ModTime()) > keptFor {
			t.Errorf("%s was not said to be used: %v", name, err)
		}
	}
}

// TestJavaScriptIsPreparedOnce makes the interpreter in an empty folder, loads what it has left there, and goes on where that is damaged.
// It is the same each time.
func TestJavaScriptIsPreparedOnce(t *testing.T) {
	key, err := javascript.Key()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err) // this build holds none: make quickjs
	}
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	open := func(make bool) *guests {
		t.Helper()
		g := &guests{cache: cache, table: program.Table{}}
		if err := g.openJavaScript(t.Context(), make); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		if err := newSystem(g).rehearse(); err != nil {
			t.Error(err)
		}
		return g
	}
	at := keptAt(cache, "javascript", key)
	image := string(at) + imageFile
	if unkept := open(false); unkept.script != nil {
		t.Error("a worker has compiled it, though that is the business of a process of its own")
	}
	if _, err := os.Stat(image); err == nil {
		t.Error("a worker has written into the folder")
	}
	made := open(true)
	first, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	loaded := open(false)
	again, err := loaded.script.MarshalBinary()
	if err != nil || !bytes.Equal(again, first) {
		t.Errorf("what was loaded is not what was kept: %v", err)
	}
	for what, damage := range map[string]func([]byte) []byte{
		"nothing": func([]byte) []byte { return nil }, "a part": func(b []byte) []byte { return b[:len(b)/2] },
		"a byte": func(b []byte) []byte { b[len(b)-100] ^= 1; return b }, "the head": func(b []byte) []byte { b[40] ^= 1; return b },
	} {
		if err := os.WriteFile(image, damage(bytes.Clone(first)), 0o600); err != nil {
			t.Fatal(err)
		}
		if mended := open(false); mended.version != made.version {
			t.Errorf("beside a file of which there is %s it is %s, want %s", what, mended.version, made.version)
		}
	}
	if loaded.version != made.version || made.version == "" {
		t.Errorf("it is %s and %s", made.version, loaded.version)
	}
}
