package id_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
)

const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// endless gives one byte again and again.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// still is a source whose clock stands, with one byte of chance.
func still(ms int64, chance byte) *id.Source {
	return id.NewSource(func() time.Time { return time.UnixMilli(ms) }, endless(chance))
}

// Each type is read in its own form and comes back as it was written; nothing is read without its prefix.
func TestEachFormIsReadAsItIs(t *testing.T) {
	event := "019b7ca9-8c8a-7d26-a215-4e6d76b2b2b9"
	if got, err := id.Read[id.Workspace]("ws_a"); err != nil || got != "ws_a" {
		t.Errorf("a workspace: %q, %v", got, err)
	}
	if got, err := id.Read[id.Principal]("agt_" + ulid); err != nil || got != "agt_"+ulid {
		t.Errorf("a principal: %q, %v", got, err)
	}
	if got, err := id.Read[id.Event](event); err != nil || string(got) != event {
		t.Errorf("an event: %q, %v", got, err)
	}
	if got, err := id.Read[id.Run]("run_" + ulid); err != nil || got != "run_"+ulid {
		t.Errorf("a run: %q, %v", got, err)
	}
	for _, bad := range []string{"", "run_", ulid, "step_" + ulid, "run_" + ulid + "0", "run_8" + ulid[1:],
		"run_" + strings.Replace(ulid, "A", "I", 1)} {
		if got, err := id.Read[id.Run](bad); err == nil {
			t.Errorf("a run: %q was read as %q", bad, got)
		}
		if got, err := id.Parse[id.Run](bad); err == nil || got != "" {
			t.Errorf("a run: %q was parsed as %q", bad, got)
		}
	}
	for _, bad := range []string{"", event[1:], strings.ToUpper(event), event[:8] + "a" + event[9:], event[:14] + "4" + event[15:],
		"zzzzzzzz" + event[8:]} {
		if got, err := id.Read[id.Event](bad); err == nil {
			t.Errorf("an event: %q was read as %q", bad, got)
		}
	}
	if kind := id.Principal(ulid).Kind(); kind != "" {
		t.Errorf("without a prefix it is a %s", kind)
	}
	for text, want := range map[string]bool{"ws_": false, "ws_a": true, "ws_" + strings.Repeat("a", 60): true,
		"ws_" + strings.Repeat("a", 61): false, "a": false} {
		if got, err := id.ParseWorkspace(text); (err == nil) != want || want && string(got) != text {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for _, good := range []string{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "09999999999999999999999999", "0AZHJKMNPQRSTVWXY0123456789"[:26]} {
		if got, err := id.Parse[id.Run]("run_" + good); err != nil || string(got) != "run_"+good {
			t.Errorf("%s: got %q, %v", good, got, err)
		}
	}
}

// The text of what is made is fixed by the clock and by chance.
func TestWhatIsMadeIsFixed(t *testing.T) {
	if got := id.NewEvent(still(0x019b7ca98c8a, 0)); got != "019b7ca9-8c8a-7000-8000-000000000000" {
		t.Errorf("an event without chance: %s", got)
	}
	if got := id.NewEvent(still(0x019b7ca98c8a, 0xff)); got != "019b7ca9-8c8a-7fff-bf7f-ffffffffffff" {
		t.Errorf("an event of ones: %s", got)
	}
	if got := id.New[id.Run](still(1, 0xff)); got != "run_0000000001ZZZKYZZZZZZZZZZZ" {
		t.Errorf("a run of ones: %s", got)
	}
	if got := id.NewWorkspace(still(1, 0xff)); got != "ws_0000000001zzzkyzzzzzzzzzzz" {
		t.Errorf("a workspace: %s", got)
	}
	if got := id.Least[id.Run](time.UnixMilli(1)); got != "run_00000000010000000000000000" ||
		id.Least[id.Run](time.UnixMilli(-5)) != "run_00000000000000000000000000" {
		t.Errorf("the least run: %s", got)
	}
	ones := still(7, 0xff)
	for last, n := id.NewEvent(ones), 0; n < 300; n++ {
		next := id.NewEvent(ones)
		if next <= last {
			t.Fatalf("%s was made after %s", next, last)
		}
		last = next
	}
	for name, make := range map[string]func(){
		"a kind of principal that there is not": func() { id.NewPrincipal(still(1, 0), "ghost") },
		"without chance":                        func() { id.New[id.Run](id.NewSource(time.Now, bytes.NewReader(nil))) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: something was made", name)
				}
			}()
			make()
		}()
	}
}

// A later id sorts behind an event of an earlier source. An event that names no time or the last one changes nothing.
func TestWhatIsMadeBehindAnEvent(t *testing.T) {
	const now = 0x019b7ca98c8a
	for name, e := range map[string]id.Event{
		"of the same millisecond": "019b7ca9-8c8a-7fff-bfff-ffffffffffff", "of a later one": "019b7ca9-8c9a-7fff-bfff-ffffffffffff",
		"of an earlier one": "019b7ca9-8c7a-7fff-bfff-ffffffffffff",
	} {
		s := still(now, 0)
		before := id.NewEvent(s)
		s.Behind(e)
		if after := id.NewEvent(s); after <= before || after <= e {
			t.Errorf("%s: %s, then %s behind %s", name, before, after, e)
		}
	}
	for name, e := range map[string]id.Event{
		"no event": "x", "no hyphen": "019b7ca9x8c8a-7fff-bfff-ffffffffffff", "no time": "zzzzzzzz-zzzz-7fff-bfff-ffffffffffff",
		"the last millisecond": "ffffffff-ffff-7fff-bfff-ffffffffffff",
	} {
		for _, ms := range []int64{0, now} {
			plain, told := still(ms, 9), still(ms, 9)
			told.Behind(e)
			if want, got := id.NewEvent(plain), id.NewEvent(told); got != want {
				t.Errorf("%s at %d: got %s, want %s", name, ms, got, want)
			}
		}
	}
}
