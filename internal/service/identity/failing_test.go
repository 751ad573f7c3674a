package identity_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/identity"
)

// frail is a log with its documents and a source of chance of which one call fails: the one with the number at, from 1. Where garbled, a
// document is read and its body is none.
type frail struct {
	journal.Journal
	docs      projection.Reader
	entropy   io.Reader
	calls, at int
	garbled   bool
	hit       string // what failed; "" where there was nothing that could be garbled
}

var errFrail = errors.New("the disk has failed")

func (f *frail) fails(what string) bool {
	if f.calls++; f.calls != f.at {
		return false
	}
	f.hit = what
	return true
}

func (f *frail) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	if f.fails("append") {
		return event.Receipt{}, errFrail
	}
	return f.Journal.Append(ctx, b)
}

func (f *frail) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if f.fails("document of " + name) {
		if !f.garbled {
			return projection.Document{}, errFrail
		}
		doc, err := f.docs.Document(ctx, ws, name, key)
		if err != nil {
			f.hit = ""
		}
		doc.Body = []byte(`{"`)
		return doc, err
	}
	return f.docs.Document(ctx, ws, name, key)
}

func (f *frail) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	if f.fails("documents of " + q.Name) {
		if !f.garbled {
			return nil, errFrail
		}
		found, err := f.docs.Documents(ctx, q)
		if len(found) == 0 {
			f.hit = ""
		}
		for i := range found {
			found[i].Body = []byte(`{"`)
		}
		return found, err
	}
	return f.docs.Documents(ctx, q)
}

// chanceOf is the source of chance of a log that may fail.
type chanceOf struct{ *frail }

func (c chanceOf) Read(p []byte) (int, error) {
	if c.fails("chance") {
		return 0, errFrail
	}
	return c.entropy.Read(p)
}

// engineOf is an engine with a token.
type engineOf struct {
	id     id.Principal
	token  id.EngineToken
	secret string
}

func (o *office) engine() (engineOf, error) {
	e, err := o.RegisterEngine(o.t.Context(), o.as(o.owner), ws, "mill")
	if err != nil {
		return engineOf{}, err
	}
	made, err := o.IssueEngineToken(o.t.Context(), o.as(o.owner), ws, e.ID, identity.EngineScopes(), time.Time{})
	return engineOf{e.ID, made.ID, made.Secret}, err
}

// declares declares an action type.
func (o *office) declares(name string) {
	o.t.Helper()
	if _, err := o.gate.ActionTypes.Declare(o.t.Context(), o.as(o.owner), ws, policy.Declare{Name: name, Description: "do it",
		SideEffect: policy.Network, Reversible: true}); err != nil {
		o.t.Fatal(err)
	}
}

// everything returns the events of both workspaces.
func (o *office) everything() (all []event.Event) {
	o.t.Helper()
	for _, in := range []id.Workspace{ws, elsewhere} {
		found, err := o.log.Read(o.t.Context(), journal.Query{Workspace: in, Limit: journal.MaxRead})
		if err != nil {
			o.t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// told returns no error where it is the refusal that was to come.
func told(err error, code string) error {
	switch {
	case errors.Is(err, errFrail):
		return err
	case codeOf(err) == code:
		return nil
	case err == nil:
		return errors.New("it was not refused")
	}
	return err
}

// setsPassphrase gives a person a passphrase.
func (o *office) setsPassphrase(p id.Principal) {
	o.t.Helper()
	if err := o.SetPassphrase(o.t.Context(), o.as(p), ws, "", right); err != nil {
		o.t.Fatal(err)
	}
}

const elsewhere = id.Workspace("ws_elsewhere")

// settled makes another workspace with an owner.
func (o *office) settled() id.Principal {
	o.t.Helper()
	made := event.New(workspace.EventCreated, o.as(o.owner), elsewhere, "", workspace.Created{Workspace: elsewhere, Kind: workspace.Community,
		Name: "elsewhere", Tasks: 1}).About(workspace.EntityType, string(elsewhere))
	_, err := o.log.Append(o.t.Context(), event.Batch{Workspace: elsewhere, Drafts: []event.Draft{made}})
	owner, failed := o.Owner(o.t.Context(), elsewhere, "Olaf")
	if err := errors.Join(err, failed); err != nil {
		o.t.Fatal(err)
	}
	return owner
}

func must[T any](o *office) func(T, error) T {
	return func(v T, err error) T {
		o.t.Helper()
		if err != nil {
			o.t.Fatal(err)
		}
		return v
	}
}

// If a call of the store fails, the request fails with that error. It is no refusal, and claims nothing that nobody could read or record.
func TestEveryFailureOfTheStoreIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		least   int // calls that there are at least
		prepare func(o *office) func(ctx context.Context) error
	}{
		"a key that opens": {2, func(o *office) func(context.Context) error {
			text, _, err := o.IssueKey(o.t.Context(), o.as(o.owner), ws, o.member, "key")
			if err != nil {
				o.t.Fatal(err)
			}
			return func(ctx context.Context) error { _, err := o.Authenticate(ctx, text); return err }
		}},
		"a token that opens": {3, func(o *office) func(context.Context) error {
			root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
			made := o.give(o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()})
			return func(ctx context.Context) error { _, err := o.Authenticate(ctx, made.Bearer); return err }
		}},
		"an engine that is known": {4, func(o *office) func(context.Context) error {
			e := must[engineOf](o)(o.engine())
			return func(ctx context.Context) error { _, err := o.AuthenticateEngine(ctx, e.id, e.secret); return err }
		}},
		"a new token of an engine": {5, func(o *office) func(context.Context) error {
			e := must[engineOf](o)(o.engine())
			root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.owner, Scopes: token.All()})
			return func(ctx context.Context) error {
				_, err := o.IssueEngineToken(ctx, o.under(o.owner, root.ID), ws, e.id, identity.EngineScopes(), time.Time{})
				return err
			}
		}},
		"the end of a token of an engine": {4, func(o *office) func(context.Context) error {
			e := must[engineOf](o)(o.engine())
			return func(ctx context.Context) error {
				_, err := o.RevokeEngineToken(ctx, o.as(o.owner), ws, e.id, e.token, "")
				return err
			}
		}},
		"the end of an engine": {2, func(o *office) func(context.Context) error {
			e := must[engineOf](o)(o.engine())
			return func(ctx context.Context) error {
				_, err := o.DeactivateEngine(ctx, o.as(o.owner), ws, e.id, "")
				return err
			}
		}},
		"an engine and its tokens": {3, func(o *office) func(context.Context) error {
			e := must[engineOf](o)(o.engine())
			return func(ctx context.Context) error {
				_, err := o.Engine(ctx, ws, e.id)
				if err == nil {
					_, err = o.EngineTokens(ctx, ws, e.id, "", 10)
				}
				return err
			}
		}},
		"engines": {1, func(o *office) func(context.Context) error {
			return func(ctx context.Context) error { _, err := o.Engines(ctx, ws, "", 10); return err }
		}},
		"acting for an agent, narrowed": {3, func(o *office) func(context.Context) error {
			made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.admin, Scopes: token.All()})
			c := principal.Caller{Principal: o.admin, Workspace: ws, Role: principal.Admin}
			return func(ctx context.Context) error { _, err := o.ActsFor(ctx, c, o.agent, made.ID); return err }
		}},
		"a key of another one, by an issued one": {4, func(o *office) func(context.Context) error {
			origin := o.as(o.owner)
			origin.Issuer = o.admin
			return func(ctx context.Context) error { _, _, err := o.IssueKey(ctx, origin, ws, o.member, "key"); return err }
		}},
		"the end of the last but one key of an owner": {4, func(o *office) func(context.Context) error {
			var last id.Key
			for range 2 {
				_, key, err := o.IssueKey(o.t.Context(), o.as(o.owner), ws, o.owner, "key")
				if err != nil {
					o.t.Fatal(err)
				}
				last = key.ID
			}
			return func(ctx context.Context) error { return o.RevokeKey(ctx, o.as(o.owner), ws, last, "", false) }
		}},
		"the end of a key of another one": {3, func(o *office) func(context.Context) error {
			_, key, err := o.IssueKey(o.t.Context(), o.as(o.owner), ws, o.member, "key")
			if err != nil {
				o.t.Fatal(err)
			}
			return func(ctx context.Context) error { return o.RevokeKey(ctx, o.as(o.owner), ws, key.ID, "", false) }
		}},
		"keys and tokens": {5, func(o *office) func(context.Context) error {
			_, key, err := o.IssueKey(o.t.Context(), o.as(o.owner), ws, o.member, "key")
			if err != nil {
				o.t.Fatal(err)
			}
			made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
			return func(ctx context.Context) error {
				_, err1 := o.Keys(ctx, ws, "", "", 10)
				_, err2 := o.Key(ctx, ws, key.ID)
				_, err3 := o.Tokens(ctx, ws, "", "", 10)
				_, err4 := o.Edges(ctx, ws, "", "", 10)
				_, err5 := o.Token(ctx, ws, made.ID)
				_, err6 := o.InForce(ctx, ws, made.Token)
				return errors.Join(err1, err2, err3, err4, err5, err6)
			}
		}},
		"a derived token": {5, func(o *office) func(context.Context) error {
			made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
			origin := o.as(o.agent)
			origin.Issuer = o.admin
			scopes := token.Scopes{Rooms: []string{token.Any}, Actions: []string{"deploy.production"}}
			o.declares("deploy.production")
			return func(ctx context.Context) error {
				_, err := o.Grant(ctx, origin, ws, token.Grant{IssuedTo: o.stub, Parent: made.ID, Scopes: scopes})
				return err
			}
		}},
		"a derivation that is refused": {4, func(o *office) func(context.Context) error {
			made := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
			return func(ctx context.Context) error {
				_, err := o.Grant(ctx, o.as(o.member), ws, token.Grant{IssuedTo: o.stub, Parent: made.ID, Scopes: token.All()})
				return told(err, "parent_token_grantor_mismatch")
			}
		}},
		"the end of a token": {4, func(o *office) func(context.Context) error {
			root := o.give(o.as(o.owner), token.Grant{IssuedTo: o.agent, Scopes: token.All()})
			made := o.give(o.as(o.agent), token.Grant{IssuedTo: o.stub, Parent: root.ID, Scopes: token.All()})
			return func(ctx context.Context) error { _, err := o.Revoke(ctx, o.as(o.agent), ws, made.ID, ""); return err }
		}},
		"a new agent": {2, func(o *office) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := o.RegisterAgent(ctx, o.as(o.owner), ws, "another")
				return err
			}
		}},
		"a new agent elsewhere": {4, func(o *office) func(context.Context) error {
			owner := o.settled()
			return func(ctx context.Context) error { _, err := o.Agent(ctx, o.as(owner), elsewhere, "another"); return err }
		}},
		"somebody by their id, and by another name": {3, func(o *office) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := o.Ensure(ctx, o.as(o.owner), ws, id.User, string(o.member), "Mia")
				if err == nil {
					_, err = o.Ensure(ctx, o.as(o.owner), ws, id.User, "mia", "Mia")
				}
				return err
			}
		}},
		"another role of an owner": {4, func(o *office) func(context.Context) error {
			if _, err := o.ChangeRole(o.t.Context(), o.as(o.owner), ws, o.admin, principal.Overlord); err != nil {
				o.t.Fatal(err)
			}
			return func(ctx context.Context) error {
				_, err := o.ChangeRole(ctx, o.as(o.owner), ws, o.admin, principal.Member)
				return err
			}
		}},
		"principals": {2, func(o *office) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := o.Principals(ctx, ws, identity.Filter{Limit: 1000})
				_, failed := o.Principal(ctx, ws, o.owner)
				return errors.Join(err, failed)
			}
		}},
		"an owner": {1, func(o *office) func(context.Context) error {
			return func(ctx context.Context) error { _, err := o.Owner(ctx, ws, "Olga"); return err }
		}},
		"a new owner": {2, func(o *office) func(context.Context) error {
			return func(ctx context.Context) error { _, err := o.Owner(ctx, elsewhere, "Olaf"); return err }
		}},
		"a new person": {1, func(o *office) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := o.AddPerson(ctx, o.as(o.owner), ws, "Nora", principal.Member)
				return err
			}
		}},
		"the first passphrase": {4, func(o *office) func(context.Context) error {
			o.BootstrapToken = "the daemon's own"
			return func(ctx context.Context) error {
				_, err := o.Bootstrap(ctx, o.BootstrapToken, ws, "Olga", right)
				return err
			}
		}},
		"a passphrase of one's own": {4, func(o *office) func(context.Context) error {
			origin := o.as(o.member)
			origin.Issuer = o.admin
			return func(ctx context.Context) error { return o.SetPassphrase(ctx, origin, ws, "", right) }
		}},
		"a login": {6, func(o *office) func(context.Context) error {
			o.setsPassphrase(o.member)
			return func(ctx context.Context) error { _, err := o.Login(ctx, ws, o.member, right); return err }
		}},
		"a wrong login": {3, func(o *office) func(context.Context) error {
			o.setsPassphrase(o.member)
			return func(ctx context.Context) error {
				_, err := o.Login(ctx, ws, o.member, "not "+right)
				return told(err, principal.ErrWrong.Code)
			}
		}},
		"new tokens of a session": {5, func(o *office) func(context.Context) error {
			o.setsPassphrase(o.member)
			opened := must[identity.Opened](o)(o.Login(o.t.Context(), ws, o.member, right))
			return func(ctx context.Context) error { _, err := o.Refresh(ctx, opened.RefreshToken); return err }
		}},
		"a refresh token that was used": {2, func(o *office) func(context.Context) error {
			o.setsPassphrase(o.member)
			opened := must[identity.Opened](o)(o.Login(o.t.Context(), ws, o.member, right))
			must[identity.Opened](o)(o.Refresh(o.t.Context(), opened.RefreshToken))
			return func(ctx context.Context) error {
				_, err := o.Refresh(ctx, opened.RefreshToken)
				return told(err, principal.ErrRefresh.Code)
			}
		}},
		"the end of a session": {2, func(o *office) func(context.Context) error {
			o.setsPassphrase(o.member)
			opened := must[identity.Opened](o)(o.Login(o.t.Context(), ws, o.member, right))
			return func(ctx context.Context) error { return o.Logout(ctx, ws, opened.ID) }
		}},
		"a quarantine": {2, func(o *office) func(context.Context) error {
			return func(ctx context.Context) error { return o.Quarantine(ctx, o.as(o.owner), ws, o.member, true, "") }
		}},
	} {
		for _, garbled := range []bool{false, true} {
			var o *office
			var do func(context.Context) error
			f := &frail{garbled: garbled}
			before := -1
			for at := 1; ; at++ {
				if o == nil || len(o.everything()) != before {
					o = openOver(t, f)
					f.at = 0
					do = c.prepare(o)
					before = len(o.everything())
				}
				f.calls, f.at, f.hit = 0, at, ""
				err := do(t.Context())
				if f.calls < at {
					if err != nil {
						t.Errorf("%s: when nothing has failed: %v", name, err)
					}
					if at <= c.least {
						t.Errorf("%s: %d calls have failed, want at least %d", name, at-1, c.least)
					}
					break
				}
				if !garbled && !errors.Is(err, errFrail) {
					t.Errorf("%s: call %d, %s, has failed: got %v", name, at, f.hit, err)
				}
				if garbled && err == nil && strings.HasPrefix(f.hit, "document") {
					t.Errorf("%s: call %d, %s, was garbled: got no error", name, at, f.hit)
				}
			}
		}
	}
}
