package gate_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
)

var errUnreadable = errors.New("the disk cannot be read")

// unreadable is a store of which one read fails: the one with the number at, from 1, since reads was set to 0.
type unreadable struct {
	projection.Reader
	reads, at int
}

func (u *unreadable) fails() bool {
	u.reads++
	return u.reads == u.at
}

func (u *unreadable) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if u.fails() {
		return projection.Document{}, errUnreadable
	}
	return u.Reader.Document(ctx, ws, name, key)
}

func (u *unreadable) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	if u.fails() {
		return nil, errUnreadable
	}
	return u.Reader.Documents(ctx, q)
}

// Whichever read of a decision fails, the decision fails with it, and nothing is recorded: what cannot be read permits nothing. Only the
// reads behind the record, which show what was decided, fail when it is there.
func TestNothingIsDecidedOverAStoreThatCannotBeRead(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name    string
		least   int // reads that there are at least, so that the test tests something
		behind  int // how many of them come behind the record
		prepare func(h *house) (do func() error)
	}{
		{"an approval that takes two persons", 5, 1, func(h *house) func() error {
			otto := h.person("otto", principal.Operator)
			h.person("ina", principal.Operator)
			_, q := h.twoPersons("rm -r scratch")
			return func() error {
				_, err := h.decide(q, otto, policy.Approve)
				return err
			}
		}},
		{"the second of two", 6, 1, func(h *house) func() error {
			otto := h.person("otto", principal.Operator)
			ina := h.person("ina", principal.Operator)
			_, q := h.twoPersons("rm -r scratch")
			if _, err := h.decide(q, ina, policy.Approve); err != nil {
				t.Fatal(err)
			}
			return func() error {
				_, err := h.decide(q, otto, policy.Approve)
				return err
			}
		}},
		{"the answer of who asked", 4, 1, func(h *house) func() error {
			a := h.shell("standard", "rm -r scratch")
			a.Principal = h.owner
			_, q := h.asked(a)
			return func() error {
				_, err := h.decide(q, h.owner, policy.Approve)
				return err
			}
		}},
		{"the revocation of a standing approval", 2, 0, func(h *house) func() error {
			s, _ := h.granted(t, 10)
			return func() error { return h.Approvals.Revoke(ctx, h.origin(h.owner), ws, s, "") }
		}},
		{"the end of a question", 2, 1, func(h *house) func() error {
			h.asked(h.shell("standard", "rm -r scratch"))
			h.clock.move(30 * 24 * time.Hour)
			return func() error { return h.Approvals.Step(ctx, h.clock.Now()) }
		}},
		{"the judgement under a standing approval", 3, 0, func(h *house) func() error {
			_, r := h.granted(t, 10)
			return func() error {
				_, err := h.Judge(ctx, r.Action)
				return err
			}
		}},
		{"an explanation", 2, 0, func(h *house) func() error {
			return func() error {
				e, err := h.Explain(ctx, h.shell("standard", "ls"), nil)
				if err != nil && !reflect.DeepEqual(e, policy.Explanation{}) {
					t.Errorf("an explanation that failed says %+v", e)
				}
				return err
			}
		}},
		{"the revocation of a key of an owner", 3, 0, func(h *house) func() error {
			var last id.Key
			for _, name := range []string{"one", "two"} {
				_, key, err := h.IssueKey(ctx, h.origin(h.owner), ws, h.owner, name)
				if err != nil {
					t.Fatal(err)
				}
				last = key.ID
			}
			return func() error { return h.RevokeKey(ctx, h.origin(h.owner), ws, last, "", false) }
		}},
	} {
		try := func(at int) (reads, recorded int, err error) {
			of := &unreadable{}
			h := build(t, func(p *gate.Parts) { of.Reader, p.Docs = p.Docs, of })
			do := c.prepare(h)
			h.restart() // it remembers nothing
			before := len(h.events())
			of.reads, of.at = 0, at
			err = do()
			return of.reads, len(h.events()) - before, err
		}
		total, _, err := try(0)
		if err != nil || total < c.least {
			t.Errorf("%s: %d reads, %v, want at least %d", c.name, total, err, c.least)
		}
		for at := 1; at <= total; at++ {
			if _, n, err := try(at); !errors.Is(err, errUnreadable) || n != 0 && at <= total-c.behind {
				t.Errorf("%s: read %d of %d failed: got %v and %d events", c.name, at, total, err, n)
			}
		}
	}
}

// A ruling has the judged policy, the judged bytes, and the limits of its question.
func TestWhatARulingSays(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	restrictive := h.bundles["restrictive"]
	most := int64(restrictive.Limits.FileBytes)
	for asked, want := range map[int64]int64{0: most, 1: 1, most: most, most + 1: most} {
		a := h.file("restrictive", policy.FileRead, "a")
		a.MaxBytes = asked
		r := h.judge(a)
		if int64(r.Action.MaxBytes) != want || r.Decision.Bundle != restrictive.Hash || r.Decision.Action != event.DigestOf(r.Canonical) {
			t.Errorf("asked for %d bytes: got %d under %s", asked, r.Action.MaxBytes, r.Decision.Bundle)
		}
	}
	inexact := policy.Action{Type: policy.ExternalWrite, Workspace: ws, Principal: h.agent, Target: "a.org",
		Request: []byte(`{"n":9007199254740993}`)}
	if d := h.judge(inexact).Decision; d.Outcome != policy.Deny || d.ReasonCode == "" || d.Reason == "" || !d.Action.IsZero() {
		t.Errorf("without canonical bytes: got %+v", d)
	}
	refusals := h.count(policy.DeniedType)
	client := policy.Client{Gate: h.Gate, Append: h.log.Append}
	if _, err := client.Allow(ctx, h.origin(h.agent), inexact); !errors.Is(err, policy.ErrInexact) ||
		!strings.Contains(err.Error(), "9007199254740993") || h.count(policy.DeniedType) != refusals+1 {
		t.Errorf("without canonical bytes: got %v and %d refusals, want one that names the number", err, h.count(policy.DeniedType)-refusals)
	}
	if e, err := h.Explain(ctx, inexact, nil); err != nil || e.Request != nil || e.Shown != "" ||
		e.Decision.ReasonCode != policy.ErrInexact.Code {
		t.Errorf("an explanation without canonical bytes: got %+v, %v", e, err)
	}
	trial, err := h.Bundles.ReadPolicy([]byte("allow:\n  commands: ['*']\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	trial.Hash = restrictive.Hash
	if e, err := h.Explain(ctx, h.shell("standard", "ls"), &trial); err == nil && e.Decision.Outcome != policy.Deny {
		t.Errorf("a policy that is not what its hash says: got %s", e.Decision.Outcome)
	}
}
