// Package fulltext is the contract of a full-text index, which follows the log and may lag behind it.
//
// A query is words with spaces between them. An entry matches if it contains each of them, also inside of another word. So the search
// works in languages without spaces between words. Case does not count.
package fulltext

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Limits of a query and of its answer.
const (
	MinQuery   = 2   // characters, without the spaces around them
	MaxQuery   = 200 // characters
	MaxWords   = 10
	MaxHits    = 1_000
	MaxEntries = 1_000 // of one Take
)

// The refusals of a query.
var (
	ErrTooShort = fault.New(fault.Invalid, "q_too_short", "q has at least %d characters", MinQuery)
	ErrTooLong  = fault.New(fault.Invalid, "q_too_long", "q has at most %d characters and %d words", MaxQuery, MaxWords)
)

// Entry is a text that can be found. Its place is that of the event which brought it, in the workspace.
type Entry struct {
	Place  uint64
	Key    string    // the key of the thing with this text
	Room   id.Room   // the room of the text
	Thread id.Thread // the thread of the text
	Text   string
}

// Query asks for the entries of one workspace that have every word.
type Query struct {
	Workspace id.Workspace
	Room      id.Room   // only texts of this room; "" for everywhere
	Thread    id.Thread // only texts of this thread; "" for everywhere
	Words     []string  // as Words returns them
	Before    uint64    // only entries in front of this place; 0 for all
	Limit     int       // 1 to MaxHits
}

// Hit is an entry that was found.
type Hit struct {
	Place uint64
	Key   string
}

// Index finds texts. Its methods are safe for concurrent use. It holds nothing that cannot be rebuilt from the log. So it starts empty if
// it was lost, or if another version made it. The conformance suite is package searchtest.
type Index interface {
	// Place returns the place up to which the log of a workspace was taken in, 0 for nothing.
	Place(ctx context.Context, ws id.Workspace) (uint64, error)
	// Take takes in entries that lie behind Place, in order, and notes that the log was taken in up to a place: both or nothing.
	Take(ctx context.Context, ws id.Workspace, upTo uint64, entries []Entry) error
	// Search returns the hits of a query, from the highest place downwards.
	Search(ctx context.Context, q Query) ([]Hit, error)
	// Forget removes entries. When it returns, no file of the index has their text, nor parts from which it could be rebuilt. A missing
	// entry is not an error.
	Forget(ctx context.Context, ws id.Workspace, places ...uint64) error
	// Reset removes everything of a workspace, whose Place is 0 again.
	Reset(ctx context.Context, ws id.Workspace) error
}

// Fold returns a text as it is compared: in lower case, with one space where there are several or other white space, and none around.
func Fold(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Words reads the words of a query, or returns an error that says why it is invalid.
func Words(q string) ([]string, error) {
	folded := Fold(q)
	words := strings.Fields(folded)
	switch n := utf8.RuneCountInString(folded); {
	case n < MinQuery:
		return nil, ErrTooShort
	case n > MaxQuery || len(words) > MaxWords:
		return nil, ErrTooLong
	}
	return words, nil
}

// Matches reports whether a text has every word.
func Matches(text string, words []string) bool {
	folded := Fold(text)
	for _, w := range words {
		if !strings.Contains(folded, w) {
			return false
		}
	}
	return true
}

// Excerpt returns at most so many characters of a text, in one line, around the first match of one of the words.
func Excerpt(text string, words []string, most int) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) <= most {
		return string(line)
	}
	at := len(line)
	folded := []rune(strings.Map(unicode.ToLower, string(line))) // rune by rune, so that places are the same
	for _, w := range words {
		if i := indexRunes(folded, []rune(w)); i >= 0 {
			at = min(at, i)
		}
	}
	if at == len(line) {
		at = 0
	}
	from := max(0, min(at-most/4, len(line)-most))
	to := min(len(line), from+most)
	cut := append([]rune{}, line[from:to]...)
	if from > 0 {
		cut[0] = '…'
	}
	if to < len(line) {
		cut[len(cut)-1] = '…'
	}
	return string(cut)
}

func indexRunes(text, word []rune) int {
	for i := 0; i+len(word) <= len(text); i++ {
		if string(text[i:i+len(word)]) == string(word) {
			return i
		}
	}
	return -1
}
