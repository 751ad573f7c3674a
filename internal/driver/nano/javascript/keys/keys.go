// Package keys makes, reads, writes and uses the asymmetric keys of guests: RSA, the NIST curves, Ed25519 and X25519.
//
// All chance comes from the reader that the caller gives, so that a seed decides the keys. Keys travel as DER: PKCS #8 for private ones
// and SPKI for public ones.
package keys

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
)

// Error is a failure that a program sees, with the code that Node gives it.
type Error struct{ Code, Message string }

func (e *Error) Error() string { return e.Message }

// ErrUnsupported says that a key is of a kind or form that this package does not know, or damaged.
var ErrUnsupported = &Error{"ERR_OSSL_UNSUPPORTED", "error:1E08010C:DECODER routines::unsupported"}

// Key is a private key with its public one, or a public key alone.
type Key struct {
	private crypto.PrivateKey // nil for a public key
	public  crypto.PublicKey
}

// Private reports whether the key has its private part.
func (k *Key) Private() bool { return k.private != nil }

// Public returns the key without its private part.
func (k *Key) Public() *Key { return &Key{public: k.public} }

// Details say what a key is, in Node's words. A field that does not belong to the kind is empty.
type Details struct {
	Private  bool   `json:"private"`
	Kind     string `json:"kind"` // rsa, ec, ed25519 or x25519
	Bits     int    `json:"bits,omitempty"`
	Exponent int    `json:"exponent,omitempty"`
	Curve    string `json:"curve,omitempty"`
}

// Details describes the key.
func (k *Key) Details() Details {
	d := Details{Private: k.Private()}
	switch p := k.public.(type) {
	case *rsa.PublicKey:
		d.Kind, d.Bits, d.Exponent = "rsa", p.N.BitLen(), p.E
	case *ecdsa.PublicKey:
		d.Kind, d.Curve = "ec", curveName(p.Curve)
	case ed25519.PublicKey:
		d.Kind = "ed25519"
	case *ecdh.PublicKey:
		d.Kind = "x25519"
	}
	return d
}

// curves are the curves by OpenSSL's names and the others that Node takes.
var curves = map[string]elliptic.Curve{
	"secp224r1": elliptic.P224(), "P-224": elliptic.P224(), "prime256v1": elliptic.P256(), "secp256r1": elliptic.P256(),
	"P-256":     elliptic.P256(),
	"secp384r1": elliptic.P384(), "P-384": elliptic.P384(), "secp521r1": elliptic.P521(), "P-521": elliptic.P521(),
}

func curveName(c elliptic.Curve) string {
	switch c {
	case elliptic.P224():
		return "secp224r1"
	case elliptic.P256():
		return "prime256v1"
	case elliptic.P384():
		return "secp384r1"
	}
	return "secp521r1"
}

// Options say which key Generate makes.
type Options struct {
	Kind     string `json:"kind"`
	Bits     int    `json:"bits"`
	Exponent int    `json:"exponent"`
	Curve    string `json:"curve"`
}

// The sizes of RSA keys that are made: smaller ones are refused by the library, larger ones take minutes.
const (
	leastBits = 1024
	mostBits  = 4096
)

// Generate makes a key from chance. It calls step before each part of the work that takes a millisecond or so, and ends where that fails.
func Generate(chance io.Reader, o Options, step func() error) (*Key, error) {
	switch o.Kind {
	case "rsa":
		return generateRSA(chance, o, step)
	case "ec":
		curve, ok := curves[o.Curve]
		if !ok {
			return nil, &Error{"ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name"}
		}
		size := (curve.Params().BitSize + 7) / 8
		for {
			raw, err := draw(chance, size)
			if err != nil {
				return nil, err
			}
			raw[0] &= 0xff >> (8*size - curve.Params().BitSize)
			if p, err := ecdsa.ParseRawPrivateKey(curve, raw); err == nil {
				return &Key{p, &p.PublicKey}, nil
			}
		}
	case "ed25519":
		seed, err := draw(chance, ed25519.SeedSize)
		if err != nil {
			return nil, err
		}
		p := ed25519.NewKeyFromSeed(seed)
		return &Key{p, p.Public()}, nil
	case "x25519":
		raw, err := draw(chance, 32)
		if err != nil {
			return nil, err
		}
		p, err := ecdh.X25519().NewPrivateKey(raw)
		if err != nil {
			return nil, err
		}
		return &Key{p, p.PublicKey()}, nil
	}
	return nil, &Error{"ERR_INVALID_ARG_VALUE", fmt.Sprintf("The argument 'type' must be a supported key type. Received '%s'", o.Kind)}
}

func draw(chance io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(chance, b)
	return b, err
}

// generateRSA is written out because the library's own ignores the reader that it is given.
func generateRSA(chance io.Reader, o Options, step func() error) (*Key, error) {
	if o.Exponent == 0 {
		o.Exponent = 65537
	}
	if o.Bits < leastBits || o.Bits > mostBits || o.Exponent < 3 || o.Exponent%2 == 0 {
		return nil, &Error{"ERR_OUT_OF_RANGE", fmt.Sprintf("a key of RSA has %d to %d bits here and an odd exponent; %d bits were asked for",
			leastBits, mostBits, o.Bits)}
	}
	one, e := big.NewInt(1), big.NewInt(int64(o.Exponent))
	for {
		p, err := prime(chance, (o.Bits+1)/2, e, step)
		if err != nil {
			return nil, err
		}
		q, err := prime(chance, o.Bits/2, e, step)
		if err != nil {
			return nil, err
		}
		if p.Cmp(q) < 0 {
			p, q = q, p
		}
		n := new(big.Int).Mul(p, q)
		if p.Cmp(q) == 0 || n.BitLen() != o.Bits {
			continue
		}
		m, r := new(big.Int).Sub(p, one), new(big.Int).Sub(q, one)
		all := new(big.Int).Mul(m, r)
		all.Div(all, new(big.Int).GCD(nil, nil, m, r))
		key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: n, E: o.Exponent}, D: new(big.Int).ModInverse(e, all), Primes: []*big.Int{p, q}}
		if key.D == nil {
			continue
		}
		key.Precompute()
		if err := key.Validate(); err != nil {
			return nil, err
		}
		return &Key{key, &key.PublicKey}, nil
	}
}

// small is the product of the odd primes up to 53: most numbers that are not prime have one of them.
const small uint64 = 16294579238595022365

// prime draws a prime of so many bits, of which the first two are set, and that fits the exponent.
func prime(chance io.Reader, bits int, e *big.Int, step func() error) (*big.Int, error) {
	one, product := big.NewInt(1), new(big.Int).SetUint64(small)
	for {
		raw, err := draw(chance, (bits+7)/8)
		if err != nil {
			return nil, err
		}
		p := new(big.Int).SetBytes(raw)
		p.And(p, new(big.Int).Sub(new(big.Int).Lsh(one, uint(bits)), one))
		p.SetBit(p.SetBit(p.SetBit(p, bits-1, 1), bits-2, 1), 0, 1)
		for range 1000 {
			if new(big.Int).GCD(nil, nil, p, product).Cmp(one) == 0 && new(big.Int).GCD(nil, nil, new(big.Int).Sub(p, one), e).Cmp(one) == 0 {
				if err := step(); err != nil {
					return nil, err
				}
				if p.ProbablyPrime(0) && p.ProbablyPrime(20) {
					break
				}
			}
			p.Add(p, big.NewInt(2))
		}
		if p.BitLen() == bits && p.ProbablyPrime(0) {
			return p, nil
		}
	}
}

// DER encodes the key: PKCS #8 where it is private, else SPKI.
func (k *Key) DER() ([]byte, error) {
	if k.Private() {
		return x509.MarshalPKCS8PrivateKey(k.private)
	}
	return x509.MarshalPKIXPublicKey(k.public)
}

// Load reads what DER has returned.
func Load(der []byte) (*Key, error) {
	if p, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return whole(p)
	}
	return parsePublic(der)
}

func whole(private any) (*Key, error) {
	switch p := private.(type) {
	case *rsa.PrivateKey:
		return &Key{p, &p.PublicKey}, nil
	case *ecdsa.PrivateKey:
		return &Key{p, &p.PublicKey}, nil
	case ed25519.PrivateKey:
		return &Key{p, p.Public()}, nil
	case *ecdh.PrivateKey:
		return &Key{p, p.PublicKey()}, nil
	}
	return nil, ErrUnsupported
}

func parsePublic(der []byte) (*Key, error) {
	p, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, ErrUnsupported
	}
	switch p.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey, *ecdh.PublicKey:
		return &Key{public: p}, nil
	}
	return nil, ErrUnsupported
}

// Agree returns the secret that a private key and a public one of the same curve share.
func Agree(private, public *Key) ([]byte, error) {
	mismatch := &Error{"ERR_CRYPTO_INCOMPATIBLE_KEY", "Incompatible key types for Diffie-Hellman"}
	var mine *ecdh.PrivateKey
	var theirs *ecdh.PublicKey
	var err, other error
	switch p := private.private.(type) {
	case *ecdh.PrivateKey:
		mine = p
	case *ecdsa.PrivateKey:
		mine, err = p.ECDH()
	default:
		return nil, mismatch
	}
	switch p := public.public.(type) {
	case *ecdh.PublicKey:
		theirs = p
	case *ecdsa.PublicKey:
		theirs, other = p.ECDH()
	default:
		return nil, mismatch
	}
	if errors.Join(err, other) != nil || mine.Curve() != theirs.Curve() {
		return nil, mismatch
	}
	return mine.ECDH(theirs)
}
