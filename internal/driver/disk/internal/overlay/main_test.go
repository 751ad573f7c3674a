package overlay

import (
	"testing"

	"agentbox/internal/testkit/ondisk"
)

func TestMain(m *testing.M) { ondisk.Run(m) }
