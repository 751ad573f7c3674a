package posix

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the worker reads no file of the host
)

// Zone returns the time zone that a value of the variable TZ names, as the C library of GNU reads it:
//
//   - a name of the zone database ("Asia/Tokyo", also ":Asia/Tokyo" and "/usr/share/zoneinfo/Asia/Tokyo"),
//   - a rule of POSIX ("UTC+5", "<-03>3", "EST5EDT,M3.2.0,M11.1.0"),
//   - what is neither is UTC, with the letters at its begin as its abbreviation; the empty value is UTC.
func Zone(tz string) *time.Location {
	tz = strings.TrimPrefix(tz, ":")
	if tz == "" || len(tz) > maxZone {
		return time.UTC
	}
	name := strings.TrimPrefix(tz, "/usr/share/zoneinfo/")
	if name != "Local" { // that is what Go calls the zone of the host
		if loc, err := time.LoadLocation(name); err == nil {
			return loc
		}
	}
	abbreviation, rest := zoneName(tz)
	if abbreviation == "" {
		return time.FixedZone("", 0)
	}
	offset, rest, ok := zoneOffset(rest)
	if !ok {
		return time.FixedZone(abbreviation, 0)
	}
	if summer, _ := zoneName(rest); summer != "" {
		if loc := ruleZone(tz, abbreviation, rest, offset); loc != nil {
			return loc
		}
	}
	return time.FixedZone(abbreviation, offset)
}

// GasPerZone is what Zone costs: it reads the transitions of a zone each time. It charges nothing itself.
const GasPerZone = 20_000

// maxZone is the length limit of a value of TZ. A longer value means UTC.
const maxZone = 255

// zoneName cuts the abbreviation of a zone off a rule: three letters or more, or anything in angle brackets.
func zoneName(s string) (name, rest string) {
	if inner, ok := strings.CutPrefix(s, "<"); ok {
		end := strings.IndexByte(inner, '>')
		if end < 3 {
			return "", s
		}
		return inner[:end], inner[end+1:]
	}
	end := 0
	for end < len(s) && (s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	if end < 3 {
		return "", s
	}
	return s[:end], s[end:]
}

// zoneOffset cuts the offset off a rule, [+-]hh[:mm[:ss]], and returns it as seconds east of Greenwich. POSIX counts west.
func zoneOffset(s string) (east int, rest string, ok bool) {
	sign := -1
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			sign = 1
		}
		s = s[1:]
	}
	unit := 3600
	for limit := 24; unit > 0; limit, unit = 59, unit/60 {
		if ok {
			if s == "" || s[0] != ':' {
				break
			}
			s = s[1:]
		}
		digits := 0
		for digits < len(s) && digits < 3 && s[digits] >= '0' && s[digits] <= '9' {
			digits++
		}
		n, err := strconv.Atoi(s[:digits])
		if err != nil {
			break
		}
		east += min(n, limit) * unit
		s, ok = s[digits:], true
	}
	return sign * east, s, ok
}

// ruleZone makes a zone whose summer time follows a rule. It writes the rule as the footer of a file of the zone database that has no
// transitions. It returns nil where the rule is not one.
func ruleZone(tz, name, rest string, offset int) *time.Location {
	summer, after := zoneName(rest)
	if after == "" || after[0] != ',' {
		if _, left, ok := zoneOffset(after); ok {
			after = left
		}
		if after == "" {
			tz += ",M3.2.0,M11.1.0"
		}
	}
	names := name + "\x00" + summer + "\x00"
	header := func(counted bool) []byte {
		b := append([]byte("TZif2"), make([]byte, 15)...)
		counts := [6]uint32{0, 0, 0, 0, 1, 1}
		if counted {
			counts[5] = uint32(len(names))
		}
		for _, n := range counts {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return b
	}
	b := append(header(false), make([]byte, 7)...)
	b = append(b, header(true)...)
	b = binary.BigEndian.AppendUint32(b, uint32(int32(offset)))
	b = append(b, 0, 0)
	b = append(b, names...)
	loc, err := time.LoadLocationFromTZData("", append(b, "\n"+tz+"\n"...))
	if err != nil {
		return nil
	}
	return loc
}
