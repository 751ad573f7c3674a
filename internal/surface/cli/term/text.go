package term

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Pad fills a text with spaces on its left up to a width in bytes.
func Pad(s string, width int) string { return strings.Repeat(" ", max(0, width-len(s))) + s }

// PadRight fills a text with spaces on its right up to a width in bytes.
func PadRight(s string, width int) string { return s + strings.Repeat(" ", max(0, width-len(s))) }

// Moment writes a time as transcripts do.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05.000 MST")
}

// Plain makes foreign text harmless for a terminal: control characters, text direction marks and invalid bytes become visible escapes.
// Line breaks and tabs stay.
func Plain(s string) string {
	if harmless(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !disguise(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

func harmless(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || disguise(r) {
			return false
		}
	}
	return true
}

// disguise reports whether a character moves the cursor, changes what follows, or cannot be seen.
func disguise(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == 0x00ad, r == 0x061c, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xfeff, r == 0xffa0: // soft hyphen, letter mark, fillers, BOM
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f: // zero width, separators, direction
		return true
	case r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff: // annotations, tags
		return true
	}
	return unicode.IsControl(r)
}

// OneLine makes foreign text harmless and puts it on one line of at most width characters.
func OneLine(s string, width int) string {
	s = strings.ReplaceAll(strings.ReplaceAll(Plain(s), "\n", `\n`), "\t", `\t`)
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(0, width-1)]) + "…"
}

// Duration writes a time span in the unit that suits it.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// Ahead writes when a moment comes, or that it has passed.
func Ahead(now, then time.Time) string {
	switch d := then.Sub(now); {
	case then.IsZero():
		return "-"
	case d <= 0:
		return "expired"
	default:
		return "in " + Duration(d.Round(time.Second))
	}
}

// Ago writes how long ago a moment was.
func Ago(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	d := now.Sub(then).Round(time.Second)
	switch {
	case d < time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	}
	return Duration(d) + " ago"
}

// Bytesize writes a number of bytes in the binary unit that suits it.
func Bytesize(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// Wrapped breaks text between words so that its lines fit into a width, the further ones behind an indent. A word that is longer than that
// stays whole, for it may be an id or a path to be copied. A width of 0 breaks nothing.
func Wrapped(text string, width, indent int) string {
	if width <= indent || indent+utf8.RuneCountInString(text) <= width {
		return text
	}
	var b strings.Builder
	column := indent
	for word := range strings.SplitSeq(text, " ") {
		length := utf8.RuneCountInString(word)
		switch {
		case b.Len() == 0:
		case column+1+length > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}

// Count writes how many there are of something whose plural ends with s: 1 file, 2 files.
func Count[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
