package posix_test

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/shelltest"
	"agentbox/internal/userland/toolbox"
)

var update = flag.Bool("update", false, "run the real programs and write what they print")

func free(int64) error { return nil }

func TestTranscripts(t *testing.T) {
	shelltest.Transcripts(t, program.Table{}.Add(shell.Programs(), coreutils.Programs(), toolbox.Programs()), "testdata/*.txtar", *update)
}

var errSpent = errors.New("spent")

// The backtracker charges its steps and ends where nothing is left.
func TestBacktrackingIsCharged(t *testing.T) {
	left := int64(1_000_000)
	re, err := posix.Compile(`^\(a*\)*\1b$`, 0, func(gas int64) error {
		if left -= gas; left < 0 {
			return errSpent
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := re.FindString(strings.Repeat("a", 60)); !errors.Is(err, errSpent) {
		t.Errorf("got %v, want that everything is spent", err)
	}
}

// Both engines agree where both can match.
func TestTheBacktrackerAgreesWithGo(t *testing.T) {
	for _, pattern := range []string{"a*", "[a-c]+", "(a|b)*c", "^a", "b$", "x?", "a{2,3}", "[^a]", "."} {
		for _, text := range []string{"", "a", "abc", "aaab", "cabbac", "xax", "aaaa"} {
			plain, err := posix.Compile(pattern, posix.Extended, free)
			if err != nil {
				t.Fatal(err)
			}
			odd, err := posix.Compile(pattern+`(q\2)?`, posix.Extended, free) // never matches more, but has a reference
			if strings.Contains(pattern, "(") {
				odd, err = posix.Compile(strings.ReplaceAll(pattern, "(", "(")+`(q\1)?`, posix.Extended, free)
			} else if err != nil {
				odd, err = posix.Compile(`()`+pattern+`(q\1q)?`, posix.Extended, free)
			}
			if err != nil {
				t.Fatal(err)
			}
			want, err1 := plain.FindAllString(text, -1)
			got, err2 := odd.FindAllString(text, -1)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if g, w := spans(got), spans(want); g != w {
				t.Errorf("%s in %q: got %s, want %s", pattern, text, g, w)
			}
		}
	}
}

func spans(all [][]int) string {
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "%d-%d ", m[0], m[1])
	}
	return b.String()
}

func TestErrorsAreThoseOfTheLibrary(t *testing.T) {
	for pattern, want := range map[string]error{
		`\(`: posix.ErrOpen, `\)`: posix.ErrClose, `[a`: posix.ErrBracket, `a\{1`: posix.ErrBrace, `a\{x\}`: posix.ErrContent,
		`[b-a]`: posix.ErrRange,
		`a\`:    posix.ErrBackslash, `\1`: posix.ErrReference, `[[:foo:]]`: posix.ErrClass, `a\{1001\}`: posix.ErrTooBig,
	} {
		if _, err := posix.Compile(pattern, 0, free); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", pattern, err, want)
		}
	}
}

// Every compiled expression matches within the text, in order. A literal is found at its place in the text.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"a*b", `\(a\)\1`, "[[:alpha:]]+$", "(a|b){2,}", `\bx\>`, "(?<=a)b", "[^]x]", `a\{1,2\}\|c`} {
		for flags := range 8 {
			f.Add(s, "abc aab xx", uint16(1)<<flags)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string, flags uint16) {
		left := int64(2_000_000)
		charge := func(gas int64) error {
			if left -= gas; left < 0 {
				return errSpent
			}
			return nil
		}
		re, err := posix.Compile(pattern, posix.Flags(flags), charge)
		if err != nil {
			return
		}
		all, err := re.FindAllString(text, -1)
		if err != nil {
			return
		}
		end := 0
		for _, m := range all {
			if len(m) != 2*(re.Groups()+1) || m[0] > m[1] || m[1] > len(text) || m[0] < end && flags&uint16(posix.Perl) == 0 {
				t.Fatalf("%q in %q: %v", pattern, text, all)
			}
			end = m[1]
		}
		if posix.Flags(flags) == posix.Literal && utf8.ValidString(pattern) {
			if want := regexp.MustCompile(regexp.QuoteMeta(pattern)).FindAllStringIndex(text, -1); len(want) != len(all) {
				t.Fatalf("%q in %q: %v, want %v", pattern, text, all, want)
			}
		}
	})
}
