package long

import (
	"testing"
	"time"
)

func TestSleepy(*testing.T) { time.Sleep(1) }
