package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/service/blueprints"
)

// watched is a daemon with a file of models, and the file.
type watched struct {
	*App
	t    *testing.T
	said strings.Builder
	at   time.Time
}

const twoModels = "models:\n  - {name: glm, model: glm-4.6}\n  - {name: far, provider: anthropic, model: far-1}\n" +
	"routes:\n  - {models: [glm, far]}\n"

func watch(t *testing.T, text string) *watched {
	t.Helper()
	w := &watched{t: t, at: time.Now().Add(-time.Hour)}
	config := Default(t.TempDir())
	w.App = &App{Config: config}
	w.write(text)
	a, err := Open(t.Context(), config, Clock{}, slog.New(slog.NewTextHandler(&w.said, &slog.HandlerOptions{Level: slog.LevelInfo})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.App.Close(); err != nil {
			t.Error(err)
		}
	})
	w.App = a
	return w
}

// write writes the file of models, each time at a later time.
func (w *watched) write(text string) {
	w.t.Helper()
	w.writeAs(modelsFile, text)
}

// writeAs writes a file of the data directory, each time at a later time.
func (w *watched) writeAs(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.Config.DataDir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.at = w.at.Add(time.Second)
	if err := os.Chtimes(file, w.at, w.at); err != nil {
		w.t.Fatal(err)
	}
}

// steps looks at the file so many times.
func (w *watched) steps(n int) {
	for range n {
		w.upkeep.models.step(w.t.Context())
	}
}

// models returns what the entries of the file are, with the endpoint's names.
func (w *watched) models() string {
	w.t.Helper()
	held, err := w.Models.List(w.t.Context(), id.DefaultWorkspace, "", model.MaxEntries)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, h := range held {
		list = append(list, h.Name+"="+h.Model)
	}
	return strings.Join(list, " ")
}

// TestTheFileOfModelsIsReadAgain changes the file while the daemon runs. A change counts once the file stands still between two steps.
func TestTheFileOfModelsIsReadAgain(t *testing.T) {
	w := watch(t, twoModels)
	if got := w.models(); got != "far=far-1 glm=glm-4.6" {
		t.Fatalf("at the start: %s", got)
	}
	before, err := w.Models.Get(t.Context(), id.DefaultWorkspace, "glm")
	if err != nil {
		t.Fatal(err)
	}
	w.write(strings.Replace(twoModels, "glm-4.6", "glm-4.7", 1))
	w.steps(1)
	w.write(strings.Replace(twoModels, "glm-4.6", "glm-5", 1)) // somebody still writes
	w.steps(1)
	if got := w.models(); got != "far=far-1 glm=glm-4.6" {
		t.Errorf("while somebody writes: %s", got)
	}
	w.steps(1)
	after, err := w.Models.Get(t.Context(), id.DefaultWorkspace, "glm")
	if got := w.models(); got != "far=far-1 glm=glm-5" || err != nil || after.Hash == before.Hash || after.Source != model.FromFile {
		t.Errorf("got %s, %+v, %v", got, after, err)
	}
	w.write(strings.Replace(twoModels, "glm-4.6", "glm-6", 1)) // of the same size
	w.steps(2)
	if got := w.models(); got != "far=far-1 glm=glm-6" {
		t.Errorf("of the same size: %s", got)
	}

	file := filepath.Join(w.Config.DataDir, modelsFile)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil { // as an editor that replaces the file
		t.Fatal(err)
	}
	w.steps(1)
	w.write(string(raw))
	w.steps(2)
	if got := w.models(); got != "far=far-1 glm=glm-6" {
		t.Errorf("replaced: %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.steps(2)
	if got := w.models(); got != "" {
		t.Errorf("without the file: %s", got)
	}
}

// TestTheLogSaysWhatAFileThatIsGoneChanges removes the files while the daemon runs. Of several daemons on one database, the entries stay:
// another one may have them. The log says so, and does not say that the file was read.
func TestTheLogSaysWhatAFileThatIsGoneChanges(t *testing.T) {
	for _, c := range []struct {
		several             bool
		models, first, then string
	}{
		{false, "", "models_file_gone", "models_file_read"},
		{true, "far=far-1 glm=glm-4.6", "models_file_left", "models_file_read"},
	} {
		w := watch(t, twoModels)
		if c.several { // nothing of it is used
			w.together.member = &postgres.Journal{}
		}
		w.said.Reset()
		gone := func(name string) {
			t.Helper()
			if err := os.Remove(filepath.Join(w.Config.DataDir, name)); err != nil {
				t.Fatal(err)
			}
		}
		gone(modelsFile)
		w.steps(4)
		if got := w.models(); got != c.models {
			t.Errorf("several %t: got %q, want %q", c.several, got, c.models)
		}
		said := func(code string) int { return strings.Count(w.said.String(), "code="+code+"\n") }
		if said(c.first) != 1 || said("models_file_read") != 0 {
			t.Errorf("several %t: got %s, want one %s", c.several, w.said.String(), c.first)
		}
		w.write(twoModels)
		w.steps(4)
		if said(c.then) != 1 || said(c.first) != 1 {
			t.Errorf("several %t, with the file again: got %s, want one %s", c.several, w.said.String(), c.then)
		}
		w.priced(somePrices)
		gone(pricesFile)
		for range 4 {
			w.upkeep.prices.step(t.Context())
		}
		if said("prices_file_read") != 1 || said("prices_file_gone") != 1 {
			t.Errorf("several %t: of the prices got %s", c.several, w.said.String())
		}
		w.together.member = nil
	}
}

// TestABrokenFileOfModelsChangesNothing writes files that cannot be used. The models stay, and the problem names the line.
func TestABrokenFileOfModelsChangesNothing(t *testing.T) {
	w := watch(t, twoModels)
	for text, want := range map[string]string{
		"models:\n  - {name: new, model: n}\n  - {nam: b}\n":                      `line 3, column 6: there is no key "nam"; did you mean name?`,
		"models:\n  - {name: new, model: n}\nroutes:\n  - {models: [nobody]}\n":   `line 4: route 1 names "nobody", which is not a model`,
		"models:\n  - {name: new, model: n}\nroutes:\n  - {models: [far]}\n":      `line 4: route 1 names "far", which is not a model`,
		"models:\n  - {name: new, model: n}\n\n  - {name: new, model: m}\n":       `line 4: two models of the file are named "new"`,
		"models:\n  - {name: new, model: n}\n  - {name: odd, base_url: \"x:\"}\n": `line 3: the model "odd" of the file: `,
		"models:\n  - {name: new, model: n}\nbudgets:\n  - {scope: agent}\n":      "line 4: budget 1 has tokens_per_day or cost_per_day",
		"models: [": `line 1: a value is missing: "models: ["`,
		"models:\n  - {name: new, model: n}\n  - {name: b, model: c\nroutes: []\n": `line 4: a comma or a } is missing before ` +
			`this: "routes: []"; ` +
			`or the fault is above it: what the parser reads there begins on line 3: "- {name: b, model: c"`,
		"": "the file is empty",
		strings.Repeat("#", 1<<20) + "\nmodels: ": "the limit is 1048576",
	} {
		w.write(text)
		w.said.Reset()
		w.steps(4)
		problem := w.upkeep.models.why()
		const begin = "models.yaml cannot be used, and what was read of it before holds: "
		if !strings.HasPrefix(problem, begin) || !strings.Contains(problem, want) || strings.Contains(problem, w.Config.DataDir) {
			t.Errorf("%.80q: got %q, want %s", text, problem, want)
		}
		if got := w.models(); got != "far=far-1 glm=glm-4.6" {
			t.Errorf("%.80q: got %s", text, got)
		}
		if n := strings.Count(w.said.String(), "code=models_file_unused"); n != 1 {
			t.Errorf("%.80q: %d lines: %s", text, n, w.said.String())
		}
		if list := FileProblems(w.Config); !strings.Contains(want, "route") && len(list) != 1 {
			t.Errorf("%.80q: the doctor says %q", text, list)
		}
	}
	if list := w.fileProblems("ws_other"); len(list) != 0 {
		t.Errorf("people of another workspace read %q", list)
	}
	w.write(twoModels)
	w.steps(2)
	if problem := w.upkeep.models.why(); problem != "" || len(FileProblems(w.Config)) != 0 {
		t.Errorf("mended: got %q", problem)
	}
}

// TestPinsOfAModelOfTheFile changes an entry of the file, and the same entry of another daemon over the API: the pin of a blueprint drifts
// in the same way, and fits again when the entry is what it was.
func TestPinsOfAModelOfTheFile(t *testing.T) {
	const source = "api_version: 1\nname: tick\nadapter: {kind: internal}\nmodels: {default: glm}\ntools: {allow: [message]}\n"
	drift := func(a *App, locked []byte) []blueprint.Drift {
		t.Helper()
		b, problems := blueprints.Read(locked)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		list, err := a.Blueprints.Verify(t.Context(), id.DefaultWorkspace, b)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	lock := func(a *App) []byte {
		t.Helper()
		locked, _, err := a.Blueprints.Lock(t.Context(), id.DefaultWorkspace, []byte(source))
		if err != nil || len(drift(a, locked)) != 0 {
			t.Fatal(err)
		}
		return locked
	}
	file, api := watch(t, twoModels), watch(t, "models: []\n")
	put := func(of string) {
		t.Helper()
		if _, err := api.Models.Put(t.Context(), event.Origin{Principal: api.Owner}, id.DefaultWorkspace,
			model.Entry{Name: "glm", Model: of}); err != nil {
			t.Fatal(err)
		}
	}
	put("glm-4.6")
	locked := lock(file.App)
	if string(locked) != string(lock(api.App)) {
		t.Fatal("the pins differ at the start")
	}
	file.write(strings.Replace(twoModels, "glm-4.6", "glm-5", 1))
	file.steps(2)
	put("glm-5")
	got, want := drift(file.App, locked), drift(api.App, locked)
	if len(got) != 1 || !slices.Equal(got, want) || got[0].Reference.Name != "glm" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	file.write(twoModels)
	file.steps(2)
	if got := drift(file.App, locked); len(got) != 0 {
		t.Errorf("the entry is what it was: got %+v", got)
	}
}

// TestBudgetsAreNotLostByACutFile writes the file as it stands while somebody copies it: without its end. The budgets hold until the file
// says that there are none.
func TestBudgetsAreNotLostByACutFile(t *testing.T) {
	const budgets = "budgets:\n  - {scope: workspace, tokens_per_day: 1000}\n"
	w := watch(t, twoModels+budgets)
	held := func() int {
		t.Helper()
		s, err := w.Models.Settings(t.Context(), id.DefaultWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Budgets)
	}
	for _, text := range []string{twoModels, "models:\n"} {
		w.write(text)
		w.steps(3)
		if problem := w.upkeep.models.why(); held() != 1 || problem == "" {
			t.Errorf("%q: got %d budgets, problem %q", text, held(), problem)
		}
	}
	w.write(twoModels + "budgets: []\n")
	w.steps(3)
	if problem := w.upkeep.models.why(); held() != 0 || problem != "" {
		t.Errorf("got %d budgets, problem %q", held(), problem)
	}
}

// TestTheProblemOfAFileOfModelsEnds brings the file back that was read before: nothing is wrong any more.
func TestTheProblemOfAFileOfModelsEnds(t *testing.T) {
	w := watch(t, twoModels)
	file := filepath.Join(w.Config.DataDir, modelsFile)
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil { // it cannot be read
		t.Fatal(err)
	}
	w.steps(3)
	if problem := w.upkeep.models.why(); !strings.HasSuffix(problem, "models.yaml is no ordinary file") {
		t.Errorf("a folder was read: %q", problem)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".old", file); err != nil {
		t.Fatal(err)
	}
	w.steps(3)
	if problem := w.upkeep.models.why(); problem != "" {
		t.Errorf("got %q", problem)
	}
}
