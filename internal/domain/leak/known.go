package leak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"agentbox/internal/domain/policy"
)

// Bounds of the environment values that the scan searches for.
const (
	MinNamed   = 4        // bytes of a value whose name says that it is a secret
	MinUnnamed = 16       // bytes of another value, which also has to look like one
	minMixed   = 8        // bytes of the part of it that has letters and digits among each other
	MaxHeld    = 16 << 10 // bytes of a stream that may be the beginning of a secret and are held back
)

// Known are texts that are secret because of their origin, besides those that the rules find.
type Known struct{ values []string }

// secretName is a name of a variable that says that its value is a secret: one of these words, alone or beside others.
var secretName = regexp.MustCompile(
	`(?i)(?:^|[_.-])(?:[a-z]*keys?|[a-z]*tokens?|[a-z]*secrets?|pass(?:word|wd|phrase|code)?|[a-z]*password|` +
		`[a-z]*(?:tok|pw|pwd|passwd|creds?)|` +
		`credentials?|auth|authorization|private|signature|dsn|cookies?|sessions?)(?:$|[_.-])`)

// openValue is a value that is not a secret unless its name says so: a path or a list of paths, or an address without a password.
var openValue = regexp.MustCompile(`^(?:[./~][^=+]*|[a-z][a-z0-9+.-]*://[^@\s]*)$`)

// Values returns the values of an environment that may not be printed: those of variables with a secret's name, and those that look
// like a key. Words, numbers, dates, versions, paths and shorter texts are printed all the time, and hide nothing. Variables of the
// daemon's own (AGENTBOX_...) say how a command runs and are no secrets.
func Values(envs ...map[string]string) Known {
	var k Known
	for _, env := range envs {
		for name, value := range env {
			if value = strings.TrimSpace(value); secret(name, value) && !slices.Contains(k.values, value) {
				k.values = append(k.values, value)
			}
		}
	}
	return k
}

// secret reports whether a variable's value, without blanks around it, may not be printed.
func secret(name, value string) bool {
	if strings.HasPrefix(name, "AGENTBOX_") || policy.IsMask(value) {
		return false
	}
	named := secretName.MatchString(name) && len(value) >= MinNamed && !openValue.MatchString(value)
	return named || len(value) >= MinUnnamed && looksSecret(value)
}

// Variable reports whether the value of a variable is a secret: one that Values returns, or one in which the rules find a secret.
func Variable(name, value string) bool {
	if secret(name, strings.TrimSpace(value)) {
		return true
	}
	_, found := Text(value)
	return len(found) > 0
}

// withPassword is an address that holds a password.
var withPassword = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://[^:@/\s]*:[^@/\s]+@`)

// keyLike is one word of the letters that keys are written in.
var keyLike = regexp.MustCompile(`^[A-Za-z0-9_+/=.-]+$`)

// looksSecret reports whether a value looks like a key: one word with a part that mixes letters and digits, and neither a path nor an
// address.
func looksSecret(value string) bool {
	if withPassword.MatchString(value) {
		return true
	}
	if openValue.MatchString(value) || !keyLike.MatchString(value) {
		return false
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune("-_./+=", r) }) {
		digits := strings.Count(strings.Map(digitsOnly, part), "0")
		if len(part) >= minMixed && digits >= 2 && len(part)-digits >= 2 {
			return true
		}
	}
	return false
}

// digitsOnly makes each digit 0 and drops everything else.
func digitsOnly(r rune) rune {
	if r >= '0' && r <= '9' {
		return '0'
	}
	return -1
}

// Text returns a text without the known values and without the secrets that the rules find.
func (k Known) Text(text string) (string, []Match) {
	text, n := k.take(text)
	found := matches(nil, n, "")
	clean, more := Text(text)
	return clean, append(found, more[:min(len(more), MaxMatches-len(found))]...)
}

// take returns a text without the known values, and in how many places they stood. Values that overlap are one place: taking one of them
// out first would leave a part of the other.
func (k Known) take(text string) (string, int) {
	type place struct{ from, to int }
	var places []place
	for _, value := range k.values {
		for from := 0; ; from++ {
			at := strings.Index(text[from:], value)
			if at < 0 {
				break
			}
			from += at
			places = append(places, place{from, from + len(value)})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return a.from - b.from })
	var out strings.Builder
	n, end := 0, 0
	for _, p := range places {
		if p.from >= end {
			out.WriteString(text[end:p.from] + Redacted)
			n++
		}
		end = max(end, p.to)
	}
	return out.String() + text[end:], n
}

// matches adds n finds of known values to those that were found, up to the bound.
func matches(found []Match, n int, where string) []Match {
	for range min(n, MaxMatches-len(found)) {
		found = append(found, Match{EnvValue, where, strings.Repeat("*", 8)})
	}
	return found
}

// Scan returns JSON without the known values in its texts, and the values that it found. It does not apply the rules of the function
// Scan, because every record passes there anyway.
func (k Known) Scan(data json.RawMessage) (json.RawMessage, []Match) {
	if len(k.values) == 0 {
		return data, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return data, nil // the log refuses other texts than JSON
	}
	var found []Match
	var walk func(v any, where string) any
	walk = func(v any, where string) any {
		switch v := v.(type) {
		case string:
			clean, n := k.take(v)
			found = matches(found, n, where)
			return clean
		case []any:
			for i := range v {
				v[i] = walk(v[i], fmt.Sprintf("%s[%d]", where, i))
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				v[name] = walk(v[name], where+"."+name)
			}
		}
		return v
	}
	v = walk(v, "")
	if len(found) == 0 {
		return data, nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return json.RawMessage(`{}`), found // it was read from JSON, so it is written as JSON
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), found
}

// Stream cleans a text that comes in pieces, as a command prints it. It holds back the beginning of a possible secret, at most MaxHeld
// bytes, until the next text shows whether it is one.
type Stream struct {
	known Known
	held  []byte
}

// NewStream returns a stream that removes the known values and the secrets that the rules find.
func NewStream(known Known) *Stream { return &Stream{known: known} }

// Next takes a piece and returns the text that can be shown now, without secrets.
func (s *Stream) Next(piece []byte) []byte {
	s.held = append(s.held, piece...)
	cut := s.cut()
	if len(s.held)-cut > MaxHeld {
		cut = len(s.held)
	}
	if cut == 0 {
		return nil
	}
	return s.take(cut)
}

// Rest returns the text that was held back, without secrets.
func (s *Stream) Rest() []byte { return s.take(len(s.held)) }

func (s *Stream) take(n int) []byte {
	out := s.held[:n:n]
	s.held = slices.Clone(s.held[n:])
	if len(s.known.values) == 0 && !suspicious(out) {
		return out
	}
	text, found := s.known.Text(string(out))
	if len(found) == 0 {
		return out
	}
	return []byte(text)
}

// beginnings are how secrets begin that the rules find.
var beginnings = regexp.MustCompile(`(?i)sk-|gh[pousr]_|github_pat_|A[KS]IA|bearer[ \t:="']|xox[a-z]-|xapp-|glpat-|[sr]k_live_|AIza|npm_`)

// ends is how long the longest beginning is, less one: so much at the end of a piece may become one.
const ends = len("github_pat_") - 1

var pemBegin, pemEnd = []byte("-----BEGIN "), []byte("-----END ")

// cut returns the length of the held text that can be shown: no secret lies across that place.
func (s *Stream) cut() int {
	cut := len(s.held)
	if at := bytes.LastIndex(s.held, pemBegin); at >= 0 {
		rest := s.held[at:]
		if end := bytes.Index(rest, pemEnd); end < 0 || !bytes.Contains(rest[end+len(pemEnd):], []byte("-----")) {
			cut = at
		}
	}
	// Of the last word, which may go on: from where a secret begins in it, or may begin at its very end.
	line := bytes.LastIndexAny(s.held[:cut], "\n\r") + 1
	if at := beginnings.FindIndex(s.held[line:cut]); at != nil {
		cut = line + at[0]
	} else {
		for n := min(ends, cut-line); n > 0; n-- {
			if mayBegin(string(s.held[cut-n : cut])) {
				cut -= n
				break
			}
		}
	}
	for _, value := range s.known.values {
		for n := min(len(value)-1, len(s.held)); n > 0; n-- {
			if strings.HasPrefix(value, string(s.held[len(s.held)-n:])) {
				cut = min(cut, len(s.held)-n)
				break
			}
		}
	}
	for again := true; again; { // a value that lies across the cut is shown as a whole, or not yet
		again = false
		for _, value := range s.known.values {
			from := max(0, cut-len(value)+1)
			if at := bytes.Index(s.held[from:min(len(s.held), cut+len(value)-1)], []byte(value)); at >= 0 && cut > from+at {
				cut, again = from+at, true
			}
		}
	}
	return cut
}

// mayBegin reports whether a text is how a secret begins, cut off.
func mayBegin(tail string) bool {
	if len(tail) == len("xoxb") && strings.HasPrefix(tail, "xox") {
		return true
	}
	for _, full := range []string{"sk-", "sk_live_", "rk_live_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "AKIA", "ASIA", "xoxb",
		"xapp-", "glpat-", "AIza", "npm_", "-----BEGIN "} {
		if len(tail) < len(full) && strings.HasPrefix(full, tail) {
			return true
		}
	}
	return len(tail) < len("bearer ") && strings.HasPrefix("bearer ", strings.ToLower(tail))
}
