package cmdline

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentbox/internal/client"
	"agentbox/internal/domain/blueprint"
)

// TestMissingHints: for each reference to a thing that is not there a hint says what mends it, and also that it was not checked.
func TestMissingHints(t *testing.T) {
	models, registered := "", `{"blueprints":[{"name":"helper"}]}`
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/v1/blueprints":
			_, _ = io.WriteString(w, registered)
		case models == "":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"status":403,"error":"role_not_permitted","detail":"a viewer may not"}`)
		default:
			_, _ = io.WriteString(w, models)
		}
	}))
	defer daemon.Close()
	api := client.New(daemon.URL, "abk_x")
	drift := []blueprint.Drift{
		{Reference: blueprint.Reference{Kind: blueprint.ToPolicy}, Now: "sha256:1"},
		{Reference: blueprint.Reference{Kind: blueprint.ToModel, Name: "mian"}},
		{Reference: blueprint.Reference{Kind: blueprint.ToBlueprint, Name: "helpr"}},
		{Reference: blueprint.Reference{Kind: blueprint.ToMCP, Name: "files"}},
	}
	for has, want := range map[string]string{
		"":              "which models there are was not checked: a viewer may not",
		`{"models":[]}`: "this workspace has no models yet; add one: agentbox model add mian --model MODEL",
		`{"models":[{"name":"main"},{"name":"x"}]}`: "models.mian: did you mean: main; or add it: agentbox model add mian --model MODEL",
		`{"models":[{"name":"glm"},{"name":"x"}]}`:  "models.mian: there are: glm, x; or add it: agentbox model add mian --model MODEL",
	} {
		models = has
		want = fmt.Sprint(want, "\nblueprints.helpr: did you mean: helper")
		if got := strings.Join(MissingHints(t.Context(), api, drift), "\n"); got != want {
			t.Errorf("models %s: got\n%s\nwant\n%s", has, got, want)
		}
	}
	if registered = `{"blueprints":[]}`; len(MissingHints(t.Context(), api, drift[2:])) != 0 {
		t.Error("there is a hint where no blueprint is registered")
	}
}
