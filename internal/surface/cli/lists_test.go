package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/termtest"
)

// TestEveryListIsAnObject runs every command that lists something with --json, against a daemon that has nothing. It prints an object, as
// the API's lists are.
func TestEveryListIsAnObject(t *testing.T) {
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer empty.Close()
	getenv := func(name string) string {
		return map[string]string{"HOME": t.TempDir(), "AGENTBOX_URL": empty.URL, "AGENTBOX_KEY": "abk_x"}[name]
	}
	tried := 0
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			look(sub)
		}
		if cmd.Name() != "list" && cmd.Name() != "ls" && !slices.Contains(cmd.Aliases, "ls") {
			return
		}
		tried++
		args := strings.Fields(cmd.CommandPath())[1:]
		for word := range strings.FieldsSeq(cmd.Use) {
			switch word {
			case "THREAD":
				args = append(args, "th_01ARZ3NDEK0000000000000000")
			case "SPACE":
				args = append(args, "spc_01ARZ3NDEK0000000000000000")
			case "ENGINE":
				args = append(args, "svc_01ARZ3NDEK0000000000000000")
			}
		}
		var out, errs strings.Builder
		code := Run(t.Context(), cmdline.Host{Out: &out, Err: &errs, Clock: termtest.Clock{}, Getenv: getenv}, append(args, "--json"))
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out.String()), &object); code != cmdline.ExitOK || err != nil || len(object) == 0 {
			t.Errorf("%v: exit code %d, %q, %q, want an object", args, code, out.String(), errs.String())
		}
	}
	look(root((&cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Clock{}, Getenv: getenv}})))
	if tried < 15 {
		t.Errorf("%d lists were tried", tried)
	}
}
