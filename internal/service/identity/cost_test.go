package identity_test

import (
	"bytes"
	"testing"

	"golang.org/x/crypto/scrypt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/identity"
)

// A service that nobody has cheapened derives what it stores at the full cost: 32 MiB for each try.
func TestThreat16ATryCostsItsPrice(t *testing.T) {
	o := open(t)
	o.Service = identity.New(o.Parts)
	o.want("set", o.SetPassphrase(t.Context(), o.as(o.member), ws, "", right), "")
	set, err := event.Decode[principal.LoginSet](o.last(principal.LoginSetType))
	if err != nil {
		t.Fatal(err)
	}
	const memory, r, p, size = 32 << 20, 8, 1, 32
	want, err := scrypt.Key([]byte(right), set.Salt, memory/(128*r), r, p, size)
	if err != nil || !bytes.Equal(set.Verifier, want) {
		t.Errorf("the verifier is not what scrypt derives with %d MiB: %v", memory>>20, err)
	}
	if _, err := o.Login(t.Context(), ws, o.member, right); err != nil {
		t.Errorf("the login at the full cost: %v", err)
	}
}
