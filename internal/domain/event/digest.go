package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Digest is a SHA-256 hash. Its text form is `sha256:` and 64 hexadecimal digits; the zero digest is the empty string.
type Digest [sha256.Size]byte

// DigestOf hashes data.
func DigestOf(data []byte) Digest { return sha256.Sum256(data) }

// ParseDigest reads the text form.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	if text == "" {
		return d, nil
	}
	digits, ok := strings.CutPrefix(text, "sha256:")
	if n, err := hex.Decode(d[:], []byte(digits[:min(len(digits), 2*len(d))])); !ok || err != nil || n != len(d) || len(digits) != 2*len(d) {
		return Digest{}, fmt.Errorf("%.80q is not a digest: sha256: and 64 hexadecimal digits", text)
	}
	return d, nil
}

// IsZero reports whether the digest is none.
func (d Digest) IsZero() bool { return d == Digest{} }

// Hex returns the 64 digits without the algorithm's name.
func (d Digest) Hex() string { return hex.EncodeToString(d[:]) }

// String returns the text form.
func (d Digest) String() string {
	if d.IsZero() {
		return ""
	}
	return "sha256:" + d.Hex()
}

// MarshalText returns the text form.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	*d = parsed
	return err
}
