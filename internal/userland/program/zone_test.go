package program_test

import (
	"strings"
	"testing"
	"time"

	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// TestZone compares with what the C library of GNU prints for the same values of TZ.
func TestZone(t *testing.T) {
	const winter, summer = 0, 15_000_000
	for _, c := range []struct{ tz, winter, summer string }{
		{"", "00:00 UTC +0000", "14:40 UTC +0000"},
		{"UTC+5", "19:00 UTC -0500", "09:40 UTC -0500"},
		{"UTC-5:30", "05:30 UTC +0530", "20:10 UTC +0530"},
		{"ABC1:02:03", "22:57 ABC -0102", "13:37 ABC -0102"},
		{"<-03>3", "21:00 -03 -0300", "11:40 -03 -0300"},
		{"Asia/Tokyo", "09:00 JST +0900", "23:40 JST +0900"},
		{":Asia/Tokyo", "09:00 JST +0900", "23:40 JST +0900"},
		{"/usr/share/zoneinfo/Asia/Tokyo", "09:00 JST +0900", "23:40 JST +0900"},
		{"America/New_York", "19:00 EST -0500", "10:40 EDT -0400"},
		{"EST5EDT", "19:00 EST -0500", "10:40 EDT -0400"},
		{"XST5XDT,M3.2.0,M11.1.0", "19:00 XST -0500", "10:40 XDT -0400"},
		{"XST5XDT3,J60/2,J300/2", "19:00 XST -0500", "11:40 XDT -0300"},
		{"XST5XDT", "19:00 XST -0500", "10:40 XDT -0400"},
		{"Foo/Bar", "00:00 Foo +0000", "14:40 Foo +0000"},
		{"ABC", "00:00 ABC +0000", "14:40 ABC +0000"},
		{"ABC25", "00:00 ABC -2400", "14:40 ABC -2400"},
		{"Local", "00:00 Local +0000", "14:40 Local +0000"},
		{"../../etc/passwd", "00:00  +0000", "14:40  +0000"},
		{strings.Repeat("A", 256), "00:00 UTC +0000", "14:40 UTC +0000"},
	} {
		loc := posix.Zone(c.tz)
		if got := program.Strftime("%H:%M %Z %z", time.Unix(winter, 0).In(loc)); got != c.winter {
			t.Errorf("TZ=%q, winter: got %q, want %q", c.tz, got, c.winter)
		}
		if got := program.Strftime("%H:%M %Z %z", time.Unix(summer, 0).In(loc)); got != c.summer {
			t.Errorf("TZ=%q, summer: got %q, want %q", c.tz, got, c.summer)
		}
	}
}

func FuzzZone(f *testing.F) {
	for _, s := range []string{"UTC+5", "EST5EDT,M3.2.0,M11.1.0", "<-03>3", ":x", "A-1:2:3B,J1/2,J3"} {
		f.Add(s, int64(0))
	}
	f.Fuzz(func(_ *testing.T, tz string, at int64) {
		program.Strftime("%c %Z %z", time.Unix(at%(1<<40), 0).In(posix.Zone(tz)))
	})
}
