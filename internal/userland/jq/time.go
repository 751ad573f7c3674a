package jq

import (
	"errors"
	"math"
	"time"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/program"
)

// maxSeconds bounds times of jq, so that a year fits an int.
const maxSeconds = 1 << 55

// localTime is localtime: the seconds since 1970 as what a clock and a calendar show in the zone of TZ.
func localTime(p *program.Process, v any) any {
	n, ok := number(v)
	if !ok || math.IsNaN(n) || math.Abs(n) > maxSeconds {
		return errors.New("localtime() requires a number")
	}
	whole := math.Floor(n)
	t := time.Unix(int64(whole), 0).In(p.Zone())
	return []any{
		t.Year(), int(t.Month()) - 1, t.Day(), t.Hour(), t.Minute(), float64(t.Second()) + (n - whole), int(t.Weekday()), t.YearDay() - 1,
	}
}

// formatLocalTime is strflocaltime.
func formatLocalTime(p *program.Process, v, format any) any {
	text, ok := format.(string)
	if !ok {
		return errors.New("strflocaltime/1 requires a string format")
	}
	if n, isNumber := number(v); isNumber {
		if v = localTime(p, n); isError(v) {
			return v
		}
	}
	parts, ok := v.([]any)
	if !ok || len(parts) < 6 {
		return errors.New("strflocaltime/1 requires parsed datetime inputs")
	}
	var n [6]int
	for i := range n {
		f, ok := gojq.ToFloat64(parts[i])
		if !ok || math.IsNaN(f) || math.Abs(f) > 1<<31 {
			return errors.New("strflocaltime/1 requires parsed datetime inputs")
		}
		n[i] = int(f)
	}
	p.Charge(len(text) * 20)
	return program.Strftime(text, time.Date(n[0], time.Month(n[1]+1), n[2], n[3], n[4], n[5], 0, p.Zone()))
}
