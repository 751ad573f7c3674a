package javascript

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"errors"
	"math/big"
	"strings"

	"golang.org/x/crypto/scrypt"
)

// crypto is the host's part of the module crypto.
type crypto struct{ run *run }

const (
	gasPerCiphered = 4        // for a byte
	mostScrypt     = 64 << 20 // bytes that scrypt may take
	roundsAtOnce   = 256      // rounds of PBKDF2 between two looks at the bounds
)

var errIV = &thrown{"ERR_CRYPTO_INVALID_IV", "Invalid initialization vector"}

// cipher encrypts or decrypts whole blocks of AES in the modes cbc and ecb, and any bytes in ctr, whose counter is moved on by what was
// encrypted before.
func (cr crypto) cipher(a *arguments) (any, error) {
	mode, encrypts := a.text(), a.int() != 0
	key := append([]byte(nil), a.bytes()...)
	iv := append([]byte(nil), a.bytes()...)
	before := a.int()
	b := append([]byte(nil), a.bytes()...)
	if a.err != nil {
		return nil, a.err
	}
	cr.run.p.Charge(len(b) * gasPerCiphered)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, &thrown{"ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length"}
	}
	if mode != "ecb" && len(iv) != aes.BlockSize {
		return nil, errIV
	}
	if mode != "ctr" && len(b)%aes.BlockSize != 0 {
		return nil, errors.New("the prelude gave a cipher a part of a block")
	}
	switch mode {
	case "cbc":
		if encrypts {
			cipher.NewCBCEncrypter(block, iv).CryptBlocks(b, b)
		} else {
			cipher.NewCBCDecrypter(block, iv).CryptBlocks(b, b)
		}
	case "ecb":
		for at := 0; at < len(b); at += aes.BlockSize {
			if encrypts {
				block.Encrypt(b[at:], b[at:])
			} else {
				block.Decrypt(b[at:], b[at:])
			}
		}
	case "ctr":
		counter := new(big.Int).SetBytes(iv)
		counter.Add(counter, big.NewInt(int64(before/aes.BlockSize)))
		raw := counter.Bytes()
		raw = raw[max(0, len(raw)-aes.BlockSize):]
		at := make([]byte, aes.BlockSize)
		copy(at[aes.BlockSize-len(raw):], raw)
		stream := cipher.NewCTR(block, at)
		skipped := make([]byte, before%aes.BlockSize)
		stream.XORKeyStream(skipped, skipped)
		stream.XORKeyStream(b, b)
	default:
		return nil, errors.New("the prelude named no mode: " + mode)
	}
	return b, nil
}

// gcm returns what AES in the mode gcm makes of a whole text, with its tag of 16 bytes behind it. Where it decrypts, the ciphertext is
// what is returned of the text, so that the tag can be compared.
func (cr crypto) gcm(a *arguments) (any, error) {
	encrypts := a.int() != 0
	key := append([]byte(nil), a.bytes()...)
	iv := append([]byte(nil), a.bytes()...)
	extra := append([]byte(nil), a.bytes()...)
	b := append([]byte(nil), a.bytes()...)
	if a.err != nil {
		return nil, a.err
	}
	cr.run.p.Charge(2 * (len(b) + len(extra)) * gasPerCiphered)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, &thrown{"ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length"}
	}
	if len(iv) == 0 {
		return nil, errIV
	}
	mode, err := cipher.NewGCMWithNonceSize(block, len(iv))
	if err != nil {
		return nil, errIV
	}
	sealed := mode.Seal(nil, iv, b, extra)
	if encrypts {
		return sealed, nil
	}
	text := sealed[:len(b)] // the mode is its own inverse, except for the tag
	return append(text, mode.Seal(nil, iv, text, extra)[len(b):]...), nil
}

// pbkdf2 is that of RFC 8018.
func (cr crypto) pbkdf2(a *arguments) (any, error) {
	name := a.text()
	password := append([]byte(nil), a.bytes()...)
	salt := append([]byte(nil), a.bytes()...)
	rounds, length := a.int(), a.int()
	if a.err != nil {
		return nil, a.err
	}
	made, err := hashOf(name)
	if err != nil {
		return nil, err
	}
	cr.run.p.Charge(length)
	h := hmac.New(made, password)
	out := make([]byte, 0, length+h.Size())
	for block := uint32(1); len(out) < length; block++ {
		h.Reset()
		h.Write(salt)
		h.Write([]byte{byte(block >> 24), byte(block >> 16), byte(block >> 8), byte(block)})
		u := h.Sum(nil)
		t := append([]byte(nil), u...)
		for i := 1; i < rounds; i++ {
			if i%roundsAtOnce == 0 {
				cr.run.p.Charge(roundsAtOnce * 4 * h.BlockSize())
			}
			h.Reset()
			h.Write(u)
			u = h.Sum(u[:0])
			for j := range t {
				t[j] ^= u[j]
			}
		}
		out = append(out, t...)
	}
	return out[:length], nil
}

// scrypt is that of RFC 7914, as long as its tables are small: it is one step.
func (cr crypto) scrypt(a *arguments) (any, error) {
	password := append([]byte(nil), a.bytes()...)
	salt := append([]byte(nil), a.bytes()...)
	cost, blocks, parallel, length := a.int(), a.int(), a.int(), a.int()
	if a.err != nil {
		return nil, a.err
	}
	if cost < 2 || cost&(cost-1) != 0 || blocks < 1 || parallel < 1 || cost > mostScrypt/128 || blocks > mostScrypt/128 || parallel > 16 ||
		cost*blocks*128 > mostScrypt {
		return nil, &thrown{"ERR_CRYPTO_INVALID_SCRYPT_PARAMS", "Invalid scrypt params: memory limit exceeded"}
	}
	size := int64(cost) * int64(blocks) * 128
	if err := cr.run.account.Allocate(size); err != nil {
		return nil, err
	}
	defer cr.run.account.Release(size)
	cr.run.p.Charge(cost * blocks * parallel * 128 * gasPerHashed)
	return scrypt.Key(password, salt, cost, blocks, parallel, length)
}

// hkdf is that of RFC 5869.
func (cr crypto) hkdf(a *arguments) (any, error) {
	name := a.text()
	key := append([]byte(nil), a.bytes()...)
	salt := append([]byte(nil), a.bytes()...)
	info, length := string(a.bytes()), a.int()
	if a.err != nil {
		return nil, a.err
	}
	made, err := hashOf(name)
	if err != nil {
		return nil, err
	}
	cr.run.p.Charge((len(key) + len(salt) + len(info) + length) * gasPerHashed)
	b, err := hkdf.Key(made, key, salt, info, length)
	if err != nil {
		return nil, &thrown{"ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length"}
	}
	return b, nil
}

func (cr crypto) hash(a *arguments) (any, error) {
	name, b := a.text(), a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	cr.run.p.Charge(len(b) * gasPerHashed)
	if out, ok := shaken(name, b); ok {
		return out, nil
	}
	base, _, _ := strings.Cut(name, "/")
	if strings.HasPrefix(strings.ToLower(name), "sha512/") {
		base = name
	}
	made, err := hashOf(base)
	if err != nil {
		return nil, err
	}
	h := made()
	h.Write(b)
	return h.Sum(nil), nil
}

func (cr crypto) hmac(a *arguments) (any, error) {
	name := a.text()
	key := append([]byte(nil), a.bytes()...)
	b := a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	made, err := hashOf(name)
	if err != nil {
		return nil, err
	}
	cr.run.p.Charge((len(b) + len(key)) * gasPerHashed)
	h := hmac.New(made, key)
	h.Write(b)
	return h.Sum(nil), nil
}
