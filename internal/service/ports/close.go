package ports

import (
	"context"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// Close closes a port of a space for everybody, and returns how many exposures it closed. It needs no permission of the gate. It returns
// space_not_found if nothing was open and the workspace has no such space.
func (s *Service) Close(ctx context.Context, origin event.Origin, ws id.Workspace, sp id.Space, port int) (int, error) {
	origin.Key, origin.Command = "", event.Digest{}
	open := s.selected(func(x *Exposure) bool { return x.Workspace == ws && x.Space == sp && x.Port == port })
	for _, x := range open {
		s.close(ctx, x, origin, space.PortRequested)
	}
	if len(open) > 0 {
		return len(open), nil // they are closed even if the document cannot be read
	}
	_, err := s.document(ctx, ws, sp)
	return 0, err
}

// close closes an open port and then records that. A second call does nothing.
func (s *Service) close(ctx context.Context, x *Exposure, origin event.Origin, reason string) {
	x.door.Close()
	s.mu.Lock()
	known := s.all[x.ID] == x
	delete(s.all, x.ID)
	s.mu.Unlock()
	if known {
		s.record(context.WithoutCancel(ctx), x, origin, reason)
	}
}

// record records that a port is closed. The port stays closed if the record fails.
func (s *Service) record(ctx context.Context, x *Exposure, origin event.Origin, reason string) {
	if x.halted.Load() {
		reason = space.PortKillSwitch
	}
	origin.Causation, origin.Correlation = x.opened, x.cause
	_, err := s.Log.Append(ctx, event.Batch{Workspace: x.Workspace, Drafts: []event.Draft{
		x.draft(space.EventPortClosed, origin, space.PortClosed{
			Space: x.Space, Exposure: x.ID, Port: x.Port, Reason: reason, Requests: x.requests.Load(), In: x.in.Load(), Out: x.out.Load(),
		}),
	}})
	if err != nil {
		s.Logger.Error("record that a port was closed", "code", "port_closed_not_recorded", "space", x.Space, "error", err)
	}
}

// system returns the origin of the daemon itself, which closes ports whose time is over.
func (s *Service) system(x *Exposure) event.Origin {
	return event.Origin{Principal: s.System, Correlation: x.origin.Correlation}
}

func (s *Service) closeAll(ctx context.Context, reason string, wanted func(*Exposure) bool) {
	all := s.selected(wanted)
	for _, x := range all { // end every connection first, because recording takes time
		x.door.Close()
	}
	for _, x := range all {
		s.close(ctx, x, s.system(x), reason)
	}
}

// Paused implements space.Doors: it ends the connections to a paused space. The ports stay open for the resumption.
func (s *Service) Paused(sp id.Space) {
	for _, x := range s.openIn(sp) {
		x.door.Drop()
	}
}

// Ended implements space.Doors.
func (s *Service) Ended(ctx context.Context, sp id.Space) {
	s.closeAll(ctx, space.PortSpaceEnded, func(x *Exposure) bool { return x.Space == sp })
}

// Halt closes every port of a workspace at once, because somebody threw its kill switch. Step records that later, because recording takes
// time.
func (s *Service) Halt(ws id.Workspace, _ error) {
	for _, x := range s.selected(func(x *Exposure) bool { return x.Workspace == ws }) {
		x.halted.Store(true)
		x.door.Close()
	}
}

// Stop closes every port, because the daemon stops.
func (s *Service) Stop(ctx context.Context) {
	s.closeAll(ctx, space.PortDaemon, func(*Exposure) bool { return true })
}

// Step closes every port whose time is over at now, that nobody has used for the time Unused, whose space has ended, or whose principal has
// lost the right.
func (s *Service) Step(ctx context.Context, now time.Time) error {
	s.closeAll(ctx, space.PortKillSwitch, func(x *Exposure) bool { return x.halted.Load() })
	s.closeAll(ctx, space.PortExpired, func(x *Exposure) bool {
		return !x.ExpiresAt.IsZero() && !now.Before(x.ExpiresAt) ||
			x.ExpiresAt.IsZero() && now.Sub(time.Unix(0, x.used.Load())) >= Unused
	})
	s.closeAll(ctx, space.PortSpaceEnded, (*Exposure).over)
	for _, x := range s.selected(func(*Exposure) bool { return true }) {
		if err := s.check(ctx, x); err != nil && fault.KindOf(err) == fault.Internal {
			return err
		}
	}
	return nil
}
