package purse

import (
	"testing"

	"purse/untested"
)

func TestNot(t *testing.T) {
	if n := 3; n != 3 {
		t.Fail()
	} else if untested.Not(&n); n != -3 {
		t.Fail()
	}
}

func TestSpend(t *testing.T) {
	for _, c := range []struct{ held, price, left int }{{5, 5, 0}, {5, 6, 5}, {5, 2, 3}} {
		if left, err := Spend(c.held, c.price); left != c.left || (err != nil) != (c.price > c.held) {
			t.Errorf("Spend(%d, %d) = %d, %v", c.held, c.price, left, err)
		}
	}
}

func TestWorth(t *testing.T) {
	if Worth("penny") != 1 || Worth("leaf") != 0 {
		t.Fail()
	}
}

func TestRich(t *testing.T) {
	if !Rich([]int{60, 60}) {
		t.Fail()
	}
}

func TestEndless(t *testing.T) {
	if Endless(3) != 0 {
		t.Fail()
	}
}
