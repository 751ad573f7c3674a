package model

import (
	"maps"
	"slices"
	"time"

	"agentbox/internal/domain/fault"
)

// Prices are the prices of models in the file of prices.
type Prices struct {
	Date     string           `json:"date"`     // the day of the price list, such as 2026-11-28
	Currency string           `json:"currency"` // for people; all prices and budgets are in it
	Models   map[string]Price `json:"models"`   // by the name of an entry, or as the endpoint calls the model
}

// Of returns the price of an entry: the one under its name goes before that of its model. False means that it is not known. A model that is
// played from a cassette costs nothing unless a price is named for it.
func (p Prices) Of(e Entry) (Price, bool) {
	if price, ok := p.Models[e.Name]; ok {
		return price, true
	}
	if price, ok := p.Models[e.Model]; ok {
		return price, true
	}
	return Price{}, e.Provider == Scripted
}

// Check refuses prices that make no sense. At names the keys that lead to the wrong value in the file, from the outermost on.
func (p Prices) Check() (at []string, err error) {
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
		return []string{"date"}, fault.New(fault.Invalid, "prices_invalid", "date is the day of the price list, such as 2026-11-28")
	}
	if p.Currency == "" || len(p.Currency) > 8 {
		return []string{"currency"}, fault.New(fault.Invalid, "prices_invalid", "currency names that of all prices, such as USD")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		if p.Models[name].Check() != nil {
			return []string{"models", name}, fault.New(fault.Invalid, "prices_invalid", "the price of %.64q must not be negative", name)
		}
	}
	return nil, nil
}

// Reserve returns the most that a request to an entry could use.
func (p Prices) Reserve(e Entry, r Request) Reserve {
	input := r.MostTokens()
	if e.Context > 0 {
		input = min(input, e.Context)
	}
	output := e.Output(r)
	price, known := p.Of(e)
	if !known {
		return Reserve{Tokens: input + output}
	}
	return Reserve{Tokens: input + output, Cost: price.Most(input, output), Priced: true}
}
