package cmdline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"agentbox/internal/domain/fault"
)

// TestTypedSaysWhatAPersonTyped: a field of the API has the name of the flag or of the argument from which it came, where there is one.
func TestTypedSaysWhatAPersonTyped(t *testing.T) {
	group := &cobra.Command{Use: "blueprint"}
	c := &cobra.Command{Use: "show NAME [TASK]", Run: func(*cobra.Command, []string) {}}
	group.AddCommand(c)
	for _, name := range []string{"thread", "by", "time-limit", "title"} {
		c.Flags().String(name, "", "")
	}
	if err := c.ParseFlags([]string{"--thread", "x", "--by", "y", "--time-limit", "z"}); err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]string{
		`the field "thread_id" is not accepted: too long`:         "--thread is not accepted: too long",
		`the query parameter "scope" is not accepted`:             "--by is not accepted",
		`the field "time_limit" is missing`:                       "--time-limit is missing",
		`the field "title" is not accepted`:                       `the field "title" is not accepted`, // nobody typed it
		`the field "task" is not accepted`:                        "TASK is not accepted",
		`the path parameter "blueprint" is not accepted`:          "NAME is not accepted",
		`the field "other" is not accepted, the field "task" too`: `the field "other" is not accepted, TASK too`,
		`nothing of the kind`:                                     "nothing of the kind",
	} {
		err := fault.New(fault.Invalid, "invalid_field", "%s", said).With("a hint")
		got, ok := AsFault(Typed(c, err))
		if !ok || got.Msg != want || got.Suggestion != "a hint" || got.Code != "invalid_field" {
			t.Errorf("got %v, want %q", got, want)
		}
		if err.Msg != said {
			t.Errorf("the error itself was changed: %q", err.Msg)
		}
	}
	plain := errors.New(`the field "task" is not accepted`)
	if got := Typed(c, plain); got != plain {
		t.Errorf("got %v, want what is no fault as it is", got)
	}
	if got := Typed(c, nil); got != nil {
		t.Errorf("got %v for no error", got)
	}
}

// TestNearNames: a name is near that begins with the word, or that differs from it in two letters at most, one of a word of two or three.
func TestNearNames(t *testing.T) {
	names := []string{"reporter", "helper", "abc"}
	for word, want := range map[string]string{
		"reportr": "reporter", "rporte": "reporter", "rport": "", "rep": "reporter", "hlper": "helper", "elpe": "helper", "xyz": "", "abd": "abc",
		"axy": "", "nobody": "",
	} {
		if got := strings.Join(Near(word, names), ","); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
	many := make([]string, mostNames)
	for n := range many {
		many[n] = fmt.Sprintf("name-%02d", n)
	}
	if got := didYouMean("zzzz", many); !strings.HasSuffix(got, ", "+many[mostNames-1]) {
		t.Errorf("%d names: got %q, want all of them", mostNames, got)
	}
	got := didYouMean("zzzz", slices.Concat(many, []string{"last"}))
	if strings.Contains(got, "last") || !strings.HasSuffix(got, ", and more") {
		t.Errorf("%d names: got %q, want %d and that there are more", mostNames+1, got, mostNames)
	}
}
