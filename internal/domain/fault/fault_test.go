package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"agentbox/internal/domain/fault"
)

func TestTheNamesOfKinds(t *testing.T) {
	for k, want := range map[fault.Kind]string{
		fault.Internal: "internal", fault.Invalid: "invalid", fault.Denied: "denied", fault.Waiting: "waiting", fault.NotFound: "not_found",
		fault.Conflict:  "conflict",
		fault.Exhausted: "exhausted", fault.Unavailable: "unavailable", fault.Unavailable + 1: "internal", -1: "internal",
	} {
		if got := k.String(); got != want {
			t.Errorf("%d: got %s, want %s", int(k), got, want)
		}
	}
}

// The properties of an error are those of the first fault in it. An error without a fault is a defect of the program.
func TestWhatIsKnownOfAnError(t *testing.T) {
	plain := fault.New(fault.Denied, "no", "you may not, %s", "Ada")
	wrapped := fault.Wrap(io.EOF, fault.Exhausted, "full", "no room for %d", 3)
	advised := plain.With("ask")
	for name, c := range map[string]struct {
		err  error
		kind fault.Kind
		code string
		text string
	}{
		"a fault": {plain, fault.Denied, "no", "you may not, Ada"}, "one with a cause": {wrapped, fault.Exhausted, "full", "no room for 3: EOF"},
		"one in another error": {fmt.Errorf("far: %w", plain), fault.Denied, "no", "far: you may not, Ada"},
		"no fault":             {io.EOF, fault.Internal, "internal_error", "EOF"},
		"one with advice":      {advised, fault.Denied, "no", "you may not, Ada"},
	} {
		if fault.KindOf(c.err) != c.kind || fault.CodeOf(c.err) != c.code || c.err.Error() != c.text {
			t.Errorf("%s: got %s, %s, %s", name, fault.KindOf(c.err), fault.CodeOf(c.err), c.err)
		}
	}
	if fault.KindOf(nil) != fault.Internal || fault.CodeOf(nil) != "" {
		t.Errorf("no error: got %s, %q", fault.KindOf(nil), fault.CodeOf(nil))
	}
	if advised.Suggestion != "ask" || plain.Suggestion != "" {
		t.Errorf("got %q of the copy, %q of the first", advised.Suggestion, plain.Suggestion)
	}
	if !errors.Is(wrapped, io.EOF) || errors.Is(plain, io.EOF) {
		t.Error("a fault is its cause, and nothing else")
	}
	if !errors.Is(fmt.Errorf("far: %w", advised), plain) || errors.Is(plain, wrapped) || errors.Is(plain, io.EOF) {
		t.Error("faults are the same where their codes are")
	}
}
