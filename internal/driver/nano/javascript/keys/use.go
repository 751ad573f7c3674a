package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	_ "crypto/md5"
	"crypto/rsa"
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha3"
	_ "crypto/sha512"
	"crypto/subtle"
	"encoding/asn1"
	"io"
	"math/big"
	"strings"
)

// Node's numbers of paddings.
const (
	paddingPKCS1 = 1
	paddingNone  = 3
	paddingOAEP  = 4
	paddingPSS   = 6
)

// Use says how a key is used.
type Use struct {
	Hash    string `json:"hash"`    // empty for the one that the key has
	Padding int    `json:"padding"` // of RSA, in Node's numbers; 0 for the usual one
	Salt    *int   `json:"salt"`    // bytes of PSS; -1 is as many as the hash has, -2 as many as fit
	Plain   bool   `json:"plain"`   // signatures of a curve are the two numbers, not DER
	Label   []byte `json:"label"`   // of OAEP
	Raw     bool   `json:"raw"`     // swaps the keys: privateEncrypt, publicDecrypt
}

var digests = map[string]crypto.Hash{
	"md5": crypto.MD5, "sha1": crypto.SHA1, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512,
	"sha512256": crypto.SHA512_256,
	"sha3256":   crypto.SHA3_256, "sha3384": crypto.SHA3_384, "sha3512": crypto.SHA3_512,
}

func (u Use) digest(usual string) (crypto.Hash, error) {
	name := strings.NewReplacer("-", "", "/", "").Replace(strings.ToLower(u.Hash))
	name = strings.TrimPrefix(name, "rsa")
	if name == "" {
		name = usual
	}
	h, ok := digests[name]
	if !ok {
		return 0, &Error{"ERR_CRYPTO_INVALID_DIGEST", "Invalid digest: " + u.Hash}
	}
	return h, nil
}

func sum(h crypto.Hash, data []byte) []byte {
	d := h.New()
	d.Write(data)
	return d.Sum(nil)
}

func (u Use) pss(h crypto.Hash, usual int) *rsa.PSSOptions {
	salt := usual
	if u.Salt != nil {
		salt = *u.Salt
	}
	switch salt {
	case -1:
		salt = rsa.PSSSaltLengthEqualsHash
	case -2, -3:
		salt = rsa.PSSSaltLengthAuto
	}
	return &rsa.PSSOptions{SaltLength: salt, Hash: h}
}

// Sign returns the signature of data. Those of curves are by RFC 6979: the same data has the same signature.
func (k *Key) Sign(chance io.Reader, u Use, data []byte) ([]byte, error) {
	switch p := k.private.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(p, data), nil
	case *ecdsa.PrivateKey:
		h, err := u.digest("sha256")
		if err != nil {
			return nil, err
		}
		signature, err := p.Sign(nil, sum(h, data), h)
		if err != nil || !u.Plain {
			return signature, err
		}
		return plain(signature, (p.Curve.Params().BitSize+7)/8)
	case *rsa.PrivateKey:
		h, err := u.digest("sha256")
		if err != nil {
			return nil, err
		}
		if u.Padding == paddingPSS {
			return rsa.SignPSS(chance, p, h, sum(h, data), u.pss(h, -2))
		}
		signature, err := rsa.SignPKCS1v15(nil, p, h, sum(h, data))
		if err != nil {
			return nil, &Error{"ERR_OSSL_EVP_UNSUPPORTED", err.Error()}
		}
		return signature, nil
	}
	return nil, &Error{"ERR_OSSL_EVP_OPERATION_NOT_SUPPORTED_FOR_THIS_KEYTYPE",
		"error:03000096:digital envelope routines::operation not supported for this keytype"}
}

// Verify reports whether a signature is that of data.
func (k *Key) Verify(u Use, data, signature []byte) (bool, error) {
	switch p := k.public.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(p, data, signature), nil
	case *ecdsa.PublicKey:
		h, err := u.digest("sha256")
		if err != nil {
			return false, err
		}
		if u.Plain {
			half := len(signature) / 2
			if len(signature) != 2*((p.Curve.Params().BitSize+7)/8) {
				return false, nil
			}
			if signature, err = asn1.Marshal(pair{new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:])}); err != nil {
				return false, err
			}
		}
		return ecdsa.VerifyASN1(p, sum(h, data), signature), nil
	case *rsa.PublicKey:
		h, err := u.digest("sha256")
		if err != nil {
			return false, err
		}
		if u.Padding == paddingPSS {
			return rsa.VerifyPSS(p, h, sum(h, data), signature, u.pss(h, -2)) == nil, nil
		}
		return rsa.VerifyPKCS1v15(p, h, sum(h, data), signature) == nil, nil
	}
	return false, &Error{"ERR_OSSL_EVP_OPERATION_NOT_SUPPORTED_FOR_THIS_KEYTYPE",
		"error:03000096:digital envelope routines::operation not supported for this keytype"}
}

type pair struct{ R, S *big.Int }

// plain writes the two numbers of a signature beside each other.
func plain(signature []byte, size int) ([]byte, error) {
	var p pair
	if _, err := asn1.Unmarshal(signature, &p); err != nil {
		return nil, err
	}
	out := make([]byte, 2*size)
	p.R.FillBytes(out[:size])
	p.S.FillBytes(out[size:])
	return out, nil
}

// Errors of RSA, as OpenSSL words them.
var (
	errTooLarge = &Error{"ERR_OSSL_RSA_DATA_TOO_LARGE_FOR_KEY_SIZE", "error:0200006E:rsa routines::data too large for key size"}
	errOAEP     = &Error{"ERR_OSSL_RSA_OAEP_DECODING_ERROR", "error:02000079:rsa routines::oaep decoding error"}
	errPadding  = &Error{"ERR_OSSL_RSA_PADDING_CHECK_FAILED", "error:02000072:rsa routines::padding check failed"}
	errNotRSA   = &Error{"ERR_OSSL_EVP_OPERATION_NOT_SUPPORTED_FOR_THIS_KEYTYPE",
		"error:03000096:digital envelope routines::operation not supported for this keytype"}
)

// Encrypt encrypts data for a key of RSA; with Raw it uses the private key.
func (k *Key) Encrypt(chance io.Reader, u Use, data []byte) ([]byte, error) {
	public, ok := k.public.(*rsa.PublicKey)
	if !ok {
		return nil, errNotRSA
	}
	size := public.Size()
	if u.Raw {
		private, ok := k.private.(*rsa.PrivateKey)
		if !ok {
			return nil, errNotRSA
		}
		if len(data) > size-11 {
			return nil, errTooLarge
		}
		return rsa.SignPKCS1v15(nil, private, 0, data)
	}
	if u.Padding == 0 || u.Padding == paddingOAEP {
		h, err := u.digest("sha1")
		if err != nil {
			return nil, err
		}
		if len(data) > size-2*h.Size()-2 {
			return nil, errTooLarge
		}
		return rsa.EncryptOAEP(h.New(), chance, public, data, u.Label)
	}
	block := make([]byte, size)
	switch {
	case u.Padding == paddingPKCS1: // written out, because the library ignores the given source of randomness
		if len(data) > size-11 {
			return nil, errTooLarge
		}
		fill := block[2 : size-len(data)-1]
		if _, err := io.ReadFull(chance, fill); err != nil {
			return nil, err
		}
		for i := range fill {
			for fill[i] == 0 {
				if _, err := io.ReadFull(chance, fill[i:i+1]); err != nil {
					return nil, err
				}
			}
		}
		block[1] = 2
		copy(block[size-len(data):], data)
	case len(data) != size:
		return nil, errTooLarge
	default:
		copy(block, data)
	}
	m := new(big.Int).SetBytes(block)
	if m.Cmp(public.N) >= 0 {
		return nil, errTooLarge
	}
	return m.Exp(m, big.NewInt(int64(public.E)), public.N).FillBytes(block), nil
}

// Decrypt decrypts data with a key of RSA; with Raw it uses the public key.
func (k *Key) Decrypt(u Use, data []byte) ([]byte, error) {
	if u.Raw {
		public, ok := k.public.(*rsa.PublicKey)
		if !ok {
			return nil, errNotRSA
		}
		m := new(big.Int).SetBytes(data)
		if m.Cmp(public.N) >= 0 {
			return nil, errTooLarge
		}
		block := m.Exp(m, big.NewInt(int64(public.E)), public.N).FillBytes(make([]byte, public.Size()))
		return unpadded(block, 1)
	}
	private, ok := k.private.(*rsa.PrivateKey)
	if !ok {
		return nil, errNotRSA
	}
	if u.Padding == 0 || u.Padding == paddingOAEP {
		h, err := u.digest("sha1")
		if err != nil {
			return nil, err
		}
		text, err := rsa.DecryptOAEP(h.New(), nil, private, data, u.Label)
		if err != nil {
			return nil, errOAEP
		}
		return text, nil
	}
	m := new(big.Int).SetBytes(data)
	if m.Cmp(private.N) >= 0 {
		return nil, errTooLarge
	}
	block := m.Exp(m, private.D, private.N).FillBytes(make([]byte, private.Size()))
	if u.Padding == paddingNone {
		return block, nil
	}
	return unpadded(block, 2)
}

// unpadded returns the data behind the padding of PKCS #1.
func unpadded(block []byte, kind byte) ([]byte, error) {
	good := subtle.ConstantTimeByteEq(block[0], 0) & subtle.ConstantTimeByteEq(block[1], kind)
	for i := 2; i < len(block); i++ {
		if block[i] == 0 && good == 1 && i >= 10 {
			return block[i+1:], nil
		}
	}
	return nil, errPadding
}
