package posix

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func gratis(int64) error { return nil }

// compare has the machine match a text of any length, and Go's engines.
func compare(t *testing.T, expr, text string, longest bool) {
	t.Helper()
	m, err := NewMachine(expr, longest, gratis)
	if err != nil {
		return
	}
	re := regexp.MustCompile(expr)
	if longest {
		re.Longest()
	}
	want := re.FindStringSubmatchIndex(text)
	got, err := m.find(text, 0, m.prog.NumCap)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%q in %q, longest %t: got %v, %v, want %v", expr, text, longest, got, err, want)
	}
	if found, err := m.find(text, 0, 0); err != nil || (found != nil) != (want != nil) {
		t.Fatalf("%q in %q, longest %t: got %v, %v, want a match %t", expr, text, longest, found, err, want != nil)
	}
	all, err := m.each(text, -1)
	if wanted := re.FindAllStringSubmatchIndex(text, -1); err != nil || fmt.Sprint(all) != fmt.Sprint(wanted) {
		t.Fatalf("%q in %q, longest %t: got all of %v, %v, want %v", expr, text, longest, all, err, wanted)
	}
}

// TestTheMachineAgreesWithGo matches generated expressions by the machine and by Go's engines.
func TestTheMachineAgreesWithGo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	atoms := []string{"a", "b", "ab", ".", "[ab]", "[^a]", "ä", "x", `\b`, "^", "$", `\B`, "(?m:^)", "(?m:$)", "", "(a)", "(?i:A)", `\w`,
		"\\n"}
	var expr func(depth int) string
	expr = func(depth int) string {
		if depth == 0 {
			return atoms[r.IntN(len(atoms))]
		}
		switch r.IntN(7) {
		case 0:
			return "(" + expr(depth-1) + ")"
		case 1:
			return expr(depth-1) + "|" + expr(depth-1)
		case 2:
			return "(?:" + expr(depth-1) + ")" + []string{"*", "+", "?", "*?", "+?", "{1,2}"}[r.IntN(6)]
		}
		return expr(depth-1) + expr(depth-1)
	}
	letters := []string{"a", "b", "x", "ä", "\n", " ", "A", "\xff", "ab"}
	for range 20_000 {
		var text strings.Builder
		for range r.IntN(12) {
			text.WriteString(letters[r.IntN(len(letters))])
		}
		compare(t, expr(1+r.IntN(3)), text.String(), r.IntN(2) == 0)
	}
}

func FuzzMachine(f *testing.F) {
	f.Add(`(a*)(ab)*(b*)`, "aabb abab", true)
	f.Add(`(?m)^x|\bä+?`, "x\nää x", false)
	f.Fuzz(func(t *testing.T, expr, text string, longest bool) {
		if len(text) < 1<<10 && len(expr) < 100 {
			compare(t, expr, text, longest)
		}
	})
}

// TestLongTextsAreChargedWhileTheyAreMatched counts the charges, and the largest one. So matching can be stopped all the time.
func TestLongTextsAreChargedWhileTheyAreMatched(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	errEnough := errors.New("enough")
	for _, x := range []struct {
		expr  string
		least int64 // gas
		match func(m *Machine) error
	}{
		{`(a*)*(a*)*b`, 20 << 20, func(m *Machine) error { _, err := m.MatchString(text); return err }},
		{`(a|b|ab)*c`, 20 << 20, func(m *Machine) error { _, err := m.FindString(text); return err }},
		{`(a|b|ab)*c`, 20 << 20, func(m *Machine) error { _, err := m.Find([]byte(text)); return err }},
		{`a|a.*b`, 1 << 30, func(m *Machine) error { _, err := m.FindAllString(text, -1); return err }},
	} {
		used, most := int64(0), int64(0)
		m, err := NewMachine(x.expr, true, func(gas int64) error {
			most = max(most, gas)
			if used += gas; used > x.least {
				return errEnough
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.match(m); !errors.Is(err, errEnough) {
			t.Errorf("%s: got %v with %d gas; want that more than %d is charged", x.expr, err, used, x.least)
		}
		if most > 1_000_000 {
			t.Errorf("%s: %d gas at once", x.expr, most)
		}
	}
}

// TestProgramsOfExpressionsAreBounded refuses what would take long to compile, and charges what is compiled.
func TestProgramsOfExpressionsAreBounded(t *testing.T) {
	gas := int64(0)
	charge := func(n int64) error { gas += n; return nil }
	if _, err := NewMachine(strings.Repeat("a", maxProgram/1000-10)+"", false, charge); err != nil {
		t.Error(err)
	}
	gas = 0
	if _, err := NewMachine("(?:"+strings.Repeat("a", maxProgram/1000-2)+"){1000}", false, charge); err != nil ||
		gas < maxProgram*gasToBuild*9/10 {
		t.Errorf("almost %d instructions: got %v for %d gas", maxProgram, err, gas)
	}
	if _, err := NewMachine("(?:"+strings.Repeat("a", maxProgram/1000+1)+"){1000}", false, charge); !errors.Is(err, ErrTooBig) {
		t.Errorf("more than %d instructions: got %v", maxProgram, err)
	}
	if _, err := Compile("("+strings.Repeat("a", 30)+"){1000}", Extended, charge); !errors.Is(err, ErrTooBig) {
		t.Errorf("30,000 characters: got %v", err)
	}
}

func BenchmarkLongText(b *testing.B) {
	text := strings.Repeat("abcdefghi ", 1<<14)
	for _, expr := range []string{"[0-9]+x", "(a|b).*z", `\bq`} {
		m, err := NewMachine(expr, true, gratis)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("machine "+expr, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := m.find(text, 0, m.prog.NumCap); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("go "+expr, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.re.FindStringSubmatchIndex(text)
			}
		})
	}
}
