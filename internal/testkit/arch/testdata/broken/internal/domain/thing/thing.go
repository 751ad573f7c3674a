package thing

import (
	"os"
	"time"

	"broken/internal/domain/noun"
	"example.org/peer"
)

// ThingManager has a name that says nothing.
type ThingManager struct{ noun.Noun }

// seen is state.
var seen int

// words is a table that is changed.
var words = []string{"a"}

func init() {
	seen++
	words[0] = "b"
	_ = os.Args
	go peer.Send("")
}

// Now reads the clock, and hands it on.
func Now() (time.Time, func() time.Time) { return time.Now(), time.Now }
