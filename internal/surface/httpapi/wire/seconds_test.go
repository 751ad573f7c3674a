package wire

import (
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Millisecond: "1 second", time.Second: "1 second",
		1001 * time.Millisecond: "2 seconds"} {
		if got := seconds(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}
