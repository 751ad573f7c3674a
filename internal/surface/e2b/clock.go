package e2b

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"agentbox/internal/domain/event"
)

// after calls f when d is over, unless the returned function was called before.
func after(clock event.Clock, d time.Duration, f func()) (stop func()) {
	over, release := clock.NewTimer(d)
	done, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
			f()
		case <-done.Done():
		}
	}()
	return func() {
		cancel()
		<-ended
		release()
	}
}

// beat calls f so often that no client believes the stream dead, until the returned function is called.
func beat(clock event.Clock, r *http.Request, f func()) (stop func()) {
	every := keepalive
	if n, err := strconv.Atoi(r.Header.Get("Keepalive-Ping-Interval")); err == nil && n > 0 {
		every = min(every, time.Duration(min(n, int(keepalive/time.Second)))*time.Second) // a longer one would overflow
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			over, release := clock.NewTimer(every)
			select {
			case <-over:
				f()
			case <-done:
				release()
				return
			}
			release()
		}
	}()
	return func() { close(done); <-ended }
}
