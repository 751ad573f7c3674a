package models_test

import (
	"errors"
	"math"
	"testing"

	"agentbox/internal/domain/model"
)

// TestUsageThatCannotBe tells numbers that no answer can have used: sums of them overflow, and a budget would hold no more. The whole
// reserve counts, as where an endpoint tells nothing.
func TestUsageThatCannotBe(t *testing.T) {
	most := model.Usage{Input: model.MaxTokens, Output: model.MaxTokens, CacheRead: model.MaxTokens, CacheWrite: model.MaxTokens,
		Reasoning: model.MaxTokens}
	if !most.Credible() || !(model.Usage{}).Credible() {
		t.Error("the edges are not credible")
	}
	for _, lie := range []model.Usage{{Input: math.MaxInt}, {Output: math.MaxInt, Input: 1}, {Output: -1}, {CacheRead: model.MaxTokens + 1},
		{Reasoning: math.MinInt}} {
		for _, broken := range []bool{false, true} {
			f := start(t)
			f.vendor.script["three"] = []step{func(func(model.Delta) error) (model.Answer, error) {
				if broken {
					return model.Answer{}, &model.Failure{Class: model.Final, Code: "x", Message: "x", Usage: lie}
				}
				return model.Answer{Parts: []model.Part{model.Text("Hi")}, Stop: model.StopEnd, Usage: lie}, nil
			}}
			reserve := f.prices.Reserve(model.Entry{Name: "three", Provider: model.OpenAI, MaxOutput: 100}, request("Hello"))
			a := f.question(1)
			a.Entry, a.Limits = "three", model.Limits{Tokens: reserve.Tokens}
			if _, err := f.Ask(t.Context(), a); (err != nil) != broken {
				t.Fatalf("%+v: got %v", lie, err)
			}
			if used := f.used(); used.Usage.Tokens() != reserve.Tokens {
				t.Errorf("%+v, broken %t: used %+v, want the reserve %d", lie, broken, used.Usage, reserve.Tokens)
			}
			a.Step++
			if _, err := f.Ask(t.Context(), a); !errors.Is(err, model.ErrBudget) || f.vendor.count("three") != 1 {
				t.Errorf("%+v, broken %t: the budget does not hold: %v", lie, broken, err)
			}
		}
	}
}
