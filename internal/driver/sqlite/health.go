package sqlite

import (
	"errors"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/fault"
)

// health says whether the log takes events.
type health struct {
	views  *views
	syncer *syncer
	failed atomic.Pointer[fault.Error] // why nothing is accepted, until Mend takes it away
	unsure atomic.Bool                 // the state of the disk is unknown until a restart
}

// fail shuts the log after a write that failed, until Mend has found out what is on the disk. Where the disk was told to keep what was
// written and did not, nobody in this process can: it may have forgotten that it did not, and a second try would succeed.
func (h *health) fail(err error) *fault.Error {
	if errors.Is(err, sqlite3.IOERR_FSYNC) || errors.Is(err, sqlite3.IOERR_DIR_FSYNC) || h.syncer.durable.isLost() {
		h.unsure.Store(true)
	}
	why := errShut
	if h.unsure.Load() {
		why = errUnsure
	}
	h.failed.CompareAndSwap(nil, fault.Wrap(err, why.Kind, why.Code, "%s", why.Msg))
	h.views.watch.Close()
	return h.failed.Load()
}
