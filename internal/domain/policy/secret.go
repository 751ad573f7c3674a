package policy

import (
	"encoding/hex"
	"strings"
)

// A mask stands for the value of a secret variable in everything that is decided, recorded and shown. It is a keyed hash of the value, so
// that equal values have equal masks, and nobody can find a short value by trying.
const (
	maskBegin = "[secret hmac-sha256:"
	maskEnd   = "]"
)

// Mask returns the mask that has the given HMAC-SHA-256.
func Mask(mac []byte) string { return maskBegin + hex.EncodeToString(mac) + maskEnd }

// IsMask reports whether a value has the form of a mask: "[secret hmac-sha256:", 64 hexadecimal digits in small letters, "]".
func IsMask(value string) bool {
	digits, begins := strings.CutPrefix(value, maskBegin)
	digits, ends := strings.CutSuffix(digits, maskEnd)
	return begins && ends && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// Supply returns the permit with the values of the secret variables of a space. Masked is the space's environment with masks, values the
// same one without. Redeem puts a value where the action has the mask of the same variable. So the command that runs is the one that the
// gate decided about. A remaining mask refuses the permit: the space has another value now.
func (p Permit) Supply(masked, values map[string]string) Permit {
	p.supplied = &supplied{masked, values}
	return p
}

type supplied struct{ masked, values map[string]string }

// unmask puts the supplied values into the environment of an action.
func (p Permit) unmask(a *Action) error {
	for name, mask := range a.Env {
		if !IsMask(mask) {
			continue
		}
		if p.supplied == nil || p.supplied.masked[name] != mask {
			return ErrPermitMismatch
		}
		value, ok := p.supplied.values[name]
		if !ok || value == mask {
			return ErrPermitMismatch
		}
		a.Env[name] = value // the action was parsed for this call, and is nobody else's
	}
	return nil
}
