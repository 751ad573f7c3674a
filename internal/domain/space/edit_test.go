package space_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

func TestApplyEdits(t *testing.T) {
	edit := func(pairs ...string) []space.Edit {
		var edits []space.Edit
		for i := 0; i < len(pairs); i += 2 {
			edits = append(edits, space.Edit{Old: pairs[i], New: pairs[i+1]})
		}
		return edits
	}
	for _, c := range []struct {
		text  string
		edits []space.Edit
		want  string
		code  string
	}{
		{"a b a", edit("a", "x"), "x b a", ""},
		{"a b a", edit("a", "x", "a", "y"), "x b y", ""},
		{"a", edit("a", "aa", "aa", "b"), "b", ""}, // on what the one before has left
		{"a", edit("a", ""), "", ""},
		{"aaa", edit("aa", "b"), "ba", ""},
		{"a", edit("a", "b", "a", "c"), "", "edit_not_found"},
		{"a", nil, "", "invalid_edit"},
		{"a", edit("", "x"), "", "invalid_edit"},
		{"a", edit("a", "\xff"), "", "invalid_edit"},
		{"a\xff", edit("a", "b"), "", "not_text"},
		{"a", edit("a", "1234567890"), "1234567890", ""},
		{"a", edit("a", "12345678901"), "", "file_too_large"},
		{"12345678901", edit("1", ""), "234567890" + "1", ""}, // shrinking is always possible
	} {
		got, err := space.ApplyEdits("f", c.text, c.edits, 10)
		if got != c.want || fault.CodeOf(err) != c.code {
			t.Errorf("%q with %q: got %q, %v, want %q, %q", c.text, c.edits, got, err, c.want, c.code)
		}
	}
	many := edit("x", "x")
	for len(many) < 1000 {
		many = append(many, many[0])
	}
	for size, code := range map[int]string{space.MaxEditWork / 1000: "", space.MaxEditWork/1000 + 1: "edit_too_large"} {
		text := "x" + strings.Repeat("-", size-1)
		if _, err := space.ApplyEdits("f", text, many, 1<<30); fault.CodeOf(err) != code {
			t.Errorf("1000 edits of %d bytes: %v, want %q", size, err, code)
		}
	}
	_, err := space.ApplyEdits("f", "a", edit("a", "b", "none", "c"), 10)
	if err == nil || !strings.Contains(err.Error(), "edit 2 of 2 (index 1)") {
		t.Errorf("the missing text: %v does not name its edit", err)
	}
}
