package gate_test

import (
	"context"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// P-Closed: under a clock that cannot be read nothing has an effect, whatever was granted before, and reading goes on.
func TestAClockThatCannotBeReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		now  time.Time
		good bool
	}{
		"the zero time":         {time.Time{}, false},
		"1970":                  {time.Unix(0, 0), false},
		"the end of 1989":       {time.Date(1989, 12, 31, 23, 59, 59, 999_999_999, time.UTC), false},
		"the beginning of 1990": {time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), true},
		"the end of 9999":       {time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), true},
		"10000":                 {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), false},
	} {
		t.Run(name, func(t *testing.T) {
			h := build(t, nil)
			effect, asking := h.shell("standard", "ls"), h.shell("standard", "rm -r scratch")
			allowed := h.judge(effect)
			approved, q := h.asked(asking)
			h.approve(q, h.owner)

			h.clock.set(c.now)
			if d := h.judge(effect).Decision; (d.Outcome == policy.Allow) != c.good || !c.good && d.ReasonCode != policy.ReasonClockUnreadable {
				t.Errorf("got %s %s", d.Outcome, d.ReasonCode)
			}
			if d := h.judge(h.file("standard", policy.FileRead, "a.txt")).Decision; d.Outcome != policy.Allow {
				t.Errorf("reading: got %s %s", d.Outcome, d.ReasonCode)
			}
			if c.good {
				return
			}
			if _, _, err := h.Begin(context.Background(), allowed, "", h.intent(effect)); fault.CodeOf(err) != policy.ReasonClockUnreadable {
				t.Errorf("what was allowed before: got %v", err)
			}
			if _, _, err := h.Begin(context.Background(), approved, q.ID, h.intent(asking)); fault.CodeOf(err) != policy.ReasonClockUnreadable {
				t.Errorf("what was approved before: got %v", err)
			}
		})
	}
}
