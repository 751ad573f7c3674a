package runapi

import (
	"fmt"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/engines"
)

// TestAPageOfRunsThatWait holds the bounds of a page: its limit, and the 1,000 runs at which one request looks. The pages have every run
// that waits, once.
func TestAPageOfRunsThatWait(t *testing.T) {
	for _, c := range []struct{ runs, every, limit, looked, pages int }{
		{0, 1, 10, 0, 1},
		{99, 1, 1000, 99, 1}, {100, 1, 1000, 100, 1}, {101, 1, 1000, 101, 1},
		{10, 1, 10, 10, 1}, {11, 1, 10, 10, 2}, {100, 10, 3, 30, 4},
		{999, 2000, 10, 999, 1}, {1000, 2000, 10, 1000, 1}, {1001, 2000, 10, 1000, 2}, {2500, 500, 10, 1000, 3},
	} {
		all := make([]run.Run, c.runs)
		at := map[id.Run]int{"": 0}
		for n := range all {
			all[n].ID = id.Run(fmt.Sprintf("run_%d", n))
			at[all[n].ID] = n + 1
		}
		list := func(after id.Run, limit int) ([]run.Run, error) {
			rest := all[at[after]:]
			return rest[:min(limit, len(rest))], nil
		}
		looked := 0
		waits := func(r run.Run) (w engines.Waits, err error) {
			looked++
			if at[r.ID]%c.every == 0 {
				w.For = engines.ForAnswer
			}
			return w, nil
		}
		found, pages := 0, 0
		for next, more := "", true; more; more = next != "" {
			page, then, err := waiting(id.Run(next), c.limit, list, waits)
			if err != nil || len(page) > c.limit || page == nil {
				t.Fatalf("%+v: got %d runs, %v", c, len(page), err)
			}
			if pages == 0 && looked != c.looked {
				t.Errorf("%+v: the first page looked at %d runs", c, looked)
			}
			for _, r := range page {
				if found += c.every; at[r.ID] != found {
					t.Errorf("%+v: got run %d, want run %d", c, at[r.ID], found)
				}
			}
			next, pages = then, pages+1
		}
		if found != c.runs/c.every*c.every || pages != c.pages {
			t.Errorf("%+v: %d runs on %d pages", c, found/c.every, pages)
		}
	}
}
