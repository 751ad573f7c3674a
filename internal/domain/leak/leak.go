// Package leak finds secrets in data that are about to be recorded, and removes them.
package leak

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of one scan. Text beyond them that may hold a secret is removed as a whole, so padding hides nothing.
const (
	MaxCharacters = 256_000 // of texts that may hold a secret
	MaxMatches    = 20      // reported one by one
	MaxDepth      = 20      // of nested objects and arrays
)

// Redacted replaces a removed secret.
const Redacted = "[redacted]"

// The rules by which a secret is known.
const (
	OpenAIKey     = "openai_api_key"
	AnthropicKey  = "anthropic_api_key"
	OpenRouterKey = "openrouter_api_key"
	GitHubToken   = "github_pat"
	GitLabToken   = "gitlab_pat"
	SlackToken    = "slack_token"
	StripeKey     = "stripe_api_key"
	GoogleKey     = "google_api_key"
	NPMToken      = "npm_token"
	AWSKey        = "aws_access_key_id"
	PrivateKey    = "private_key" // in PEM
	BearerToken   = "bearer_token"
	EnvValue      = "environment_value" // the value of a variable of the space, or of the command
	Unscanned     = "scan_limit"        // it lies beyond the limits
)

// Match is one secret that was found.
type Match struct {
	Rule    string `json:"rule"`
	Where   string `json:"where"`   // in the data: names and numbers of members; a name that is a secret is not told
	Preview string `json:"preview"` // the first and the last four characters, or stars where there are no more than eight
}

type rule struct {
	name    string
	pattern *regexp.Regexp // its first group is the secret
}

var rules = []rule{
	{PrivateKey, regexp.MustCompile(
		`(?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z))`)},
	{AnthropicKey, regexp.MustCompile(`(?:^|[^A-Za-z0-9])(sk-ant-[A-Za-z0-9_-]{20,})`)},
	{OpenRouterKey, regexp.MustCompile(`(?:^|[^A-Za-z0-9])(sk-or-[A-Za-z0-9_-]{20,})`)},
	{OpenAIKey, regexp.MustCompile(`(?:^|[^A-Za-z0-9])(sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{20,}))`)},
	{SlackToken, regexp.MustCompile(`(?:^|[^A-Za-z0-9])(xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})`)},
	{GitLabToken, regexp.MustCompile(`(?:^|[^A-Za-z0-9])(glpat-[A-Za-z0-9_-]{20,})`)},
	{StripeKey, regexp.MustCompile(`(?:^|[^A-Za-z0-9])([sr]k_live_[A-Za-z0-9]{20,})`)},
	{GoogleKey, regexp.MustCompile(`(?:^|[^A-Za-z0-9_-])(AIza[A-Za-z0-9_-]{35})`)},
	{NPMToken, regexp.MustCompile(`(?:^|[^A-Za-z0-9_])(npm_[A-Za-z0-9]{36})`)},
	{GitHubToken, regexp.MustCompile(`((?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,})`)},
	{AWSKey, regexp.MustCompile(`(A[KS]IA[0-9A-Z]{16})`)},
	{BearerToken, regexp.MustCompile(`(?i)bearer[ \t:="']+([A-Za-z0-9._~+/-]{20,}=*)`)},
}

// Scan returns JSON without the secrets in its texts and names, and the secrets that it found. Without secrets it returns the same bytes.
// It returns invalid JSON unchanged, because the log refuses it. If a member name occurs twice and may hold a secret, Scan keeps the last
// member, because no reader uses the first.
func Scan(data json.RawMessage) (json.RawMessage, []Match) {
	if !suspicious(data) {
		return data, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return data, nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return data, nil // more than one value is not JSON either
	}
	s := scan{left: MaxCharacters}
	v = s.value(v, "", 0)
	if len(s.found) == 0 && !twice(data) {
		return data, nil
	}
	if len(s.found) == 0 { // the first of them was not read, by nobody, and may hold one
		s.whole(Unscanned, "(a name that stands twice)", "")
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage(`{}`), s.found // it was read from JSON, so it is written as JSON
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), s.found
}

// twice reports whether an object in JSON has two members of one name.
func twice(data json.RawMessage) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var open []map[string]bool // the names of each object that is open, nil for an array
	name := false              // the next string is one
	for {
		token, err := d.Token()
		if err != nil {
			return false // its end
		}
		switch token {
		case json.Delim('{'):
			open, name = append(open, map[string]bool{}), true
			continue
		case json.Delim('['):
			open, name = append(open, nil), false
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if text, ok := token.(string); ok && name {
				names := open[len(open)-1]
				if names[text] {
					return true
				}
				names[text], name = true, false
				continue
			}
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}

// Text is Scan for a text.
func Text(text string) (string, []Match) {
	s := scan{left: MaxCharacters}
	text = s.text(text, "")
	return text, s.found
}

// Named reports that a separately recorded object holds the secrets that were found.
func Named(found []Match, where string) []Match {
	out := slices.Clone(found)
	for i := range out {
		out[i].Where = where + out[i].Where
	}
	return out
}

// scan is one scan on its way.
type scan struct {
	left  int // characters
	found []Match
}

func (s *scan) value(v any, where string, depth int) any {
	if depth > MaxDepth {
		raw, err := json.Marshal(v)
		if err != nil || suspicious(raw) {
			return s.whole(Unscanned, where, "")
		}
		return v
	}
	switch v := v.(type) {
	case string:
		return s.text(v, where)
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = s.value(element, fmt.Sprintf("%s[%d]", where, i), depth+1)
		}
		return s.joined(out, where)
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			clean := s.text(name, where+".(name)")
			out[free(out, clean)] = s.value(v[name], where+"."+clean, depth+1)
		}
		return out
	}
	return v
}

// free returns a name that an object does not have yet: two secrets that were names have not become one.
func free(out map[string]any, name string) string {
	for n, first := 2, name; ; n++ {
		if _, taken := out[name]; !taken {
			return name
		}
		name = fmt.Sprintf("%s %d", first, n)
	}
}

// text returns a text without the secrets in it.
func (s *scan) text(text, where string) string {
	if !suspicious([]byte(text)) {
		return text
	}
	if s.left -= utf8.RuneCountInString(text); s.left < 0 {
		return s.whole(Unscanned, where, "")
	}
	for _, r := range rules {
		at := r.pattern.FindAllStringSubmatchIndex(text, MaxMatches+1)
		if len(at) == 0 {
			continue
		}
		if len(s.found)+len(at) > MaxMatches {
			return s.whole(Unscanned, where, "")
		}
		var out strings.Builder
		end := 0
		for _, m := range at {
			s.found = append(s.found, Match{r.name, where, preview(text[m[2]:m[3]])})
			out.WriteString(text[end:m[2]] + Redacted)
			end = m[3]
		}
		text = out.String() + text[end:]
	}
	if squeezed := squeeze(text); squeezed != text {
		for _, r := range rules {
			if m := r.pattern.FindStringSubmatch(squeezed); m != nil { // the secret was split, so its end is not known
				return s.whole(r.name, where, preview(m[1]))
			}
		}
	}
	return text
}

// joined takes out the texts of an array that are a secret only together.
func (s *scan) joined(list []any, where string) []any {
	var all strings.Builder
	for _, v := range list {
		if text, ok := v.(string); ok && text != Redacted {
			all.WriteString(text)
		}
	}
	text := all.String()
	if len(list) < 2 || !suspicious([]byte(text)) || len(text) > MaxCharacters {
		return list
	}
	for _, r := range rules {
		m := r.pattern.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		s.whole(r.name, where, preview(text[m[2]:m[3]]))
		at := 0
		for i, v := range list {
			piece, ok := v.(string)
			if !ok || piece == Redacted {
				continue
			}
			if at < m[3] && at+len(piece) > m[2] {
				list[i] = Redacted
			}
			at += len(piece)
		}
	}
	return list
}

// whole notes that a value is taken out as a whole.
func (s *scan) whole(rule, where, preview string) string {
	if len(s.found) < MaxMatches {
		s.found = append(s.found, Match{rule, where, preview})
	}
	return Redacted
}

// preview returns the part of a secret by which a person finds it again.
func preview(secret string) string {
	if len(secret) <= 8 {
		return strings.Repeat("*", len(secret))
	}
	return secret[:4] + "..." + secret[len(secret)-4:]
}

// invisible are characters that take no room, with which a secret may be split.
const invisible = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"

// wordBeginnings are how secrets begin that stand at the beginning of a word.
var wordBeginnings = []string{"sk-", "xox", "xapp-", "glpat-", "sk_live_", "rk_live_", "AIza", "npm_"}

// squeeze removes characters that may split a secret: those without a width, and line breaks with the blanks around them.
func squeeze(text string) string {
	if strings.ContainsAny(text, invisible) {
		text = strings.Map(func(r rune) rune {
			if strings.ContainsRune(invisible, r) {
				return -1
			}
			return r
		}, text)
	}
	if !strings.ContainsAny(text, "\n\r") {
		return text
	}
	var out strings.Builder
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.Trim(line, " \t")
		if slices.ContainsFunc(wordBeginnings, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
			// the character before it is not part of its word
			out.WriteByte(' ')
		}
		out.WriteString(line)
	}
	return out.String()
}

// suspicious reports whether a text may hold a secret, as JSON or decoded. Every record passes here, so it looks at each byte once.
// It is long because it is one switch over the bytes at which secrets are known.
//
//nolint:cyclop // one case for each byte at which secrets are known
func suspicious(b []byte) bool {
	for i, c := range b {
		switch c {
		case '-':
			if i >= 2 && b[i-1] == 'k' && b[i-2] == 's' {
				return true
			}
			if i >= 4 && (b[i-4] == 'x' && (b[i-3] == 'o' && b[i-2] == 'x' || b[i-3] == 'a' && b[i-2] == 'p') || b[i-3] == 'p' && b[i-2] == 'a' &&
				b[i-1] == 't') {
				return true
			}
		case '_':
			if i >= 3 && (b[i-3] == 'g' && b[i-2] == 'h' || b[i-3] == 'p' && b[i-2] == 'a' || b[i-3] == 'n' && b[i-2] == 'p' || b[i-2] == 'v' &&
				b[i-1] == 'e') {
				return true
			}
		case 'a':
			if i >= 3 && b[i-1] == 'z' && b[i-2] == 'I' && b[i-3] == 'A' {
				return true
			}
		case 'N': // of -----BEGIN
			if i >= 9 && b[i-1] == 'I' && b[i-5] == '-' && b[i-9] == '-' {
				return true
			}
		case 'I':
			if i >= 2 && b[i-2] == 'A' && (b[i-1] == 'K' || b[i-1] == 'S') {
				return true
			}
		case 'r', 'R':
			if i >= 5 && b[i-5]|0x20 == 'b' && b[i-4]|0x20 == 'e' && b[i-3]|0x20 == 'a' && b[i-2]|0x20 == 'r' && b[i-1]|0x20 == 'e' {
				return true
			}
		case '\\':
			if i+5 < len(b) && b[i+1] == 'u' && !plain[string(b[i+2:i+6])] {
				return true
			}
		case 0xc2, 0xe2, 0xef: // the first bytes of invisible
			if r, _ := utf8.DecodeRune(b[i:]); strings.ContainsRune(invisible, r) {
				return true
			}
		}
	}
	return false
}

// plain are the escapes that encoding/json writes by itself.
var plain = map[string]bool{"003c": true, "003e": true, "0026": true, "2028": true, "2029": true}
