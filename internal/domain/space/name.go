package space

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"agentbox/internal/domain/fault"
)

// MaxName is how many characters the name of a space has at most.
const MaxName = 100

// The refusals of names.
var (
	// ErrNameTaken means that a living space of the workspace has the name.
	ErrNameTaken = fault.New(fault.Conflict, "space_name_taken",
		"a living space of this workspace has that name; choose another one, or use that space")
	// ErrNameAmbiguous means that several living spaces have the name, which were made when names were not unique.
	ErrNameAmbiguous = fault.New(fault.Conflict, "name_ambiguous", "several living spaces have that name; name one by its id")
	// ErrName means that a text cannot be a name.
	ErrName = fault.New(fault.Invalid, "space_name_invalid",
		"a name has 1 to %d characters in one line, without control characters, characters that show nothing, and marks that change the "+
			"direction of text; it does not look like an identifier, and is neither . nor ..", MaxName)
)

// identifierForm matches the identifiers of this program, in any case of their letters.
var identifierForm = regexp.MustCompile(`(?i)^(spc_.*|[a-z]{1,10}_[0-9a-z]{26})$`)

// CheckName refuses a text that cannot be the name of a space: a name is a line of text that nobody takes for an identifier, and that
// an address can hold as a part of its path: clients resolve . and .. there.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || utf8.RuneCountInString(name) > MaxName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, misleads) || identifierForm.MatchString(name) {
		return ErrName
	}
	return nil
}

// NameKey returns the same key for names that look the same, because letters with marks can be composed in more than one way.
func NameKey(name string) string { return norm.NFC.String(name) }

// misleads reports whether a character makes a text look like another one, or like several lines. Characters that show nothing do (Cf);
// the two joiners are allowed, for scripts and emoji need them.
func misleads(r rune) bool {
	const joiner, nonJoiner = '\u200d', '\u200c'
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf) && r != joiner && r != nonJoiner
}

// IsID reports whether a text names a space by its identifier, well-formed or not: no name begins like one.
func IsID(text string) bool { return len(text) >= 4 && strings.EqualFold(text[:4], "spc_") }

// CheckName refuses a text that this space cannot have as its name. Its own identifier is the name of a space that was given none.
func (s Space) CheckName(name string) error {
	if name == string(s.ID) {
		return nil
	}
	return CheckName(name)
}
