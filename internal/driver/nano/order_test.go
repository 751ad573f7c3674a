package nano

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// TestOrdersAreBounded takes what a command is asked for to its bounds and one step beyond.
func TestOrdersAreBounded(t *testing.T) {
	tier := &Tier{o: Options{Entropy: bytes.NewReader(make([]byte, 1<<10)), Clock: wall{}}}
	s := &instance{tier: tier, spec: space.Spec{Limits: space.DefaultLimits()}}
	least, _, err := s.order(policy.Action{Argv: []string{"x"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, text := range slices.Concat(least.Argv, least.Env) {
		taken += len(text) + 1
	}
	if _, _, err := s.order(policy.Action{Argv: []string{strings.Repeat("x", longest-taken+1)}}, nil); err != nil {
		t.Errorf("arguments and environment of %d bytes: got %v", longest, err)
	}
	if _, _, err := s.order(policy.Action{Argv: []string{strings.Repeat("x", longest-taken+2)}},
		nil); fault.CodeOf(err) != "command_not_started" {
		t.Errorf("arguments and environment of %d bytes: got %v, want command_not_started", longest+1, err)
	}
	for asked, want := range map[int64]time.Duration{0: maxTime * time.Millisecond, 1: time.Millisecond, maxTime: maxTime * time.Millisecond,
		maxTime + 1: maxTime * time.Millisecond} {
		if o, _, err := s.order(policy.Action{Argv: []string{"x"}, TimeoutMS: asked}, nil); err != nil || o.Limits.Time != want {
			t.Errorf("%d ms: got %v, %v, want %v", asked, o.Limits.Time, err, want)
		}
	}
	for clock, ok := range map[string]bool{"1970-01-01T00:00:00Z": true, "1969-12-31T23:59:59Z": false, "2200-12-31T23:59:59Z": true,
		"2201-01-01T00:00:00Z": false, "noon": false} {
		_, _, err := s.order(policy.Action{Argv: []string{"x"}, Env: map[string]string{timeName: clock}}, nil)
		if ok != (err == nil) || !ok && fault.CodeOf(err) != "invalid_env" {
			t.Errorf("a clock that begins at %s: got %v", clock, err)
		}
	}
	o, seed, err := s.order(policy.Action{Argv: []string{"x"}, Env: map[string]string{seedName: "mine"}}, nil)
	if err != nil || seed != "mine" || slices.ContainsFunc(o.Env, func(v string) bool { return strings.HasPrefix(v, "AGENTBOX_") }) {
		t.Errorf("a seed: got %q, %v, and the environment %q", seed, err, o.Env)
	}
}
