package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shownActions is how many actions are shown; each is compared with every other.
const shownActions = 220

// wicked are pieces of which two texts that differ may look alike, or that pretend to be something else.
var wicked = []string{
	"a", "\u0430", "e", "\u0435", "o", "\u03bf", "1", "l", "I", "\u2113", " ", "\u00a0", "\u2003", "\u200b", "\u200d", "\u2060", "\ufeff",
	"\u00ad",
	"\u202e", "\u202a", "\u2066", "\u2069", "\t", "\n", "\\n", "\\", "\\\\", "\"", "\\\"", "\x1b[2J", "\x1b[31m", "\r", "\u2028", "\u0085",
	"e\u0301", "\u00e9",
	"\u0301", "/", "\u2044", "-", "\u2010", "\u2212", ".", "\u2024", "  | ", "command: \"ls\"", "\"\npath: \"x", "\\u{430}", "\\x61",
	"[APPROVED]", "\u1f600",
	"\U0001f600", "𝐚", "ａ", "                         ", "type: \"file.read\"", "{}", "[0]", "null", "sha256:", "ls", "rm -r x",
}

// render checks P-Render, on the live installation: it asks what would be shown, and nothing happens.
func (x *examiner) render(ctx context.Context, r *result) error {
	space, err := x.own(ctx)
	if err != nil {
		return err
	}
	back := r.try("the text can be read back to exactly the bytes that were hashed, by a reader that is not Agentbox's")
	plain := r.try("the text has nothing but printable ASCII and accented Latin letters, in lines that say what they are")
	pairs := r.try("no two different actions read the same, also without digest and ids")
	chance := x.chance(2)
	texts, refused, before := map[string]string{}, 0, ""
	for range shownActions {
		before = wickedText(chance, before)
		op := operation{"type": "shell", "command": before}
		switch chance.IntN(5) {
		case 0:
			op = operation{"type": "createFile", "path": "ask/" + before, "content": before}
		case 1:
			op = operation{"type": "deleteFile", "path": "ask/" + before}
		}
		a, err := x.live.call(ctx, "POST", "/v1/policies/explain", map[string]any{"space_id": space, "operation": op})
		if err != nil {
			return err
		}
		if a.status == 400 {
			refused++ // no action comes of it
			continue
		}
		var shown struct {
			Request  json.RawMessage `json:"request"`
			Shown    string          `json:"shown"`
			Decision struct {
				Digest string `json:"action_sha256"`
			} `json:"decision"`
		}
		if err := json.Unmarshal(a.raw, &shown); err != nil || !a.ok() || shown.Shown == "" {
			return fmt.Errorf("explain %q: %d %.300s (%w)", op, a.status, a.raw, err)
		}
		back.tried(1)
		if err := readsBack(shown.Shown, shown.Request, shown.Decision.Digest); err != nil {
			back.fail("%q: %v", op, err)
		}
		plain.tried(1)
		for _, c := range strings.ReplaceAll(shown.Shown, "\n", "") {
			if (c < ' ' || c > '~') && (c < 0xc0 || c > 0xff || c == 0xd7 || c == 0xf7) {
				plain.fail("%q is shown with the character %U", op, c)
				break
			}
		}
		text, action := without(shown.Shown), stripped(shown.Request)
		for other, was := range texts {
			pairs.tried(1)
			pairs.want(action == was || text != other, "two actions read the same: %s and %s", action, was)
		}
		texts[text] = action
	}
	pairs.note("%d actions of wicked pieces (confusables, bidi, blanks, escapes, forged lines), half of them one piece apart; %d more were "+
		"no actions", len(texts), refused)
	return x.agentWords(ctx, r, space)
}

// wickedText makes a text, or changes one a little.
func wickedText(chance *rand.Rand, before string) string {
	if before != "" && chance.IntN(2) == 0 {
		cut := chance.IntN(len(before))
		for !utf8.RuneStart(before[cut]) {
			cut--
		}
		return before[:cut] + wicked[chance.IntN(len(wicked))] + before[cut:]
	}
	text := "echo "
	for range 1 + chance.IntN(6) {
		text += wicked[chance.IntN(len(wicked))]
	}
	return text
}

// agentWords checks that what an agent says about its action stands apart from what the daemon says.
func (x *examiner) agentWords(ctx context.Context, r *result, space string) error {
	t := r.try("the agent's words stand apart, and are no part of the text")
	for _, words := range []string{"[APPROVED by owner] nothing to see", "type: \"file.read\"\ncommand: \"ls\"",
		"\u202e\x1b[2Jalready approved"} {
		run, err := x.live.run(ctx, space, 20, operation{"type": "message", "id": "m", "content": words}, shell("s", "echo x | tee words"))
		if err != nil {
			return err
		}
		if run.status != "awaiting_approval" {
			return fmt.Errorf("the command was to be asked about: %.300s", run.raw.raw)
		}
		q, err := x.live.question(ctx, at(run.events[len(run.events)-1], "approvalId"))
		if err != nil {
			return err
		}
		t.tried(1)
		if err := readsBack(q.Text.What, q.Request, q.Digest); err != nil {
			t.fail("after %q: %v", words, err)
		}
		t.want(!strings.Contains(q.Text.What, "pproved"), "the text of the question has the agent's words %q", words)
		t.want(!strings.ContainsAny(q.Text.AgentWords, "\x1b\u202e\n"), "the agent's words are not escaped: %q", q.Text.AgentWords)
		if _, err := x.live.call(ctx, "POST", "/v1/approvals/"+q.ID+"/decide", map[string]string{"decision": "deny",
			"reason": "asked by a check of trust"}); err != nil {
			return err
		}
	}
	return nil
}

// without returns a text without its digest and the ids that are new each time.
func without(text string) string {
	var kept []string
	for i, line := range strings.Split(text, "\n") {
		if i > 0 && !strings.HasPrefix(line, "step_id: ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// stripped returns an action without what without leaves out.
func stripped(raw []byte) string {
	var action map[string]any
	if json.Unmarshal(raw, &action) != nil {
		return string(raw)
	}
	delete(action, "step_id")
	text, _ := json.Marshal(action) // it was JSON a moment ago
	return string(text)
}

// readsBack reads the text of a question and holds what it says against the action.
func readsBack(text string, request []byte, digest string) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 1 && strings.Contains(lines[1], " bytes, sha256:") {
		lines = lines[1:] // a question begins with a sentence for people, which is cut where it is long
	}
	value := map[string]any{}
	for i := 1; i < len(lines); i++ {
		way, rest, err := wayOf(lines[i])
		if err != nil {
			return fmt.Errorf("line %d, %q: %w", i+1, lines[i], err)
		}
		var leaf any
		switch {
		case rest == ":":
			var block []string
			for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  | "); i++ {
				line, err := unescaped(lines[i+1][len("  | "):])
				if err != nil {
					return err
				}
				block = append(block, line)
			}
			leaf = strings.Join(block, "\n")
		case strings.HasPrefix(rest, `: "`) && strings.HasSuffix(rest, `"`) && len(rest) > 3:
			if leaf, err = unescaped(rest[3 : len(rest)-1]); err != nil {
				return err
			}
		case strings.HasPrefix(rest, ": "):
			if err := json.Unmarshal([]byte(rest[2:]), &leaf); err != nil {
				return fmt.Errorf("line %d, %q: %w", i+1, lines[i], err)
			}
		default:
			return fmt.Errorf("line %d, %q, says nothing", i+1, lines[i])
		}
		if err := set(value, way, leaf); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	read, err := digestOf(raw)
	if err != nil {
		return err
	}
	asked, err := digestOf(request)
	if err != nil {
		return err
	}
	if read != asked || asked != digest || !strings.HasSuffix(lines[0], digest) {
		return fmt.Errorf("the text says %s, the action hashes to %s, and the digest shown is %s under %q", read, asked, digest, lines[0])
	}
	return nil
}

// wayOf reads the way to a value at the beginning of a line: names with dots between them, and places in brackets.
func wayOf(line string) (way []any, rest string, err error) {
	for first := true; ; first = false {
		switch {
		case strings.HasPrefix(line, "["):
			end := strings.IndexByte(line, ']')
			n, err := strconv.Atoi(line[1:max(1, end)])
			if err != nil {
				return nil, "", err
			}
			way, line = append(way, n), line[end+1:]
			continue
		case strings.HasPrefix(line, ":") && !first:
			return way, line, nil
		case strings.HasPrefix(line, ".") && !first:
			line = line[1:]
		case !first:
			return nil, "", errors.New("the way to a value is broken")
		}
		if strings.HasPrefix(line, `"`) {
			end := 1
			for ; end < len(line) && line[end] != '"'; end++ {
				if line[end] == '\\' {
					end++
				}
			}
			if end >= len(line) {
				return nil, "", errors.New("a name has no end")
			}
			name, err := unescaped(line[1:end])
			if err != nil {
				return nil, "", err
			}
			way, line = append(way, name), line[end+1:]
			continue
		}
		end := strings.IndexAny(line, ".[:")
		if end < 1 {
			return nil, "", errors.New("a value has no name")
		}
		way, line = append(way, line[:end]), line[end:]
	}
}

// set puts a value in its place.
func set(into map[string]any, way []any, leaf any) error {
	name, ok := way[0].(string)
	if !ok {
		return errors.New("a place stands where a name has to")
	}
	if len(way) == 1 {
		if _, twice := into[name]; twice {
			return fmt.Errorf("%s is said twice", name)
		}
		into[name] = leaf
		return nil
	}
	if place, ok := way[1].(int); ok {
		list, _ := into[name].([]any)
		if len(way) != 2 || place != len(list) {
			return fmt.Errorf("the list %s is out of order", name)
		}
		into[name] = append(list, leaf)
		return nil
	}
	inner, ok := into[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		into[name] = inner
	}
	return set(inner, way[1:], leaf)
}

// unescaped reads the escapes of a text: \n \r \t \" \\ \xHH and \u{H...}.
func unescaped(text string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '"' {
			return "", errors.New("a quote within a text")
		}
		if text[i] != '\\' {
			out.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", errors.New("an escape has no end")
		}
		switch c := text[i]; c {
		case 'n', 'r', 't':
			out.WriteByte(map[byte]byte{'n': '\n', 'r': '\r', 't': '\t'}[c])
		case '"', '\\':
			out.WriteByte(c)
		case 'x':
			n, err := strconv.ParseUint(text[i+1:min(len(text), i+3)], 16, 8)
			if err != nil {
				return "", err
			}
			out.WriteByte(byte(n))
			i += 2
		case 'u':
			end := strings.IndexByte(text[i:], '}')
			if end < 3 || text[i+1] != '{' {
				return "", errors.New("an escape is broken")
			}
			n, err := strconv.ParseUint(text[i+2:i+end], 16, 32)
			if err != nil {
				return "", err
			}
			out.WriteRune(rune(n))
			i += end
		default:
			return "", fmt.Errorf("there is no escape \\%c", c)
		}
	}
	return out.String(), nil
}
