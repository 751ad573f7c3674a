package app_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/id"
	"agentbox/internal/testkit/pgtest"
)

// unsigned reports whether a verification misses the checkpoint of the default workspace, and fails where it finds anything else.
func unsigned(t *testing.T, c app.Config) bool {
	t.Helper()
	audits, err := app.Verify(t.Context(), c)
	if err != nil || len(audits) != 1 || !audits[0].OK() {
		t.Fatalf("verify: %+v, %v", audits, err)
	}
	return audits[0].Unsigned
}

// ranOnce runs a daemon until it has signed.
func ranOnce(t *testing.T, c app.Config, checkpoint string) {
	t.Helper()
	a, err := app.Open(t.Context(), c, app.Clock{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() { ended <- a.Run(ctx, func(app.State) { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for signed := false; !signed; { // among several daemons one has to become the leader first
		select {
		case <-look.C:
			_, err := os.Stat(checkpoint)
			signed = err == nil
		case err := <-ended:
			t.Fatalf("the daemon ended: %v", err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestWhatWasGivenUpIsNotMissed gives the checkpoints up: who verifies then, before the next start, misses none. One that vanished
// without a word is missed.
func TestWhatWasGivenUpIsNotMissed(t *testing.T) {
	c := app.Default(filepath.Join(t.TempDir(), "data"))
	c.Listen = "127.0.0.1:0"
	checkpoint := filepath.Join(c.DataDir, "proofs", string(id.DefaultWorkspace), "checkpoint")
	ranOnce(t, c, checkpoint)
	if err := os.Rename(checkpoint, checkpoint+".gone"); err != nil {
		t.Fatal(err)
	}
	if !unsigned(t, c) {
		t.Error("nobody misses a checkpoint that vanished")
	}
	if err := os.Rename(checkpoint+".gone", checkpoint); err != nil {
		t.Fatal(err)
	}
	if _, err := app.Abandon(t.Context(), c, "the disk was lost"); err != nil {
		t.Fatal(err)
	}
	if unsigned(t, c) {
		t.Error("a checkpoint is missed that was given up")
	}
	ranOnce(t, c, checkpoint)
	if unsigned(t, c) {
		t.Error("after the next start there is no checkpoint")
	}
}

// TestAMissingCheckpointIsMissedWhereItIsShared is about daemons whose checkpoints lie in a folder that they share.
func TestAMissingCheckpointIsMissedWhereItIsShared(t *testing.T) {
	c := inDatabase(filepath.Join(t.TempDir(), "data"), pgtest.Start(t).Database(), t.TempDir())
	checkpoint := filepath.Join(c.Shared, "proofs", string(id.DefaultWorkspace), "checkpoint")
	ranOnce(t, c, checkpoint)
	if unsigned(t, c) {
		t.Fatal("there is no checkpoint")
	}
	if err := os.Remove(checkpoint); err != nil {
		t.Fatal(err)
	}
	if !unsigned(t, c) {
		t.Error("nobody misses the checkpoint in the shared folder")
	}
}
