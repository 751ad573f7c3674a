package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/telemetry"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/projection"
)

// still is a clock that stands still.
type still struct{}

func (still) Now() time.Time { return time.Unix(1_700_000_000, 0) }

func (still) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// taken is a journal that takes every batch, or refuses with an error.
type taken struct {
	journal.Journal
	replayed bool
	err      error
}

func (j taken) Append(_ context.Context, b event.Batch) (event.Receipt, error) {
	r := event.Receipt{Replayed: j.replayed}
	for _, d := range b.Drafts {
		r.Events = append(r.Events, event.Event{Header: d.Header, Data: d.Data})
	}
	return r, j.err
}

// asked has for each name a question that was asked when the clock stands still.
type asked struct{ projection.Reader }

func (asked) Document(context.Context, id.Workspace, string, string) (projection.Document, error) {
	body, err := json.Marshal(policy.Approval{RequestedAt: still{}.Now()})
	return projection.Document{Body: body}, err
}

// decided is a gate that always says the same.
type decided struct {
	policy.Gate
	decision policy.Decision
	err      error
}

func (g decided) Judge(context.Context, policy.Action) (policy.Ruling, error) {
	return policy.Ruling{Decision: g.decision}, g.err
}

// bare is a tier whose commands end as they are told to.
type bare struct {
	space.Tier
	exit space.Exit
	err  error
}

func (bare) Name() string { return "namespace" }

func (b bare) Create(context.Context, policy.Permit, space.Spec) (space.Instance, error) {
	if b.err != nil {
		return nil, b.err
	}
	return living{exit: b.exit}, nil
}

type living struct {
	space.Instance
	exit space.Exit
}

func (l living) Exec(context.Context, policy.Permit, []byte, space.Output) (space.Exit, error) {
	return l.exit, nil
}

// nowhere is a store of live output that keeps nothing.
type nowhere struct{ livestream.Store }

func (nowhere) Append(context.Context, id.Run, livestream.Frame) (uint64, error) { return 1, nil }

// told makes a metric of every kind tell something.
func told(t *testing.T) *telemetry.Metrics {
	t.Helper()
	m := telemetry.NewMetrics("9.9.9")
	m.Begun()
	m.Answered(telemetry.Request{Route: "GET /v1/runs/{run_id}", Status: 200, Took: time.Millisecond})
	m.Begun()
	m.Stream()("complete")
	m.Committed(3, time.Millisecond)
	m.Signed(still{}.Now())
	m.Visited(1, still{}.Now(), nil)
	m.Visited(2, still{}.Now(), errors.New("gone"))

	bundle := event.DigestOf([]byte("standard"))
	gate := telemetry.WrapGate(decided{decision: policy.Decision{Outcome: policy.Allow, ReasonCode: policy.ReasonDefaultAllow,
		Bundle: bundle}}, still{}, m, nil,
		func() map[event.Digest]string { return map[event.Digest]string{bundle: "standard"} })
	if _, err := gate.Judge(t.Context(), policy.Action{Workspace: id.DefaultWorkspace}); err != nil {
		t.Fatal(err)
	}
	log := telemetry.WrapJournal(taken{}, asked{}, still{}, m, nil, nil)
	b := event.Batch{Workspace: id.DefaultWorkspace}
	for _, e := range []struct {
		typ  string
		data any
	}{
		{run.EventCreated, run.Created{}}, {run.EventCompleted, run.Finished{}}, {policy.ApprovalRequestedType, policy.ApprovalRequested{}},
		{policy.ApprovalDecidedType, policy.ApprovalDecided{Status: policy.Denied}},
		{run.EventSucceeded, run.Ended{Tool: run.OpShell, Kind: run.OpShell}}, {run.EventErred, run.Ended{Tool: run.OpShell,
			Kind: run.ResPolicyDenied}},
		{run.EventErred, run.Ended{Operation: `","tool_name":"message`, Tool: run.OpReadFile, Kind: run.OpReadFile}}, {run.EventUnknown,
			run.Ended{Tool: run.OpShell}},
	} {
		b.Drafts = append(b.Drafts, event.New(e.typ, event.Origin{Principal: "usr_1"}, id.DefaultWorkspace, "", e.data))
	}
	if _, err := log.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	made, err := telemetry.WrapTier(bare{exit: space.Exit{Code: 1}}, still{}, m, nil).Create(t.Context(), policy.Permit{}, space.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.Exec(t.Context(), policy.Permit{}, nil, func(string, []byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for kind, text := range map[string]string{livestream.Stdout: "four", livestream.Stderr: "fives", livestream.Result: "not this"} {
		if _, err := telemetry.WrapOutput(nowhere{}, m).Append(t.Context(), "run_1", livestream.Frame{Kind: kind,
			Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	m.Watch(func(context.Context) (telemetry.State, error) {
		return telemetry.State{
			Head: 7, Waiting: 2, Oldest: still{}.Now(), Spaces: map[telemetry.SpaceState]int{telemetry.InSpace("namespace", "ready"): 3},
			Data: map[string]int64{"log": 9},
		}, nil
	})
	return m
}

// TestEveryMetricIsDefinedAndWellNamed holds the registry against the definitions, which docs/METRICS.md is made of, and both against
// Prometheus's own rules for names.
func TestEveryMetricIsDefinedAndWellNamed(t *testing.T) {
	m := told(t)
	problems, err := testutil.GatherAndLint(m.Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	defined := map[string]telemetry.Definition{}
	for _, d := range m.Definitions() {
		if defined[d.Name].Name != "" {
			t.Errorf("%s is defined twice", d.Name)
		}
		defined[d.Name] = d
	}
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range families {
		name := f.GetName()
		found[name] = true
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		d := defined[name]
		if d.Help != f.GetHelp() || !strings.EqualFold(d.Type, f.GetType().String()) {
			t.Errorf("%s: the registry says %s %q, the definition %+v", name, f.GetType(), f.GetHelp(), d)
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if want := slices.Sorted(slices.Values(d.Labels)); !slices.Equal(labels, want) {
			t.Errorf("%s: labels %v, want %v", name, labels, want)
		}
	}
	for name := range defined {
		if !found[name] {
			t.Errorf("%s is defined and tells nothing", name)
		}
	}
}

// TestWhatIsCounted compares counts with what was done.
func TestWhatIsCounted(t *testing.T) {
	const want = `
# HELP agentbox_operations_total Operations that have their result.
# TYPE agentbox_operations_total counter
agentbox_operations_total{operation="readFile",outcome="failed"} 1
agentbox_operations_total{operation="shell",outcome="denied"} 1
agentbox_operations_total{operation="shell",outcome="succeeded"} 1
agentbox_operations_total{operation="shell",outcome="unknown"} 1
# HELP agentbox_approvals_total Questions to people, by what became of them.
# TYPE agentbox_approvals_total counter
agentbox_approvals_total{status="denied"} 1
agentbox_approvals_total{status="requested"} 1
# HELP agentbox_runs_total Runs, by what became of them.
# TYPE agentbox_runs_total counter
agentbox_runs_total{status="created"} 1
agentbox_runs_total{status="succeeded"} 1
# HELP agentbox_space_output_bytes_total What commands wrote.
# TYPE agentbox_space_output_bytes_total counter
agentbox_space_output_bytes_total{channel="stderr"} 5
agentbox_space_output_bytes_total{channel="stdout"} 4
# HELP agentbox_space_commands_total Commands that were run in spaces, by how they ended.
# TYPE agentbox_space_commands_total counter
agentbox_space_commands_total{exit="nonzero",tier="namespace"} 1
# HELP agentbox_gate_decisions_total Decisions of the gate on actions.
# TYPE agentbox_gate_decisions_total counter
agentbox_gate_decisions_total{outcome="allow",preset="standard",reason="default_allow"} 1
# HELP agentbox_http_requests_in_flight Requests that are being answered, event streams among them.
# TYPE agentbox_http_requests_in_flight gauge
agentbox_http_requests_in_flight 1
`
	m := told(t)
	err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "agentbox_operations_total", "agentbox_approvals_total",
		"agentbox_runs_total",
		"agentbox_space_output_bytes_total", "agentbox_space_commands_total", "agentbox_gate_decisions_total", "agentbox_http_requests_in_flight")
	if err != nil {
		t.Error(err)
	}
	if got := m.Tally(id.DefaultWorkspace); got != (telemetry.Tally{Decisions: 1, Appends: 1}) {
		t.Errorf("tally %+v", got)
	}
}

// TestHowLongQuestionsWait settles questions in each way: one into which somebody only looks waits on, and a clock that was set back does
// not make a wait shorter than nothing.
func TestHowLongQuestionsWait(t *testing.T) {
	m := telemetry.NewMetrics("0")
	log := telemetry.WrapJournal(taken{}, asked{}, still{}, m, nil, nil)
	for _, e := range []struct {
		typ   string
		data  any
		after time.Duration
	}{
		{policy.ApprovalRequestedType, policy.ApprovalRequested{}, 0},
		{policy.ApprovalDecidedType, policy.ApprovalDecided{Status: policy.Held, Reason: `","status":"approved`}, time.Minute},
		{policy.ApprovalAssentedType, policy.ApprovalAssented{}, time.Minute},
		{policy.ApprovalDecidedType, policy.ApprovalDecided{Status: policy.Approved}, time.Second},
		{policy.ApprovalDecidedType, policy.ApprovalDecided{Status: policy.Approved}, time.Second + time.Millisecond},
		{policy.ApprovalDecidedType, policy.ApprovalDecided{Status: policy.Denied}, -time.Hour},
		{policy.ApprovalExpiredType, policy.ApprovalExpired{}, 7 * 24 * time.Hour},
		{policy.ApprovalWithdrawnType, policy.ApprovalWithdrawn{}, 30 * 24 * time.Hour},
		{policy.ApprovalUsedType, policy.ApprovalUsed{}, time.Hour},
	} {
		d := event.New(e.typ, event.Origin{Principal: "usr_1"}, id.DefaultWorkspace, "", e.data).About(policy.ApprovalEntity, "apr_1")
		d.OccurredAt = still{}.Now().Add(e.after)
		if _, err := log.Append(t.Context(), event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{d}}); err != nil {
			t.Fatal(err)
		}
	}
	want := "# HELP agentbox_approval_wait_duration_seconds Time that questions waited for people, from when they were asked until they " +
		"were settled for good, by what became of them.\n" +
		"# TYPE agentbox_approval_wait_duration_seconds histogram\n"
	for _, c := range []struct {
		status string
		sum    string
		below  [13]int // from the bounds up, and at last all
	}{
		{"approved", "2.001", [13]int{1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}},
		{"denied", "0", [13]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"expired", "604800", [13]int{11: 1, 12: 1}},
		{"withdrawn", "2.592e+06", [13]int{12: 1}},
	} {
		for n, bound := range []string{"1", "5", "15", "60", "300", "900", "3600", "14400", "43200", "86400", "259200", "604800", "+Inf"} {
			want += fmt.Sprintf("agentbox_approval_wait_duration_seconds_bucket{status=%q,le=%q} %d\n", c.status, bound, c.below[n])
		}
		want += fmt.Sprintf("agentbox_approval_wait_duration_seconds_sum{status=%q} "+
			"%s\nagentbox_approval_wait_duration_seconds_count{status=%q} %d\n", c.status, c.sum, c.status, c.below[12])
	}
	if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "agentbox_approval_wait_duration_seconds"); err != nil {
		t.Error(err)
	}
}

// TestCallersMakeNoSeries feeds every label with a thousand values of a caller's choice.
func TestCallersMakeNoSeries(t *testing.T) {
	m := told(t)
	bundle := event.DigestOf([]byte("own"))
	feed := func(n int) {
		word := fmt.Sprintf("hostile-%d", n)
		m.Begun()
		m.Answered(telemetry.Request{Route: "", Status: 100_000 + n})
		m.Stream()(word)
		gate := telemetry.WrapGate(decided{decision: policy.Decision{ReasonCode: word, Bundle: bundle}}, still{}, m, nil, nil)
		if _, err := gate.Judge(t.Context(), policy.Action{Type: word, Path: word}); err != nil {
			t.Fatal(err)
		}
		for _, j := range []taken{{}, {replayed: true}, {err: fault.New(fault.Conflict, word, "no")}, {err: errors.New(word)}} {
			log := telemetry.WrapJournal(j, asked{}, still{}, m, nil, nil)
			_, _ = log.Append(t.Context(), event.Batch{Drafts: []event.Draft{
				event.New(run.EventSucceeded, event.Origin{Principal: "usr_1"}, id.DefaultWorkspace, "", run.Ended{Tool: word, Kind: word}),
				event.New(policy.ApprovalDecidedType, event.Origin{Principal: "usr_1"}, id.DefaultWorkspace, "",
					policy.ApprovalDecided{Status: policy.ApprovalStatus(word)}),
				event.New(word, event.Origin{Principal: "usr_1"}, id.DefaultWorkspace, "", struct{}{}),
				{Header: event.Header{Type: run.EventErred}, Data: []byte(`{"tool_name":` + word)},
			}}) // it is counted whatever becomes of it
		}
		telemetry.InSpace(word, word)
	}
	feed(0)
	before, err := testutil.GatherAndCount(m.Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		feed(n)
	}
	after, err := testutil.GatherAndCount(m.Gatherer())
	if err != nil || after != before {
		t.Errorf("%d series became %d (%v)", before, after, err)
	}
	if got := telemetry.InSpace("x", "y"); got != (telemetry.SpaceState{Tier: "other", Status: "other"}) {
		t.Errorf("a space is counted as %+v", got)
	}
}

// TestHowCommandsEnd holds each end of a command against its word.
func TestHowCommandsEnd(t *testing.T) {
	m := telemetry.NewMetrics("0")
	for want, exit := range map[string]space.Exit{
		"zero": {}, "nonzero": {Code: 2}, "signal": {Code: 137, Signal: "SIGKILL"}, "timeout": {Code: 124, TimedOut: true, Signal: "SIGKILL"},
		"limit": {Code: 137, Limit: "memory_bytes", Signal: "SIGKILL"}, "canceled": {Code: 137, Canceled: true, Signal: "SIGKILL"},
	} {
		made, err := telemetry.WrapTier(bare{exit: exit}, still{}, m, nil).Create(t.Context(), policy.Permit{}, space.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := made.Exec(t.Context(), policy.Permit{}, nil, func(string, []byte) error { return nil }); err != nil ||
			got.Code != exit.Code || got.Limit != exit.Limit || got.Signal != exit.Signal {
			t.Errorf("%s: got %+v, %v", want, got, err)
		}
	}
	n, err := testutil.GatherAndCount(m.Gatherer(), "agentbox_space_commands_total")
	if err != nil || n != 6 {
		t.Errorf("%d ways to end were counted (%v), want 6", n, err)
	}
	if _, err := telemetry.WrapTier(bare{err: errors.New("no")}, still{}, m, nil).Create(t.Context(), policy.Permit{},
		space.Spec{}); err == nil {
		t.Error("a space that did not start was returned")
	}
	want := "# HELP agentbox_space_starts_total Spaces whose processes were started.\n# TYPE agentbox_space_starts_total counter\n" +
		"agentbox_space_starts_total{outcome=\"failed\",tier=\"namespace\"} " +
		"1\nagentbox_space_starts_total{outcome=\"started\",tier=\"namespace\"} 6\n"
	if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "agentbox_space_starts_total"); err != nil {
		t.Error(err)
	}
}
