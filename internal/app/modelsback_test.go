package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// TestAnEntryOfTheAPIComesBack has the file take over an entry, a route and a budget of the API, change the entry, and lose all of it: by
// an entry that is gone and by a file that is gone, while the daemon runs and while it does not. What the API had set is back as it was.
func TestAnEntryOfTheAPIComesBack(t *testing.T) {
	for _, gone := range []string{"models: []\nbudgets: []\n", ""} {
		for _, restart := range []bool{false, true} {
			w := watch(t, "models: []\n")
			ctx, ws, origin := t.Context(), id.DefaultWorkspace, event.Origin{Principal: w.Owner}
			before, err := w.Models.Put(ctx, origin, ws, model.Entry{Name: "glm", Model: "of-the-api", Context: 7,
				Classes: []model.TaskClass{"chat"}})
			if err != nil {
				t.Fatal(err)
			}
			routes, budgets := []model.Route{{Models: []string{"glm"}, Class: "chat"}}, []model.Budget{{Scope: model.ScopeWorkspace, Tokens: 5}}
			if err := w.Models.Configure(ctx, origin, ws, routes, budgets); err != nil {
				t.Fatal(err)
			}
			for _, of := range []string{"of-the-file", "changed"} {
				w.write("models:\n  - {name: glm, model: " + of + "}\nroutes:\n  - {models: [glm]}\nbudgets:\n" +
					"  - {scope: workspace, tokens_per_day: 9}\n")
				w.steps(2)
				if held, err := w.Models.Get(ctx, ws, "glm"); err != nil || held.Model != of || held.Source != model.FromFile ||
					held.Before == nil || held.Before.Model != "of-the-api" {
					t.Fatalf("the file: got %+v, %v", held, err)
				}
			}
			switch file := filepath.Join(w.Config.DataDir, modelsFile); gone {
			case "":
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			default:
				w.write(gone)
			}
			if restart {
				w.again()
			} else {
				w.steps(3)
			}
			after, err := w.Models.Get(ctx, ws, "glm")
			if err != nil || after.Source != model.FromAPI || after.Hash != before.Hash || after.Before != nil ||
				!reflect.DeepEqual(after.Entry, before.Entry) {
				t.Errorf("%q, restart %t: got %+v, %v, want %+v", gone, restart, after, err, before)
			}
			now, err := w.Models.Settings(ctx, ws)
			if err != nil || now.Living != 1 || now.RoutesSource != model.FromAPI || !reflect.DeepEqual(now.Routes, routes) {
				t.Errorf("%q, restart %t: the routes are %+v, %v", gone, restart, now, err)
			}
			if says := gone != ""; says && len(now.Budgets) != 0 || !says && (now.BudgetsSource != model.FromAPI ||
				!reflect.DeepEqual(now.Budgets, budgets)) {
				t.Errorf("%q, restart %t: the budgets are %+v", gone, restart, now)
			}
			// The API may change and remove it again, and nothing comes back then.
			if err := w.Models.SetRoutes(ctx, origin, ws, nil); err != nil {
				t.Error(err)
			}
			if err := w.Models.Remove(ctx, origin, ws, "glm", ""); err != nil {
				t.Error(err)
			}
			w.write("models:\n  - {name: glm, model: new}\n")
			w.steps(3)
			w.write("models: []\nbudgets: []\n")
			w.steps(3)
			if got := w.models(); got != "" {
				t.Errorf("%q, restart %t: what the API removed is back: %s", gone, restart, got)
			}
		}
	}
}

// TestARouteOfTheAPIComesBackAsFarAsItFits removes a model of the API while the file owns the routes: of the routes of the API only those
// come back whose models are all there.
func TestARouteOfTheAPIComesBackAsFarAsItFits(t *testing.T) {
	w := watch(t, "models: []\n")
	ctx, ws, origin := t.Context(), id.DefaultWorkspace, event.Origin{Principal: w.Owner}
	for _, name := range []string{"one", "two"} {
		if _, err := w.Models.Put(ctx, origin, ws, model.Entry{Name: name, Model: name}); err != nil {
			t.Fatal(err)
		}
	}
	routes := []model.Route{{Models: []string{"one", "two"}}, {Class: "chat", Models: []string{"one"}}}
	if err := w.Models.SetRoutes(ctx, origin, ws, routes); err != nil {
		t.Fatal(err)
	}
	w.write("models: []\nroutes: []\n")
	w.steps(3)
	if err := w.Models.Remove(ctx, origin, ws, "two", ""); err != nil {
		t.Fatal(err)
	}
	w.write("models: []\n")
	w.steps(3)
	now, err := w.Models.Settings(ctx, ws)
	if want := []model.Route{{Class: "chat", Models: []string{"one"}}}; err != nil || !reflect.DeepEqual(now.Routes, want) {
		t.Errorf("got %+v, %v, want %+v; the file: %s", now.Routes, err, want, w.upkeep.models.why())
	}
}

// again stops the daemon and starts it anew.
func (w *watched) again() {
	w.t.Helper()
	if err := w.App.Close(); err != nil {
		w.t.Fatal(err)
	}
	a, err := Open(w.t.Context(), w.Config, Clock{}, slog.New(slog.NewTextHandler(&w.said, &slog.HandlerOptions{Level: slog.LevelInfo})))
	if err != nil {
		w.t.Fatal(err)
	}
	w.App, w.at = a, w.at.Add(time.Minute)
}
