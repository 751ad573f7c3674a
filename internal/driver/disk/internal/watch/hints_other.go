//go:build !linux || portable

package watch

import (
	"context"

	"agentbox/internal/driver/disk/internal/beneath"
)

// hints would be notes of the kernel, which this system does not have: every watch polls.
type hints struct{}

func newHints() *hints { return nil }

func (*hints) add(*node, *beneath.Folder) bool { return false }

func (*hints) above(*beneath.Folder) bool { return false }

func (*hints) drop(*node) {}

func (*hints) take() (*found, bool) { return &found{}, true }

func (*hints) wait(ctx context.Context) error { return ctx.Err() }

func (*hints) wake() {}

func (*hints) close() {}
