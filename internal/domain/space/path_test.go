package space_test

import (
	"errors"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"agentbox/internal/domain/space"
)

func TestCleanPath(t *testing.T) {
	name255 := strings.Repeat("n", 255)
	for _, c := range []struct{ path, want string }{
		{"a", "a"},
		{"a/b.txt", "a/b.txt"},
		{"./a//b", "a/b"},
		{"a/./b/", "a/b"},
		{".", "."},
		{"./", "."},
		{"...", "..."},
		{"a..b", "a..b"},
		{"..a", "..a"},
		{".env", ".env"},
		{"~", "~"},
		{"a b", "a b"},
		{"ä/日本", "ä/日本"},
		{name255, name255},
		{strings.Repeat("a/", 127) + "a", strings.Repeat("a/", 127) + "a"},
		{strings.Repeat("ä", 127), strings.Repeat("ä", 127)},
	} {
		if got, err := space.CleanPath(c.path); err != nil || got != c.want {
			t.Errorf("%.40q: got %.40q, %v, want %.40q", c.path, got, err, c.want)
		}
	}
}

func TestThreat18PathsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ path, says string }{
		{"", "empty"},
		{"/", "absolute"},
		{"/etc/passwd", "absolute"},
		{"//a", "absolute"},
		{"..", "never goes up"},
		{"../a", "never goes up"},
		{"a/..", "never goes up"},
		{"a/../../b", "never goes up"},
		{"a/../b", "never goes up"},
		{"./..", "never goes up"},
		{"a\x00b", "NUL"},
		{"a\x00/../../etc", "NUL"},
		{"a\nb", "control"},
		{"a\x1b[2Jb", "control"},
		{"a\u0085b", "control"},
		{"a\x7fb", "control"},
		{`a\b`, "backslash"},
		{`..\..\b`, "backslash"},
		{"a\xff", "UTF-8"},
		{"\xc0\xae\xc0\xae/a", "UTF-8"}, // ".." in an overlong form
		{strings.Repeat("a", 256), "256 characters; at most 255"},
		{strings.Repeat("a/", 128), "256 characters; at most 255"},
		{strings.Repeat("ä", 128), "256 bytes; at most 255"},
	} {
		got, err := space.CleanPath(c.path)
		if !errors.Is(err, space.ErrInvalidPath) || !strings.Contains(err.Error(), c.says) || got != "" {
			t.Errorf("%.40q: got %q, %v, want invalid_path that says %q", c.path, got, err, c.says)
		}
		if err != nil && (!utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\n\x1b\x00") || len(err.Error()) > 400) {
			t.Errorf("%.40q: the error %q is not fit to be shown", c.path, err)
		}
	}
	if _, err := space.CleanFilePath("./"); !errors.Is(err, space.ErrInvalidPath) {
		t.Errorf("the folder itself as a file: %v", err)
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, p := range []string{"a/b", "./a//b/", "..", "a/../..", "/a", `a\..\b`, "a\x00", "\xff", ". /.. ", "a/.../b", "....//"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		got, err := space.CleanPath(p)
		if err != nil {
			if !errors.Is(err, space.ErrInvalidPath) || got != "" {
				t.Fatalf("%q: got %q, %v", p, got, err)
			}
			return
		}
		if again, err := space.CleanPath(got); err != nil || again != got {
			t.Fatalf("%q: %q cleans to %q, %v", p, got, again, err)
		}
		// The path stays in any folder that it is joined to.
		if joined := path.Join("/in/here", got); joined != "/in/here" && !strings.HasPrefix(joined, "/in/here/") {
			t.Fatalf("%q: %q leads to %q", p, got, joined)
		}
		if utf8.RuneCountInString(got) > space.MaxPathRunes || strings.ContainsAny(got, "\x00\\\n") || strings.HasSuffix(got, "/") {
			t.Fatalf("%q: %q is not clean", p, got)
		}
	})
}
