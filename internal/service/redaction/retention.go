package redaction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// MaxRules is how many rules of retention there may be.
const MaxRules = 100

// Retention says how long the data of which events are kept: for each pattern of event types how long. A pattern is a type, or the
// beginning of one and a star, as in run.*; of the rules that fit, the shortest time counts.
type Retention map[string]time.Duration

// ParseRetention reads rules of the form PATTERN=TIME, with a time in days or as Go writes it: run.*=30d, tool.*=36h.
func ParseRetention(rules []string) (Retention, error) {
	if len(rules) > MaxRules {
		return nil, fault.New(fault.Invalid, "retention_invalid", "there are at most %d rules of retention", MaxRules)
	}
	r := Retention{}
	for _, rule := range rules {
		pattern, text, ok := strings.Cut(rule, "=")
		keep, err := run.ParseRetention(text)
		word := strings.TrimSuffix(pattern, "*")
		if !ok || err != nil || word == "" || strings.ContainsFunc(word, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.'
		}) {
			return nil, fault.New(fault.Invalid, "retention_invalid",
				"%.100q is not a rule of retention: an event type or its beginning with a star, =, and a time from %s to %dd, as in "+
					"run.*=30d", rule, "1m",
				run.MaxRetention/(24*time.Hour))
		}
		r[pattern] = keep
	}
	return r, nil
}

// Select refuses a rule that selects none of the event types: by a typing error, data would be kept for good.
func (r Retention) Select(types []string) error {
	for _, pattern := range slices.Sorted(maps.Keys(r)) {
		if slices.ContainsFunc(types, func(typ string) bool { return fits(pattern, typ) }) {
			continue
		}
		near := slices.Clone(types)
		if strings.HasSuffix(pattern, "*") {
			for i, typ := range near {
				family, _, _ := strings.Cut(typ, ".")
				near[i] = family + ".*"
			}
		}
		return fault.New(fault.Invalid, "retention_invalid", "no event has a type that the rule of retention %.100s= selects; did you mean %s?",
			pattern, policy.Nearest(pattern, near))
	}
	return nil
}

// fits reports whether a pattern selects an event type.
func fits(pattern, typ string) bool {
	if beginning, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(typ, beginning)
	}
	return pattern == typ
}

// sweepRef names the sweep of one rule through one workspace.
type sweepRef struct {
	workspace id.Workspace
	pattern   string
}

// sweep is the progress of one sweep. It restarts with each start of the daemon.
type sweep struct {
	upTo uint64
	late []uint64 // events whose time is over, and which are still needed
}

// Step redacts events that are past their time, a part at a time. The next step continues.
func (r *Service) Step(ctx context.Context, now time.Time) error {
	workspaces, err := r.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	r.busy.Lock()
	defer r.busy.Unlock()
	back := now.Before(r.stepped)
	r.stepped = now
	for _, ws := range workspaces {
		if err := r.runs(ctx, ws, now, back); err != nil {
			return fmt.Errorf("end the time of runs in %s: %w", ws, err)
		}
		for pattern, keep := range r.Retention {
			if err := r.sweep(ctx, ws, pattern, keep, now); err != nil {
				return fmt.Errorf("end the time of %s in %s: %w", pattern, ws, err)
			}
		}
	}
	return nil
}

// sweep redacts events by a rule, from its last place to the first event whose time is not over.
func (r *Service) sweep(ctx context.Context, ws id.Workspace, pattern string, keep time.Duration, now time.Time) error {
	s := r.sweeps[sweepRef{ws, pattern}]
	if s == nil {
		s = &sweep{}
		r.sweeps[sweepRef{ws, pattern}] = s
	}
	var looked []event.Event
	for _, seq := range s.late[:min(len(s.late), journal.MaxBatch/2)] {
		found, err := r.Log.Read(ctx, journal.Query{Workspace: ws, From: seq, Before: seq + 1, Limit: 1})
		if err != nil {
			return err
		}
		looked = append(looked, found...)
	}
	waited := len(looked)
	upTo := s.upTo
	for _, limit := range []int{1, journal.MaxBatch / 2} { // mostly the first has not come to its time
		page, err := r.Log.Read(ctx, journal.Query{Workspace: ws, From: upTo + 1, Limit: limit})
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.RecordedAt.Add(keep).After(now) {
				page = nil
				break
			}
			looked, upTo = append(looked, e), e.Seq
		}
		if len(page) == 0 {
			break
		}
	}
	due, late, err := r.due(ctx, pattern, looked)
	if err != nil {
		return err
	}
	if due, err = r.open(ctx, ws, due); err != nil {
		return err
	}
	if err := r.overdue(ctx, ws, due, func(event.Event) string {
		return fmt.Sprintf("retention: %s is kept for %s", pattern, keep)
	}); err != nil {
		return err
	}
	s.upTo, s.late = upTo, append(late, s.late[waited:]...)
	return nil
}

// overdue redacts events whose time is over, at most journal.MaxBatch of them. The retention was set before, so the gate is not asked
// again; a person's redaction goes through the gate.
func (r *Service) overdue(ctx context.Context, ws id.Workspace, events []event.Event, reason func(event.Event) string) error {
	if len(events) == 0 {
		return nil
	}
	drafts, err := drafts(event.Origin{Principal: r.System}, events, reason)
	if err != nil {
		return err
	}
	if _, err := r.Log.Append(ctx, event.Batch{Workspace: ws, Drafts: drafts}); err != nil {
		return err
	}
	if _, err := r.forget(ctx, ws, events); err != nil {
		return err
	}
	r.Logger.Info("the time of events is over", "code", "retention_ended", "workspace", ws, "events", len(events))
	return nil
}

// due returns those of the events that a rule selects and nothing needs any more, and the places of those that are needed.
func (r *Service) due(ctx context.Context, pattern string, events []event.Event) (due []event.Event, late []uint64, err error) {
	for _, e := range events {
		if !fits(pattern, e.Type) || e.Withheld != "" {
			continue
		}
		_, err := Remains(e)
		if err == nil {
			err = r.ended(ctx, &e)
		}
		switch {
		case err == nil:
			due = append(due, e)
		case errors.Is(err, ErrActive):
			late = append(late, e.Seq)
		case !errors.Is(err, ErrNotPossible):
			return nil, nil, err
		}
	}
	return due, late, nil
}

// Rules returns the rules in order, as text.
func (r Retention) Rules() []string {
	rules := []string{}
	for pattern, keep := range r {
		rules = append(rules, pattern+"="+keep.String())
	}
	slices.Sort(rules)
	return rules
}
