package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// plain makes foreign text harmless for a terminal: control characters, text direction marks and invalid bytes become visible escapes.
// Line breaks and tabs stay.
func plain(s string) string {
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

// oneLine makes foreign text harmless and puts it on one line of at most width characters.
func oneLine(s string, width int) string {
	s = strings.ReplaceAll(strings.ReplaceAll(plain(s), "\n", `\n`), "\t", `\t`)
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(0, width-1)]) + "…"
}

// duration writes a time span in the unit that suits it.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + duration(-d)
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

// ahead writes when a moment comes, or that it has passed.
func ahead(now, then time.Time) string {
	switch d := then.Sub(now); {
	case then.IsZero():
		return "-"
	case d <= 0:
		return "expired"
	default:
		return "in " + duration(d.Round(time.Second))
	}
}

// ago writes how long ago a moment was.
func ago(now, then time.Time) string {
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
	return duration(d) + " ago"
}

// bytesize writes a number of bytes in the binary unit that suits it.
func bytesize(n int64) string {
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

// wrapped breaks text between words so that its lines fit into a width, the further ones behind an indent. A word that is longer than that
// stays whole, for it may be an id or a path to be copied. A width of 0 breaks nothing.
func wrapped(text string, width, indent int) string {
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

// parseSize reads a number of bytes with an optional unit: 512, 64KiB, 1.5G. Units are binary, with or without iB.
func parseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "BbIiKkMmGgTt ")
	value, err := strconv.ParseFloat(number, 64)
	unit := strings.ToUpper(strings.TrimSpace(text[len(number):]))
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "I")
	power := strings.Index("KMGT", unit) + 1
	if unit == "" {
		power = 0
	}
	if err != nil || len(unit) > 1 || unit != "" && power == 0 || !(value >= 0 && value <= 1<<52) {
		return 0, usage("%q is not a size; write for example 512MiB or 2G", oneLine(text, 40))
	}
	return int64(value * float64(int64(1)<<(10*power))), nil
}

// parseSpan reads a time span: 90s, 15m, 12h, 7d.
func parseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err == nil && n > 0 && n <= 3650 {
			return time.Duration(n * float64(24*time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usage("%q is not a time span; write for example 90s, 15m, 12h or 7d", oneLine(text, 40))
	}
	return d, nil
}

// count writes how many there are of something whose plural ends with s: 1 file, 2 files.
func count[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
