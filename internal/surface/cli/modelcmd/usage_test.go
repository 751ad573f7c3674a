package modelcmd

import (
	"testing"

	"agentbox/internal/domain/model"
)

// TestTheBudgetOfSomeUsage holds that the budget of one agent or room goes before that of each, in whatever order they stand.
func TestTheBudgetOfSomeUsage(t *testing.T) {
	five, err := model.ParseAmount("5")
	if err != nil {
		t.Fatal(err)
	}
	budgets := []model.Budget{
		{Scope: model.ScopeAgent, ID: "usr_1", Tokens: 10}, {Scope: model.ScopeAgent, Tokens: 20}, {Scope: model.ScopeRoom, Tokens: 30},
		{Scope: model.ScopeRoom, ID: "room_1", Cost: five}, {Scope: model.ScopeWorkspace, Tokens: 40, Cost: five},
	}
	for _, c := range []struct {
		of   model.Used
		want string
	}{
		{model.Used{Scope: model.ScopeAgent, ID: "usr_1"}, "10 tokens"}, {model.Used{Scope: model.ScopeAgent, ID: "usr_2"}, "20 tokens"},
		{model.Used{Scope: model.ScopeRoom, ID: "room_1"}, "5 USD"}, {model.Used{Scope: model.ScopeRoom, ID: "room_2"}, "30 tokens"},
		{model.Used{Scope: model.ScopeWorkspace}, "40 tokens, 5 USD"}, {model.Used{Scope: model.ScopeModel, ID: "main"}, ""},
		{model.Used{Scope: model.ScopeRun, ID: "run_1"}, ""},
	} {
		if got := budgetOf(budgets, c.of, "USD"); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.of, got, c.want)
		}
	}
}
