package posix

import (
	"encoding/binary"
	"strings"
	"time"
	_ "time/tzdata" // a nano space knows the same zones on every machine, and its worker may read no file of it
)

// Zone returns the time zone that a value of the variable TZ means: the name of one of the tz database, or a rule such as EST5EDT,M3.2.0,M11.1.0. A leading colon means
// nothing. What it does not know is UTC under the name that the value begins with, as in the C library of Linux.
func Zone(tz string) *time.Location {
	tz = strings.TrimPrefix(tz, ":")
	tz = strings.TrimPrefix(tz, "/usr/share/zoneinfo/")
	if tz == "" || tz == "UTC" || len(tz) > maxZone {
		return time.UTC
	}
	if tz != "Local" && !strings.ContainsAny(tz, "<,\x00") {
		if zone, err := time.LoadLocation(tz); err == nil {
			return zone
		}
	}
	name, rest := zoneName(tz)
	if name == "" {
		return time.UTC
	}
	seconds, rest, ok := zoneOffset(rest)
	if !ok {
		return time.FixedZone(name, 0)
	}
	if rest != "" {
		if zone, ok := ruled(tz, name, seconds); ok {
			return zone
		}
	}
	return time.FixedZone(name, seconds)
}

// maxZone is how long a name or a rule may be.
const maxZone = 255

// zoneName reads the abbreviation with which a rule begins, which may stand in < and >.
func zoneName(s string) (name, rest string) {
	if strings.HasPrefix(s, "<") {
		end := strings.IndexByte(s, '>')
		if end < 4 {
			return "", ""
		}
		return s[1:end], s[end+1:]
	}
	end := 0
	for end < len(s) && (s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	if end < 3 {
		return "", ""
	}
	return s[:end], s[end:]
}

// zoneOffset reads hours, minutes and seconds west of Greenwich, and returns the seconds east of it.
func zoneOffset(s string) (seconds int, rest string, ok bool) {
	sign := -1
	switch {
	case strings.HasPrefix(s, "-"):
		sign, s = 1, s[1:]
	case strings.HasPrefix(s, "+"):
		s = s[1:]
	}
	for unit := 3600; unit > 0; unit /= 60 {
		n, digits := 0, 0
		for digits < len(s) && digits < 3 && s[digits] >= '0' && s[digits] <= '9' {
			n = n*10 + int(s[digits]-'0')
			digits++
		}
		if digits == 0 || unit == 3600 && n > 24 || unit < 3600 && n > 59 {
			return 0, s, false
		}
		seconds += n * unit
		if s = s[digits:]; !strings.HasPrefix(s, ":") {
			return sign * seconds, s, true
		}
		s = s[1:]
	}
	return sign * seconds, s, true
}

// ruled returns the zone of a rule with summer time: that of a file of the tz database which holds nothing but the rule.
func ruled(rule, name string, seconds int) (*time.Location, bool) {
	const header = 44
	file := func(version byte, size int) []byte {
		b := make([]byte, header, header+size)
		copy(b, "TZif")
		b[4] = version
		binary.BigEndian.PutUint32(b[32:], 1)                   // changes
		binary.BigEndian.PutUint32(b[36:], 1)                   // kinds of time
		binary.BigEndian.PutUint32(b[40:], uint32(len(name)+1)) // bytes of names
		return b
	}
	tail := func(b []byte) []byte {
		b = append(b, 0) // the kind of time behind the change
		b = binary.BigEndian.AppendUint32(b, uint32(int32(seconds)))
		b = append(b, 0, 0) // no summer time, the first name
		b = append(b, name...)
		return append(b, 0)
	}
	b := tail(binary.BigEndian.AppendUint32(file('2', 64), 1<<31))
	b = append(b, tail(binary.BigEndian.AppendUint64(file('2', 64), 1<<63|1<<62|1<<61|1<<60|1<<59))...)
	b = append(b, '\n')
	b = append(b, rule...)
	b = append(b, '\n')
	zone, err := time.LoadLocationFromTZData("TZ", b)
	return zone, err == nil
}
