package space_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/space"
)

func TestMediaTypesOfFiles(t *testing.T) {
	long := strings.Repeat("a", space.MediaBytes-1)
	for _, c := range []struct{ name, begin, want string }{
		{"a/REPORT.CSV", "", "text/csv"}, {"x.png", "no picture", "image/png"}, {"x", "\x89PNG\r\n\x1a\nrest", "image/png"},
		{"x", "%PDF-1.7", "application/pdf"}, {"Makefile", "all:\n", "text/plain"}, {"x", "", "text/plain"},
		{"x.bin", "a\x00b", "application/octet-stream"},
		{"x", "\xff\xfe", "application/octet-stream"}, {"x", long + "\xc3", "text/plain"},
		{"x", long[:space.MediaBytes-3] + "\xf0\x9f\x92", "text/plain"},
		{"x", "a\xc3", "application/octet-stream"},
	} {
		if got := space.MediaOf(c.name, []byte(c.begin)); got != c.want {
			t.Errorf("%s %.20q: got %s, want %s", c.name, c.begin, got, c.want)
		}
	}
}
