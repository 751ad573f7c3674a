package coreutils

import (
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/program"
)

// time returns the time by which ls sorts and which it shows.
func (l *lister) time(e listed) time.Time {
	switch l.field {
	case 'a':
		return e.info.Accessed
	case 'c':
		return e.info.Changed
	}
	return e.info.Modified
}

func (l *lister) stamp(e listed) string {
	t := l.time(e).In(l.zone)
	recent := t.After(l.p.Now().Add(-31556952*time.Second/2)) && !t.After(l.p.Now())
	switch {
	case l.style == "full-iso":
		return program.Strftime("%Y-%m-%d %H:%M:%S.%N %z", t)
	case l.style == "long-iso":
		return program.Strftime("%Y-%m-%d %H:%M", t)
	case l.style == "iso":
		if recent {
			return program.Strftime("%m-%d %H:%M", t)
		}
		return program.Strftime("%Y-%m-%d ", t)
	case strings.HasPrefix(l.style, "+"):
		return program.Strftime(l.style[1:], t)
	case recent:
		return program.Strftime("%b %e %H:%M", t)
	}
	return program.Strftime("%b %e  %Y", t)
}

// stamp reads the time of touch -t: [[CC]YY]MMDDhhmm[.ss].
func stamp(s string, now time.Time) (time.Time, bool) {
	digits, sec, hasSec := strings.Cut(s, ".")
	seconds := 0
	if hasSec {
		n, err := strconv.Atoi(sec)
		if err != nil || len(sec) != 2 {
			return time.Time{}, false
		}
		seconds = n
	}
	year := now.Year()
	switch len(digits) {
	case 8:
	case 10, 12:
		n, err := strconv.Atoi(digits[:len(digits)-8])
		if err != nil {
			return time.Time{}, false
		}
		if year = n; len(digits) == 10 {
			if year += 1900; n < 69 {
				year += 100
			}
		}
		digits = digits[len(digits)-8:]
	default:
		return time.Time{}, false
	}
	t, err := time.ParseInLocation("200601021504", strconv.Itoa(year + 10000)[1:]+digits, now.Location())
	return t.Add(time.Duration(seconds) * time.Second), err == nil
}
