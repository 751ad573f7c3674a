package fulltext_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agentbox/internal/kernel/fulltext"
)

func TestWords(t *testing.T) {
	for q, want := range map[string]string{
		"ab": "[ab]", " A  b\t": "[a b]", "日本": "[日本]", "Größe ÄÖ": "[größe äö]", "a\x00b": "[a b]", strings.Repeat("x", fulltext.MaxQuery): "[" +
			strings.Repeat("x", fulltext.MaxQuery) + "]",
		strings.TrimSpace(strings.Repeat("a ", fulltext.MaxWords)): "[" + strings.TrimSpace(strings.Repeat("a ", fulltext.MaxWords)) + "]",
	} {
		if got, err := fulltext.Words(q); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: got %v, %v, want %s", q, got, err, want)
		}
	}
	for q, want := range map[string]error{
		"": fulltext.ErrTooShort, "a": fulltext.ErrTooShort, " 日 ": fulltext.ErrTooShort, strings.Repeat("x", fulltext.MaxQuery+
			1): fulltext.ErrTooLong, strings.Repeat("a ", fulltext.MaxWords+1): fulltext.ErrTooLong,
	} {
		if got, err := fulltext.Words(q); !errors.Is(err, want) {
			t.Errorf("%q: got %v, %v, want %v", q, got, err, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("ä b\n", 500)
	for _, c := range []struct{ text, word string }{
		{long, "zz"}, {long + "Needle", "needle"}, {"needle " + long, "needle"}, {long + " NEEDLE " + long, "needle"}, {"needle", "needle"},
		{strings.Repeat("日", 1000) + "本", "日本"},
	} {
		got := fulltext.Excerpt(c.text, []string{c.word}, 280)
		if n := utf8.RuneCountInString(got); n > 280 || strings.Contains(got, "\n") {
			t.Errorf("the excerpt has %d characters: %q", n, got)
		}
		if has := strings.Contains(strings.ToLower(c.text), c.word); has != strings.Contains(strings.ToLower(got), c.word) {
			t.Errorf("of %q is left %q", c.word, got)
		}
	}
}
