package policy_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

func seal(t testing.TB, b byte) policy.Seal {
	t.Helper()
	s, err := policy.NewSeal(bytes.Repeat([]byte{b}, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var permitted = policy.SignedPermit{
	Kind: policy.PermitCall, Workspace: "ws_a", Run: "run_1", Engine: "svc_1", Fence: 3, Call: "tc_1", Tool: "space.shell",
	Action:   event.DigestOf([]byte("action")),
	IssuedAt: time.Date(2026, 11, 22, 9, 0, 0, 0, time.FixedZone("", 3600)), BeginBy: time.Date(2026, 11, 22, 8, 0, 30, 0, time.UTC),
}

func TestASignedPermitIsWhatWasSigned(t *testing.T) {
	s := seal(t, 1)
	text := s.Sign(permitted)
	if text != s.Sign(permitted) || len(text) > policy.MaxSignedPermit {
		t.Errorf("the text is not always the same, or has %d bytes", len(text))
	}
	got, err := policy.OpenPermit(s.Public(), text)
	want := permitted
	want.IssuedAt = want.IssuedAt.UTC()
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	refused := func(what, text string) {
		t.Helper()
		if p, err := s.Open(text); !errors.Is(err, policy.ErrPermitInvalid) || p != (policy.SignedPermit{}) {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
	}
	for at := range len(text) {
		changed := []byte(text)
		changed[at] ^= 1
		refused("a changed byte", string(changed))
	}
	refused("another installation's", seal(t, 2).Sign(permitted))
	refused("nothing", "")
	refused("no signature", text[:strings.IndexByte(text, '.')+1])
	refused("one that goes on", text+"A")
	refused("one without its prefix", strings.TrimPrefix(text, "prm_"))
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	signed := func(domain, body string) string {
		return "prm_" + base64.RawURLEncoding.EncodeToString([]byte(body)) + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key,
			[]byte(domain+body)))
	}
	if _, err := s.Open(signed("agentbox permit 1\n", `{"kind":"run"}`)); err != nil {
		t.Errorf("a permit that was made by hand: %v", err)
	}
	refused("a signature of something else", signed("", `{"kind":"run"}`))
	refused("a field that nobody knows", signed("agentbox permit 1\n", `{"kind":"run","more":1}`))
	refused("no JSON", signed("agentbox permit 1\n", `kind`))
	refused("one that is too long", signed("agentbox permit 1\n", `{"kind":"`+strings.Repeat("x", policy.MaxSignedPermit)+`"}`))
}

func TestTheZeroSealSignsNothing(t *testing.T) {
	var none policy.Seal
	if text := none.Sign(permitted); text != "" || none.Public() != nil {
		t.Errorf("it signed %q", text)
	}
	if _, err := none.Open(seal(t, 1).Sign(permitted)); !errors.Is(err, policy.ErrPermitInvalid) {
		t.Errorf("it opened one: %v", err)
	}
	if _, err := policy.NewSeal(make([]byte, ed25519.SeedSize-1)); err == nil {
		t.Error("a short seed makes a seal")
	}
}

func FuzzOpenPermit(f *testing.F) {
	s := seal(f, 1)
	f.Add(s.Sign(permitted))
	f.Add("prm_e30.AAAA")
	f.Add("prm_.")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := s.Open(text); err == nil && s.Sign(p) != text {
			t.Errorf("%q opens as %+v, whose text is %q", text, p, s.Sign(p))
		}
	})
}
