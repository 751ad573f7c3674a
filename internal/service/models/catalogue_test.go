package models_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/models"
)

// TestTheCatalogue adds, changes and removes models, by the API and by the file.
func TestTheCatalogue(t *testing.T) {
	f := start(t)
	before := len(f.events(model.EventChanged))
	f.put(model.Entry{Name: "one", Model: "one-1", MaxOutput: 100}) // holds already
	if n := len(f.events(model.EventChanged)); n != before {
		t.Error("a change without an effect is recorded")
	}
	held := f.put(model.Entry{Name: "one", Model: "one-2"})
	if held.BaseURL != "https://api.z.ai/api/paas/v4" || held.Dialect != model.DialectZAI || held.Source != model.FromAPI {
		t.Errorf("got %+v", held)
	}
	text := "models:\n  - {name: far, provider: anthropic, model: far-1, key: far}\nroutes:\n  - {class: coding, models: [far, one]}\n" +
		"budgets:\n  - {scope: workspace, cost_per_day: 2.5}\n"
	for range 2 {
		if err := f.Load(t.Context(), f.owner, ws, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.events(model.EventAdded)); n != 4 {
		t.Errorf("%d models were added", n)
	}
	for what, err := range map[string]error{
		"a model":  f.Remove(t.Context(), f.owner, ws, "far", ""),
		"a route":  f.SetRoutes(t.Context(), f.owner, ws, nil),
		"a budget": f.SetBudgets(t.Context(), f.owner, ws, nil),
	} {
		if !errors.Is(err, model.ErrFromFile) {
			t.Errorf("%s of the file was changed: %v", what, err)
		}
	}
	if err := f.Load(t.Context(), f.owner, ws, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(t.Context(), ws, "far"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if list, err := f.List(t.Context(), ws, "", 10); err != nil || len(list) != 3 {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := f.SetBudgets(t.Context(), f.owner, ws, nil); err != nil {
		t.Error(err)
	}
	if _, err := f.Put(t.Context(), f.agent, ws, model.Entry{Name: "x", Model: "x"}); fault.KindOf(err) != fault.Denied {
		t.Errorf("an agent: got %v", err)
	}
}

// TestTheFileIsReadStrictly names line, column and the nearest key.
func TestTheFileIsReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		"models:\n  - {nam: a}":                         `line 2, column 6: there is no key "nam"; did you mean name?`,
		"modles: []":                                    `line 1, column 1: there is no key "modles"; did you mean models?`,
		"models: {}":                                    "line 1, column 9: a list is wanted here",
		"models:\n  - {name: a, idle_ms: soon}":         "line 2, column 24: a whole number is wanted here",
		"models:\n  - {name: a, allow_private: 1}":      "line 2, column 30: true or false is wanted here",
		"models:\n  - {name: a, name: b}":               "stands here twice",
		"models:\n  - &a {name: a}":                     "anchors",
		"budgets:\n  - {scope: run, cost_per_day: 1,5}": "there is no key \"5\"",
		"budgets:\n  - {scope: room, cost_per_day: x}":  "is not an amount",
		"models:\n  - {name: a, added_by: me}":          "there is no key \"added_by\"",
		"a: 1\n---\nb: 2":                               "more than one document",
		strings.Repeat("[", 100):                        "nested",
	} {
		if _, err := models.ReadFile([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	prices, err := models.ReadPrices([]byte("date: 2026-11-28\ncurrency: USD\nmodels:\n  glm-4.6: {input: 0.6, output: 2.2}\n"))
	if err != nil || prices.Models["glm-4.6"].Output != 2_200_000 {
		t.Errorf("got %+v, %v", prices, err)
	}
	for _, text := range []string{"currency: USD", "date: 2026-11-31\ncurrency: USD", "date: 2026-11-28",
		"date: 2026-11-28\ncurrency: USD\nmodels: {a: {input: -1}}"} {
		if _, err := models.ReadPrices([]byte(text)); err == nil {
			t.Errorf("%q is a file of prices", text)
		}
	}
}

// TestKeysAreNamedAndNowhereElse sets a key and uses it. No event holds it.
func TestKeysAreNamedAndNowhereElse(t *testing.T) {
	f := start(t)
	const secret = "zai-0123456789abcdef.Secret"
	f.put(model.Entry{Name: "one", Model: "one-1", Key: "zai"})
	if r, err := f.Ask(t.Context(), f.question(1)); err != nil || r.Entry != "two" {
		t.Errorf("without the key: got %+v, %v", r, err)
	}
	if err := f.SetKey(t.Context(), f.agent, ws, "zai", model.NewSecret(secret)); fault.KindOf(err) != fault.Denied {
		t.Errorf("an agent set a key: %v", err)
	}
	if err := f.SetKey(t.Context(), f.owner, ws, "zai", model.NewSecret(secret)); err != nil {
		t.Fatal(err)
	}
	if err := f.SetKey(t.Context(), f.owner, ws, "bad", model.NewSecret("a b")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
	if r, err := f.Ask(t.Context(), f.question(2)); err != nil || r.Entry != "one" {
		t.Errorf("with the key: got %+v, %v", r, err)
	}
	if last := f.vendor.keys[len(f.vendor.keys)-1]; last != secret {
		t.Errorf("got the key %q", last)
	}
	settings, err := f.Settings(t.Context(), ws)
	if err != nil || len(settings.Keys) != 1 || settings.Keys[0].Name != "zai" {
		t.Errorf("got %+v, %v", settings.Keys, err)
	}
	all, err := f.log.Read(t.Context(), journal.Query{Workspace: ws, Limit: 1000})
	if err != nil || strings.Contains(fmt.Sprintf("%+v", settings), secret) {
		t.Errorf("the log holds the key, or %v", err)
	}
	for _, e := range all {
		if strings.Contains(string(e.Data), secret) {
			t.Errorf("%s holds the key", e.Type)
		}
	}
	if err := f.RemoveKey(t.Context(), f.owner, ws, "zai"); err != nil {
		t.Fatal(err)
	}
	if err := f.RemoveKey(t.Context(), f.owner, ws, "zai"); !errors.Is(err, model.ErrNoKey) || err.Error() != "no key has this name" {
		t.Errorf("removed twice: %v", err)
	}
}

// TestRoutes chooses by the name, the room, the class, and the capabilities of entries.
func TestRoutes(t *testing.T) {
	f := start(t)
	f.put(model.Entry{Name: "three", Model: "three-1", Classes: []model.TaskClass{"sorting"}})
	set := func(routes ...model.Route) {
		t.Helper()
		if err := f.SetRoutes(t.Context(), f.owner, ws, routes); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	ask := func(class model.TaskClass, in id.Room, entry string) string {
		n++
		a := f.question(n)
		a.Class, a.Room, a.Entry = class, in, entry
		r, err := f.Ask(t.Context(), a)
		if err != nil {
			return fault.CodeOf(err)
		}
		return r.Entry
	}
	set(model.Route{Class: "coding", Models: []string{"one"}}, model.Route{Class: "coding", Room: room, Models: []string{"two"}})
	for _, c := range [][4]string{{"coding", "", "", "one"}, {"coding", string(room), "", "two"}, {"sorting", "", "", "three"},
		{"chat", "", "", "model_route_missing"}, {"chat", "", "three", "three"}, {"chat", "", "nobody", "model_not_found"}} {
		if got := ask(model.TaskClass(c[0]), id.Room(c[1]), c[2]); got != c[3] {
			t.Errorf("%v: got %s", c, got)
		}
	}
	for name, routes := range map[string][]model.Route{"an unknown model": {{Models: []string{"nobody"}}}, "no model": {{}},
		"twice": {{Models: []string{"one"}}, {Models: []string{"two"}}}} {
		if err := f.SetRoutes(t.Context(), f.owner, ws, routes); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestATestTriesPictures also of a model whose entry does not say that it takes them: that is how people learn what to say.
func TestATestTriesPictures(t *testing.T) {
	for answer, want := range map[string]bool{"Red.": true, "Which picture?": false} {
		f := start(t)
		held, err := f.Get(t.Context(), ws, "three")
		if err != nil {
			t.Fatal(err)
		}
		held.Provider, held.Dialect, held.BaseURL, held.AllowPrivate = model.OpenAI, model.DialectGeneric, "http://127.0.0.1:1", true
		f.put(held.Entry)
		f.vendor.script["three"] = []step{says(answer)}
		got, err := f.Test(t.Context(), f.owner, ws, "three")
		if err != nil || !got.Reachable || len(got.Capabilities) != 6 || f.vendor.count("three") != 7 {
			t.Fatalf("asked %d times: %+v, %v", f.vendor.count("three"), got, err)
		}
		for _, c := range got.Capabilities {
			if c.Name == models.Images && c.Works != want {
				t.Errorf("after %q: got %+v, want %t", answer, c, want)
			}
		}
	}
}
