package claim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
)

const of = id.Run("run_01M7YNAYM0SM228XA4K3G6VDD4")

// TestThreat30ClaimsEndByAClockThatNobodySets moves the clock an hour ahead and back while a claim lasts.
func TestThreat30ClaimsEndByAClockThatNobodySets(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	h := Held{Run: of, Fence: 1, Renewed: at, Until: at.Add(30 * time.Second)}
	for name, c := range map[string]struct {
		seen   bool
		jump   time.Duration // of the clock, beside what has passed
		passed time.Duration
		left   time.Duration
	}{
		"renewed here":                      {true, 0, 10 * time.Second, 20 * time.Second},
		"renewed here, clock ahead":         {true, time.Hour, 10 * time.Second, 20 * time.Second},
		"renewed here, clock back":          {true, -time.Hour, 10 * time.Second, 20 * time.Second},
		"renewed here, at its edge":         {true, -time.Hour, 30*time.Second - 1, 1},
		"renewed here, over":                {true, -time.Hour, 30 * time.Second, 0},
		"renewed elsewhere":                 {false, 0, 10 * time.Second, 20 * time.Second},
		"renewed elsewhere, clock ahead":    {false, time.Hour, 10 * time.Second, 0},
		"renewed elsewhere, clock set back": {false, -time.Hour, 10 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			terms := NewTerms(at)
			if c.seen {
				terms.saw(h, 0)
			}
			if got := terms.left(h, at.Add(c.passed+c.jump), c.passed); got != c.left {
				t.Errorf("got %s, want %s", got, c.left)
			}
			// A claim that was checked once ends by the time that passes, and not by later readings of the clock.
			if got := terms.left(h, at.Add(-time.Hour), c.passed+30*time.Second); got != 0 {
				t.Errorf("half a minute later %s are left", got)
			}
		})
	}
}

// Daemons whose clocks do not agree: a claim lasts its whole time from when it is first met, and ends then.
func TestTermsTogetherAskNoClock(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		terms := NewTermsTogether(at)
		h := Held{Run: of, Fence: 1, Renewed: at, Until: at.Add(30 * time.Second)}
		for _, look := range []struct{ passed, left time.Duration }{{0, 30 * time.Second}, {30*time.Second - 1, 1}, {30 * time.Second, 0}} {
			if got := terms.left(h, at.Add(skew+look.passed), look.passed); got != look.left {
				t.Errorf("with a skew of %s, %s after it was met: %s are left, want %s", skew, look.passed, got, look.left)
			}
		}
		h.Renewed, h.Until = at.Add(time.Minute), at.Add(90*time.Second)
		if got := terms.left(h, at.Add(skew), time.Minute); got != 30*time.Second {
			t.Errorf("with a skew of %s, renewed elsewhere: %s are left", skew, got)
		}
	}
}

func TestANewerClaimIsNotMeasuredByAnOlder(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	terms := NewTerms(at)
	old := Held{Run: of, Fence: 1, Renewed: at, Until: at.Add(30 * time.Second)}
	terms.saw(old, 0)
	later := at.Add(20 * time.Second)
	for _, h := range []Held{{of, 2, later, later.Add(30 * time.Second)}, {of, 1, later, later.Add(30 * time.Second)}} {
		if got := terms.left(h, later.Add(5*time.Second), 25*time.Second); got != 25*time.Second {
			t.Errorf("got %s of %+v", got, h)
		}
	}
	terms.Forget(of)
	if got := terms.left(old, at.Add(time.Second), time.Second); got != 29*time.Second {
		t.Errorf("got %s after it was forgotten", got)
	}
}

func TestTermsForgetWhatIsLongOver(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	terms := NewTerms(at)
	ids := id.NewSource(func() time.Time { return at }, bytes.NewReader(make([]byte, 1<<20)))
	for range most + 1 {
		terms.saw(Held{Run: id.New[id.Run](ids), Fence: 1, Renewed: at, Until: at.Add(time.Second)}, 0)
	}
	if len(terms.seen) != most+1 {
		t.Fatalf("%d are remembered; none is over", len(terms.seen))
	}
	terms.saw(Held{Run: of, Fence: 1, Renewed: at, Until: at.Add(time.Second)}, time.Minute)
	if len(terms.seen) != 1 {
		t.Errorf("%d are remembered, want the one that is not over", len(terms.seen))
	}
}

func TestTokensDiffer(t *testing.T) {
	tokens, err := NewTokens(bytes.Repeat([]byte{7}, SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	other, _ := NewTokens(bytes.Repeat([]byte{8}, SecretBytes))
	token := tokens.Token("ws_dev", of, "rat_1", 1)
	if again := tokens.Token("ws_dev", of, "rat_1", 1); again != token || !strings.HasPrefix(token, "clm_") || len(token) != 56 {
		t.Errorf("got %s, then %s", token, again)
	}
	for _, differs := range []string{
		tokens.Token("ws_two", of, "rat_1", 1), tokens.Token("ws_dev", of+"0", "rat_1", 1), tokens.Token("ws_dev", of, "rat_2", 1),
		tokens.Token("ws_dev", of, "rat_1", 2),
		other.Token("ws_dev", of, "rat_1", 1),
	} {
		if differs == token {
			t.Errorf("%s is the token of two claims", differs)
		}
	}
	if _, err := NewTokens(nil); err == nil {
		t.Error("tokens were made of no secret")
	}
	if _, err := NewSecret(bytes.NewReader(nil)); err == nil {
		t.Error("a secret was made without chance")
	}
}
