package gate

import (
	"strings"

	"agentbox/internal/command"
)

// maxCatchWork bounds how many pairs of characters catch compares for one command line. A larger comparison counts as a match.
const maxCatchWork = 4_000_000

// mere replaces a component of a pattern that is a single star: it names no particular file, so only a star of the policy matches it.
const mere = '\x01'

// catch finds out whether patterns may match files that a policy refuses.
type catch struct {
	globs []string
	work  int // left
}

func newCatch(blocked []string) *catch {
	c := &catch{work: maxCatchWork}
	for _, glob := range blocked {
		glob = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(glob, "**/"), "/**"), "/")
		for strings.Contains(glob, "**") {
			glob = strings.ReplaceAll(glob, "**", "*")
		}
		c.globs = append(c.globs, glob)
	}
	return c
}

// finds returns the glob of the policy that a file of a command line may fit, and whether there is one. An exact name is left to the
// policy itself.
func (c *catch) finds(f command.File) (glob string, caught bool) {
	if !f.Pattern && !f.Fold && !f.Part {
		return "", false
	}
	name := f.Path
	if f.Pattern {
		parts := strings.Split(name, "/")
		for i, part := range parts {
			if part != "" && strings.Trim(part, "*") == "" {
				parts[i] = string(mere)
			}
		}
		name = strings.Join(parts, "/")
	}
	for _, g := range c.globs {
		if strings.Trim(g, "*") == "" {
			continue // it refuses every file, a pattern as well
		}
		name, g := name, g
		if f.Fold {
			name, g = strings.ToLower(name), strings.ToLower(g)
		}
		if f.Part && strings.Contains(name, strings.Trim(g, "*")) {
			return g, true
		}
		for _, form := range [...]string{g, "*/" + g, g + "/*", "*/" + g + "/*"} {
			if c.work -= (len(name) + 1) * (len(form) + 1); c.work < 0 {
				return g, true
			}
			m := meeting{name: name, form: form, deep: f.Joined, dots: f.Dots || f.Joined, pattern: f.Pattern}
			if m.meets() {
				return g, true
			}
		}
	}
	return "", false
}

// meeting is the question whether a path exists that matches two patterns: one of the shell, and one of the policy, whose star matches
// slashes too.
type meeting struct {
	name, form          string
	pattern, deep, dots bool // name is a pattern; its stars fit slashes; they fit a dot at the beginning of a name
}

// meets answers it by walking both at once: row[j] says that name[:i] and form[:j] have a beginning in common that fits both.
func (m meeting) meets() bool {
	row := make([]bool, len(m.form)+1)
	next, taken := make([]bool, len(m.form)+1), make([]bool, len(m.form)+1) // taken: by a star of the name that stands for something
	row[0] = true
	skips(row, m.form)
	for i := 0; i < len(m.name); {
		wild, width := m.token(i)
		clear(next)
		switch wild {
		case 0:
			for j, ok := range row {
				next[j] = next[j] || ok && j < len(m.form) && m.form[j] == '*'
				if ok && j < len(m.form) && m.form[j] == m.name[i] {
					next[j+1] = true
				}
			}
		case '?':
			for j, ok := range row {
				next[j] = next[j] || ok && j < len(m.form) && m.form[j] == '*'
				if ok && j < len(m.form) && m.fits(i, m.form[j]) {
					next[j+1] = true
				}
			}
		case '*':
			copy(next, row)
			for j := range m.form { // the star matches what the form demands; a star of the form matches anything
				ch := m.form[j]
				taken[j+1] = row[j] && m.fits(i, ch) || taken[j] && (m.deep || ch != '/')
				next[j+1] = next[j+1] || taken[j+1]
			}
		}
		skips(next, m.form)
		row, next = next, row
		i += width
	}
	return row[len(m.form)]
}

// token returns the element at a place of the name and its length: 0 for a literal character, '?' for any one, '*' for any text.
func (m meeting) token(i int) (wild byte, width int) {
	if !m.pattern {
		return 0, 1
	}
	switch m.name[i] {
	case '*', '?':
		return m.name[i], 1
	case '[':
		if end := strings.IndexByte(m.name[i:], ']'); end > 1 {
			return '?', end + 1
		}
	}
	return 0, 1
}

// fits reports whether a wildcard at a place of the name may match a character of the form. It matches no slash, and no dot at the
// beginning of a name.
func (m meeting) fits(i int, ch byte) bool {
	begins := i == 0 || m.name[i-1] == '/'
	return (m.deep || ch != '/') && (m.dots || !begins || ch != '.')
}

// skips lets each reached star of the form match the empty text.
func skips(row []bool, form string) {
	for j := range form {
		if row[j] && form[j] == '*' {
			row[j+1] = true
		}
	}
}
