//go:build linux

package namespace

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

// process is a command in the background.
type process struct {
	space     *instance
	ctx       context.Context
	beginning beginning
	running   *spaceinit.Process
}

var _ space.Process = (*process)(nil)

// Start begins the command of a shell.exec permit.
func (s *instance) Start(ctx context.Context, p policy.Permit, size space.TerminalSize) (space.Process, error) {
	action, err := p.Redeem(policy.ShellExec)
	if err != nil {
		return nil, err
	}
	if action.Space != s.spec.ID || !action.Background || action.Stdin != (event.Digest{}) && action.Stdin != event.DigestOf(nil) {
		return nil, policy.ErrPermitMismatch
	}
	x, err := s.command(action)
	if err != nil {
		return nil, err
	}
	switch action.Attach {
	case policy.AttachStdin:
		x.Stdin = true
	case policy.AttachTerminal:
		if err := size.Check(); err != nil {
			return nil, err
		}
		x.Terminal = &spaceinit.Size{Cols: uint16(size.Cols), Rows: uint16(size.Rows)}
	}
	b := s.begin(timeOf(action))
	running, err := s.client.Start(x)
	if err != nil {
		return nil, s.refusal(err)
	}
	return &process{s, ctx, b, running}, nil
}

// Wait implements space.Process.
func (p *process) Wait(out space.Output) (space.Exit, error) {
	return p.space.follow(p.ctx, p.beginning, out, func(ctx context.Context, expire <-chan time.Time, out spaceinit.Output) (spaceinit.Exit,
		error) {
		return p.running.Wait(ctx, expire, out)
	})
}

// Send implements space.Process.
func (p *process) Send(ctx context.Context, input []byte, before func() error) error {
	if len(input) > space.MaxInputBytes {
		return space.ErrInputFull
	}
	return p.told(p.running.Send(ctx, input, before))
}

// Signal implements space.Process.
func (p *process) Signal(name string) error {
	if err := space.CheckSignal(name); err != nil {
		return err
	}
	return p.told(p.running.Signal(uint8(unix.SignalNum(name))))
}

// Resize implements space.Process.
func (p *process) Resize(size space.TerminalSize) error {
	if err := size.Check(); err != nil {
		return err
	}
	return p.told(p.running.Resize(spaceinit.Size{Cols: uint16(size.Cols), Rows: uint16(size.Rows)}))
}

// told turns an error of the connection into one of the contract.
func (p *process) told(err error) error {
	switch {
	case errors.Is(err, spaceinit.ErrFull):
		return space.ErrInputFull
	case errors.Is(err, spaceinit.ErrShut):
		return space.ErrInputClosed
	case errors.Is(err, spaceinit.ErrOver), errors.Is(err, spaceinit.ErrEnded), errors.Is(err, spaceinit.ErrRefused):
		return space.ErrCommandEnded
	}
	return err
}
