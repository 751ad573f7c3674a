package search_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agentbox/internal/kernel/search"
)

func TestWords(t *testing.T) {
	for q, want := range map[string]string{
		"ab": "[ab]", " A  b\t": "[a b]", "日本": "[日本]", "Größe ÄÖ": "[größe äö]", "a\x00b": "[a b]", strings.Repeat("x", search.MaxQuery): "[" + strings.Repeat("x", search.MaxQuery) + "]",
		strings.TrimSpace(strings.Repeat("a ", search.MaxWords)): "[" + strings.TrimSpace(strings.Repeat("a ", search.MaxWords)) + "]",
	} {
		if got, err := search.Words(q); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: got %v, %v, want %s", q, got, err, want)
		}
	}
	for q, want := range map[string]error{
		"": search.ErrTooShort, "a": search.ErrTooShort, " 日 ": search.ErrTooShort, strings.Repeat("x", search.MaxQuery+1): search.ErrTooLong, strings.Repeat("a ", search.MaxWords+1): search.ErrTooLong,
	} {
		if got, err := search.Words(q); !errors.Is(err, want) {
			t.Errorf("%q: got %v, %v, want %v", q, got, err, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("ä b\n", 500)
	for _, c := range []struct{ text, word string }{
		{long, "zz"}, {long + "Needle", "needle"}, {"needle " + long, "needle"}, {long + " NEEDLE " + long, "needle"}, {"needle", "needle"}, {strings.Repeat("日", 1000) + "本", "日本"},
	} {
		got := search.Excerpt(c.text, []string{c.word}, 280)
		if n := utf8.RuneCountInString(got); n > 280 || strings.Contains(got, "\n") {
			t.Errorf("the excerpt has %d characters: %q", n, got)
		}
		if has := strings.Contains(strings.ToLower(c.text), c.word); has != strings.Contains(strings.ToLower(got), c.word) {
			t.Errorf("of %q is left %q", c.word, got)
		}
	}
}
