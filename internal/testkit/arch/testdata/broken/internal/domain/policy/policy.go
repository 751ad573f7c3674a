// Package policy has a permit.
package policy

import "errors"

// Permit permits.
type Permit struct{ bytes []byte }

// ErrNone is a sentinel.
var ErrNone = errors.New("none")

// table is a table.
var table = map[string]int{"a": 1}

// Issue makes a permit.
func Issue(b []byte) Permit { return Permit{b} }

// Redeem spends a permit.
func (p Permit) Redeem() (string, error) {
	if p.bytes == nil || table[string(p.bytes)] == 0 {
		return "", ErrNone
	}
	return string(p.bytes), nil
}

// Try spends a permit and gives it back.
func (p Permit) Try() (string, func(), error) {
	name, err := p.Redeem()
	return name, func() {}, err
}
