package dates

import (
	"strings"
	"time"

	"agentbox/internal/userland/posix"
)

// ParseDate reads a date as date -d does, in the zone of now: absolute forms, @seconds, and what is added to or taken from a time.
// TZ="..." in front sets another zone.
func ParseDate(s string, now time.Time) (time.Time, bool) { return parseDate(s, now, nil) }

// parseDate is ParseDate, and tells how it reads the date where there is a trace.
func parseDate(s string, now time.Time, trace *dateTrace) (time.Time, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	if rest, ok := strings.CutPrefix(s, `TZ="`); ok {
		zone, rest, ok := zonePrefix(rest)
		if !ok {
			return now, false
		}
		if trace != nil {
			trace.zone, trace.inText = zone, true
		}
		t, ok := parseDate(rest, now.In(posix.Zone(zone)), trace)
		return t.In(now.Location()), ok
	}
	words := dateTokens(s, now)
	if s == "" { // which is 0
		words = []dateToken{{kind: unsignedWord, digits: 1}}
	}
	d := &dateParser{trace: trace, rest: words, now: now, hour: now.Hour(), minute: now.Minute(), second: now.Second(),
		nanosecond: now.Nanosecond()}
	if d.is(0, '@') {
		return d.seconds()
	}
	for len(d.rest) > 0 {
		before := d.rest
		if d.part() {
			continue
		}
		at := before[min(len(before)-len(d.rest), len(before)-1)]
		if at.kind == unknownWord && at.text != "" {
			trace.printf("error: unknown word '%s'", at.text)
		}
		if at.end < len(s) {
			trace.printf("error: parsing failed, stopped at '%s'", s[at.end:])
		} else {
			trace.printf("error: parsing failed")
		}
		return now, false
	}
	return d.time()
}

// zonePrefix reads a zone up to its closing quote. Backslashes quote.
func zonePrefix(s string) (zone, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// dateParser is what was read of a date.
type dateParser struct {
	rest  []dateToken
	now   time.Time
	trace *dateTrace // may be nil

	yearSeen, hasOrdinal bool

	dates, times, days, zones, relatives     int // how often each was given
	year, yearDigits, month, day             int
	hour, minute, second, nanosecond         int
	half                                     byte // a, p: of the day
	weekday, ordinal                         int
	offset                                   int // of the zone, in seconds
	years, months, daysBy                    int64
	hours, minutes, secondsBy, nanosecondsBy int64
}

// is reports whether a token is of a kind.
func (d *dateParser) is(at int, kinds ...byte) bool {
	if at >= len(d.rest) {
		return false
	}
	for _, k := range kinds {
		if d.rest[at].kind == k {
			return true
		}
	}
	return false
}

// are reports whether the next tokens are of these kinds.
func (d *dateParser) are(kinds string) bool {
	for i := range len(kinds) {
		if !d.is(i, kinds[i]) {
			return false
		}
	}
	return true
}

// take removes tokens.
func (d *dateParser) take(n int) []dateToken {
	took := d.rest[:n]
	d.rest = d.rest[n:]
	return took
}

// seconds is @ and what follows it.
func (d *dateParser) seconds() (time.Time, bool) {
	if len(d.rest) != 2 || !d.is(1, unsignedWord, signedWord, fractionWord, signedFractionWord) {
		return d.now, false
	}
	x := d.rest[1]
	at := time.Unix(x.n, int64(x.nanoseconds)).In(d.now.Location())
	d.trace.printf("parsed number of seconds part: number of seconds: %d", at.Unix())
	d.tellZone(true)
	d.trace.tellFinal(at)
	return at, true
}

// part reads one part of a date and tells of it.
func (d *dateParser) part() bool {
	years, dates, times, days, relatives := d.yearSeen, d.dates, d.times, d.days, d.relatives
	begin := len(d.rest)
	first := d.rest[0].kind
	if !d.item() {
		return false
	}
	switch {
	case d.relatives > relatives:
		d.tellRelative()
	case d.dates > dates && d.times > times:
		d.tell("datetime")
	case d.yearSeen != years, first == unsignedWord && begin-len(d.rest) == 1:
		d.tell("number")
	case d.dates > dates:
		d.tell("date")
	case d.times > times:
		d.tell("time")
	case d.days > days:
		d.tell("day")
	default:
		d.tell("zone")
	}
	return true
}

// item reads one part of a date.
func (d *dateParser) item() bool {
	switch {
	case d.is(0, unsignedWord):
		return d.number()
	case d.is(0, monthWord):
		return d.monthFirst()
	case d.is(0, weekdayWord):
		d.days++
		d.ordinal, d.weekday = 0, int(d.take(1)[0].n)
		if d.is(0, ',') {
			d.take(1)
		}
		return true
	case d.are(string([]byte{ordinalWord, weekdayWord})):
		d.days++
		d.hasOrdinal = true
		w := d.take(2)
		d.ordinal, d.weekday = int(w[0].n), int(w[1].n)
		return true
	case d.is(0, shiftWord):
		d.relatives++
		d.daysBy += d.take(1)[0].n
		return true
	case d.is(0, zoneWord, letterT):
		return d.zone()
	case d.is(0, signedWord, signedFractionWord, fractionWord, ordinalWord, unitWord):
		return d.relative()
	}
	return false
}

// number reads what begins with a number without a sign.
func (d *dateParser) number() bool {
	x := d.rest[0]
	switch {
	case d.is(1, ':'), d.is(1, halfWord):
		return d.clock()
	case d.is(1, '/'):
		return d.slashes()
	case d.is(1, unitWord):
		return d.relative()
	case d.is(1, weekdayWord):
		d.days++
		d.hasOrdinal = true
		w := d.take(2)
		d.ordinal, d.weekday = int(w[0].n), int(w[1].n)
		return true
	case d.is(1, monthWord):
		return d.dayFirst()
	case d.are(string([]byte{unsignedWord, signedWord, signedWord})) && d.rest[1].n <= 0 && d.rest[2].n <= 0:
		w := d.take(3)
		d.setDate(int(x.n), x.digits, int(-w[1].n), int(-w[2].n))
		if d.is(0, letterT) && d.is(1, unsignedWord) {
			d.take(1)
			return d.clock()
		}
		return true
	}
	d.take(1)
	switch {
	case d.dates > 0 && d.yearDigits == 0 && d.relatives == 0 && (d.times > 0 || x.digits > 2):
		d.year, d.yearDigits, d.yearSeen = int(x.n), x.digits, true
	case x.digits > 4:
		d.setDate(int(x.n/10000), x.digits-4, int(x.n/100%100), int(x.n%100))
	case x.digits <= 2:
		d.setClock(int(x.n), 0, 0, 0)
	default:
		d.setClock(int(x.n/100), int(x.n%100), 0, 0)
	}
	return x.n < 1<<31*10000
}

// setDate is a date that was given.
func (d *dateParser) setDate(year, digits, month, day int) {
	d.dates++
	d.year, d.yearDigits, d.month, d.day = year, digits, month, day
}

// setClock is a time of the day that was given.
func (d *dateParser) setClock(hour, minute, second, nanosecond int) {
	d.times++
	d.hour, d.minute, d.second, d.nanosecond = hour, minute, second, nanosecond
}

// clock reads a time of the day.
func (d *dateParser) clock() bool {
	hour := d.take(1)[0]
	minute, seconds := 0, dateToken{}
	if d.is(0, ':') && d.is(1, unsignedWord) {
		minute = int(d.take(2)[1].n)
		if d.is(0, ':') && d.is(1, unsignedWord, fractionWord) {
			seconds = d.take(2)[1]
		}
	} else if d.is(0, ':') {
		return false
	}
	d.setClock(int(hour.n), minute, int(seconds.n), seconds.nanoseconds)
	switch {
	case d.is(0, halfWord):
		d.half = byte(d.take(1)[0].n)
	case d.is(0, signedWord):
		d.zones++
		return d.east(0)
	}
	return true
}

// east reads an offset from Greenwich, to which some seconds are added.
func (d *dateParser) east(more int) bool {
	x := d.take(1)[0]
	hours, minutes := int(x.n), 0
	switch {
	case x.digits <= 2 && d.is(0, ':') && d.is(1, unsignedWord):
		minutes = int(d.take(2)[1].n)
	case x.digits > 2:
		hours, minutes = int(x.n/100), int(x.n%100)
		if minutes < 0 {
			minutes = -minutes
		}
	}
	if x.negative {
		minutes = -minutes
	}
	d.offset = more + hours*3600 + minutes*60
	return d.offset >= -24*3600 && d.offset <= 24*3600
}

// slashes reads month/day, month/day/year or year/month/day.
func (d *dateParser) slashes() bool {
	if !d.are(string([]byte{unsignedWord, '/', unsignedWord})) {
		return false
	}
	w := d.take(3)
	if !d.is(0, '/') {
		d.setDate(d.now.Year(), 0, int(w[0].n), int(w[2].n))
		return true
	}
	if !d.is(1, unsignedWord) {
		return false
	}
	last := d.take(2)[1]
	if w[0].digits >= 4 {
		d.trace.printf("warning: value %d has %d digits. Assuming YYYY/MM/DD", w[0].n, w[0].digits)
		d.setDate(int(w[0].n), w[0].digits, int(w[2].n), int(last.n))
	} else {
		d.trace.printf("warning: value %d has less than 4 digits. Assuming MM/DD/YY[YY]", w[0].n)
		d.setDate(int(last.n), last.digits, int(w[0].n), int(w[2].n))
	}
	return true
}

// dayFirst reads 17 Jun, 17 Jun 1992 or 17-Jun-1992.
func (d *dateParser) dayFirst() bool {
	w := d.take(2)
	switch {
	case d.is(0, signedWord) && d.rest[0].n <= 0 && d.rest[0].digits > 0:
		year := d.take(1)[0]
		d.setDate(int(-year.n), year.digits, int(w[1].n), int(w[0].n))
	case d.is(0, unsignedWord) && !d.is(1, ':', halfWord):
		year := d.take(1)[0]
		d.setDate(int(year.n), year.digits, int(w[1].n), int(w[0].n))
	default:
		d.setDate(d.now.Year(), 0, int(w[1].n), int(w[0].n))
	}
	return true
}

// monthFirst reads Jun 17, Jun 17, 1992 or Jun-17-1992.
func (d *dateParser) monthFirst() bool {
	name := d.take(1)[0]
	switch {
	case d.are(string([]byte{signedWord, signedWord})) && d.rest[0].n <= 0 && d.rest[1].n <= 0:
		w := d.take(2)
		d.setDate(int(-w[1].n), w[1].digits, int(name.n), int(-w[0].n))
	case d.are(string([]byte{unsignedWord, ',', unsignedWord})):
		w := d.take(3)
		d.setDate(int(w[2].n), w[2].digits, int(name.n), int(w[0].n))
	case d.is(0, unsignedWord):
		d.setDate(d.now.Year(), 0, int(name.n), int(d.take(1)[0].n))
	default:
		return false
	}
	return true
}

// zone reads a zone, and what is added to its time.
func (d *dateParser) zone() bool {
	z := d.take(1)[0]
	d.zones++
	d.offset = int(z.n)
	switch {
	case d.is(0, summerWord):
		d.take(1)
		d.offset += 3600
	case d.is(0, signedWord, signedFractionWord) && d.is(1, unitWord):
		return d.relative()
	case d.is(0, signedWord):
		return d.east(d.offset)
	}
	return true
}

// relative reads a number of units, and whether they are ago.
func (d *dateParser) relative() bool {
	x := dateToken{n: 1}
	if !d.is(0, unitWord) {
		x = d.take(1)[0]
	}
	if !d.is(0, unitWord) {
		return false
	}
	u := d.take(1)[0]
	if d.is(0, agoWord) {
		factor := d.take(1)[0].n
		x.n, x.nanoseconds = x.n*factor, x.nanoseconds*int(factor)
	}
	if x.nanoseconds != 0 && u.unit != 's' || x.n > maxRelative || x.n < -maxRelative {
		return false
	}
	d.relatives++
	n := x.n * u.n
	switch u.unit {
	case 'Y':
		d.years += n
	case 'm':
		d.months += n
	case 'd':
		d.daysBy += n
	case 'H':
		d.hours += n
	case 'M':
		d.minutes += n
	case 's':
		d.secondsBy += n
		d.nanosecondsBy += int64(x.nanoseconds)
	}
	return true
}

// maxRelative bounds what is added; times lie within 2^31 years.
const maxRelative = 1 << 56

// maxYear bounds years, so that nothing overflows.
const maxYear = 1<<31 - 1

// time puts what was read together.
func (d *dateParser) time() (time.Time, bool) {
	d.tellZone(false)
	if d.dates > 1 || d.times > 1 || d.days > 1 || d.zones > 1 {
		d.tellMultiple()
		return d.now, false
	}
	zone := d.now.Location()
	if d.zones > 0 {
		zone = time.FixedZone("", d.offset)
	}
	year, m, day := d.now.Date()
	if d.dates > 0 {
		year, m, day = d.year, time.Month(d.month), d.day
		if d.yearDigits == 2 {
			if year += 1900; year < 1969 {
				year += 100
			}
			d.trace.printf("warning: adjusting year value %d to %d", d.year, year)
		}
	}
	hour, ok := d.hourOfDay()
	if !ok {
		return d.now, false
	}
	if year > maxYear || year < 0 {
		return d.now, false
	}
	t := time.Date(year, m, day, hour, d.minute, d.second, d.nanosecond, zone)
	if t.Year() != year || t.Month() != m || t.Day() != day || t.Hour() != hour || t.Minute() != d.minute || t.Second() != d.second {
		if t.Hour() < hour && t.Day() == day { // in an hour that summer time leaves out
			t = t.Add(2 * time.Duration(hour-t.Hour()) * time.Hour)
		}
		d.tellInvalid(year, int(m), day, hour, d.minute, d.second, t)
		return d.now, false
	}
	if d.days > 0 && d.dates == 0 {
		by := (d.weekday - int(t.Weekday()) + 7) % 7
		if d.ordinal > 0 && int(t.Weekday()) != d.weekday {
			by -= 7
		}
		t = t.AddDate(0, 0, by+7*d.ordinal)
		d.trace.printf("new start date: '%s' is '%s'", d.dayText(), d.stamp(t))
	}
	if d.dates == 0 && d.days == 0 {
		d.trace.printf("using current date as starting value: '%s'", t.Format("(Y-M-D) 2006-01-02"))
	}
	if d.dates > 0 && d.days > 0 {
		d.trace.printf("warning: day (%s) ignored when explicit dates are given", d.dayText())
	}
	d.trace.printf("starting date/time: '%s'", d.stamp(t))
	return d.moved(t)
}

// hourOfDay returns the hour, and sets the rest of the time of day where the text does not give it.
func (d *dateParser) hourOfDay() (hour int, ok bool) {
	hour = d.hour
	switch {
	case d.times == 0 && (d.dates > 0 || d.days > 0 || d.relatives == 0):
		hour, d.minute, d.second, d.nanosecond = 0, 0, 0, 0
	case d.half != 0:
		if hour < 1 || hour > 12 {
			d.trace.printf("error: invalid hour %d%cm", hour, d.half)
			return 0, false
		}
		if hour %= 12; d.half == 'p' {
			hour += 12
		}
	case hour > 24 || hour == 24 && d.times > 0:
		d.trace.printf("error: invalid hour %d", hour)
		return 0, false
	}
	switch {
	case d.times > 0:
		d.trace.printf("using specified time as starting value: '%02d:%02d:%02d'", hour, d.minute, d.second)
	case d.dates > 0 || d.days > 0 || d.relatives == 0:
		d.trace.printf("warning: using midnight as starting time: 00:00:00")
	default:
		d.trace.printf("using current time as starting value: '%02d:%02d:%02d'", hour, d.minute, d.second)
	}
	return hour, true
}

// moved adds what is relative: first years, months and days, which keep the clock, then the rest.
func (d *dateParser) moved(t time.Time) (time.Time, bool) {
	year := int64(t.Year()) + d.years + d.months/12
	if year > maxYear || year < -maxYear || d.daysBy > 366*maxYear || d.daysBy < -366*maxYear {
		return d.now, false
	}
	if d.years != 0 || d.months != 0 || d.daysBy != 0 {
		before := t
		t = t.AddDate(int(d.years), int(d.months), int(d.daysBy))
		d.tellMoved(before, t)
	}
	d.trace.printf("'%s' = %d epoch-seconds", d.stamp(t), t.Unix())
	total := d.secondsBy
	for _, x := range [][2]int64{{d.hours, 3600}, {d.minutes, 60}} {
		if x[0] > maxRelative/3600 || x[0] < -maxRelative/3600 {
			return d.now, false
		}
		total += x[0] * x[1]
	}
	t = time.Unix(t.Unix()+total, int64(t.Nanosecond())+d.nanosecondsBy).In(d.now.Location())
	if d.hours != 0 || d.minutes != 0 || d.secondsBy != 0 || d.nanosecondsBy != 0 {
		d.trace.printf("after time adjustment (%+d hours, %+d minutes, %+d seconds, %+d ns),", d.hours, d.minutes, d.secondsBy, d.nanosecondsBy)
		d.trace.printf("    new time = %d epoch-seconds", t.Unix())
	}
	d.trace.tellFinal(t)
	return t, int64(t.Year()) <= maxYear && int64(t.Year()) >= -maxYear
}
