package cmdline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// fields matches the name of a field of the API in the sentence that refuses its value.
var fields = regexp.MustCompile(`the (?:field|query parameter|path parameter) "([a-z0-9_]+)"`)

// flagsOf are the flags with other names than their fields of the API.
var flagsOf = map[string]string{"scope": "by"}

// Typed returns the error of a command with the words that a person typed, flags and arguments, in place of the API's names of fields. It
// leaves the names of fields that the command has no word for.
func Typed(cmd *cobra.Command, err error) error {
	said, is := AsFault(err)
	if !is || cmd == nil || error(said) != err {
		return err
	}
	changed := *said
	changed.Msg = fields.ReplaceAllStringFunc(said.Msg, func(found string) string {
		return First(wordOf(cmd, fields.FindStringSubmatch(found)[1]), found)
	})
	return &changed
}

// wordOf returns the flag or the argument of a command that becomes a field of the API; "" where there is none.
func wordOf(cmd *cobra.Command, field string) string {
	short := strings.TrimSuffix(field, "_id")
	for _, name := range []string{strings.ReplaceAll(field, "_", "-"), strings.ReplaceAll(short, "_", "-"), flagsOf[field]} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return "--" + name
		}
	}
	words := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(cmd.Use))[1:]
	if word := strings.ToUpper(short); slices.Contains(words, word) {
		return word
	}
	if cmd.HasParent() && cmd.Parent().Name() == short && slices.Contains(words, "NAME") {
		return "NAME"
	}
	return ""
}
