package coreutils

import (
	"strconv"
	"strings"
	"time"

	"agentbox/internal/driver/wasm/program"
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
	t := l.time(e).UTC()
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
	t, err := time.Parse("200601021504", strconv.Itoa(year + 10000)[1:]+digits)
	return t.Add(time.Duration(seconds) * time.Second), err == nil
}

// ParseDate reads a date as date -d does: absolute forms, @seconds, and what is added to or taken from a time.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	t := now
	s = strings.TrimSpace(strings.ToLower(s))
	if s == "" {
		return midnight(t), true
	}
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		n, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			return t, false
		}
		whole := int64(n)
		return time.Unix(whole, int64((n-float64(whole))*1e9)).UTC(), true
	}
	d := &dateParser{words: dateWords(s), at: t, now: now}
	return d.parse()
}

func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

// dateWords splits a date into words: numbers with what belongs to them, and letters.
func dateWords(s string) []string {
	words := strings.Fields(strings.ReplaceAll(s, ",", " "))
	for i := 0; i+1 < len(words); i++ {
		if words[i] == "+" || words[i] == "-" {
			words[i] += words[i+1]
			words = append(words[:i+1], words[i+2:]...)
		}
	}
	return words
}

type dateParser struct {
	words     []string
	at, now   time.Time
	date      bool
	clock     bool
	years     int
	months    int
	days      int
	span      time.Duration
	relative  bool
	weekday   int // -1 for none
	weekdayBy int
}

var monthNames = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

func monthNumber(s string) int {
	if len(s) < 3 {
		return 0
	}
	full := strings.ToLower(s)
	for i, m := range monthNames {
		if strings.HasPrefix(full, m) && strings.HasPrefix(strings.ToLower(time.Month(i+1).String()), strings.TrimSuffix(full, ".")) || full == "sept" && i == 8 {
			return i + 1
		}
	}
	return 0
}

func weekdayNumber(s string) int {
	if len(s) < 3 {
		return -1
	}
	for i := range 7 {
		if name := strings.ToLower(time.Weekday(i).String()); strings.HasPrefix(name, strings.TrimSuffix(s, ".")) {
			return i
		}
	}
	return -1
}

func (d *dateParser) parse() (time.Time, bool) {
	d.weekday = -1
	zone := time.UTC
	for i := 0; i < len(d.words); i++ {
		w := d.words[i]
		next := ""
		if i+1 < len(d.words) {
			next = d.words[i+1]
		}
		switch {
		case w == "now" || w == "today":
			d.relative = true
		case w == "midnight":
			d.setClock(0, 0, 0, 0)
		case w == "noon":
			d.setClock(12, 0, 0, 0)
		case w == "yesterday":
			d.days--
			d.relative = true
		case w == "tomorrow":
			d.days++
			d.relative = true
		case w == "ago":
			d.years, d.months, d.days, d.span = -d.years, -d.months, -d.days, -d.span
		case w == "utc" || w == "gmt" || w == "z" || w == "ut":
		case (w == "next" || w == "last" || w == "this") && next != "":
			n := map[string]int{"next": 1, "last": -1, "this": 0}[w]
			if wd := weekdayNumber(next); wd >= 0 {
				d.weekday, d.weekdayBy = wd, n
			} else if !d.unit(n, next) {
				return d.at, false
			}
			i++
		case monthNumber(w) > 0 && !d.date:
			// Jan 2 2020, Jan 2
			day, err := strconv.Atoi(strings.TrimRight(next, "thsndr"))
			if err != nil {
				return d.at, false
			}
			year := d.at.Year()
			i++
			if i+1 < len(d.words) {
				if y, err := strconv.Atoi(d.words[i+1]); err == nil && y > 31 {
					year = y
					i++
				}
			}
			d.setDate(year, monthNumber(w), day)
		case weekdayNumber(w) >= 0:
			d.weekday, d.weekdayBy = weekdayNumber(w), 0
		default:
			used, ok := d.number(w, next, i, &zone)
			if !ok {
				return d.at, false
			}
			i += used
		}
	}
	t := d.at
	if d.date && !d.clock || d.weekday >= 0 && !d.clock {
		t = midnight(t)
	}
	if zone != time.UTC {
		t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
	}
	if d.weekday >= 0 && !d.date {
		days := (d.weekday - int(t.Weekday()) + 7) % 7
		if d.weekdayBy > 0 && days == 0 {
			days = 7
		} else if d.weekdayBy < 0 {
			days -= 7
		}
		t = t.AddDate(0, 0, days)
	}
	t = t.AddDate(d.years, d.months, d.days).Add(d.span)
	return t.UTC(), true
}

func (d *dateParser) setDate(y, m, day int) {
	d.date = true
	d.at = time.Date(y, time.Month(m), day, d.at.Hour(), d.at.Minute(), d.at.Second(), d.at.Nanosecond(), time.UTC)
}

func (d *dateParser) setClock(h, m, s, ns int) {
	d.clock = true
	d.at = time.Date(d.at.Year(), d.at.Month(), d.at.Day(), h, m, s, ns, time.UTC)
}

// unit adds n units of time.
func (d *dateParser) unit(n int, unit string) bool {
	d.relative = true
	switch strings.TrimSuffix(unit, "s") {
	case "year":
		d.years += n
	case "month":
		d.months += n
	case "fortnight":
		d.days += 14 * n
	case "week":
		d.days += 7 * n
	case "day":
		d.days += n
	case "hour":
		d.span += time.Duration(n) * time.Hour
	case "minute", "min":
		d.span += time.Duration(n) * time.Minute
	case "second", "sec":
		d.span += time.Duration(n) * time.Second
	default:
		return false
	}
	return true
}

// number reads a word that begins with a digit or a sign, and how many further words belong to it.
func (d *dateParser) number(w, next string, i int, zone **time.Location) (int, bool) {
	// A unit may stand right behind its number.
	split := 0
	for split < len(w) && (w[split] >= '0' && w[split] <= '9' || split == 0 && (w[0] == '+' || w[0] == '-')) {
		split++
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(w[:split], "+")); err == nil {
		if split < len(w) && d.unit(n, w[split:]) {
			return 0, true
		}
		if rest := w[split:]; (rest == "am" || rest == "pm") && n >= 1 && n <= 12 {
			d.setClock(n%12+map[string]int{"pm": 12}[rest], 0, 0, 0)
			return 0, true
		}
		if split == len(w) {
			if next != "" && d.unit(n, next) {
				return 1, true
			}
			switch {
			case w[0] == '+' || w[0] == '-':
				if len(w) == 5 || len(w) == 3 {
					hours, minutes := n, 0
					if len(w) == 5 {
						hours, minutes = n/100, n%100
					}
					*zone = time.FixedZone("", hours*3600+minutes*60)
					return 0, true
				}
			case len(w) == 8:
				d.setDate(n/10000, n/100%100, n%100)
				return 0, n/100%100 >= 1 && n/100%100 <= 12
			case monthNumber(next) > 0:
				year, used := d.at.Year(), 1
				if i+2 < len(d.words) {
					if y, err := strconv.Atoi(d.words[i+2]); err == nil && y > 31 {
						year, used = y, 2
					}
				}
				d.setDate(year, monthNumber(next), n)
				return used, true
			case len(w) == 4 && !d.clock:
				d.setClock(n/100, n%100, 0, 0)
				return 0, n/100 < 24 && n%100 < 60
			case next == "am" || next == "pm":
				d.setClock(n%12+map[string]int{"pm": 12}[next], 0, 0, 0)
				return 1, n >= 1 && n <= 12
			}
			return 0, false
		}
	}
	if date, clock, ok := strings.Cut(w, "t"); ok && strings.Count(date, "-") == 2 {
		if _, ok := d.number(date, "", i, zone); !ok {
			return 0, false
		}
		return d.number(clock, next, i, zone)
	}
	if strings.Count(w, ":") >= 1 {
		return d.clockText(w, next, zone)
	}
	for _, layout := range []string{"2006-1-2", "2006/1/2", "1/2/2006", "1/2/06", "2-Jan-2006"} {
		if t, err := time.Parse(layout, w); err == nil {
			d.setDate(t.Year(), int(t.Month()), t.Day())
			return 0, true
		}
	}
	return 0, false
}

func (d *dateParser) clockText(w, next string, zone **time.Location) (int, bool) {
	used := 0
	pm := ""
	if next == "am" || next == "pm" {
		pm, used = next, 1
	}
	for _, suffix := range []string{"am", "pm"} {
		if rest, ok := strings.CutSuffix(w, suffix); ok {
			w, pm = rest, suffix
		}
	}
	if rest, ok := strings.CutSuffix(w, "z"); ok {
		w = rest
	} else if at := strings.LastIndexAny(w, "+-"); at > 0 {
		digits := strings.ReplaceAll(w[at+1:], ":", "")
		n, err := strconv.Atoi(digits)
		if err != nil {
			return 0, false
		}
		if len(digits) <= 2 {
			n *= 100
		}
		offset := n/100*3600 + n%100*60
		if w[at] == '-' {
			offset = -offset
		}
		*zone = time.FixedZone("", offset)
		w = w[:at]
	}
	w = strings.ReplaceAll(w, ",", ".")
	for _, layout := range []string{"15:4:5", "15:4", "15:4:5.999999999"} {
		if t, err := time.Parse(layout, w); err == nil {
			h := t.Hour()
			if pm != "" {
				if h < 1 || h > 12 {
					return 0, false
				}
				h = h%12 + map[string]int{"pm": 12}[pm]
			}
			d.setClock(h, t.Minute(), t.Second(), t.Nanosecond())
			return used, true
		}
	}
	return 0, false
}
