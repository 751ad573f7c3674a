package posix

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Strftime writes a time as the C library's function of that name does in the locale C, with GNU's flags -, _, 0, ^ and #.
func Strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' || i+1 == len(format) {
			b.WriteByte(c)
			continue
		}
		start := i
		i++
		flag := byte(0)
		upper := false
		for i < len(format) && strings.IndexByte("-_0^#", format[i]) >= 0 {
			if format[i] == '^' || format[i] == '#' {
				upper = true
			} else {
				flag = format[i]
			}
			i++
		}
		width := 0
		for i < len(format) && format[i] >= '0' && format[i] <= '9' && width < 100 {
			width = width*10 + int(format[i]-'0')
			i++
		}
		colons := 0
		for i < len(format) && format[i] == ':' {
			colons++
			i++
		}
		if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
			i++
		}
		if i == len(format) {
			b.WriteString(format[start:])
			break
		}
		s, ok := field(format[i], t, flag, width, colons)
		if !ok {
			b.WriteString(format[start : i+1])
			continue
		}
		if upper {
			s = strings.ToUpper(s)
		}
		b.WriteString(s)
	}
	return b.String()
}

func field(c byte, t time.Time, flag byte, width, colons int) (string, bool) {
	pad := func(n, digits int, fill byte) string {
		if flag == '_' {
			fill = ' '
		} else if flag == '0' {
			fill = '0'
		}
		digits = max(digits, width)
		s := strconv.Itoa(n)
		if flag == '-' {
			return s
		}
		for len(s) < digits {
			if fill == '0' && strings.HasPrefix(s, "-") {
				s = "-0" + s[1:]
			} else {
				s = string(fill) + s
			}
		}
		return s
	}
	text := func(s string) string {
		for len(s) < width {
			s = " " + s
		}
		return s
	}
	hour12 := (t.Hour()+11)%12 + 1
	isoYear, isoWeek := t.ISOWeek()
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'a':
		return text(t.Weekday().String()[:3]), true
	case 'A':
		return text(t.Weekday().String()), true
	case 'b', 'h':
		return text(t.Month().String()[:3]), true
	case 'B':
		return text(t.Month().String()), true
	case 'c':
		return text(t.Format("Mon Jan _2 15:04:05 2006")), true
	case 'C':
		return pad(t.Year()/100, 2, '0'), true
	case 'd':
		return pad(t.Day(), 2, '0'), true
	case 'D', 'x':
		return text(t.Format("01/02/06")), true
	case 'e':
		return pad(t.Day(), 2, ' '), true
	case 'F':
		return text(t.Format("2006-01-02")), true
	case 'g':
		return pad(isoYear%100, 2, '0'), true
	case 'G':
		return pad(isoYear, 4, '0'), true
	case 'H':
		return pad(t.Hour(), 2, '0'), true
	case 'I':
		return pad(hour12, 2, '0'), true
	case 'j':
		return pad(t.YearDay(), 3, '0'), true
	case 'k':
		return pad(t.Hour(), 2, ' '), true
	case 'l':
		return pad(hour12, 2, ' '), true
	case 'm':
		return pad(int(t.Month()), 2, '0'), true
	case 'M':
		return pad(t.Minute(), 2, '0'), true
	case 'N':
		s := fmt.Sprintf("%09d", t.Nanosecond())
		if width > 0 && width < 9 {
			s = s[:width]
		}
		return s, true
	case 'p':
		return text(t.Format("PM")), true
	case 'P':
		return text(t.Format("pm")), true
	case 'q':
		return strconv.Itoa((int(t.Month())-1)/3 + 1), true
	case 'r':
		return text(t.Format("03:04:05 PM")), true
	case 'R':
		return text(t.Format("15:04")), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'S':
		return pad(t.Second(), 2, '0'), true
	case 'T', 'X':
		return text(t.Format("15:04:05")), true
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1), true
	case 'U':
		return pad((t.YearDay()+6-int(t.Weekday()))/7, 2, '0'), true
	case 'V':
		return pad(isoWeek, 2, '0'), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 'W':
		return pad((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0'), true
	case 'y':
		return pad(t.Year()%100, 2, '0'), true
	case 'Y':
		return pad(t.Year(), 1, '0'), true
	case 'z':
		switch colons {
		case 1:
			return t.Format("-07:00"), true
		case 2:
			return t.Format("-07:00:00"), true
		}
		return t.Format("-0700"), true
	case 'Z':
		return text(t.Format("MST")), true
	}
	return "", false
}
