package cmdline

import (
	"testing"
	"time"

	"agentbox/internal/domain/fault"
)

// TestSizes reads sizes back and refuses what is none.
func TestSizes(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "512": 512, "64KiB": 64 << 10, "64k": 64 << 10, "1.5G": 3 << 29, "2 GB": 2 << 30, "1T": 1 << 40, "4096MiB": 4 << 30,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("parseSize(%q): got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "G", "-1", "1X", "1 K K", "NaN", "Inf", "1e30", "12q"} {
		if got, err := ParseSize(in); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("parseSize(%q): got %d, %v, want a refusal", in, got, err)
		}
	}
}

// TestSpans reads time spans and refuses what is none.
func TestSpans(t *testing.T) {
	for in, want := range map[string]time.Duration{"90s": 90 * time.Second, "15m": 15 * time.Minute, "7d": 168 * time.Hour,
		"0.5d": 12 * time.Hour} {
		if got, err := ParseSpan(in); err != nil || got != want {
			t.Errorf("parseSpan(%q): got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0s", "-1m", "5", "d", "1w", "99999d"} {
		if got, err := ParseSpan(in); err == nil {
			t.Errorf("parseSpan(%q): got %v, want a refusal", in, got)
		}
	}
}
