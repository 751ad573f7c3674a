package app

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"agentbox/internal/host"
)

// gcPercent lets the heap grow to nine times the live data before a collection. A daemon has few live data, and most of its garbage is gone
// with the request. So collecting less often is nearly free: it gives a third more appends per second on two cores.
const gcPercent = 800

// mostGrowth bounds how far the heap grows beyond the live data before a collection. Live objects that do not move keep whole pages of a
// formerly large heap: a thousand spaces made in a heap of 300 MB hold 80 MB of it for 20 MB.
const mostGrowth = 96 << 20

// percent is how much the heap may grow before it is collected, in hundredths of what lives.
func percent(lives uint64) int {
	return int(min(gcPercent, max(100, mostGrowth*100/max(lives, 1))))
}

// spareProcessors is how many more goroutines may run than the machine has cores. The runtime takes a processor from a goroutine that waits
// for the disk only some time after it has begun to wait, and the log's committer waits for the disk a third of its life: on two cores one
// of them idled a fifth of the time while others wanted to run, and with a spare processor a twentieth.
const spareProcessors = 1

// Tune sets how the process uses memory and processors, unless the user has set GOGC and GOMAXPROCS.
func Tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spareProcessors)
	}
}

// restBytes is how much a resting daemon may allocate in a period. worthBytes is how much it must have allocated since the last release of
// memory to make another one worthwhile.
const (
	restPeriod = 2 * time.Second
	restBytes  = 16 << 20 // what it does by itself with a thousand spaces takes a third of it
	worthBytes = 32 << 20
	// the same, for the first time: a start makes garbage, and an unused daemon allocates too little to trigger a collection
	firstBytes = 8 << 20
)

// rest decides when the daemon returns unused memory to the system: when it had something to do and is idle now. The runtime keeps the heap
// that it once needed, which with gcPercent is nine times the live heap, and returns it over minutes. It does not even collect an idle
// process for two minutes. After a thousand spaces were made, a collection takes some milliseconds, and so does getting the memory back.
type rest struct {
	last  uint64 // bytes that the process had ever taken when step was called last
	given uint64 // the same, when rubbish was given back last
}

// step is called once in a period with the bytes that the process has ever allocated. It reports whether to release memory now.
func (r *rest) step(taken uint64) bool {
	atRest := taken-r.last <= restBytes
	r.last = taken
	worth := uint64(worthBytes)
	if r.given == 0 {
		worth = firstBytes
	}
	if !atRest || taken-r.given < worth {
		return false
	}
	r.given = taken
	return true
}

// releaseMemory gives the memory of garbage back to the system while the daemon is at rest, and adapts the pace of collection to the live
// heap.
func (up *upkeep) releaseMemory(ctx context.Context) error {
	var r rest
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(heap)
	now := int(heap[2].Value.Uint64())
	tuned := now == gcPercent // else somebody has said otherwise
	every(up.app.clock, ctx.Done(), restPeriod, func(time.Time) {
		metrics.Read(heap)
		taken, lives := heap[0].Value.Uint64(), heap[1].Value.Uint64()
		if want := percent(lives); tuned && want != now {
			debug.SetGCPercent(want)
			now = want
		}
		if r.step(taken) {
			debug.FreeOSMemory()
			if err := host.ForgetProgram(); err != nil {
				up.app.logger.Warn("give the memory of the program's file back", "code", "program_not_forgotten", "error", err)
			}
		}
	})
	return nil
}
