package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"agentbox/internal/domain/event"
)

// The strengths of a path rule.
const (
	// Wall is a rule that holds against code: the files that it names are kept where no code can reach them.
	Wall = "wall"
	// Guard is a rule that judges operations and the files that a command line names. It does not stop code that opens a file by itself.
	Guard = "guard"
)

// Withhold says which files that a person or an import brings into a space are hidden from code: those that match one of Paths and none of
// Except. The zero value withholds nothing.
//
// A pattern is a glob at any depth, in which * matches everything, also slashes. Letters match in either case, composed or decomposed. A
// pattern of Paths also covers the contents of a folder that it matches. A pattern of Except does so only if it ends with /**; else it
// covers one file.
type Withhold struct {
	Paths  []string `json:"paths,omitempty"`
	Except []string `json:"except,omitempty"`
}

// Match returns the pattern that withholds a path; false if none does. The path is relative to the space's files, with slashes.
func (w Withhold) Match(path string) (pattern string, held bool) {
	path = folded(path)
	for _, p := range w.Paths {
		if covers(p, path, true) {
			pattern, held = p, true
			break
		}
	}
	if !held {
		return "", false
	}
	for _, p := range w.Except {
		if covers(p, path, strings.HasSuffix(p, "/**")) {
			return "", false
		}
	}
	return pattern, true
}

// IsZero reports whether nothing is withheld.
func (w Withhold) IsZero() bool { return len(w.Paths) == 0 }

// Digest is a hash of the rules, so that two policies can be compared.
func (w Withhold) Digest() event.Digest {
	return event.DigestOf([]byte(strings.Join(w.Paths, "\x00") + "\x01" + strings.Join(w.Except, "\x00")))
}

// covers reports whether a pattern matches a folded path at any depth, or with below a folder on the way to it. It takes time in proportion
// to the product of both lengths at most, for code chooses how deep its folders are.
func covers(pattern, path string, below bool) bool {
	pattern = folded(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(pattern, "**/"), "/**"), "/"))
	if strings.Trim(pattern, "*") == "" {
		return pattern != ""
	}
	end := len(pattern)
	// By how much of the pattern: whether the text since the beginning of one of the names fits that.
	fits, next := make([]bool, end+1), make([]bool, end+1)
	reach := func(set []bool, n int) {
		for set[n] = true; n < end && pattern[n] == '*'; n++ {
			set[n+1] = true
		}
	}
	for i := range len(path) {
		if i == 0 || path[i-1] == '/' {
			reach(fits, 0)
		}
		if below && path[i] == '/' && fits[end] {
			return true
		}
		clear(next)
		for n, fit := range fits[:end] {
			switch {
			case fit && pattern[n] == '*':
				reach(next, n)
			case fit && pattern[n] == path[i]:
				reach(next, n+1)
			}
		}
		fits, next = next, fits
	}
	return fits[end]
}

// folded returns a text in which letters of either case are the same, and letters with marks however they are composed: file systems and
// keyboards differ in both. It is composed (NFC) before and after the cases are folded one letter at a time, as Unicode's simple folding
// does.
func folded(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToUpper(s)
	}
	return norm.NFC.String(strings.Map(foldedRune, norm.NFC.String(s)))
}

// foldedRune returns the least of the letters that differ from a letter by case only.
func foldedRune(r rune) rune {
	r = unicode.ToLower(unicode.ToUpper(r))
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// PathRule is one pattern of a policy that keeps something from files, as it is shown to people.
type PathRule struct {
	Pattern  string `json:"pattern"`
	Strength string `json:"strength"` // wall or guard
	Except   bool   `json:"except,omitempty"`
	Says     string `json:"says"`
}

// PathRules returns the rules of a bundle that protect paths, the walls first, each with its strength.
func (l Limits) PathRules() []PathRule {
	var rules []PathRule
	if l.Withhold != nil {
		for _, p := range l.Withhold.Paths {
			rules = append(rules, PathRule{Pattern: p, Strength: Wall,
				Says: "what a person or an import brings in under this name is kept from code"})
		}
		for _, p := range l.Withhold.Except {
			rules = append(rules, PathRule{Pattern: p, Strength: Wall, Except: true, Says: "not kept from code"})
		}
	}
	for _, p := range l.Blocked {
		rules = append(rules, PathRule{Pattern: p, Strength: Guard,
			Says: "refused to operations and on command lines; code that opens it by itself is not stopped"})
	}
	return rules
}
