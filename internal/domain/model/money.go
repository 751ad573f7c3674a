package model

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"agentbox/internal/domain/fault"
)

// Amount is money in millionths of a unit of currency. Sums are exact.
type Amount int64

// unit is one unit of currency.
const unit Amount = 1_000_000

// ParseAmount reads a decimal number of units, such as 2.5, with at most six places.
func ParseAmount(text string) (Amount, error) {
	whole, part, dotted := strings.Cut(text, ".")
	bad := fault.New(fault.Invalid, "amount_invalid", "%.40q is not an amount: write 12 or 0.25, with at most six places", text)
	if whole == "" || dotted && part == "" || len(part) > 6 || strings.Trim(whole+part, "0123456789") != "" {
		return 0, bad
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
	if err != nil {
		return 0, bad
	}
	return Amount(n), nil
}

// String returns the amount in units, without zeros at the end.
func (a Amount) String() string {
	sign, n := "", uint64(max(a, -a))
	if a < 0 {
		sign = "-"
	}
	if n > math.MaxInt64 { // the least integer has no positive twin
		n = 1 << 63
	}
	text := fmt.Sprintf("%s%d.%06d", sign, n/uint64(unit), n%uint64(unit))
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalText returns the amount as String does.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (a *Amount) UnmarshalText(text []byte) error {
	parsed, err := ParseAmount(strings.TrimPrefix(string(text), "-"))
	if err == nil && strings.HasPrefix(string(text), "-") {
		parsed = -parsed
	}
	*a = parsed
	return err
}

// Price is the price of a model per million tokens. The zero value costs nothing, as a model on one's own machine does.
type Price struct {
	Input      Amount `json:"input"`
	Output     Amount `json:"output"`
	CacheRead  Amount `json:"cache_read,omitempty"`
	CacheWrite Amount `json:"cache_write,omitempty"`
}

// Check refuses negative prices.
func (p Price) Check() error {
	if p.Input < 0 || p.Output < 0 || p.CacheRead < 0 || p.CacheWrite < 0 {
		return fault.New(fault.Invalid, "price_invalid", "a price must not be negative")
	}
	return nil
}

// Cost returns the price of the tokens, each kind rounded up to a millionth. It never overflows: more than an Amount holds is the most
// that it holds.
func (p Price) Cost(u Usage) Amount {
	sum := Amount(0)
	for _, part := range []struct {
		tokens int
		price  Amount
	}{{u.Input, p.Input}, {u.CacheRead, p.CacheRead}, {u.CacheWrite, p.CacheWrite}, {u.Output, p.Output}} {
		if part.tokens <= 0 || part.price <= 0 {
			continue
		}
		hi, lo := bits.Mul64(uint64(part.tokens), uint64(part.price))
		lo, carry := bits.Add64(lo, uint64(unit)-1, 0)
		hi += carry
		if hi >= uint64(unit) {
			return math.MaxInt64
		}
		quotient, _ := bits.Div64(hi, lo, uint64(unit))
		if quotient > uint64(math.MaxInt64-sum) {
			return math.MaxInt64
		}
		sum += Amount(quotient)
	}
	return sum
}

// Most returns the highest cost of a request with so many tokens, with any use of the cache.
func (p Price) Most(input, output int) Amount {
	p.Input = max(p.Input, p.CacheRead, p.CacheWrite)
	return p.Cost(Usage{Input: input, Output: output})
}
