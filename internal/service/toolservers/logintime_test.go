package toolservers_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/testkit/wall"
)

// issuing is a dialer whose server and issuer are not there: it only sends the person to an address.
type issuing struct{ mcp.Dialer }

func (issuing) Login(ctx context.Context, _ policy.Permit, to mcp.Target, by mcp.Browser) (mcp.Grant, mcp.LoggedIn, error) {
	if _, err := by.Visit(ctx, to.Server.Issuer+"/authorize"); err != nil {
		return mcp.Grant{}, mcp.LoggedIn{}, err
	}
	return mcp.NewGrant("{}"), mcp.LoggedIn{Name: to.Server.Name, Client: "agentbox"}, nil
}

// TestTheTimeOfALogin has a person come back one second before a login is over, and at its end.
func TestTheTimeOfALogin(t *testing.T) {
	for after, want := range map[time.Duration]error{mcp.LoginTime - time.Second: nil, mcp.LoginTime: mcp.ErrNoLogin} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t)
			f.reaching(nil)
			f.parts.Dialer, f.parts.Clock = issuing{}, wall.Clock{}
			f.restart()
			f.permits("https://guarded.example", "https://issuer.example")
			f.put(mcp.Server{Name: "guarded", URL: "https://guarded.example/mcp", Login: true, Issuer: "https://issuer.example"})
			v, err := f.Login(t.Context(), f.from(f.owner), "guarded", redirect)
			if err != nil || !v.Until.Equal(time.Now().Add(mcp.LoginTime)) {
				t.Fatalf("got %+v, %v", v, err)
			}
			time.Sleep(after)
			synctest.Wait()
			held, err := f.FinishLogin(t.Context(), f.owner, ws, "guarded", mcp.Returned{Code: "code"})
			if !errors.Is(err, want) || (held.Session != nil) != (want == nil) {
				t.Errorf("after %s: got %+v, %v, want %v", after, held.Session, err, want)
			}
		})
	}
}
