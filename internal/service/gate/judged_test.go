package gate_test

import (
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/policy"
)

// TestWhatCannotBeJudgedAtAll holds each bound of an action's form at its edge. An action beyond it is denied before any policy is asked.
func TestWhatCannotBeJudgedAtAll(t *testing.T) {
	h := build(t, nil)
	with := func(change func(*policy.Action)) policy.Action {
		a := h.file("permissive", policy.FileCreate, "a/b")
		change(&a)
		return a
	}
	command := func(change func(*policy.Action)) policy.Action {
		a := h.shell("permissive", "ls")
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		a    policy.Action
		form bool // whether its form is that of an action
	}{
		"as it is":               {with(func(*policy.Action) {}), true},
		"no size":                {with(func(a *policy.Action) { a.Size = 0 }), true},
		"a negative size":        {with(func(a *policy.Action) { a.Size = -1 }), false},
		"no most":                {with(func(a *policy.Action) { a.MaxBytes = 0 }), true},
		"a negative most":        {with(func(a *policy.Action) { a.MaxBytes = -1 }), false},
		"a negative time":        {with(func(a *policy.Action) { a.TimeoutMS = -1 }), false},
		"no path":                {with(func(a *policy.Action) { a.Path = "" }), true},
		"the folder above":       {with(func(a *policy.Action) { a.Path = ".." }), false},
		"a path upwards":         {with(func(a *policy.Action) { a.Path = "../a" }), false},
		"a name with two dots":   {with(func(a *policy.Action) { a.Path = "..a" }), true},
		"an absolute path":       {with(func(a *policy.Action) { a.Path = "/a" }), false},
		"a path that is unclean": {with(func(a *policy.Action) { a.Path = "a//b" }), false},
		"a path with a zero":     {with(func(a *policy.Action) { a.Path = "a\x00b" }), false},
		"a folder upwards":       {command(func(a *policy.Action) { a.Cwd = "../a" }), false},
		"a folder":               {command(func(a *policy.Action) { a.Cwd = "a" }), true},
		"a mode":                 {with(func(a *policy.Action) { a.Mode = "0755" }), true},
		"a mode that is none":    {with(func(a *policy.Action) { a.Mode = "4755" }), false},
		"a mode of a deletion":   {with(func(a *policy.Action) { a.Type, a.Mode = policy.FileDelete, "0644" }), false},
		"the command":            {command(func(*policy.Action) {}), true},
		"another command":        {command(func(a *policy.Action) { a.Argv = []string{"/bin/bash", "-c", "rm -r /"} }), false},
		"another option":         {command(func(a *policy.Action) { a.Argv = []string{"/bin/bash", "-x", "ls"} }), false},
		"more arguments":         {command(func(a *policy.Action) { a.Argv = []string{"/bin/bash", "-c", "ls", "x"} }), false},
		"fewer arguments":        {command(func(a *policy.Action) { a.Argv = []string{"/bin/bash", "-c"} }), false},
		"no vector":              {command(func(a *policy.Action) { a.Argv = nil }), true},
		"a vector alone":         {command(func(a *policy.Action) { a.Command, a.Argv = "", []string{"ls"} }), true},
		"of no command":          {with(func(a *policy.Action) { a.Command, a.Argv = "ls", []string{"rm"} }), true},
	} {
		d := h.judge(c.a).Decision
		if (d.ReasonCode != policy.ReasonActionInvalid) != c.form || !c.form && (d.Outcome != policy.Deny || d.Reason == "") {
			t.Errorf("%s: got %s %s: %s", name, d.Outcome, d.ReasonCode, d.Reason)
		}
	}
	long := strings.Repeat("é", 100)
	if d := h.judge(with(func(a *policy.Action) { a.Path = "/" + long })).Decision; !strings.Contains(d.Reason,
		"/"+strings.Repeat("é", 59)+"...") {
		t.Errorf("a long path is shown as %s", d.Reason)
	}
}

// TestABundleClampsBeforeItIsAsked holds that time and bytes are at most those of the bundle, and what is less stays.
func TestABundleClampsBeforeItIsAsked(t *testing.T) {
	h := build(t, nil)
	limits := h.bundles["standard"].Limits
	for asked, want := range map[int64]int64{0: limits.CommandMS, 1: 1, limits.CommandMS: limits.CommandMS,
		limits.CommandMS + 1: limits.CommandMS, limits.CommandMS - 1: limits.CommandMS - 1} {
		a := h.shell("standard", "ls")
		a.TimeoutMS = asked
		if got := h.judge(a).Action.TimeoutMS; got != want {
			t.Errorf("%d ms: got %d, want %d", asked, got, want)
		}
	}
	for _, typ := range []string{policy.FileRead, policy.FileEdit} {
		for asked, want := range map[int64]int64{0: limits.FileBytes, 1: 1, limits.FileBytes: limits.FileBytes,
			limits.FileBytes + 1: limits.FileBytes} {
			a := h.file("standard", typ, "a")
			a.MaxBytes = asked
			if got := h.judge(a).Action.MaxBytes; got != want {
				t.Errorf("%s of %d bytes: got %d, want %d", typ, asked, got, want)
			}
		}
	}
	a := h.file("standard", policy.FileCreate, "a")
	if a.MaxBytes = 7; h.judge(a).Action.MaxBytes != 7 {
		t.Error("what reads nothing is clamped")
	}
}

// TestNothingIsJudgedByAClockThatCannotBe holds the years in which a clock is believed.
func TestNothingIsJudgedByAClockThatCannotBe(t *testing.T) {
	for year, want := range map[int]bool{1989: false, 1990: true, 9999: true, 10000: false} {
		h := build(t, nil)
		h.clock.set(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC))
		d := h.judge(h.shell("standard", "ls")).Decision
		if (d.ReasonCode != policy.ReasonClockUnreadable) != want {
			t.Errorf("in the year %d: got %s %s", year, d.Outcome, d.ReasonCode)
		}
	}
}
