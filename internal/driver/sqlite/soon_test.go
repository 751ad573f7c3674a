//go:build linux

package sqlite

import (
	"testing"

	"golang.org/x/sys/unix"
)

// If the daemon was started with a nice value, it keeps that value.
func TestSoonStaysNice(t *testing.T) {
	nice := make(chan int32)
	go func() { // on a thread that ends with it
		soon()
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
			nice <- -100
			return
		}
		attr.Nice = 7
		if err := unix.SchedSetAttr(0, attr, 0); err != nil {
			t.Error(err)
		}
		soon()
		if attr, err = unix.SchedGetAttr(0, 0); err != nil {
			t.Error(err)
		}
		nice <- attr.Nice
	}()
	if got := <-nice; got != 7 {
		t.Errorf("got nice %d, want 7", got)
	}
}
