//go:build !linux || portable

package notes

import (
	"context"
	"errors"

	"agentbox/internal/driver/disk/internal/beneath"
)

// Notes are the notes of some folders, of which this system makes none.
type Notes struct{}

// Open returns errors.ErrUnsupported.
func Open() (*Notes, error) { return nil, errors.ErrUnsupported }

// Add returns errors.ErrUnsupported.
func (*Notes) Add(*beneath.Folder, uint32) (int32, error) { return 0, errors.ErrUnsupported }

// Remove does nothing.
func (*Notes) Remove(int32) {}

// Take returns errors.ErrUnsupported.
func (*Notes) Take(func(Note)) (bool, error) { return false, errors.ErrUnsupported }

// Wait returns errors.ErrUnsupported.
func (*Notes) Wait(context.Context) error { return errors.ErrUnsupported }

// Wake does nothing.
func (*Notes) Wake() {}

// Close does nothing.
func (*Notes) Close() error { return nil }
