package memory_test

import (
	"testing"

	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/fulltext"
	"agentbox/internal/kernel/fulltext/fulltexttest"
)

func TestSearch(t *testing.T) {
	fulltexttest.Run(t, fulltexttest.Driver{Open: func(*testing.T) fulltext.Index { return memory.NewSearch() }})
}
