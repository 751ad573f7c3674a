package bench

import (
	"os"
	"testing"

	"agentbox/internal/app"
)

// TestMain measures under the daemon's own settings; the yardsticks run in the same process and have them too, where they say nothing else.
func TestMain(m *testing.M) {
	app.Tune()
	os.Exit(m.Run())
}
