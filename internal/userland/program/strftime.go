package program

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Strftime formats a time as strftime of C does in the C locale, with the flags of GNU (-, _, 0, ^, #) and %N.
func Strftime(layout string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' || i+1 == len(layout) {
			b.WriteByte(layout[i])
			continue
		}
		begin := i
		i++
		flag := byte(0)
		for i < len(layout) && strings.IndexByte("-_0^#+", layout[i]) >= 0 {
			flag = layout[i]
			i++
		}
		width := 0
		for i < len(layout) && layout[i] >= '0' && layout[i] <= '9' {
			width = min(width*10+int(layout[i]-'0'), 1024)
			i++
		}
		colons := 0
		for i < len(layout) && layout[i] == ':' {
			colons++
			i++
		}
		for i < len(layout) && (layout[i] == 'E' || layout[i] == 'O') {
			i++
		}
		if i == len(layout) {
			b.WriteString(layout[begin:])
			break
		}
		s, ok := conversion(layout[i], t, flag, width, colons)
		if !ok {
			b.WriteString(layout[begin : i+1])
			continue
		}
		b.WriteString(s)
	}
	return b.String()
}

// conversion writes one conversion. It is long because it is one switch over the letters of these.
//
//nolint:cyclop // one case for each conversion
func conversion(c byte, t time.Time, flag byte, width, colons int) (string, bool) {
	number := func(n, digits int, fill byte) string {
		normal := digits
		if c == 'Y' {
			normal = 4
		}
		if width > 0 {
			digits = width
		}
		switch flag {
		case '-':
			return strconv.Itoa(n)
		case '_':
			fill = ' '
		case '0':
			fill = '0'
		}
		s, sign := strconv.Itoa(n), ""
		if fill == '0' && n < 0 {
			s, sign = s[1:], "-"
		} else if flag == '+' && (c == 'Y' || c == 'G' || c == 'C' || c == 'F') && digits > normal {
			sign = "+"
		}
		if len(s)+len(sign) < digits {
			s = strings.Repeat(string(fill), digits-len(s)-len(sign)) + s
		}
		return sign + s
	}
	text := func(s string) string {
		if flag == '^' {
			s = strings.ToUpper(s)
		}
		if len(s) < width {
			fill := " "
			if flag == '0' {
				fill = "0"
			}
			s = strings.Repeat(fill, width-len(s)) + s
		}
		return s
	}
	hour := (t.Hour()+11)%12 + 1
	isoYear, isoWeek := t.ISOWeek()
	switch c {
	case 'a':
		return text(t.Format("Mon")), true
	case 'A':
		return text(t.Format("Monday")), true
	case 'b', 'h':
		return text(t.Format("Jan")), true
	case 'B':
		return text(t.Format("January")), true
	case 'c':
		return text(t.Format("Mon Jan _2 15:04:05 2006")), true
	case 'C':
		return number(t.Year()/100, 2, '0'), true
	case 'd':
		return number(t.Day(), 2, '0'), true
	case 'D', 'x':
		return text(t.Format("01/02/06")), true
	case 'e':
		return number(t.Day(), 2, ' '), true
	case 'F':
		return text(t.Format("2006-01-02")), true
	case 'g':
		return number(isoYear%100, 2, '0'), true
	case 'G':
		return number(isoYear, 4, '0'), true
	case 'H':
		return number(t.Hour(), 2, '0'), true
	case 'I':
		return number(hour, 2, '0'), true
	case 'j':
		return number(t.YearDay(), 3, '0'), true
	case 'k':
		return number(t.Hour(), 2, ' '), true
	case 'l':
		return number(hour, 2, ' '), true
	case 'm':
		return number(int(t.Month()), 2, '0'), true
	case 'M':
		return number(t.Minute(), 2, '0'), true
	case 'n':
		return "\n", true
	case 'N':
		s := fmt.Sprintf("%09d", t.Nanosecond())
		if width > 0 && width < 9 {
			s = s[:width]
		} else if width > 9 {
			s += strings.Repeat("0", width-9)
		}
		return s, true
	case 'p':
		if flag == '#' {
			return text(t.Format("pm")), true
		}
		return text(t.Format("PM")), true
	case 'P':
		return text(t.Format("pm")), true
	case 'q':
		return number((int(t.Month())+2)/3, 1, '0'), true
	case 'r':
		return text(t.Format("03:04:05 PM")), true
	case 'R':
		return text(t.Format("15:04")), true
	case 's':
		return number(int(t.Unix()), 1, '0'), true
	case 'S':
		return number(t.Second(), 2, '0'), true
	case 't':
		return "\t", true
	case 'T', 'X':
		return text(t.Format("15:04:05")), true
	case 'u':
		return number((int(t.Weekday())+6)%7+1, 1, '0'), true
	case 'U':
		return number((t.YearDay()+6-int(t.Weekday()))/7, 2, '0'), true
	case 'V':
		return number(isoWeek, 2, '0'), true
	case 'w':
		return number(int(t.Weekday()), 1, '0'), true
	case 'W':
		return number((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0'), true
	case 'y':
		return number(t.Year()%100, 2, '0'), true
	case 'Y':
		return number(t.Year(), 1, '0'), true
	case 'z':
		return zoneOffset(t, flag, width, colons), true
	case 'Z':
		name, _ := t.Zone()
		if flag == '#' {
			name = strings.ToLower(name)
		}
		return text(name), true
	case '%':
		return "%", true
	}
	return "", false
}

// zoneOffset writes %z: +hhmm, with colons +hh:mm and +hh:mm:ss, and with three of them as few parts as it needs.
func zoneOffset(t time.Time, flag byte, width, colons int) string {
	_, offset := t.Zone()
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	hours, minutes, seconds := offset/3600, offset/60%60, offset%60
	tail := ""
	switch {
	case colons == 0:
		tail = fmt.Sprintf("%02d", minutes)
	case colons == 2, colons == 3 && seconds > 0:
		tail = fmt.Sprintf(":%02d:%02d", minutes, seconds)
	case colons == 1, minutes > 0:
		tail = fmt.Sprintf(":%02d", minutes)
	}
	switch digits := max(2, width-1-len(tail)); flag {
	case '-':
		return fmt.Sprintf("%s%d%s", sign, hours, tail)
	case '_':
		return fmt.Sprintf("%*s%s", digits+1, sign+strconv.Itoa(hours), tail)
	default:
		return fmt.Sprintf("%s%0*d%s", sign, digits, hours, tail)
	}
}
