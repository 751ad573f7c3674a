package run

import (
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
)

// The bounds of a time for which data are kept.
const (
	MinKeep = time.Minute // less would race with work in progress
	MaxKeep = 100 * 365 * day
)

const day = 24 * time.Hour

// ParseKeep reads a time for which data are kept: in days, or as Go writes it, in whole seconds: 30d, 36h, 90m.
func ParseKeep(text string) (time.Duration, error) {
	keep, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 64)
		keep = time.Duration(min(max(n, 0), int64(MaxKeep/day)+1)) * day
	}
	if err != nil || keep < MinKeep || keep > MaxKeep || keep%time.Second != 0 {
		return 0, fault.New(fault.Invalid, "retention_invalid",
			"%.40q is not a duration for which data can be kept: it has days, or hours, minutes and seconds, from 1m to %dd, as in 30d or 36h", text,
			MaxKeep/day)
	}
	return keep, nil
}
