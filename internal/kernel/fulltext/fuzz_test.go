package fulltext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"agentbox/internal/kernel/fulltext"
)

// FuzzWords reads what somebody asks for: a text is found by what stands in it, and what is shown of it is no longer than it may be.
func FuzzWords(f *testing.F) {
	f.Add("two words", "here are Two  Words")
	f.Add("ÄÖ", "äö")
	f.Add("İİ", "iı")
	f.Add("  ", "\u0000a\u00a0b")
	f.Add("\xff\xfe", "a\xff\xfeb")
	f.Add("\x84\xc3", "\x84")
	f.Add(strings.Repeat("a ", 40), "a")
	f.Fuzz(func(t *testing.T, q, text string) {
		if folded := fulltext.Fold(text); fulltext.Fold(folded) != folded {
			t.Errorf("%q is %q, and that is %q", text, folded, fulltext.Fold(folded))
		}
		words, err := fulltext.Words(q)
		if err != nil {
			return
		}
		if n := utf8.RuneCountInString(fulltext.Fold(q)); n < fulltext.MinQuery || n > fulltext.MaxQuery || len(words) == 0 ||
			len(words) > fulltext.MaxWords {
			t.Errorf("%q is taken: %q", q, words)
		}
		for _, w := range words {
			if w == "" || strings.ContainsAny(w, " \t\n") {
				t.Errorf("%q has the word %q", q, w)
			}
		}
		if !fulltext.Matches(q, words) || !fulltext.Matches(text+" "+q+" "+text, words) || utf8.ValidString(q+text) && utf8.ValidString(q) &&
			!fulltext.Matches(text+q+text, words) {
			t.Errorf("%q does not have its own words %q", q, words)
		}
		for _, most := range []int{1, 2, 280} {
			shown := fulltext.Excerpt(text+" "+q, words, most)
			if utf8.RuneCountInString(shown) > most || !utf8.ValidString(shown) || strings.Contains(shown, "\n") {
				t.Errorf("of %q at most %d are shown as %q", text, most, shown)
			}
		}
	})
}
