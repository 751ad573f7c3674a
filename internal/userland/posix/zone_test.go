package posix_test

import (
	"testing"
	"time"

	"agentbox/internal/userland/posix"
)

// TestZones compares what values of TZ mean with what date of GNU prints for them.
func TestZones(t *testing.T) {
	for _, x := range []struct{ tz, winter, summer string }{
		{"", "1970-01-01 00:00 UTC", "2026-07-01 12:00 UTC"},
		{"UTC", "1970-01-01 00:00 UTC", "2026-07-01 12:00 UTC"},
		{"America/New_York", "1969-12-31 19:00 EST", "2026-07-01 08:00 EDT"},
		{":Asia/Tokyo", "1970-01-01 09:00 JST", "2026-07-01 21:00 JST"},
		{"/usr/share/zoneinfo/Asia/Kolkata", "1970-01-01 05:30 IST", "2026-07-01 17:30 IST"},
		{"UTC+5", "1969-12-31 19:00 UTC", "2026-07-01 07:00 UTC"},
		{"XYZ-3:30", "1970-01-01 03:30 XYZ", "2026-07-01 15:30 XYZ"},
		{"<+03>-3", "1970-01-01 03:00 +03", "2026-07-01 15:00 +03"},
		{"CET-1CEST,M3.5.0,M10.5.0/3", "1970-01-01 01:00 CET", "2026-07-01 14:00 CEST"},
		{"AAA3BBB", "1969-12-31 21:00 AAA", "2026-07-01 10:00 BBB"},
		{"Nonsense", "1970-01-01 00:00 Nonsense", "2026-07-01 12:00 Nonsense"},
		{"Foo/Bar", "1970-01-01 00:00 Foo", "2026-07-01 12:00 Foo"},
		{"Local", "1970-01-01 00:00 Local", "2026-07-01 12:00 Local"},
		{"../../etc/passwd", "1970-01-01 00:00 ", "2026-07-01 12:00 "},
		{"UTC99", "1969-12-31 00:00 UTC", "2026-06-30 12:00 UTC"}, // 24 hours at most
	} {
		zone := posix.Zone(x.tz)
		show := func(at time.Time) string {
			name, _ := at.In(zone).Zone() // Go's MST shows a number where there is no name
			return at.In(zone).Format("2006-01-02 15:04 ") + name
		}
		if got := show(time.Unix(0, 0)); got != x.winter {
			t.Errorf("TZ=%s: got %s, want %s", x.tz, got, x.winter)
		}
		if got := show(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)); got != x.summer {
			t.Errorf("TZ=%s: got %s, want %s", x.tz, got, x.summer)
		}
	}
}
