package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// seeded is chance that a seed decides.
func seeded(seed byte) io.Reader { return &stream{seed: seed} }

type stream struct {
	seed byte
	n    uint64
}

func (s *stream) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += sha256.Size {
		s.n++
		block := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte{s.seed}, s.n))
		copy(p[i:], block[:])
	}
	return len(p), nil
}

func free() error { return nil }

var kinds = []Options{{Kind: "rsa", Bits: 1024}, {Kind: "ec", Curve: "P-256"}, {Kind: "ec", Curve: "secp521r1"}, {Kind: "ed25519"},
	{Kind: "x25519"}}

// TestTheSeedDecides has the same seed make the same keys, signatures and ciphertexts, and another seed others.
func TestTheSeedDecides(t *testing.T) {
	of := func(o Options, seed byte) (all []byte) {
		chance := seeded(seed)
		k, err := Generate(chance, o, free)
		if err != nil {
			t.Fatal(o, err)
		}
		der, err := k.DER()
		if err != nil {
			t.Fatal(o, err)
		}
		all = der
		if o.Kind != "x25519" {
			signature, err := k.Sign(chance, Use{Padding: map[string]int{"rsa": paddingPSS}[o.Kind]}, []byte("text"))
			if err != nil {
				t.Fatal(o, err)
			}
			all = append(all, signature...)
		}
		if o.Kind == "rsa" {
			for _, padding := range []int{paddingPKCS1, paddingOAEP} {
				sealed, err := k.Encrypt(chance, Use{Padding: padding}, []byte("text"))
				if err != nil {
					t.Fatal(err)
				}
				if text, err := k.Decrypt(Use{Padding: padding}, sealed); err != nil || string(text) != "text" {
					t.Fatalf("got %q, %v", text, err)
				}
				all = append(all, sealed...)
			}
		}
		return all
	}
	for _, o := range kinds {
		if a, b := of(o, 1), of(o, 1); !bytes.Equal(a, b) {
			t.Errorf("%v: the same seed makes another key", o)
		}
		if bytes.Equal(of(o, 1), of(o, 2)) {
			t.Errorf("%v: another seed makes the same key", o)
		}
	}
}

// TestFormsAreReadAgain writes keys in all their forms and reads them.
func TestFormsAreReadAgain(t *testing.T) {
	for _, o := range kinds {
		k, err := Generate(seeded(3), o, free)
		if err != nil {
			t.Fatal(err)
		}
		want, err := k.DER()
		if err != nil {
			t.Fatal(err)
		}
		forms := []Form{{Type: "pkcs8", Format: "pem"}, {Type: "pkcs8", Format: "der"}, {Type: "pkcs8", Format: "pem", Cipher: "aes-256-cbc",
			Passphrase: "secret"}}
		switch o.Kind {
		case "rsa":
			forms = append(forms, Form{Type: "pkcs1", Format: "pem"}, Form{Type: "pkcs1", Format: "der"})
		case "ec":
			forms = append(forms, Form{Type: "sec1", Format: "pem"}, Form{Type: "sec1", Format: "der"})
		}
		for _, f := range forms {
			text, err := k.Write(seeded(4), f)
			if err != nil {
				t.Fatal(o, f, err)
			}
			again, err := Read(text, f)
			if err != nil {
				t.Fatal(o, f, err)
			}
			if got, err := again.DER(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v in %v is read as another key: %v", o, f, err)
			}
		}
		text, err := k.JWK()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadJWK(text)
		if err != nil {
			t.Fatal(o, err)
		}
		if got, err := again.DER(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v as JWK is read as another key: %v", o, err)
		}
	}
}

// TestWhatIsNoKeyIsRefused reads texts that are damaged, and an encrypted key with the wrong passphrase.
func TestWhatIsNoKeyIsRefused(t *testing.T) {
	k, err := Generate(seeded(5), Options{Kind: "ec", Curve: "P-256"}, free)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := k.Write(seeded(6), Form{Type: "pkcs8", Format: "pem", Cipher: "aes-128-cbc", Passphrase: "right"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		form Form
	}{
		"nothing": {"", Form{}}, "a text": {"no key", Form{}}, "an empty block": {"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
			Form{}},
		"no passphrase": {string(sealed), Form{}}, "a wrong passphrase": {string(sealed), Form{Passphrase: "wrong"}},
		"damaged DER": {"0\x82\x01", Form{Format: "der", Type: "pkcs8"}}, "no public key": {"xx", Form{Format: "der", Type: "spki"}},
	} {
		if _, err := Read([]byte(c.text), c.form); err == nil {
			t.Errorf("%s is read as a key", name)
		} else if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%s: %v has no code", name, err)
		}
	}
}

// TestTheWorkEnds has the making of a key end where its caller does.
func TestTheWorkEnds(t *testing.T) {
	over := errors.New("over")
	if _, err := Generate(seeded(7), Options{Kind: "rsa", Bits: 2048}, func() error { return over }); !errors.Is(err, over) {
		t.Fatalf("got %v, want %v", err, over)
	}
}
