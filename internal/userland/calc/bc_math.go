package calc

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// fixed is arithmetic with so many digits behind the point, for the functions of -l.
type fixed struct {
	c   *calculator
	one *big.Int
}

func (f fixed) mul(a, b *big.Int) *big.Int {
	f.c.work(a, b)
	v := new(big.Int).Mul(a, b)
	return v.Quo(v, f.one)
}

func (f fixed) div(a, b *big.Int) *big.Int {
	f.c.work(a, b)
	v := new(big.Int).Mul(a, f.one)
	return v.Quo(v, b)
}

func (f fixed) sqrt(a *big.Int) *big.Int { return new(big.Int).Sqrt(new(big.Int).Mul(a, f.one)) }

func (c *calculator) library(name string, d decimal) decimal {
	extra := 15
	if name == "e" {
		n := d.int64()
		if n > maxDigits {
			c.fail("exponent too large in raise")
		}
		if n < -int64(3*c.scale+10) {
			return decimal{new(big.Int), c.scale}
		}
		extra += int(max(n, 0)/2) + 5
	}
	digits := c.scale + extra
	f := fixed{c, power10(digits)}
	x := d.rescale(digits).v
	var v *big.Int
	switch name {
	case "e":
		v = f.exp(x)
	case "l":
		if x.Sign() <= 0 { // as bc has it
			return decimal{new(big.Int).Quo(new(big.Int).Mul(big.NewInt(1), new(big.Int).Neg(new(big.Int).Sub(power10(c.scale), big.NewInt(1)))),
				big.NewInt(1)), 0}.divided(c)
		}
		v = f.log(x)
	case "s":
		v = f.sin(x)
	case "c":
		half := new(big.Int).Quo(f.pi(), big.NewInt(2))
		v = f.sin(new(big.Int).Add(x, half))
	default:
		v = f.atan(x)
	}
	return decimal{v, digits}.rescale(c.scale)
}

// divided is what l returns for what has no logarithm: (1 - 10^scale) / 1.
func (d decimal) divided(c *calculator) decimal { return d.rescale(c.scale) }

func (f fixed) exp(x *big.Int) *big.Int {
	halvings := 0
	for y := new(big.Int).Abs(x); y.Cmp(new(big.Int).Rsh(f.one, 3)) > 0; y.Rsh(y, 1) {
		halvings++
	}
	guard := fixed{f.c, new(big.Int).Mul(f.one, power10(halvings/3+5))}
	y := new(big.Int).Mul(x, power10(halvings/3+5))
	y.Quo(y, new(big.Int).Lsh(big.NewInt(1), uint(halvings)))
	sum, term := new(big.Int).Set(guard.one), new(big.Int).Set(guard.one)
	for i := int64(1); term.Sign() != 0; i++ {
		term = guard.mul(term, y)
		term.Quo(term, big.NewInt(i))
		sum.Add(sum, term)
	}
	for range halvings {
		sum = guard.mul(sum, sum)
	}
	return sum.Quo(sum, power10(halvings/3+5))
}

func (f fixed) log(x *big.Int) *big.Int {
	roots := 0
	g := fixed{f.c, new(big.Int).Mul(f.one, power10(10))}
	y := new(big.Int).Mul(x, power10(10))
	near := new(big.Int).Quo(g.one, big.NewInt(10))
	for new(big.Int).Abs(new(big.Int).Sub(y, g.one)).Cmp(near) > 0 {
		y = g.sqrt(y)
		f.c.work(y, y)
		roots++
	}
	z := g.div(new(big.Int).Sub(y, g.one), new(big.Int).Add(y, g.one))
	square, term, sum := g.mul(z, z), new(big.Int).Set(z), new(big.Int).Set(z)
	for i := int64(3); term.Sign() != 0; i += 2 {
		term = g.mul(term, square)
		sum.Add(sum, new(big.Int).Quo(term, big.NewInt(i)))
	}
	sum.Lsh(sum, uint(roots+1))
	return sum.Quo(sum, power10(10))
}

func (f fixed) pi() *big.Int {
	inverse := func(n int64) *big.Int { // the arc tangent of 1/n
		term := new(big.Int).Quo(f.one, big.NewInt(n))
		sum := new(big.Int).Set(term)
		for i, sign := int64(3), false; term.Sign() != 0; i, sign = i+2, !sign {
			f.c.work(term, term)
			term.Quo(term, big.NewInt(n*n))
			t := new(big.Int).Quo(term, big.NewInt(i))
			if sign {
				sum.Add(sum, t)
			} else {
				sum.Sub(sum, t)
			}
		}
		return sum
	}
	v := new(big.Int).Mul(inverse(5), big.NewInt(16))
	return v.Sub(v, new(big.Int).Mul(inverse(239), big.NewInt(4)))
}

func (f fixed) sin(x *big.Int) *big.Int {
	turn := new(big.Int).Lsh(f.pi(), 1)
	x = new(big.Int).Rem(x, turn)
	square, term, sum := f.mul(x, x), new(big.Int).Set(x), new(big.Int).Set(x)
	for i := int64(2); term.Sign() != 0; i += 2 {
		term = f.mul(term, square)
		term.Quo(term, big.NewInt(-i*(i+1)))
		sum.Add(sum, term)
	}
	return sum
}

func (f fixed) atan(x *big.Int) *big.Int {
	doublings := 0
	for near := new(big.Int).Quo(f.one, big.NewInt(10)); new(big.Int).Abs(x).Cmp(near) > 0; doublings++ {
		root := f.sqrt(new(big.Int).Add(f.one, f.mul(x, x)))
		x = f.div(x, root.Add(root, f.one))
	}
	square, term, sum := f.mul(x, x), new(big.Int).Set(x), new(big.Int).Set(x)
	for i := int64(3); term.Sign() != 0; i += 2 {
		term = f.mul(term, square)
		term.Neg(term)
		sum.Add(sum, new(big.Int).Quo(term, big.NewInt(i)))
	}
	return sum.Lsh(sum, uint(doublings))
}

// put writes text, and breaks lines of digits as bc does.
func (c *calculator) put(s string) {
	c.out.WriteString(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		c.column = len(s) - i - 1
	} else {
		c.column += len(s)
	}
}

func (c *calculator) digits(s string) {
	limit := 70
	if v := c.p.Getenv("BC_LINE_LENGTH"); v != "" {
		if n, err := strconv.Atoi(v); err == nil {
			limit = n
		}
	}
	for _, ch := range []byte(s) {
		if c.column++; limit > 0 && c.column == limit-1 {
			c.out.WriteString("\\\n")
			c.column = 1
		}
		_ = c.out.WriteByte(ch)
	}
}

// show writes a number in the base of the output.
func (c *calculator) show(d decimal) {
	c.p.Charge(50 + d.v.BitLen()/4*max(d.v.BitLen()/4096, 1))
	negative := d.v.Sign() < 0
	v := new(big.Int).Abs(d.v)
	var b strings.Builder
	if v.Sign() == 0 {
		c.digits("0")
		return
	}
	if negative {
		b.WriteByte('-')
	}
	if c.obase == 10 {
		s := v.String()
		if len(s) <= d.scale {
			s = strings.Repeat("0", d.scale-len(s)) + s
			b.WriteString("." + s)
		} else {
			b.WriteString(s[:len(s)-d.scale])
			if d.scale > 0 {
				b.WriteString("." + s[len(s)-d.scale:])
			}
		}
		c.digits(b.String())
		return
	}
	unit := power10(d.scale)
	integer, fraction := new(big.Int).QuoRem(v, unit, new(big.Int))
	base := big.NewInt(int64(c.obase))
	width := len(strconv.Itoa(c.obase - 1))
	cell := func(n int64) string {
		if c.obase <= 16 {
			return strings.ToUpper(strconv.FormatInt(n, 16))
		}
		return fmt.Sprintf(" %0*d", width, n)
	}
	var parts []string
	for integer.Sign() > 0 {
		c.work(integer, base)
		r := new(big.Int)
		integer.QuoRem(integer, base, r)
		parts = append(parts, cell(r.Int64()))
	}
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	if d.scale > 0 {
		b.WriteByte('.')
		for t := big.NewInt(1); t.Cmp(unit) < 0; t.Mul(t, base) {
			fraction.Mul(fraction, base)
			r := new(big.Int)
			q, _ := new(big.Int).QuoRem(fraction, unit, r)
			fraction = r
			b.WriteString(cell(q.Int64()))
		}
	}
	c.digits(b.String())
}
