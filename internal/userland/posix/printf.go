package posix

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Verb is one conversion of a format of C's printf.
type Verb struct {
	Minus, Plus, Space, Sharp, Zero bool
	Width                           int
	Precision                       int // -1 for none
	Letter                          byte
}

// ParseVerb reads the conversion with which a format begins, and returns how long it is. star returns the next argument, for a width or
// precision of *. Where there is none that C knows it returns false.
func ParseVerb(s string, star func() int) (v Verb, size int, ok bool) {
	v.Precision = -1
	i := 1
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			v.Minus = true
			continue
		case '+':
			v.Plus = true
			continue
		case ' ':
			v.Space = true
			continue
		case '#':
			v.Sharp = true
			continue
		case '0':
			v.Zero = true
			continue
		case '\'':
			continue
		}
		break
	}
	digits := func() int {
		n := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			n = min(n*10+int(s[i]-'0'), 1<<30)
			i++
		}
		return n
	}
	if i < len(s) && s[i] == '*' {
		i++
		if v.Width = star(); v.Width < 0 {
			v.Minus, v.Width = true, -v.Width
		}
	} else {
		v.Width = digits()
	}
	if i < len(s) && s[i] == '.' {
		i++
		if i < len(s) && s[i] == '*' {
			i++
			v.Precision = max(star(), -1)
		} else {
			v.Precision = digits()
		}
	}
	for i < len(s) && strings.IndexByte("hlLqjzt", s[i]) >= 0 {
		i++
	}
	if i >= len(s) {
		return v, len(s), false
	}
	v.Letter = s[i]
	return v, i + 1, strings.IndexByte("%csdiouxXeEfFgGaA", v.Letter) >= 0
}

func (v Verb) pad(b []byte, s string, size int) []byte {
	fill := max(v.Width-size, 0)
	if v.Minus {
		b = append(b, s...)
		return append(b, strings.Repeat(" ", fill)...)
	}
	b = append(b, strings.Repeat(" ", fill)...)
	return append(b, s...)
}

// String appends a text, as %s and %c do.
func (v Verb) String(b []byte, s string) []byte {
	size := utf8.RuneCountInString(s)
	if v.Precision >= 0 && v.Letter == 's' && v.Precision < size {
		i := 0
		for range v.Precision {
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
		}
		s, size = s[:i], v.Precision
	}
	return v.pad(b, s, size)
}

// Int appends a whole number, as %d, %u, %o and %x do; one that is negative is taken as 64 bits by the latter.
func (v Verb) Int(b []byte, n int64) []byte {
	if v.Letter == 'd' || v.Letter == 'i' {
		if n < 0 {
			return v.digits(b, "-", strconv.FormatUint(uint64(-n), 10))
		}
		return v.digits(b, v.sign(), strconv.FormatInt(n, 10))
	}
	return v.Uint(b, uint64(n))
}

// Uint is Int for what has no sign.
func (v Verb) Uint(b []byte, n uint64) []byte {
	prefix := ""
	var s string
	switch v.Letter {
	case 'o':
		s = strconv.FormatUint(n, 8)
		if v.Sharp && s[0] != '0' && len(s) >= v.Precision {
			s = "0" + s
		}
	case 'x', 'X':
		s = strconv.FormatUint(n, 16)
		if v.Sharp && n != 0 {
			prefix = "0x"
		}
		if v.Letter == 'X' {
			s, prefix = strings.ToUpper(s), strings.ToUpper(prefix)
		}
	case 'd', 'i':
		prefix = v.sign()
		s = strconv.FormatUint(n, 10)
	default:
		s = strconv.FormatUint(n, 10)
	}
	return v.digits(b, prefix, s)
}

// Number appends a number as a whole one, in full even beyond 64 bits.
func (v Verb) Number(b []byte, n float64) []byte {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return v.Float(b, n)
	case math.Abs(n) < 1<<63:
		if v.Letter == 'u' && n < 0 {
			v.Letter = 'd'
		}
		return v.Int(b, int64(n))
	case n > 0 && n < 1<<64:
		return v.Uint(b, uint64(n))
	}
	whole, _ := big.NewFloat(n).Int(nil)
	if n < 0 {
		return v.digits(b, "-", whole.Neg(whole).String())
	}
	return v.digits(b, v.sign(), whole.String())
}

func (v Verb) sign() string {
	switch {
	case v.Plus:
		return "+"
	case v.Space:
		return " "
	}
	return ""
}

func (v Verb) digits(b []byte, sign, s string) []byte {
	if v.Precision == 0 && s == "0" {
		s = ""
	}
	if fill := v.Precision - len(s); fill > 0 {
		s = strings.Repeat("0", fill) + s
	}
	if v.Zero && !v.Minus && v.Precision < 0 {
		if fill := v.Width - len(sign) - len(s); fill > 0 {
			s = strings.Repeat("0", fill) + s
		}
	}
	s = sign + s
	return v.pad(b, s, len(s))
}

// Float appends a number as %e, %f, %g and %a do.
func (v Verb) Float(b []byte, n float64) []byte {
	sign := v.sign()
	if math.Signbit(n) {
		sign, n = "-", -n
	}
	upper := v.Letter >= 'A' && v.Letter <= 'Z'
	letter := v.Letter | 0x20
	precision := v.Precision
	if precision < 0 && letter != 'a' {
		precision = 6
	}
	var s string
	switch {
	case math.IsNaN(n):
		s, v.Zero = "nan", false
	case math.IsInf(n, 0):
		s, v.Zero = "inf", false
	case letter == 'g':
		precision = max(precision, 1)
		s = general(n, precision, v.Sharp)
	case letter == 'a':
		s = hexFloat(n, precision)
	case letter == 'e' || letter == 'f':
		s = strconv.FormatFloat(n, letter, precision, 64)
		if v.Sharp && precision == 0 && letter == 'f' {
			s += "."
		}
	default: // an integer's letter
		s = strconv.FormatFloat(n, 'f', 0, 64)
	}
	if upper {
		s = strings.ToUpper(s)
	}
	v.Precision = -1
	return v.digits(b, sign, s)
}

// general writes a number as %g does.
func general(n float64, precision int, keep bool) string {
	s := strconv.FormatFloat(n, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	x, _ := strconv.Atoi(exponent)
	if x < -4 || x >= precision {
		if !keep && strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + exponent
	}
	s = strconv.FormatFloat(n, 'f', precision-1-x, 64)
	if !keep && strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// hexFloat writes a number as %a does.
func hexFloat(n float64, precision int) string {
	s := strconv.FormatFloat(n, 'x', precision, 64)
	mantissa, exponent, _ := strings.Cut(s, "p")
	sign := exponent[:1]
	exponent = strings.TrimLeft(exponent[1:], "0")
	if exponent == "" {
		exponent = "0"
	}
	return mantissa + "p" + sign + exponent
}
