package id_test

import (
	"bytes"
	"crypto/rand"
	"regexp"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/id"
)

func fixed(at time.Time) func() time.Time { return func() time.Time { return at } }

func TestIdentifiersOfOneMillisecondSortInTheOrderTheyWereMade(t *testing.T) {
	s := id.NewSource(fixed(time.UnixMilli(1_800_000_000_000)), rand.Reader)
	runs, events := make([]string, 10_000), make([]string, 10_000)
	for i := range runs {
		runs[i], events[i] = string(id.New[id.Run](s)), string(id.NewEvent(s))
	}
	for _, made := range [][]string{runs, events} {
		if !sort.StringsAreSorted(made) {
			t.Error("identifiers are not in order")
		}
		for i := 1; i < len(made); i++ {
			if made[i] == made[i-1] {
				t.Fatalf("%s was made twice", made[i])
			}
		}
	}
}

func TestAClockThatStepsBackKeepsTheOrder(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	s := id.NewSource(func() time.Time { return at }, rand.Reader)
	before := id.New[id.Space](s)
	at = at.Add(-time.Hour)
	if after := id.New[id.Space](s); after <= before {
		t.Errorf("got %s after %s", after, before)
	}
}

func TestAClockThatWasSetBackOverARestartKeepsTheOrder(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	s := id.NewSource(func() time.Time { return at }, rand.Reader)
	space, event := id.New[id.Space](s), id.NewEvent(s)
	at = at.Add(-24 * time.Hour)
	for _, behind := range []id.Event{event, "", "no event", id.Event(strings.Repeat("f", 36)), "ffffffff-ffff-7fff-bfff-ffffffffffff"} {
		next := id.NewSource(func() time.Time { return at }, rand.Reader)
		next.Behind(behind)
		if got := id.New[id.Space](next) > space && id.NewEvent(next) > event; got != (behind == event) {
			t.Errorf("behind %q: sorted behind %s: %t", behind, event, got)
		}
	}
	s.Behind(event) // what it has made itself changes nothing
	if after := id.New[id.Space](s); after <= space {
		t.Errorf("got %s after %s", after, space)
	}
}

func TestTheTextOfAnULIDHoldsItsTime(t *testing.T) {
	// The ULID of 2016-07-30T23:54:10.259Z begins with 01ARZ3NDEK.
	s := id.NewSource(fixed(time.UnixMilli(1469922850259)), bytes.NewReader(make([]byte, 10)))
	if got, want := id.New[id.Run](s), id.Run("run_01ARZ3NDEK0000000000000000"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEventIsUUIDv7(t *testing.T) {
	s := id.NewSource(fixed(time.UnixMilli(0x0123456789ab)), bytes.NewReader(bytes.Repeat([]byte{0xff}, 10)))
	got := string(id.NewEvent(s))
	if !regexp.MustCompile(`^01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(got) {
		t.Errorf("%s is not a UUIDv7 of its time", got)
	}
}

func TestSourceServesManyAtOnce(t *testing.T) {
	s := id.NewSource(time.Now, rand.Reader)
	var mu sync.Mutex
	var wait sync.WaitGroup
	seen := map[id.Run]bool{}
	for range 8 {
		wait.Go(func() {
			for range 1_000 {
				made := id.New[id.Run](s)
				mu.Lock()
				if seen[made] {
					t.Errorf("%s was made twice", made)
				}
				seen[made] = true
				mu.Unlock()
			}
		})
	}
	wait.Wait()
}

func TestParse(t *testing.T) {
	s := id.NewSource(time.Now, rand.Reader)
	good := id.New[id.Run](s)
	if got, err := id.Parse[id.Run](string(good)); err != nil || got != good {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := id.Parse[id.Space](string(good)); err == nil || !strings.Contains(err.Error(), "spc_") {
		t.Errorf("a run passed for a space: %v", err)
	}
	for _, bad := range []string{"", "run_", "run_01ARZ3NDEK000000000000000", "run_01ARZ3NDEK00000000000000000",
		"run_81ARZ3NDEK0000000000000000",
		"run_01ARZ3NDEKI000000000000000", "run_01arz3ndek0000000000000000", " run_01ARZ3NDEK0000000000000000", strings.Repeat("x", 1<<20)} {
		if _, err := id.Parse[id.Run](bad); err == nil || len(err.Error()) > 200 {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func TestPrincipals(t *testing.T) {
	s := id.NewSource(time.Now, rand.Reader)
	for _, kind := range []id.PrincipalKind{id.User, id.Agent, id.Service} {
		p := id.NewPrincipal(s, kind)
		if p.Kind() != kind {
			t.Errorf("%s is a %q, want %q", p, p.Kind(), kind)
		}
		if got, err := id.ParsePrincipal(string(p)); err != nil || got != p {
			t.Errorf("got %s, %v", got, err)
		}
	}
	for _, bad := range []string{"", "usr_", "run_01ARZ3NDEK0000000000000000", "root"} {
		if p := id.Principal(bad); p.Kind() != "" {
			t.Errorf("%q is a %q", bad, p.Kind())
		}
	}
}

func TestWorkspaces(t *testing.T) {
	for text, ok := range map[string]bool{
		"ws_dev": true, "ws_" + strings.Repeat("a", 60): true, "ws_" + strings.Repeat("a", 61): false, "ws_": false, "dev": false,
		"ws_Dev": false, "ws_a/b": false, "ws_a b": false, "ws_a-b_9": true,
	} {
		if _, err := id.ParseWorkspace(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("run_01ARZ3NDEK0000000000000000")
	f.Add("run_")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := id.Parse[id.Run](text); err == nil && (string(got) != text || len(text) != 30) {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func TestRead(t *testing.T) {
	const ulid = "01ARZ3NDEK0000000000000000"
	for _, c := range []struct {
		read func(string) error
		good string
	}{
		{read[id.Run], "run_" + ulid}, {read[id.Principal], "svc_" + ulid}, {read[id.Workspace], "ws_dev"}, {read[id.Event],
			"01234567-89ab-7fff-bfff-ffffffffffff"},
	} {
		if err := c.read(c.good); err != nil {
			t.Error(err)
		}
		for _, bad := range []string{"", "zzz", "room_" + ulid, strings.ToLower(c.good + "_A"), c.good[:len(c.good)-1] + "!"} {
			if err := c.read(bad); err == nil && bad != "ws_dev_a" {
				t.Errorf("%q passed for one as %q", bad, c.good)
			}
		}
	}
	if err := read[string]("anything"); err == nil {
		t.Error("a text passed for an identifier")
	}
}

func read[T ~string](text string) error {
	_, err := id.Read[T](text)
	return err
}
