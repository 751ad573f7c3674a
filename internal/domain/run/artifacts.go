package run

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
)

// Limits of the files of a space that a run keeps as artifacts when it ends.
const (
	MaxArtifactPatterns     = 20        // of one run
	MaxArtifactPatternBytes = 500       // of one pattern
	MaxArtifacts            = 200       // files of one run
	MaxArtifactBytes        = 256 << 20 // of these files together
	MaxArtifactsSeen        = 50_000    // entries of a folder that are searched for files
	MaxLeftOut              = 20        // files that are named among those that were left out
)

// Patterns name files of a space. A pattern is a path, relative to the space's files, in which * and ? match within one name, [a-z] matches
// one letter of a class, and ** matches any number of folders. A pattern that matches a folder means everything in it.
type Patterns []string

// Check refuses patterns that are too many, too long, or no relative path.
func (p Patterns) Check() error {
	if len(p) > MaxArtifactPatterns {
		return patternInvalid("artifacts has %d patterns; at most %d are allowed", len(p), MaxArtifactPatterns)
	}
	for _, pattern := range p {
		if err := checkPattern(pattern); err != nil {
			return err
		}
	}
	return nil
}

func checkPattern(pattern string) error {
	switch {
	case len(pattern) > MaxArtifactPatternBytes:
		return patternInvalid("a pattern of artifacts has %d bytes; at most %d are allowed", len(pattern), MaxArtifactPatternBytes)
	case !utf8.ValidString(pattern) || strings.ContainsFunc(pattern, unicode.IsControl) || strings.Contains(pattern, `\`):
		return patternInvalid("the pattern %.80q of artifacts has a backslash, a control character or invalid UTF-8", pattern)
	case strings.HasPrefix(pattern, "/"):
		return patternInvalid("the pattern %.80q of artifacts begins with a slash; patterns are relative to the space's files", pattern)
	}
	names := splitPattern(pattern)
	if len(names) == 0 {
		return patternInvalid("the pattern %.80q of artifacts names nothing", pattern)
	}
	for _, name := range names {
		if _, err := path.Match(name, ""); err != nil || name == ".." {
			return patternInvalid("the part %.80q of a pattern of artifacts is not valid", name)
		}
		if strings.Contains(name, "**") && name != "**" {
			return patternInvalid("in the part %.80q of a pattern of artifacts, ** does not stand alone", name)
		}
	}
	return nil
}

func patternInvalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "artifacts_invalid", format, args...).With("name files as in out/** or report-*.csv")
}

// splitPattern returns the names of a pattern. Empty names and "." mean nothing.
func splitPattern(pattern string) []string {
	return slices.DeleteFunc(strings.Split(pattern, "/"), func(name string) bool { return name == "" || name == "." })
}

// Folders returns the folders in which files can match, without those that lie in others of them; "." is the top. A pattern without
// wildcards is returned as it is, because it may name a folder.
func (p Patterns) Folders() []string {
	all := make([]string, 0, len(p))
	for _, pattern := range p {
		names := splitPattern(pattern)
		if i := slices.IndexFunc(names, func(name string) bool { return strings.ContainsAny(name, "*?[") }); i >= 0 {
			names = names[:i]
		}
		all = append(all, joined(names))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(slices.Clone(all), func(folder string) bool {
		return slices.ContainsFunc(all, func(other string) bool {
			return other != folder && (other == "." || strings.HasPrefix(folder, other+"/"))
		})
	})
}

func joined(names []string) string {
	if len(names) == 0 {
		return "."
	}
	return strings.Join(names, "/")
}

// Match reports whether a pattern matches a path or a folder on the way to it. It takes time in proportion to the product of the numbers of
// names.
func (p Patterns) Match(file string) bool {
	names := strings.Split(file, "/")
	return slices.ContainsFunc(p, func(pattern string) bool { return matches(splitPattern(pattern), names) })
}

// matches reports whether a pattern matches the beginning of a path, up to the end of one of its names.
func matches(pattern, names []string) bool {
	// Whether the names so far fit that many parts of the pattern.
	fits, next := make([]bool, len(pattern)+1), make([]bool, len(pattern)+1)
	reach := func(set []bool, n int) {
		for set[n] = true; n < len(pattern) && pattern[n] == "**"; n++ {
			set[n+1] = true
		}
	}
	reach(fits, 0)
	for _, name := range names {
		clear(next)
		for n, fit := range fits[:len(pattern)] {
			if !fit {
				continue
			}
			if pattern[n] == "**" {
				reach(next, n)
			} else if ok, _ := path.Match(pattern[n], name); ok {
				reach(next, n+1)
			}
		}
		if fits, next = next, fits; fits[len(pattern)] {
			return true
		}
	}
	return false
}

// Gathered says which files a run has kept as artifacts when it ended.
type Gathered struct {
	Files   int       `json:"files" doc:"How many files were kept"`
	Bytes   int64     `json:"size_bytes" doc:"Bytes of these files together"`
	LeftOut int       `json:"left_out,omitempty" doc:"How many files match and were not kept"`
	Named   []LeftOut `json:"left_out_files,omitempty" nullable:"false" doc:"The first 20 of these files"`
	Error   string    `json:"error,omitempty" doc:"The code of what kept it from looking for all files"`
}

// LeftOut is a file that matches and was not kept.
type LeftOut struct {
	Path   string `json:"path"`
	Reason string `json:"reason_code" doc:"too_many_artifacts, artifacts_too_large, or the code of why it could not be read or kept"`
}

// Leave counts a file that was not kept, and names it if few are.
func (g *Gathered) Leave(path, reason string) {
	if g.LeftOut++; len(g.Named) < MaxLeftOut {
		g.Named = append(g.Named, LeftOut{path, reason})
	}
}

// The reasons for which a file is left out that no error has.
const (
	ReasonTooManyArtifacts  = "too_many_artifacts"  // the run has kept MaxArtifacts files
	ReasonArtifactsTooLarge = "artifacts_too_large" // the files would have more than MaxArtifactBytes
	ReasonArtifactsUnseen   = "too_many_files"      // a folder has more than MaxArtifactsSeen entries
)
