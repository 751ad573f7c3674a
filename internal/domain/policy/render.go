package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Bounds of the text that a question shows to a person. A longer text is refused, never cut, because a cut text would hide part of what
// runs.
const (
	MaxQuestionBytes = 64 << 10
	MaxQuestionLines = 1_000
)

// maxTitle is the length of a title in bytes; a title is a heading and binds nothing.
const maxTitle = 120

// ErrTooLongToShow refuses to ask about an action that no person could read.
var ErrTooLongToShow = fault.New(fault.Denied, "action_too_long_to_show",
	"the action is too long to be shown in full, so nobody can approve it").
	With("Put the long part into a file of the space and run that file.")

// first are the fields that are shown before the others, in this order.
var first = []string{"type", "declaration", "command", "path", "target", "method", "tool", "request", "argv", "cwd", "env", "timeout_ms",
	"space_id", "principal_id"}

// Render shows an action's canonical bytes in full, one field per line. It is injective: two different actions never look the same. It
// quotes every value and escapes everything except printable ASCII and the accented letters of Latin-1. A text of several lines is written
// line by line behind a bar.
func Render(canonical []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return "", fault.Wrap(err, fault.Invalid, "action_invalid", "the action cannot be shown")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d bytes, %s\n", len(canonical), event.DigestOf(canonical))
	for _, key := range order(fields) {
		render(&out, name(key), fields[key])
		if out.Len() > MaxQuestionBytes {
			return "", ErrTooLongToShow
		}
	}
	text := out.String()
	if len(text) > MaxQuestionBytes || strings.Count(text, "\n") > MaxQuestionLines {
		return "", ErrTooLongToShow
	}
	return text, nil
}

// order returns the keys: those of first, then the others by name.
func order(fields map[string]any) []string {
	rank := func(key string) int {
		for i, f := range first {
			if f == key {
				return i
			}
		}
		return len(first)
	}
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		ri, rj := rank(keys[i]), rank(keys[j])
		if ri != rj {
			return ri < rj
		}
		return keys[i] < keys[j]
	})
	return keys
}

func render(out *strings.Builder, path string, value any) {
	switch v := value.(type) {
	case string:
		if !strings.Contains(v, "\n") {
			fmt.Fprintf(out, "%s: \"%s\"\n", path, Escape(v))
			return
		}
		fmt.Fprintf(out, "%s:\n", path)
		for line := range strings.SplitSeq(v, "\n") {
			fmt.Fprintf(out, "  | %s\n", escapeLine(line))
		}
	case []any:
		if len(v) == 0 {
			fmt.Fprintf(out, "%s: []\n", path)
		}
		for i, element := range v {
			render(out, path+"["+strconv.Itoa(i)+"]", element)
		}
	case map[string]any:
		if len(v) == 0 {
			fmt.Fprintf(out, "%s: {}\n", path)
		}
		for _, key := range order(v) {
			render(out, path+"."+name(key), v[key])
		}
	case nil:
		fmt.Fprintf(out, "%s: null\n", path)
	default: // a number or a truth value, whose canonical text needs no quotes
		fmt.Fprintf(out, "%s: %v\n", path, v)
	}
}

// name writes a key: plain if it is a word, else quoted.
func name(key string) string {
	if key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" {
		return key
	}
	return `"` + Escape(key) + `"`
}

// maxBlank is the longest run of spaces that is shown as spaces; longer ones could push text out of sight.
const maxBlank = 16

// Brief escapes and shortens a text for use in a sentence.
func Brief(text string) string {
	const most = 120
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return Escape(text)
}

// EscapeAll escapes each text of a list; it returns nil for an empty one.
func EscapeAll(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	escaped := make([]string, len(list))
	for i, text := range list {
		escaped[i] = Escape(text)
	}
	return escaped
}

// Escape writes text so that it has one reading and cannot control a terminal. Printable ASCII except `"` and `\`, and the accented letters
// of Latin-1, stay as they are. Everything else becomes \n, \r, \t, \", \\ or \u{code point}. Invalid UTF-8 bytes become \x and two digits.
func Escape(text string) string {
	plain := true
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			plain = false
			break
		}
	}
	if plain && !strings.Contains(text, strings.Repeat(" ", maxBlank+1)) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		if text[i] == ' ' {
			run := len(text[i:]) - len(strings.TrimLeft(text[i:], " "))
			if run > maxBlank {
				out.WriteString(strings.Repeat(`\u{20}`, run))
			} else {
				out.WriteString(text[i : i+run])
			}
			i += run
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r > 0x20 && r < 0x7f, r >= 0xc0 && r <= 0xff && r != 0xd7 && r != 0xf7:
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\u{%x}`, r)
		}
		i += size
	}
	return out.String()
}

// escapeLine escapes a line of a block and makes blanks at its end visible.
func escapeLine(line string) string {
	body := strings.TrimRight(line, " ")
	return Escape(body) + strings.Repeat(`\u{20}`, len(line)-len(body))
}

// Title returns one short line about an action, for lists. It is cut where it is long and binds nothing.
func Title(a Action) string {
	title := a.Type
	if kind, ok := a.Kind(); ok {
		title = kind.Title
		if kind.Declared > 0 { // in words that no built-in title has, for its name is the workspace's own
			title = fmt.Sprintf("this workspace's own action %s, version %d", a.Type, kind.Declared)
		}
	}
	objects := []string{a.asked(), a.Command, a.Path, a.Target, a.Tool, strings.Join(a.Argv, " ")}
	if a.Type == MCPCall { // the address is that of all tools of the server
		objects = []string{a.Tool}
	}
	for _, object := range objects {
		if object != "" {
			title += ": " + Escape(object)
			break
		}
	}
	if len(title) > maxTitle {
		cut := maxTitle - len("...")
		for !utf8.RuneStart(title[cut]) {
			cut--
		}
		title = title[:cut] + "..."
	}
	return title
}

// Impact says in sentences what an action can change and whether that can be undone. Leaves says that its command moves files out of those
// of the space.
func Impact(a Action, unsealed []string, leaves bool) string {
	kind, _ := a.Kind()
	if kind.Impact != "" {
		return kind.Impact
	}
	var text string
	switch kind.SideEffect {
	case Pure:
		text = "Changes nothing."
	case Read:
		text = "Reads from the workspace and changes nothing."
	case Filesystem:
		text = "Changes files of the space."
	case Process:
		text = "Runs code in the space; it can change every file of the space."
	case Network:
		text = "Reaches out of this machine."
	case Control:
		text = "Changes spaces, runs or policy."
	case Record:
		text = "Is recorded, and changes nothing else."
	default:
		text = "Its effect is not known."
	}
	if kind.SideEffect != Pure && kind.SideEffect != Read {
		switch {
		case kind.Reversible:
			text += " Can be undone."
		case a.Space != "" && leaves:
			text += " It moves files out of the space, to where nothing is kept. A rewind brings back what the snapshot before it has of them, " +
				"unless the space is too large for snapshots; what changed since is lost, and nothing outside of the space's files is undone."
		case a.Space != "" && (kind.SideEffect == Process || kind.SideEffect == Filesystem):
			text += " A rewind to the snapshot before it puts the space's files back, unless the space is too large for snapshots."
		default:
			text += " Cannot be undone."
		}
	}
	if kind.Declared > 0 {
		text = "As this workspace declared it, by itself: " + text
	}
	if len(unsealed) > 0 {
		text += fmt.Sprintf(" Depends on %d file(s) that this approval cannot seal: they can change before it runs.", len(unsealed))
	}
	return text
}
