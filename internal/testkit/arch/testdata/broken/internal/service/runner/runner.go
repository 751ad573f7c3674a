// Package runner is a service that goes around the gate.
package runner

import (
	"io"
	"os"

	"broken/internal/domain/policy"
	"broken/internal/kernel/store"
	"broken/internal/service/other"
)

// Runner runs.
type Runner struct {
	Files store.Files
	Hook  func(name string) error
	Out   io.Writer
	Other other.Other
}

// Right asks, and goes through a permit.
func (r *Runner) Right(p policy.Permit) error { return r.Files.Write(p) }

// Listed calls what stands on the list.
func (r *Runner) Listed() error { return r.Files.Append("line") }

// Direct does it itself.
func (r *Runner) Direct() error { return os.Remove("x") }

// Around finds a driver's function without a permit.
func (r *Runner) Around() error { return r.Files.Remove("x") }

// Handed calls what it was given.
func (r *Runner) Handed() error { return r.Hook("x") }

// Written writes into what it was given.
func (r *Runner) Written() error {
	_, err := r.Out.Write([]byte("x"))
	return err
}

// Forged makes a permit.
func (r *Runner) Forged() error { return r.Files.Write(policy.Issue([]byte("a"))) }

// Harmless touches nothing.
func (r *Runner) Harmless() bool { return os.IsNotExist(nil) }
