package sqlite

import "testing"

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"3.51.2", "3.51.3", true}, {"3.51.3", "3.51.3", false}, {"3.51.10", "3.51.3", false}, {"3.9.99", "3.51.3", true}, {"4", "3.51.3", false},
		{"3.51", "3.51.3", true}, {"", "3.51.3", true},
	} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("older(%q, %q) is %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
