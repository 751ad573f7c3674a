package dates

import (
	"fmt"
	"strings"
	"time"
)

// dateTrace tells how a date is read, as date --debug does.
type dateTrace struct {
	say    func(text string) // of a line
	zone   string            // of the environment, or of the date
	inText bool              // the date names it

	dates, times, days, zones int // that were told of
	years                     bool
}

func (t *dateTrace) printf(format string, args ...any) {
	if t != nil {
		t.say(fmt.Sprintf(format, args...))
	}
}

// zoneOffset writes an offset from Greenwich: +01, -03:30.
func zoneOffset(seconds int) string {
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	s := fmt.Sprintf("%c%02d", sign, seconds/3600)
	if seconds%3600 != 0 {
		s += fmt.Sprintf(":%02d", seconds/60%60)
	}
	if seconds%60 != 0 {
		s += fmt.Sprintf(":%02d", seconds%60)
	}
	return s
}

// dayText writes a day of the week with its ordinal.
func (d *dateParser) dayText() string {
	name := time.Weekday(d.weekday).String()[:3]
	ordinals := []string{"last", "this", "next/first", "(SECOND)", "third", "fourth", "fifth", "sixth", "seventh", "eight", "ninth", "tenth",
		"eleventh", "twelfth"}
	switch at := d.ordinal + 1; {
	case !d.hasOrdinal:
		return name
	case at >= 0 && at < len(ordinals):
		return ordinals[at] + " " + name
	}
	return fmt.Sprintf("%d %s", d.ordinal, name)
}

// tell says what a part of a date has brought.
func (d *dateParser) tell(item string) {
	t := d.trace
	if t == nil {
		return
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if d.dates > 0 && t.dates == 0 {
		add("(Y-M-D) %04d-%02d-%02d", d.year, d.month, d.day)
	}
	if d.yearSeen && !t.years {
		add("year: %04d", d.year)
	}
	if d.times > 0 && t.times == 0 {
		fraction := ""
		if d.nanosecond != 0 {
			fraction = fmt.Sprintf(".%09d", d.nanosecond)
		}
		if d.half == 'p' {
			fraction += "pm"
		}
		add("%02d:%02d:%02d%s", d.hour, d.minute, d.second, fraction)
	}
	if d.days > 0 && t.days == 0 {
		add("%s (day ordinal=%d number=%d)", d.dayText(), d.ordinal, d.weekday)
	}
	if d.zones > 0 && t.zones == 0 {
		add("UTC%s", zoneOffset(d.offset))
	}
	t.dates, t.times, t.days, t.zones, t.years = d.dates, d.times, d.days, d.zones, d.yearSeen
	t.printf("parsed %s part: %s", item, strings.Join(parts, " "))
}

// tellRelative says what is added.
func (d *dateParser) tellRelative() {
	if d.trace == nil {
		return
	}
	var parts []string
	for _, x := range []struct {
		n    int64
		unit string
	}{{d.years, "year(s)"}, {d.months, "month(s)"}, {d.daysBy, "day(s)"}, {d.hours, "hour(s)"}, {d.minutes, "minutes"},
		{d.secondsBy, "seconds"}, {d.nanosecondsBy, "nanoseconds"}} {
		if x.n != 0 {
			parts = append(parts, fmt.Sprintf("%+d %s", x.n, x.unit))
		}
	}
	if len(parts) == 0 {
		parts = []string{"today/this/now"}
	}
	d.trace.printf("parsed relative part: %s", strings.Join(parts, " "))
}

// stamp writes a time of a date that is read.
func (d *dateParser) stamp(t time.Time) string {
	s := t.Format("(Y-M-D) 2006-01-02 15:04:05")
	if d.zones > 0 {
		s += " TZ=" + zoneOffset(d.offset)
	}
	return s
}

// tellZone says in which zone the date is.
func (d *dateParser) tellZone(seconds bool) {
	t := d.trace
	if t == nil {
		return
	}
	text := `TZ="` + t.zone + `" environment value`
	switch {
	case seconds:
		text = "'@timespec' - always UTC"
	case d.zones > 0:
		text = "parsed date/time string (" + zoneOffset(d.offset) + ")"
	case t.zone == "":
		text = "system default"
	case t.inText:
		text = `TZ="` + t.zone + `" in date string`
	case t.zone == "UTC0":
		text += " or -u"
	}
	t.printf("input timezone: %s", text)
}

// tellInvalid says that a time does not exist.
func (d *dateParser) tellInvalid(year, month, day, hour, minute, second int, normal time.Time) {
	t := d.trace
	if t == nil {
		return
	}
	given := fmt.Sprintf("(Y-M-D) %04d-%02d-%02d %02d:%02d:%02d", year, month, day, hour, minute, second)
	if d.zones > 0 {
		given += " TZ=" + zoneOffset(d.offset)
	}
	t.printf("error: invalid date/time value:")
	t.printf("    user provided time: '%s'", given)
	t.printf("       normalized time: '%s'", d.stamp(normal))
	var marks strings.Builder
	marks.WriteString(strings.Repeat(" ", 32))
	other := 0
	for i, x := range [][2]int{{year, normal.Year()}, {month, int(normal.Month())}, {day, normal.Day()}, {hour, normal.Hour()},
		{minute, normal.Minute()}, {second, normal.Second()}} {
		width := 2
		if i == 0 {
			width = 4
		}
		mark := strings.Repeat(" ", width)
		if x[0] != x[1] {
			mark = strings.Repeat("-", width)
			if i != 3 {
				other++
			}
		}
		marks.WriteString(" " + mark)
	}
	t.printf("%s", strings.TrimRight(marks.String(), " "))
	t.printf("     possible reasons:")
	if hour != normal.Hour() && other == 0 {
		t.printf("       nonexistent due to daylight-saving time;")
	}
	if day != normal.Day() && month != int(normal.Month()) {
		t.printf("       invalid day/month combination;")
	}
	t.printf("       numeric values overflow;")
	if d.zones > 0 {
		t.printf("       incorrect timezone")
	} else {
		t.printf("       missing timezone")
	}
}

// tellMultiple says which parts were given more than once.
func (d *dateParser) tellMultiple() {
	for _, x := range []struct {
		n    int
		what string
	}{{d.times, "time"}, {d.dates, "date"}, {d.days, "days"}, {d.zones, "time-zone"}} {
		if x.n > 1 {
			d.trace.printf("error: seen multiple %s parts", x.what)
		}
	}
}

// tellMoved says what the years, months and days have brought that were added.
func (d *dateParser) tellMoved(before, after time.Time) {
	t := d.trace
	if t == nil {
		return
	}
	if d.years != 0 || d.months != 0 {
		if before.Day() != 15 {
			t.printf("warning: when adding relative months/years, it is recommended to specify the 15th of the months")
		}
	}
	if d.daysBy != 0 && before.Hour() != 12 {
		t.printf("warning: when adding relative days, it is recommended to specify noon")
	}
	t.printf("after date adjustment (%+d years, %+d months, %+d days),", d.years, d.months, d.daysBy)
	t.printf("    new date/time = '%s'", d.stamp(after))
	if before.IsDST() != after.IsDST() {
		t.printf("warning: daylight saving time changed after date adjustment")
	}
	months := int64(before.Month()) - 1 + d.months + 12*(int64(before.Year())+d.years)
	if d.daysBy == 0 && (after.Day() != before.Day() || d.months == 0 && after.Month() != before.Month()) {
		t.printf("warning: month/year adjustment resulted in shifted dates:")
		t.printf("     adjusted Y M D: %04d %02d %02d", months/12, months%12+1, before.Day())
		t.printf("   normalized Y M D: %04d %02d %02d", after.Year(), after.Month(), after.Day())
	}
}

// tellFinal says which time it is.
func (t *dateTrace) tellFinal(at time.Time) {
	switch {
	case t == nil:
		return
	case t.zone == "":
		t.printf("timezone: system default")
	case t.zone == "UTC0":
		t.printf("timezone: Universal Time")
	default:
		t.printf("timezone: TZ=\"%s\" environment value", t.zone)
	}
	_, offset := at.Zone()
	layout := "(Y-M-D) 2006-01-02 15:04:05"
	t.printf("final: %d.%09d (epoch-seconds)", at.Unix(), at.Nanosecond())
	t.printf("final: %s (UTC)", at.UTC().Format(layout))
	t.printf("final: %s (UTC%s)", at.Format(layout), zoneOffset(offset))
}
