package worker

import (
	"runtime/debug"
	"runtime/metrics"
	"time"

	"agentbox/internal/userland/bound"
)

// Memory that the process may hold besides its executions' accounts.
const (
	ownBytes  = 256 << 20 // the interpreters, and rubbish that was not collected yet
	maxStack  = 256 << 20 // of a goroutine: what recurs deeper ends the worker before its stack has become all of its memory
	guardTime = 10 * time.Millisecond
)

// guard watches the memory of Go during an execution, because the account does not count all garbage that the commands make. It stops an
// execution that holds many times its bound, and has garbage collected early near it. The returned function ends the watch.
func guard(a *bound.Account) (end func()) {
	limit := a.Limits().MemoryBytes
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(ownBytes + 2*limit)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(guardTime)
		defer tick.Stop()
		samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		for {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			metrics.Read(samples)
			if held := samples[0].Value.Uint64() + samples[1].Value.Uint64(); held > uint64(ownBytes+3*limit) {
				a.Stop(&bound.Stopped{Limit: bound.Memory})
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
