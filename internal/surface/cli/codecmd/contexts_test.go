package codecmd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/termtest"
)

// TestACellWaitsWhereCellsComeTooFast: the same of a cell.
func TestACellWaitsWhereCellsComeTooFast(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked++; asked <= 2 {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"error":"rate_limited","detail":"d","retry_after":9}`))
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"error":"taken","detail":"it was taken this time"}`))
	}))
	defer server.Close()
	var said strings.Builder
	i := &cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Soon{}, Out: io.Discard, Err: &said,
		Getenv: func(string) string { return "" }}}
	api := client.New(server.URL, "key")
	defer api.Close()
	cell := cellRun{i: i, space: "spc_1", name: "c"}
	if err := cell.run(t.Context(), api); fault.CodeOf(err) != "taken" || asked != 3 || strings.Count(said.String(),
		"the cells come faster") != 1 {
		t.Errorf("a cell: asked %d times: %v, said %q", asked, err, said.String())
	}
}
