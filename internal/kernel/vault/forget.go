package vault

import (
	"context"

	"agentbox/internal/domain/event"
)

// Forgetter makes content outside the log unreadable: blobs, snapshots, live output.
type Forgetter interface {
	// ForgetContent destroys, for good, the content that the events brought and nothing else names. The caller calls it after the redaction of
	// the events is recorded and before their data are destroyed. After a crash between the two, it calls it again. Forgotten content is no
	// error.
	ForgetContent(ctx context.Context, events []event.Event) (Remains, error)
}

// Remains tells the requester which data a redaction left, and why.
type Remains struct {
	Forgotten int      `json:"contents_forgotten"`    // pieces of content whose keys were destroyed
	Shared    []string `json:"shared,omitempty"`      // content that something else names, each with the name of that
	Live      []string `json:"live_files,omitempty"`  // files of living spaces, which are their owner's to delete
	Missed    []string `json:"not_reached,omitempty"` // parts that could not be reached
}
