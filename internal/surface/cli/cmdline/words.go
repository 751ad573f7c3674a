package cmdline

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/term"
)

// First returns the first text that is not empty.
func First(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// AsFault returns the fault in an error.
func AsFault(err error) (*fault.Error, bool) { return errors.AsType[*fault.Error](err) }

// Pairs reads NAME=VALUE arguments.
func Pairs(flag string, values []string) (map[string]string, error) {
	if len(values) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, Usage("--%s %s: write NAME=VALUE", flag, term.OneLine(v, 60))
		}
		out[name] = value
	}
	return out, nil
}

// ParseSize reads a number of bytes with an optional unit: 512, 64KiB, 1.5G. Units are binary, with or without iB.
func ParseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "BbIiKkMmGgTt ")
	value, err := strconv.ParseFloat(number, 64)
	unit := strings.ToUpper(strings.TrimSpace(text[len(number):]))
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "I")
	power := strings.Index("KMGT", unit) + 1
	if unit == "" {
		power = 0
	}
	if err != nil || len(unit) > 1 || unit != "" && power == 0 || !(value >= 0 && value <= 1<<52) {
		return 0, Usage("%q is not a size; write for example 512MiB or 2G", term.OneLine(text, 40))
	}
	return int64(value * float64(int64(1)<<(10*power))), nil
}

// ParseSpan reads a time span: 90s, 15m, 12h, 7d.
func ParseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err == nil && n > 0 && n <= 3650 {
			return time.Duration(n * float64(24*time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, Usage("%q is not a time span; write for example 90s, 15m, 12h or 7d", term.OneLine(text, 40))
	}
	return d, nil
}
