package run_test

import (
	"testing"
	"time"

	"agentbox/internal/domain/run"
)

func TestParseRetention(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1m": time.Minute, "60s": time.Minute, "59s": 0, "1m0.5s": 0, "90m": 90 * time.Minute, "36h": 36 * time.Hour, "1d": day,
		"36500d": 36500 * day,
		"36501d": 0, "876000h": 36500 * day, "876000h1s": 0, "0d": 0, "-1d": 0, "99999999999999999999d": 0, "9223372036854775807d": 0, "1.5d": 0,
		"d": 0, "": 0, "72": 0, "+1d": day,
		"1d12h": 0, "none": 0,
	} {
		got, err := run.ParseRetention(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}
