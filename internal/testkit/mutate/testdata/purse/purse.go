// Package purse has a function of each kind that the tests of mutate look at.
package purse

import "errors"

var errPoor = errors.New("not enough")

// Spend takes a price out of a purse.
func Spend(held, price int) (int, error) {
	if price > held {
		return held, errPoor
	}
	return held - price, nil
}

// Kind names a coin.
type Kind string

// Worth is tested for one kind only.
func Worth(k Kind) int {
	switch k {
	case "penny":
		return one()
	case "crown":
		return 60 * one()
	}
	return 0
}

func one() int { return 1 }

// Rich has a test that never sees a poor purse.
func Rich(held []int) bool {
	sum := 0
	for _, h := range held {
		sum += h
	}
	return len(held) > 0 && sum >= 100
}

// Endless ends unless a mutant keeps it from ending.
func Endless(n int) int {
	for n > 0 {
		n--
	}
	return n
}
