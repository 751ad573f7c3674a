package policy

import (
	"strings"

	"agentbox/internal/domain/event"
)

// The strengths of a path rule.
const (
	// Wall is a rule that holds against code: the files that it names are kept where no code can reach them.
	Wall = "wall"
	// Guard is a rule that judges operations and what a command line names. Code that opens a file by itself passes it.
	Guard = "guard"
)

// Withhold says which files that a person or an import brings into a space are kept from code: those that one of Paths matches and none of
// Except does. The zero value withholds nothing.
//
// A pattern is a glob at any depth, in which * matches everything, also slashes. Letters match in either case. A pattern of Paths also covers
// what lies in a folder that it matches. A pattern of Except does so only if it ends with /**; else it covers the one file.
type Withhold struct {
	Paths  []string `json:"paths,omitempty"`
	Except []string `json:"except,omitempty"`
}

// Match returns the pattern by which a path is withheld; false where it is not. The path is relative to the space's files, with slashes.
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

// Digest names what is withheld, so that two policies can be compared.
func (w Withhold) Digest() event.Digest {
	return event.DigestOf([]byte(strings.Join(w.Paths, "\x00") + "\x01" + strings.Join(w.Except, "\x00")))
}

// covers reports whether a pattern matches a folded path at any depth, or with below a folder on the way to it.
func covers(pattern, path string, below bool) bool {
	pattern = folded(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(pattern, "**/"), "/**"), "/"))
	if strings.Trim(pattern, "*") == "" {
		return pattern != ""
	}
	for at := path; ; {
		if star(pattern, at) {
			return true
		}
		if below {
			for i := 0; i < len(at); i++ {
				if at[i] == '/' && star(pattern, at[:i]) {
					return true
				}
			}
		}
		_, rest, more := strings.Cut(at, "/")
		if !more {
			return false
		}
		at = rest
	}
}

// folded returns a text in which letters of either case are the same.
func folded(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// star reports whether a text fits a pattern whose stars match anything. It takes time in proportion to the product of both lengths at most.
func star(pattern, text string) bool {
	p, t, last, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			last, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case last >= 0:
			mark++
			p, t = last+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
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
			rules = append(rules, PathRule{Pattern: p, Strength: Wall, Says: "what a person or an import brings in under this name is kept from code"})
		}
		for _, p := range l.Withhold.Except {
			rules = append(rules, PathRule{Pattern: p, Strength: Wall, Except: true, Says: "not kept from code"})
		}
	}
	for _, p := range l.Blocked {
		rules = append(rules, PathRule{Pattern: p, Strength: Guard, Says: "refused to operations and on command lines; code that opens it by itself is not stopped"})
	}
	return rules
}
