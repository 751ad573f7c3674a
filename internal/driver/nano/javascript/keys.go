package javascript

import (
	"encoding/json"
	"errors"
	"math/big"

	"agentbox/internal/driver/nano/javascript/keys"
	"agentbox/internal/userland/bound"
)

// Gas costs of operations with keys.
const (
	gasPerKey   = 2_000_000 // for a use of a key
	gasPerPrime = 1_500_000 // for a number that may be a prime
	mostPower   = 8192      // bits of the numbers of Diffie-Hellman
)

// chance is the run's chance as a reader.
type chance struct{ *bound.Account }

func (c chance) Read(p []byte) (int, error) {
	c.Entropy(p)
	return len(p), nil
}

// keyed are the ways to use keys, by name. Each gets its options as JSON and three texts.
var keyed = map[string]func(r *run, options []byte, x [3][]byte) ([]byte, error){
	"make": func(r *run, options []byte, _ [3][]byte) ([]byte, error) {
		var o keys.Options
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, err
		}
		k, err := keys.Generate(chance{r.account}, o, func() error { return r.account.Charge(gasPerPrime) })
		if err != nil {
			return nil, err
		}
		return k.DER()
	},
	"read": func(_ *run, options []byte, x [3][]byte) ([]byte, error) {
		var f keys.Form
		if err := json.Unmarshal(options, &f); err != nil {
			return nil, err
		}
		return der(keys.Read(x[0], f))
	},
	"jwk": func(_ *run, _ []byte, x [3][]byte) ([]byte, error) { return der(keys.ReadJWK(x[0])) },
	"raw": func(_ *run, options []byte, x [3][]byte) ([]byte, error) {
		var o struct {
			Curve   string `json:"curve"`
			Private bool   `json:"private"`
		}
		if err := json.Unmarshal(options, &o); err != nil {
			return nil, err
		}
		return der(keys.Raw(o.Curve, x[0], o.Private))
	},
	"details": withKey(func(_ *run, k *keys.Key, _ []byte, _ [3][]byte) ([]byte, error) { return json.Marshal(k.Details()) }),
	"public":  withKey(func(_ *run, k *keys.Key, _ []byte, _ [3][]byte) ([]byte, error) { return k.Public().DER() }),
	"parts":   withKey(func(_ *run, k *keys.Key, _ []byte, _ [3][]byte) ([]byte, error) { return k.JWK() }),
	"bytes": withKey(func(_ *run, k *keys.Key, options []byte, _ [3][]byte) ([]byte, error) {
		var private bool
		if err := json.Unmarshal(options, &private); err != nil {
			return nil, err
		}
		return k.Bytes(private)
	}),
	"write": withKey(func(r *run, k *keys.Key, options []byte, _ [3][]byte) ([]byte, error) {
		var f keys.Form
		if err := json.Unmarshal(options, &f); err != nil {
			return nil, err
		}
		return k.Write(chance{r.account}, f)
	}),
	"sign": used(func(r *run, k *keys.Key, u keys.Use, x [3][]byte) ([]byte, error) {
		return k.Sign(chance{r.account}, u, x[1])
	}),
	"verify": used(func(_ *run, k *keys.Key, u keys.Use, x [3][]byte) ([]byte, error) {
		ok, err := k.Verify(u, x[1], x[2])
		if err != nil || !ok {
			return nil, err
		}
		return []byte{1}, nil
	}),
	"encrypt": used(func(r *run, k *keys.Key, u keys.Use, x [3][]byte) ([]byte, error) {
		return k.Encrypt(chance{r.account}, u, x[1])
	}),
	"decrypt": used(func(_ *run, k *keys.Key, u keys.Use, x [3][]byte) ([]byte, error) { return k.Decrypt(u, x[1]) }),
	"agree": withKey(func(_ *run, k *keys.Key, _ []byte, x [3][]byte) ([]byte, error) {
		other, err := keys.Load(x[1])
		if err != nil {
			return nil, err
		}
		return keys.Agree(k, other)
	}),
	// power is that of Diffie-Hellman: the first number to the second, modulo the third.
	"power": func(r *run, _ []byte, x [3][]byte) ([]byte, error) {
		base, exponent, modulus := new(big.Int).SetBytes(x[0]), new(big.Int).SetBytes(x[1]), new(big.Int).SetBytes(x[2])
		if modulus.Sign() == 0 || modulus.BitLen() > mostPower || exponent.BitLen() > mostPower {
			return nil, &thrown{"ERR_OUT_OF_RANGE", "the numbers of Diffie-Hellman have at most 8192 bits here"}
		}
		r.p.Charge(modulus.BitLen() * exponent.BitLen() * 8)
		return base.Exp(base, exponent, modulus).FillBytes(make([]byte, (modulus.BitLen()+7)/8)), nil
	},
}

func der(k *keys.Key, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return k.DER()
}

// withKey is a way that takes the key's DER as its first text.
func withKey(f func(r *run, k *keys.Key, options []byte, x [3][]byte) ([]byte, error)) func(*run, []byte, [3][]byte) ([]byte, error) {
	return func(r *run, options []byte, x [3][]byte) ([]byte, error) {
		k, err := keys.Load(x[0])
		if err != nil {
			return nil, err
		}
		return f(r, k, options, x)
	}
}

func used(f func(r *run, k *keys.Key, u keys.Use, x [3][]byte) ([]byte, error)) func(*run, []byte, [3][]byte) ([]byte, error) {
	return withKey(func(r *run, k *keys.Key, options []byte, x [3][]byte) ([]byte, error) {
		var u keys.Use
		if err := json.Unmarshal(options, &u); err != nil {
			return nil, err
		}
		return f(r, k, u, x)
	})
}

// key does something with a key: its name, its options as JSON, and three texts of which some are empty.
func (cr crypto) key(a *arguments) (any, error) {
	way, options := a.text(), []byte(a.text())
	var x [3][]byte
	for i := range x {
		x[i] = append([]byte(nil), a.bytes()...)
	}
	if a.err != nil {
		return nil, a.err
	}
	cr.run.p.Charge(gasPerKey + (len(x[0])+len(x[1]))*gasPerHashed)
	f := keyed[way]
	if f == nil {
		return nil, errors.New("the prelude named no way to use a key: " + way)
	}
	b, err := f(cr.run, options, x)
	if e, ok := errors.AsType[*keys.Error](err); ok {
		return nil, &thrown{e.Code, e.Message}
	}
	if err != nil && ended(err) == nil {
		return nil, &thrown{"ERR_CRYPTO_OPERATION_FAILED", err.Error()}
	}
	if b == nil {
		b = []byte{}
	}
	return b, err
}
