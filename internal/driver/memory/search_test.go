package memory_test

import (
	"testing"

	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/search"
	"agentbox/internal/kernel/search/searchtest"
)

func TestSearch(t *testing.T) {
	searchtest.Run(t, searchtest.Driver{Open: func(*testing.T) search.Index { return memory.NewSearch() }})
}
