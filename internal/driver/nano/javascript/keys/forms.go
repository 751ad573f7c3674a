package keys

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/pbkdf2"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"hash"
	"io"
	"math/big"
	"slices"
)

// Form says how a key is written.
type Form struct {
	Type       string `json:"type"`   // pkcs1, pkcs8, spki or sec1
	Format     string `json:"format"` // pem or der
	Cipher     string `json:"cipher"` // of a private key, as aes-256-cbc; empty for none
	Passphrase string `json:"passphrase"`
}

// Errors that Node has for passphrases.
var (
	errPassphrase = &Error{"ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED", "error:07880109:common libcrypto routines::interrupted or cancelled"}
	errDecrypt    = &Error{"ERR_OSSL_BAD_DECRYPT", "error:1C800064:Provider routines::bad decrypt"}
)

// Read reads a key that is written as PEM or, where the format says so, as DER.
func Read(text []byte, f Form) (*Key, error) {
	if f.Format == "der" {
		return readDER(text, f)
	}
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, ErrUnsupported
		}
		der := block.Bytes
		switch block.Type {
		case "PRIVATE KEY":
			return privateKey(x509.ParsePKCS8PrivateKey(der))
		case "ENCRYPTED PRIVATE KEY":
			return readEncrypted(der, f.Passphrase)
		case "RSA PRIVATE KEY":
			return privateKey(x509.ParsePKCS1PrivateKey(der))
		case "EC PRIVATE KEY":
			return privateKey(x509.ParseECPrivateKey(der))
		case "PUBLIC KEY":
			return parsePublic(der)
		case "RSA PUBLIC KEY":
			return pkcs1(der)
		case "CERTIFICATE":
			c, err := x509.ParseCertificate(der)
			if err != nil {
				return nil, ErrUnsupported
			}
			return parsePublic(c.RawSubjectPublicKeyInfo)
		}
	}
}

func privateKey[P any](p P, err error) (*Key, error) {
	if err != nil {
		return nil, ErrUnsupported
	}
	return whole(p)
}

func pkcs1(der []byte) (*Key, error) {
	p, err := x509.ParsePKCS1PublicKey(der)
	if err != nil {
		return nil, ErrUnsupported
	}
	return &Key{public: p}, nil
}

func readDER(der []byte, f Form) (*Key, error) {
	switch f.Type {
	case "pkcs1":
		if k, err := privateKey(x509.ParsePKCS1PrivateKey(der)); err == nil {
			return k, nil
		}
		return pkcs1(der)
	case "sec1":
		return privateKey(x509.ParseECPrivateKey(der))
	case "spki":
		return parsePublic(der)
	}
	if k, err := privateKey(x509.ParsePKCS8PrivateKey(der)); err == nil {
		return k, nil
	}
	return readEncrypted(der, f.Passphrase)
}

// Write writes the key. An encrypted key takes its salt from chance.
func (k *Key) Write(chance io.Reader, f Form) ([]byte, error) {
	wrong := &Error{"ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS", "The selected key encoding " + f.Type + " can only be used for " +
		map[string]string{"pkcs1": "RSA keys.", "sec1": "EC keys."}[f.Type]}
	var der []byte
	var name string
	var err error
	switch f.Type {
	case "pkcs1":
		if p, ok := k.private.(*rsa.PrivateKey); ok {
			name, der = "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(p)
		} else if p, ok := k.public.(*rsa.PublicKey); ok {
			name, der = "RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(p)
		} else {
			return nil, wrong
		}
	case "sec1":
		p, ok := k.private.(*ecdsa.PrivateKey)
		if !ok {
			return nil, wrong
		}
		name = "EC PRIVATE KEY"
		der, err = x509.MarshalECPrivateKey(p)
	case "spki":
		name = "PUBLIC KEY"
		der, err = k.Public().DER()
	default:
		name = "PRIVATE KEY"
		der, err = k.DER()
		if err == nil && f.Cipher != "" {
			name = "ENCRYPTED PRIVATE KEY"
			der, err = encrypted(chance, der, f)
		}
	}
	if err != nil {
		return nil, err
	}
	return written(name, der, f), nil
}

func written(name string, der []byte, f Form) []byte {
	if f.Format == "der" {
		return der
	}
	return pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der})
}

// Parts of an encrypted PKCS #8 key, by RFC 8018: PBES2 with PBKDF2 and AES in CBC.
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2 struct{ Derivation, Cipher pkix.AlgorithmIdentifier }
	kdf   struct {
		Salt   []byte
		Rounds int
		Length int                      `asn1:"optional"`
		Hash   pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	oidSHA256 = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 9}
	oidHashes = map[string]func() hash.Hash{"1.2.840.113549.2.7": sha1.New, "1.2.840.113549.2.9": sha256.New,
		"1.2.840.113549.2.10": sha512.New384, "1.2.840.113549.2.11": sha512.New}
	oidAES = map[string]int{"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24, "2.16.840.1.101.3.4.1.42": 32}
)

// rounds are those of OpenSSL, mostRounds those that a key of someone else's may ask for.
const (
	rounds     = 2048
	mostRounds = 1 << 20
)

func encrypted(chance io.Reader, der []byte, f Form) ([]byte, error) {
	size, last := 0, 0
	switch f.Cipher {
	case "aes-128-cbc":
		size, last = 16, 2
	case "aes-192-cbc":
		size, last = 24, 22
	case "aes-256-cbc":
		size, last = 32, 42
	default:
		return nil, &Error{"ERR_CRYPTO_UNKNOWN_CIPHER", "Unknown cipher"}
	}
	drawn, err := draw(chance, 32)
	if err != nil {
		return nil, err
	}
	salt, iv := drawn[:16], drawn[16:]
	key, err := pbkdf2.Key(sha256.New, f.Passphrase, salt, rounds, size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	pad := aes.BlockSize - len(der)%aes.BlockSize
	data := slices.Concat(der, bytes.Repeat([]byte{byte(pad)}, pad))
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(data, data)
	derivation, err := asn1.Marshal(kdf{Salt: salt, Rounds: rounds, Hash: pkix.AlgorithmIdentifier{Algorithm: oidSHA256,
		Parameters: asn1.NullRawValue}})
	if err != nil {
		return nil, err
	}
	vector, err := asn1.Marshal(iv)
	if err != nil {
		return nil, err
	}
	scheme, err := asn1.Marshal(pbes2{
		pkix.AlgorithmIdentifier{Algorithm: oidPBKDF2, Parameters: asn1.RawValue{FullBytes: derivation}},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, last},
			Parameters: asn1.RawValue{FullBytes: vector}},
	})
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(encryptedKey{pkix.AlgorithmIdentifier{Algorithm: oidPBES2, Parameters: asn1.RawValue{FullBytes: scheme}}, data})
}

func readEncrypted(der []byte, passphrase string) (*Key, error) {
	var e encryptedKey
	if rest, err := asn1.Unmarshal(der, &e); err != nil || len(rest) > 0 || !e.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, ErrUnsupported
	}
	if passphrase == "" {
		return nil, errPassphrase
	}
	var scheme pbes2
	var derivation kdf
	var iv []byte
	if _, err := asn1.Unmarshal(e.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		return nil, ErrUnsupported
	}
	_, err := asn1.Unmarshal(scheme.Derivation.Parameters.FullBytes, &derivation)
	_, other := asn1.Unmarshal(scheme.Cipher.Parameters.FullBytes, &iv)
	if err != nil || other != nil {
		return nil, ErrUnsupported
	}
	made, size := sha1.New, oidAES[scheme.Cipher.Algorithm.String()]
	if len(derivation.Hash.Algorithm) > 0 {
		made = oidHashes[derivation.Hash.Algorithm.String()]
	}
	if made == nil || size == 0 || len(iv) != aes.BlockSize || derivation.Rounds < 1 || derivation.Rounds > mostRounds ||
		!scheme.Derivation.Algorithm.Equal(oidPBKDF2) {
		return nil, ErrUnsupported
	}
	key, err := pbkdf2.Key(made, passphrase, derivation.Salt, derivation.Rounds, size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	data := slices.Clone(e.Data)
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, errDecrypt
	}
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(data, data)
	pad := int(data[len(data)-1])
	if pad < 1 || pad > aes.BlockSize {
		return nil, errDecrypt
	}
	if p, err := x509.ParsePKCS8PrivateKey(data[:len(data)-pad]); err == nil {
		return whole(p)
	}
	return nil, errDecrypt
}

// jwk are the parts of a key by RFC 7517, each in base64url. The order of the fields is Node's.
type jwk struct {
	Kty string `json:"kty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
	D   string `json:"d,omitempty"`
	P   string `json:"p,omitempty"`
	Q   string `json:"q,omitempty"`
	DP  string `json:"dp,omitempty"`
	DQ  string `json:"dq,omitempty"`
	QI  string `json:"qi,omitempty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
}

// JWK writes the parts of the key as JSON.
func (k *Key) JWK() ([]byte, error) {
	of := base64.RawURLEncoding.EncodeToString
	var j any
	switch p := k.public.(type) {
	case *rsa.PublicKey:
		r := jwk{Kty: "RSA", N: of(p.N.Bytes()), E: of(big.NewInt(int64(p.E)).Bytes())}
		if s, ok := k.private.(*rsa.PrivateKey); ok {
			r.D, r.P, r.Q = of(s.D.Bytes()), of(s.Primes[0].Bytes()), of(s.Primes[1].Bytes())
			r.DP, r.DQ, r.QI = of(s.Precomputed.Dp.Bytes()), of(s.Precomputed.Dq.Bytes()), of(s.Precomputed.Qinv.Bytes())
		}
		j = r
	case *ecdsa.PublicKey:
		point, err := p.Bytes()
		if err != nil {
			return nil, err
		}
		half := (len(point) - 1) / 2
		r := struct {
			Kty string `json:"kty"`
			X   string `json:"x"`
			Y   string `json:"y"`
			Crv string `json:"crv"`
			D   string `json:"d,omitempty"`
		}{"EC", of(point[1 : 1+half]), of(point[1+half:]), p.Curve.Params().Name, ""}
		if s, ok := k.private.(*ecdsa.PrivateKey); ok {
			raw, err := s.Bytes()
			if err != nil {
				return nil, err
			}
			r.D = of(raw)
		}
		j = r
	default:
		r := struct {
			Kty string `json:"kty"`
			Crv string `json:"crv"`
			X   string `json:"x"`
			D   string `json:"d,omitempty"`
		}{"OKP", "Ed25519", "", ""}
		switch p := p.(type) {
		case ed25519.PublicKey:
			r.X = of(p)
		case *ecdh.PublicKey:
			r.Crv, r.X = "X25519", of(p.Bytes())
		}
		switch s := k.private.(type) {
		case ed25519.PrivateKey:
			r.D = of(s.Seed())
		case *ecdh.PrivateKey:
			r.D = of(s.Bytes())
		}
		j = r
	}
	return json.Marshal(j)
}

// ReadJWK reads the parts of a key.
func ReadJWK(text []byte) (*Key, error) {
	invalid := &Error{"ERR_CRYPTO_INVALID_JWK", "Invalid JWK data"}
	var j jwk
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, invalid
	}
	part := func(s string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			return nil
		}
		return b
	}
	number := func(s string) *big.Int { return new(big.Int).SetBytes(part(s)) }
	switch j.Kty {
	case "RSA":
		e := number(j.E)
		if j.N == "" || !e.IsInt64() || e.Int64() < 2 || e.Int64() > 1<<31-1 {
			return nil, invalid
		}
		public := rsa.PublicKey{N: number(j.N), E: int(e.Int64())}
		if j.D == "" {
			return &Key{public: &public}, nil
		}
		key := &rsa.PrivateKey{PublicKey: public, D: number(j.D), Primes: []*big.Int{number(j.P), number(j.Q)}}
		if key.Validate() != nil {
			return nil, invalid
		}
		key.Precompute()
		return &Key{key, &key.PublicKey}, nil
	case "EC":
		curve, ok := curves[j.Crv]
		if !ok {
			return nil, invalid
		}
		if j.D != "" {
			p, err := ecdsa.ParseRawPrivateKey(curve, part(j.D))
			if err != nil {
				return nil, invalid
			}
			return &Key{p, &p.PublicKey}, nil
		}
		p, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, part(j.X), part(j.Y)))
		if err != nil {
			return nil, invalid
		}
		return &Key{public: p}, nil
	case "OKP":
		if j.D != "" {
			return Raw(j.Crv, part(j.D), true)
		}
		return Raw(j.Crv, part(j.X), false)
	}
	return nil, invalid
}

// Raw makes a key of a curve of its bytes: a point that is not compressed, or the private number.
func Raw(curve string, raw []byte, private bool) (*Key, error) {
	invalid := &Error{"ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length"}
	switch {
	case curve == "Ed25519" && private && len(raw) == ed25519.SeedSize:
		p := ed25519.NewKeyFromSeed(raw)
		return &Key{p, p.Public()}, nil
	case curve == "Ed25519" && !private && len(raw) == ed25519.PublicKeySize:
		return &Key{public: ed25519.PublicKey(slices.Clone(raw))}, nil
	case curve == "X25519" && private:
		if p, err := ecdh.X25519().NewPrivateKey(raw); err == nil {
			return &Key{p, p.PublicKey()}, nil
		}
	case curve == "X25519":
		if p, err := ecdh.X25519().NewPublicKey(raw); err == nil {
			return &Key{public: p}, nil
		}
	case curves[curve] != nil && private:
		if p, err := ecdsa.ParseRawPrivateKey(curves[curve], raw); err == nil {
			return &Key{p, &p.PublicKey}, nil
		}
	case curves[curve] != nil:
		if p, err := ecdsa.ParseUncompressedPublicKey(curves[curve], raw); err == nil {
			return &Key{public: p}, nil
		}
	}
	return nil, invalid
}

// Bytes returns the bytes of a key of a curve: those of its point, or its private number.
func (k *Key) Bytes(private bool) ([]byte, error) {
	if private {
		switch p := k.private.(type) {
		case *ecdsa.PrivateKey:
			return p.Bytes()
		case ed25519.PrivateKey:
			return p.Seed(), nil
		case *ecdh.PrivateKey:
			return p.Bytes(), nil
		}
		return nil, ErrUnsupported
	}
	switch p := k.public.(type) {
	case *ecdsa.PublicKey:
		return p.Bytes()
	case ed25519.PublicKey:
		return slices.Clone(p), nil
	case *ecdh.PublicKey:
		return p.Bytes(), nil
	}
	return nil, ErrUnsupported
}
