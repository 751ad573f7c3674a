package sqlite

import (
	"errors"
	"testing"
	"testing/synctest"

	"agentbox/internal/kernel/journal"
)

// Who has read a commit that was handed to the operating system and then failed is told that the log is shut; who waits for one that is
// on its way to the disk goes on waiting for that.
func TestNobodyWaitsForACommitThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &durability{}
		d.owe(0)
		d.handed(&group{})
		sent := make(chan error, 1)
		go func() { sent <- d.wait(t.Context()) }()
		synctest.Wait()
		d.owe(0)
		failed := make(chan error, 1)
		go func() { failed <- d.wait(t.Context()) }()
		synctest.Wait()
		d.end()
		if err := <-failed; !errors.Is(err, journal.ErrClosed) {
			t.Errorf("got %v, want %v", err, journal.ErrClosed)
		}
		synctest.Wait()
		select {
		case err := <-sent:
			t.Errorf("got %v before the disk had the commit", err)
		default:
		}
		d.mu.Lock()
		d.synced = 1
		close(d.grown)
		d.grown = nil
		d.mu.Unlock()
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}
