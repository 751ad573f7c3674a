package term

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// colours matches the colour sequences that pass to the terminal unchanged. They only change how text looks. The screen resets them after
// the output.
var colours = regexp.MustCompile(`^\x1b\[[0-9;]{0,32}m`)

// Screen writes the output of a command to a terminal: text, line breaks, tabs and colours; all else that a terminal would obey is made
// visible. Pieces of a character or of a colour are held until the rest has come.
type Screen struct {
	Out      io.Writer
	rest     []byte
	coloured bool // a colour was begun
	Open     bool // the last line has no end yet
}

// longestColour is how many bytes are held back that may become a colour sequence.
const longestColour = 36

// Write implements io.Writer.
func (s *Screen) Write(data []byte) (int, error) {
	text := string(append(s.rest, data...))
	s.rest = nil
	var b strings.Builder
	for text != "" {
		if colour := colours.FindString(text); colour != "" {
			b.WriteString(colour)
			s.coloured, text = true, text[len(colour):]
			continue
		}
		if unfinished(text) {
			s.rest = []byte(text)
			break
		}
		if after, ok := strings.CutPrefix(text, "\r\n"); ok {
			b.WriteByte('\n')
			text = after
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		if text[0] == '\r' { // the earlier text stays visible
			b.WriteByte('\n')
		} else {
			b.WriteString(Plain(text[:size]))
		}
		text = text[size:]
	}
	if b.Len() > 0 {
		s.Open = !strings.HasSuffix(b.String(), "\n")
	}
	if _, err := io.WriteString(s.Out, b.String()); err != nil {
		return 0, err
	}
	return len(data), nil
}

// unfinished reports whether a text may get another meaning when more bytes follow.
func unfinished(text string) bool {
	switch {
	case text == "\r":
		return true
	case text[0] == '\x1b' && len(text) < longestColour:
		return strings.Trim(strings.TrimPrefix(text[1:], "["), "0123456789;") == "" && (len(text) == 1 || text[1] == '[')
	}
	return !utf8.FullRuneInString(text)
}

// Flush writes the held text and ends colours.
func (s *Screen) Flush() error {
	text := Plain(string(s.rest))
	if string(s.rest) == "\r" {
		text = "\n"
	}
	if s.coloured {
		text += "\x1b[0m"
	}
	if len(s.rest) > 0 {
		s.Open = !strings.HasSuffix(text, "\n")
	}
	s.rest, s.coloured = nil, false
	_, err := io.WriteString(s.Out, text)
	return err
}
