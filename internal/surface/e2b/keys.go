package e2b

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"

	"agentbox/internal/domain/event"
)

const (
	keyPrefix       = "e2b_" // of an API key whose rest is the key in hexadecimal digits
	tokenPrefix     = "agentbox_"
	signaturePrefix = "v1_"
)

// caller is who asks, and about which sandbox.
type caller struct {
	bearer  string // an ordinary API key
	sandbox string // "" in the control plane
	request *http.Request
}

// bearerOf returns the API key that a key of the E2B packages stands for: the key as it is, or e2b_ and the key in hexadecimal digits.
func bearerOf(key string) string {
	if digits, ok := strings.CutPrefix(key, keyPrefix); ok {
		if raw, err := hex.DecodeString(digits); err == nil {
			return string(raw)
		}
	}
	return key
}

var errNoKey = &refusal{Status: http.StatusUnauthorized, Code: "unauthenticated",
	Message: "no valid key; set E2B_API_KEY to an API key of Agentbox, or to e2b_ and that key in hexadecimal digits"}

// keyed returns the caller of the control plane.
func keyed(r *http.Request) (*caller, error) {
	key := r.Header.Get("X-Api-Key")
	if key == "" {
		key, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	if key == "" {
		return nil, errNoKey
	}
	return &caller{bearer: bearerOf(key), request: r}, nil
}

// tokens seals the key of a caller for a sandbox, and opens what it sealed.
type tokens struct {
	key      []byte
	clock    event.Clock
	known    *table[string, string] // the sandbox of each token, by which signed addresses are found
	remember func(line string) error
}

// recall takes the tokens that were remembered before a restart. A line that does not open is of another key, or damaged: it is left out.
func (t *tokens) recall(lines []string) {
	for _, line := range lines {
		raw, err := base64.RawURLEncoding.DecodeString(line)
		box := t.box(remembered)
		if err != nil || len(raw) < box.NonceSize() {
			continue
		}
		text, err := box.Open(nil, raw[:box.NonceSize()], raw[box.NonceSize():], nil)
		if sandbox, token, ok := strings.Cut(string(text), "\n"); err == nil && ok {
			t.known.put(token, sandbox)
		}
	}
}

// note remembers a token, in a form that is worth nothing without the key of the surface.
func (t *tokens) note(sandbox, token string) {
	if _, ok := t.known.get(token); ok {
		return
	}
	t.known.put(token, sandbox)
	if t.remember == nil {
		return
	}
	box, text := t.box(remembered), sandbox+"\n"+token
	nonce := t.nonce(text, box)
	_ = t.remember(base64.RawURLEncoding.EncodeToString(box.Seal(nonce, nonce, []byte(text), nil))) // without it a restart forgets, no more
}

// admitted returns the caller of a sandbox, by the sandbox's token or by the signature of an address.
func (t *tokens) admitted(r *http.Request) (*caller, error) {
	sandbox := r.Header.Get("E2b-Sandbox-Id")
	if sign := r.URL.Query().Get("signature"); sign != "" && r.URL.Path == "/files" {
		return t.signed(r, sign)
	}
	token := r.Header.Get("X-Access-Token")
	if token == "" {
		token = r.Header.Get("E2b-Traffic-Access-Token")
	}
	bearer, ok := t.open(sandbox, token)
	if !ok {
		return nil, &refusal{Status: http.StatusUnauthorized, Code: "unauthenticated",
			Message: "the request has no valid token of the sandbox; connect to the sandbox again"}
	}
	if sandbox != "" {
		t.note(sandbox, token)
	}
	return &caller{bearer: bearer, sandbox: sandbox, request: r}, nil
}

// signed returns the caller of a signed address, which names no sandbox: the token whose signature fits says which one it is.
func (t *tokens) signed(r *http.Request, sign string) (*caller, error) {
	q := r.URL.Query()
	operation := "read"
	if r.Method == http.MethodPost {
		operation = "write"
	}
	said := q.Get("path") + ":" + operation + ":" + q.Get("username") + ":"
	until := q.Get("signature_expiration")
	refused := &refusal{Status: http.StatusUnauthorized, Code: "unauthenticated", Message: "the signature of the address is not valid"}
	if len(said) > maxSigned || strings.Contains(q.Get("username"), ":") { // it is hashed for nobody knows whom; and a name with a colon could
		return nil, refused // make another path and another operation of what was signed
	}
	if until != "" {
		if ends, err := strconv.ParseInt(until, 10, 64); err != nil || t.clock.Now().Unix() > ends {
			return nil, &refusal{Status: http.StatusUnauthorized, Code: "unauthenticated", Message: "the address has expired; make a new one"}
		}
		until = ":" + until
	}
	begun := sha256.New()
	_, _ = io.WriteString(begun, said) // it never fails
	for token, sandbox := range t.known.all() {
		sum, err := sumOf(begun, token+until)
		if err != nil {
			return nil, err
		}
		if want := signaturePrefix + base64.RawStdEncoding.EncodeToString(sum); subtle.ConstantTimeCompare([]byte(want), []byte(sign)) == 1 {
			bearer, ok := t.open(sandbox, token)
			if !ok {
				return nil, refused
			}
			return &caller{bearer: bearer, sandbox: sandbox, request: r}, nil
		}
	}
	return nil, refused
}

// maxSigned is the most bytes of what is signed, without the token.
const maxSigned = 8 << 10

// sumOf returns the hash of what was written to a hash and of a further text. The hash can be ended again.
func sumOf(begun hash.Hash, text string) ([]byte, error) {
	c, ok := begun.(hash.Cloner)
	if !ok {
		return nil, errors.New("the hash cannot be cloned")
	}
	h, err := c.Clone()
	if err != nil {
		return nil, err
	}
	_, _ = io.WriteString(h, text) // it never fails
	return h.Sum(nil), nil
}

// of returns the token of a sandbox for a caller: the caller's key, sealed for this sandbox. It is the same each time. It opens nothing
// but the sandbox's files and commands here, and nothing at all once the key is revoked.
func (t *tokens) of(c *caller, sandbox string) string {
	box := t.box(sealed)
	nonce := t.nonce(sandbox+"\n"+c.bearer, box)
	token := tokenPrefix + base64.RawURLEncoding.EncodeToString(box.Seal(nonce, nonce, []byte(c.bearer), []byte(sandbox)))
	t.note(sandbox, token)
	return token
}

// open returns the key that is sealed in the token of a sandbox.
func (t *tokens) open(sandbox, token string) (bearer string, ok bool) {
	text, ok := strings.CutPrefix(token, tokenPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	box := t.box(sealed)
	if !ok || err != nil || len(raw) < box.NonceSize() || sandbox == "" {
		return "", false
	}
	opened, err := box.Open(nil, raw[:box.NonceSize()], raw[box.NonceSize():], []byte(sandbox))
	return string(opened), err == nil
}

// nonce is the same for the same text, so that sealing it again says nothing new.
func (t *tokens) nonce(text string, box cipher.AEAD) []byte {
	mac := hmac.New(sha256.New, t.key)
	mac.Write([]byte("nonce\n" + text))
	return mac.Sum(nil)[:box.NonceSize()]
}

// Purposes of keys. Each purpose has a key of its own.
const (
	sealed     = "agentbox e2b sandbox token\n"
	remembered = "agentbox e2b remembered token\n"
)

func (t *tokens) box(purpose string) cipher.AEAD {
	key := sha256.Sum256(append([]byte(purpose), t.key...))
	block, _ := aes.NewCipher(key[:]) // a key of 32 bytes is one
	box, _ := cipher.NewGCM(block)    // and so is a block of 16
	return box
}

// Open returns the API key that the token of a sandbox stands for.
func (s *Surface) Open(sandbox, token string) (bearer string, ok bool) {
	return s.tokens.open(sandbox, token)
}
