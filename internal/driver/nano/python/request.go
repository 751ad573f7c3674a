package python

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// pairs are the variables of an environment, NAME=VALUE.
type pairs []string

func (p pairs) get(name string) string {
	for i := len(p) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(p[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// encode writes a command as the guest reads it: as JSON, in which a byte that is not UTF-8 is the surrogate that Python has for it.
func (c *command) encode() []byte {
	w := &writer{}
	w.WriteByte('{')
	for i, f := range []struct {
		name  string
		value any
	}{
		{"kind", string(c.Kind)}, {"source", c.Source}, {"name", c.Name}, {"argv", c.Args}, {"orig_argv", c.Original}, {"cwd", c.Cwd},
		{"env", c.Env}, {"safe_path", c.SafePath}, {"ignore_environment", c.IgnoreEnvironment}, {"unbuffered", c.Unbuffered},
		{"skip_first_line", c.SkipFirstLine}, {"optimize", c.Optimize}, {"warnings", c.Warnings}, {"xoptions", c.Extra},
	} {
		if i > 0 {
			w.WriteByte(',')
		}
		w.text(f.name)
		w.WriteByte(':')
		switch v := f.value.(type) {
		case string:
			w.text(v)
		case []string:
			w.list(v)
		case pairs:
			w.list(v)
		default:
			plain, _ := json.Marshal(v) // a number or a truth value
			w.Write(plain)
		}
	}
	w.WriteByte('}')
	return w.Bytes()
}

type writer struct{ bytes.Buffer }

func (w *writer) list(all []string) {
	w.WriteByte('[')
	for i, s := range all {
		if i > 0 {
			w.WriteByte(',')
		}
		w.text(s)
	}
	w.WriteByte(']')
}

func (w *writer) text(s string) {
	const hex = "0123456789abcdef"
	w.WriteByte('"')
	for i := 0; i < len(s); {
		b := s[i]
		switch {
		case b == '"' || b == '\\':
			w.WriteByte('\\')
			w.WriteByte(b)
		case b < ' ':
			w.WriteString(`\u00`)
			w.WriteByte(hex[b>>4])
			w.WriteByte(hex[b&15])
		case b < utf8.RuneSelf:
			w.WriteByte(b)
		default:
			_, n := utf8.DecodeRuneInString(s[i:])
			if n == 1 {
				w.WriteString(`\udc`)
				w.WriteByte(hex[b>>4])
				w.WriteByte(hex[b&15])
			} else {
				w.WriteString(s[i : i+n])
			}
			i += n
			continue
		}
		i++
	}
	w.WriteByte('"')
}
