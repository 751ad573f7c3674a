package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

const somePrices = "date: 2026-11-28\ncurrency: USD\nmodels:\n  dear: {input: 1000, output: 1000}\n"

// priced writes the file of prices, each time at a later time, and lets the daemon look at it.
func (w *watched) priced(text string) {
	w.t.Helper()
	w.writeAs(pricesFile, text)
	for range 4 {
		w.upkeep.prices.step(w.t.Context())
	}
}

// cost asks the model dear something, and returns the cost of the answer.
func (w *watched) cost(r model.Request) (string, error) {
	reply, err := w.Models.Ask(w.t.Context(), model.Ask{Origin: event.Origin{Principal: w.Owner}, Workspace: id.DefaultWorkspace,
		Entry: "dear", Request: r})
	return reply.Cost.String(), err
}

// TestABrokenFileOfPricesChangesNothing breaks the file of prices under a budget of money. The prices that were read last hold, so requests
// go on and are charged. One line of the log for each change of the file names it, its line and the fault.
func TestABrokenFileOfPricesChangesNothing(t *testing.T) {
	w := watch(t, "models:\n  - {name: dear, provider: scripted, base_url: dear, model: dear}\n"+
		"budgets:\n  - {scope: workspace, cost_per_day: 100}\n")
	request := model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text("Count.")}}}}
	recorded, err := model.Record(request, &model.Answer{Stop: model.StopEnd, Parts: []model.Part{model.Text("One.")},
		Usage: model.Usage{Input: 10, Output: 5}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tape := model.Cassette{Recordings: []model.Recording{recorded}}
	raw, err := tape.Write()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(w.Config.DataDir, cassettesDir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "dear.jsonl"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	w.priced(somePrices)
	if got, err := w.cost(request); got != "0.015" || err != nil {
		t.Fatalf("of the file: got %s, %v", got, err)
	}
	for text, want := range map[string]string{
		strings.Replace(somePrices, "date: 2026-11-28", "date: soon", 1): "line 1: date is the day of the price list",
		strings.Replace(somePrices, "currency: USD\n", "", 1):            "currency names that of all prices",
		strings.Replace(somePrices, "output: 1000", "output: -1", 1):     `line 4: the price of "dear" must not be negative`,
		strings.Replace(somePrices, "output: 1000", "outptu: 1000", 1): `line 4, column 23: there is no key "outptu"; did you mean ` +
			"output?",
		strings.Replace(somePrices, "input: 1000, output: 1000}", "input:", 1): `line 4: a value is missing: "dear: {input:"`,
		"":                                      "the file is empty",
		strings.Repeat("#", 1<<20) + "\ndate: ": "the limit is 1048576",
	} {
		w.said.Reset()
		w.priced(text)
		for range 2 {
			if got, err := w.cost(request); got != "0.015" || err != nil {
				t.Errorf("%.80q: got %s, %v", text, got, err)
			}
		}
		if said := w.said.String(); strings.Count(said, "code=prices_file_unused") != 1 || !strings.Contains(said, "prices.yaml") ||
			!strings.Contains(said, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%.80q: want one line with %s, got %s", text, want, said)
		}
		problems := strings.Join(w.fileProblems(id.DefaultWorkspace), "; ")
		const begin = "prices.yaml cannot be used, and what was read of it before holds: "
		if !strings.Contains(problems, want) || !strings.HasPrefix(problems, begin) {
			t.Errorf("%.80q: people read %q", text, problems)
		}
		if list := w.fileProblems("ws_other"); len(list) != 0 {
			t.Errorf("people of another workspace read %q", list)
		}
	}
	w.priced(strings.Replace(somePrices, "output: 1000", "output: 2000", 1))
	if got, err := w.cost(request); got != "0.02" || err != nil || len(w.fileProblems(id.DefaultWorkspace)) != 0 {
		t.Errorf("mended: got %s, %v, %q", got, err, w.fileProblems(id.DefaultWorkspace))
	}
}

// TestTheFileOfPricesIsReadOnceItStandsStill changes the file while somebody writes it, replaces it as an editor does, and removes it: then
// no price is known, which is not a price of zero.
func TestTheFileOfPricesIsReadOnceItStandsStill(t *testing.T) {
	w := watch(t, "models: []\n")
	file := filepath.Join(w.Config.DataDir, pricesFile)
	known := func() (string, bool) {
		t.Helper()
		price, known := w.Models.Price(model.Entry{Name: "dear", Model: "m", Provider: model.OpenAI})
		return price.Input.String(), known
	}
	if _, known := known(); known {
		t.Error("a price is known without a file")
	}
	w.priced(somePrices)
	steps := func(n int) {
		for range n {
			w.upkeep.prices.step(t.Context())
		}
	}
	w.writeAs(pricesFile, strings.Replace(somePrices, "input: 1000", "input: 1", 1))
	steps(1)
	w.writeAs(pricesFile, strings.Replace(somePrices, "input: 1000", "input: 12", 1)) // somebody still writes
	steps(1)
	if got, _ := known(); got != "1000" {
		t.Errorf("while somebody writes: got %s", got)
	}
	steps(1)
	if got, _ := known(); got != "12" {
		t.Errorf("once it stands still: got %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	steps(1)
	if got, _ := known(); got != "12" {
		t.Errorf("gone for one step: got %s", got)
	}
	steps(1)
	if _, known := known(); known {
		t.Error("a price is known without the file")
	}
}

// TestADaemonDoesNotStartWithABrokenFileOfPrices holds that nothing is known of prices before the first reading.
func TestADaemonDoesNotStartWithABrokenFileOfPrices(t *testing.T) {
	config := Default(t.TempDir())
	file := filepath.Join(config.DataDir, pricesFile)
	if err := os.WriteFile(file, []byte("date: 2026-11-28\ncurrency: USD\nmodel: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), config, Clock{}, slog.New(slog.DiscardHandler))
	if err == nil {
		a.Close()
		t.Fatal("it starts")
	}
	const want = `line 3, column 1: there is no key "model"; did you mean models?`
	if said := err.Error(); !strings.Contains(said, file) || !strings.Contains(said, want) {
		t.Errorf("got %v", err)
	}
}
