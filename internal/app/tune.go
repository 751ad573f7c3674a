package app

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent lets the heap grow to nine times what lives before it is collected. What lives in a daemon is small, and most of what it makes
// is gone with the request, so collecting less often is nearly free: it gives a third more appends a second on two cores.
const gcPercent = 800

// spareProcessors is how many more goroutines may run than the machine has cores. The runtime takes a processor from a goroutine that waits
// for the disk only some time after it has begun to wait, and the log's committer waits for the disk a third of its life: on two cores one
// of them idled a fifth of the time while others wanted to run, and with a spare processor a twentieth.
const spareProcessors = 1

// Tune sets how the process uses memory and processors, unless whoever started it has said so by GOGC and GOMAXPROCS.
func Tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spareProcessors)
	}
}
