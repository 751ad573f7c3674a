package localengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/deadline"
)

// errToolLate ends a call of a tool of the daemon at the limit of its time.
var errToolLate = fault.New(fault.Exhausted, "tool_time_exceeded", "the call was ended at the limit of its time").
	With("Ask for less at once.")

// do does what the tool is called for, for as long as it may, and says how long the tool has worked.
func (u use) do(ctx context.Context) (errand.Outcome, error) {
	doer, _ := u.doer()
	if doer.waits {
		return doer.do(u, ctx)
	}
	bounded, end := deadline.Within(ctx, u.Clock, u.left.Most(), errToolLate)
	defer end()
	began := u.Clock.Now()
	o, err := doer.do(u, bounded)
	o.Worked = max(u.Clock.Now().Sub(began), 0).Milliseconds()
	if err != nil && errors.Is(context.Cause(bounded), errToolLate) {
		err = errToolLate
	}
	return o, err
}

// timedCommand returns an operation that works for no longer than it may: a command gets a shorter timeout. A file is read or written at
// once.
func timedCommand(name string, operation json.RawMessage, most time.Duration) (json.RawMessage, error) {
	if name != run.OpShell {
		return operation, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(operation, &fields); err != nil {
		return nil, err
	}
	var asked *int64
	if raw, ok := fields["timeout"]; ok {
		if err := json.Unmarshal(raw, &asked); err != nil {
			return nil, err
		}
	}
	if asked == nil {
		asked = new(int64(run.DefaultTimeoutMS))
	}
	fields["timeout"] = fmt.Append(nil, *shorter(asked, most))
	return json.Marshal(fields)
}

// shorter returns a timeout in milliseconds that is not longer than the most; nil stands for a timeout that nobody named.
func shorter(ms *int64, most time.Duration) *int64 {
	limit := max(most.Milliseconds(), run.MinTimeoutMS)
	if ms != nil {
		limit = min(limit, *ms)
	}
	return &limit
}

// workedIn returns how many milliseconds the commands of a run in a space have worked, by their results.
func workedIn(results []run.Result) (ms int64) {
	for _, r := range results {
		if r.DurationMS != nil {
			ms += max(*r.DurationMS, 0)
		}
		if r.CommitMS != nil {
			ms += max(*r.CommitMS, 0)
		}
	}
	return ms
}
