package spacetest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// features are the lacks that a tier may declare, with the form of the refusal, and a text that has to work if the tier does not declare
// the lack. Each is a text for bash that prints "has" or "refused".
var features = map[string]string{
	space.Processes: `if [ -e /proc/self/stat ]; then sleep 1000 & kill -0 $! && echo has; else echo refused; fi`,
	space.Binaries: `printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000\076\000\001\000\000\000' >p; chmod +x p; ` +
		`./p 2>/dev/null; [ $? = 126 ] && [ ! -e /proc/self/exe ] && echo refused || echo has`,
	space.Contexts: `python3 --context=c -c 'x = "has"' 2>why && python3 --context=c -c 'print(x)' || { grep -q context why && echo ` +
		`refused; }`,
	space.Sockets: `python3 -c 'import socket; a, b = socket.socketpair(); a.send(b"has"); print(b.recv(3).decode())' 2>/dev/null || ` +
		`echo refused`,
	space.Ownership:    `touch f; [ "$(stat -c %u f)" = "$(id -u)" ] && chgrp "$(id -g)" f 2>/dev/null && echo has || echo refused`,
	space.SpecialFiles: `mkfifo pipe 2>/dev/null && [ -p pipe ] && echo has || echo refused`,
}

// lackCases prove that a tier has what it does not say that it lacks, and refuses the rest.
var lackCases = []testCase{
	{"what is said to be lacking is known", "", func(t *testing.T, h Host) {
		lacks := h.Tier.Lacks()
		if !slices.IsSorted(lacks) {
			t.Errorf("%v is not in order", lacks)
		}
		for _, l := range lacks {
			if _, ok := features[l]; !ok && l != space.Concurrency {
				t.Errorf("nobody knows what %q is", l)
			}
		}
	}},
	lackCase(space.Processes), lackCase(space.Binaries), lackCase(space.Contexts), lackCase(space.Sockets), lackCase(space.Ownership),
	lackCase(space.SpecialFiles),
	{"a space goes on after a refusal", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		for _, text := range features {
			h.Exec(t, s, Command{Space: spec.ID, Argv: []string{"/bin/bash", "-c", text}, MS: 60_000})
		}
		if r := h.Exec(t, s, Shell(spec.ID, "echo alive")); r.Stdout != "alive\n" {
			t.Errorf("got %+v", r)
		}
	}},
	{"cancelled while it computes", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		ctx, cancel := context.WithCancel(t.Context())
		wait := h.start(t, ctx, s, Shell(spec.ID, "echo up; while :; do :; done"))
		cancel()
		if r, err := wait(); err != nil || !r.Canceled || r.TimedOut || r.Code != 137 {
			t.Errorf("got %+v, %v, want 137 and cancelled", r.Exit, err)
		}
	}},
	{"the space is closed while it computes", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		wait := h.start(t, t.Context(), s, Shell(spec.ID, "echo up; while :; do :; done"))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := wait(); fault.CodeOf(err) != "space_ended" {
			t.Errorf("the command: got %v, want space_ended", err)
		}
		select {
		case <-s.Done():
		default:
			t.Error("Done is not closed after Close")
		}
		if _, err := h.TryExec(t.Context(), s, Shell(spec.ID, "true")); fault.CodeOf(err) != "space_ended" {
			t.Errorf("a command afterwards: got %v, want space_ended", err)
		}
	}},
	{"time runs out while it computes", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		for _, argv := range [][]string{{"sh", "-c", "echo begun; while :; do :; done"}, {"awk", `BEGIN { print "begun"; for (;;) x++ }`}} {
			if r := h.Exec(t, s, Command{Space: spec.ID, Argv: argv, MS: 300}); r.Code != 124 || !r.TimedOut || !strings.HasPrefix(r.Stdout+
				"begun\n", "begun\n") {
				t.Errorf("%q: got %+v, want 124 and timed out", argv, r)
			}
		}
	}},
	{"what was written before the time ran out is there", "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		h.Exec(t, s, Command{Space: spec.ID, Argv: []string{"sh", "-c", "echo kept >f; while :; do :; done"}, MS: 2_000})
		if r := h.Exec(t, s, Shell(spec.ID, "cat f")); r.Stdout != "kept\n" {
			t.Errorf("got %+v", r)
		}
	}},
}

func lackCase(feature string) testCase {
	return testCase{feature, "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		spec.Limits.MemoryBytes = 256 << 20
		s := h.Create(t, spec)
		want := "has\n"
		if slices.Contains(h.Tier.Lacks(), feature) {
			want = "refused\n"
		}
		if r := h.Exec(t, s, Command{Space: spec.ID, Argv: []string{"/bin/bash", "-c", features[feature]}, MS: 60_000}); r.Stdout != want {
			t.Errorf("got %+v, want %q", r, want)
		}
	}}
}
