package identity

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/scrypt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// The cost of scrypt: 32 MiB and about a tenth of a second for each try.
const (
	scryptN      = 1 << 15
	scryptR      = 8
	scryptP      = 1
	scryptBytes  = 32
	maxHashing   = 2 // at once, so that a guessing client does not use up the memory
	reasonLogout = "logout"
	reasonReuse  = "refresh_token_reused"
)

// Opened is a session with its tokens, which are shown once.
type Opened struct {
	principal.Session
	AccessToken, RefreshToken string
}

// sessions lets people log in, and ends that.
type sessions struct {
	*core
	owners  *people
	hashing chan struct{} // holds those who stretch a passphrase
	cost    int           // N of scrypt: scryptN, and less only in tests
}

// stretch derives the stored bytes from a passphrase.
func (r *sessions) stretch(ctx context.Context, passphrase string, salt []byte) ([]byte, error) {
	select {
	case r.hashing <- struct{}{}:
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Unavailable, "interrupted", "the request was given up")
	}
	defer func() { <-r.hashing }()
	return scrypt.Key([]byte(passphrase), salt, r.cost, scryptR, scryptP, scryptBytes)
}

// Bootstrap gives the owner of a workspace a passphrase, and makes the owner if there is none. Token is the daemon's own; only a user who
// can read its data directory has it.
func (r *sessions) Bootstrap(ctx context.Context, token string, ws id.Workspace, name, passphrase string) (id.Principal, error) {
	if r.BootstrapToken == "" || subtle.ConstantTimeCompare([]byte(token), []byte(r.BootstrapToken)) != 1 {
		return "", principal.ErrBootstrap
	}
	if err := principal.CheckName(name); err != nil {
		return "", err
	}
	if err := checkPassphrase(passphrase); err != nil {
		return "", err
	}
	if _, err := r.living(ctx, ws); err != nil {
		return "", err
	}
	if _, _, err := r.login(ctx, ws, string(ws)); err == nil || !errors.Is(err, projection.ErrNotFound) {
		return "", errors.Join(err, unless(err, principal.ErrOwnerExists))
	}
	owner, err := r.owners.Owner(ctx, ws, name)
	if err != nil {
		return "", err
	}
	set, err := r.verifier(ctx, owner, passphrase)
	if err != nil {
		return "", err
	}
	// The document's key is the workspace, so one owner logs in: the first one.
	_, err = r.Log.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{r.draft(principal.LoginSetType, event.Origin{Principal: owner}, ws, set, principal.LoginEntity,
			string(ws))},
		Documents: []event.DocumentVersion{{Projection: principal.LoginProjection, Key: string(ws)}},
	})
	if fault.KindOf(err) == fault.Conflict {
		err = principal.ErrOwnerExists
	}
	return owner, err
}

func checkPassphrase(text string) error {
	if len(text) < principal.MinPassphrase || len(text) > principal.MaxPassphrase || !utf8.ValidString(text) {
		return principal.ErrPassphrase
	}
	return nil
}

// verifier derives the stored verifier from a passphrase.
func (r *sessions) verifier(ctx context.Context, p id.Principal, passphrase string) (set principal.LoginSet, err error) {
	set = principal.LoginSet{Principal: p, Salt: make([]byte, principal.SaltBytes)}
	if _, err := io.ReadFull(r.Entropy, set.Salt); err != nil {
		return set, fault.Wrap(err, fault.Internal, "no_randomness", "no passphrase can be set: the source of chance failed")
	}
	set.Verifier, err = r.stretch(ctx, passphrase, set.Salt)
	return set, err
}

// SetPassphrase sets the passphrase of the person who asks; from then on they log in with it. A person who already has one must give the
// current one. A wrong one counts as a failed login. A caller under a capability token cannot set one, because it needs their full rights.
func (r *sessions) SetPassphrase(ctx context.Context, origin event.Origin, ws id.Workspace, current, passphrase string) error {
	if err := checkPassphrase(passphrase); err != nil {
		return err
	}
	if origin.Token != "" {
		return errNoLoginUnderToken
	}
	if origin.Principal.Kind() != id.User {
		return principal.ErrNotAPerson
	}
	if _, err := r.living(ctx, ws); err != nil {
		return err
	}
	key, err := r.loginKey(ctx, ws, origin.Principal)
	if err != nil {
		return err
	}
	set, err := r.verifier(ctx, origin.Principal, passphrase)
	if err != nil {
		return err
	}
	if issuer, err := r.issuer(ctx, ws, origin); err != nil {
		return err
	} else if issuer != origin.Principal {
		set.IssuedBy = issuer
	}
	return journal.Again(func() error {
		doc, version, err := r.login(ctx, ws, key)
		if err != nil && !errors.Is(err, projection.ErrNotFound) {
			return err
		}
		expect := []event.DocumentVersion{{Projection: principal.LoginProjection, Key: key, Version: version}}
		if doc.Principal != "" {
			now := r.Clock.Now().UTC()
			switch {
			case current == "":
				return principal.ErrCurrent
			case now.Before(doc.ShutUntil):
				return principal.ErrShut
			}
			shown, err := r.stretch(ctx, current, doc.Salt)
			if err != nil {
				return err
			}
			if subtle.ConstantTimeCompare(shown, doc.Verifier) != 1 {
				return r.wrong(ctx, ws, key, doc, now, expect)
			}
		}
		action := policy.Action{Type: policy.PassphraseSet, Workspace: ws, Principal: origin.Principal, Token: origin.Token,
			Subject: string(origin.Principal)}
		_, err = r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{r.draft(principal.LoginSetType, origin, ws, set, principal.LoginEntity, key)}, Documents: expect,
		}))
		return err
	})
}

var errNoLoginUnderToken = fault.New(fault.Denied, policy.ReasonScopeAction,
	"a passphrase is not bound by a capability token, so whoever acts under one sets none").
	With("Act without it.")

// unless returns other where there is no error.
func unless(err, other error) error {
	if err == nil {
		return other
	}
	return nil
}

func (r *sessions) login(ctx context.Context, ws id.Workspace, key string) (principal.Login, uint64, error) {
	return projection.Load[principal.Login](ctx, r.Docs, ws, principal.LoginProjection, key)
}

// loginKey returns the key of a person's login document, which may not exist yet.
func (r *sessions) loginKey(ctx context.Context, ws id.Workspace, p id.Principal) (string, error) {
	doc, _, err := r.login(ctx, ws, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return "", err
	}
	if p == "" || doc.Principal == p {
		return string(ws), nil
	}
	return string(p), nil
}

// Login opens a session of a person. Without a person it is the owner, who got a passphrase with the bootstrap token. After MaxTries wrong
// passphrases in a row, logins of the person are blocked for ShutTime, and the log records it. If many guess at once, none gets in after
// that number is reached.
func (r *sessions) Login(ctx context.Context, ws id.Workspace, p id.Principal, passphrase string) (Opened, error) {
	var opened Opened
	if len(passphrase) > principal.MaxPassphrase {
		return opened, principal.ErrWrong
	}
	if _, err := r.living(ctx, ws); err != nil {
		return opened, err
	}
	key, err := r.loginKey(ctx, ws, p)
	if err != nil {
		return opened, err
	}
	stretched := map[string][]byte{} // by salt: a try that meets another one is not stretched twice
	err = journal.Again(func() error {
		doc, version, err := r.login(ctx, ws, key)
		if err != nil && !errors.Is(err, projection.ErrNotFound) {
			return err
		}
		now := r.Clock.Now().UTC()
		if now.Before(doc.ShutUntil) {
			return principal.ErrShut
		}
		salt := doc.Salt
		if len(salt) == 0 {
			salt = make([]byte, principal.SaltBytes) // an owner who is not there takes as long
		}
		if stretched[string(salt)] == nil {
			if stretched[string(salt)], err = r.stretch(ctx, passphrase, salt); err != nil {
				return err
			}
		}
		right := subtle.ConstantTimeCompare(stretched[string(salt)], doc.Verifier) == 1
		expect := []event.DocumentVersion{{Projection: principal.LoginProjection, Key: key, Version: version}}
		switch {
		case doc.Principal == "":
			return principal.ErrWrong
		case !right:
			return r.wrong(ctx, ws, key, doc, now, expect)
		}
		who, _, err := r.who(ctx, ws, doc.Principal)
		if err != nil || who.Quarantined {
			return errors.Join(err, unless(err, principal.ErrWrong))
		}
		opened, err = r.open(ctx, ws, principal.SessionBegunType, principal.Session{ID: id.New[id.Session](r.IDs), Principal: doc.Principal,
			IssuedBy: doc.IssuedBy}, key, now, expect)
		return err
	})
	return opened, err
}

// wrong records a wrong passphrase, and shuts the login where it is one too many.
func (r *sessions) wrong(ctx context.Context, ws id.Workspace, key string, doc principal.Login, now time.Time,
	expect []event.DocumentVersion) error {
	d := principal.LoginRefused{Principal: doc.Principal, Failures: doc.Failures + 1}
	typ, why := principal.LoginRefusedType, error(principal.ErrWrong)
	if !doc.ShutUntil.IsZero() {
		d.Failures = 1 // it was shut, and is open again
	}
	if d.Failures >= principal.MaxTries {
		typ, d.Until = principal.LoginShutType, now.Add(principal.ShutTime)
	}
	_, err := r.Log.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{r.draft(typ, event.Origin{Principal: doc.Principal}, ws, d, principal.LoginEntity, key)},
		Documents: expect,
	})
	return errors.Join(err, unless(err, why))
}

// open records new tokens of a session.
func (r *sessions) open(ctx context.Context, ws id.Workspace, typ string, s principal.Session, login string, now time.Time,
	expect []event.DocumentVersion) (Opened, error) {
	var o Opened
	var err error
	if o.AccessToken, err = principal.AccessForm.New(ws, string(s.ID), r.Entropy); err != nil {
		return Opened{}, err
	}
	if o.RefreshToken, err = principal.RefreshForm.New(ws, string(s.ID), r.Entropy); err != nil {
		return Opened{}, err
	}
	d := principal.SessionTokens{
		Session: s.ID, Principal: s.Principal, Access: principal.Seal(r.Secret, o.AccessToken), AccessUntil: now.Add(principal.AccessTime),
		Refresh: principal.Seal(r.Secret, o.RefreshToken), RefreshUntil: now.Add(principal.RefreshTime), Login: login, IssuedBy: s.IssuedBy,
	}
	if login == string(ws) {
		d.Login = "" // as it was before others logged in
	}
	origin := event.Origin{Principal: s.Principal}
	drafts := []event.Draft{r.draft(typ, origin, ws, d, principal.SessionEntity, string(s.ID))}
	receipt, err := r.Log.Append(ctx, event.Batch{Workspace: ws, Drafts: drafts, Documents: expect})
	if err != nil {
		return Opened{}, err
	}
	o.Session, err = s.Evolve(receipt.Events[0])
	return o, err
}

// Refresh exchanges a refresh token for new tokens. One that was used before ends the session, for two have it, and one of them stole it.
func (r *sessions) Refresh(ctx context.Context, token string) (Opened, error) {
	ws, s, ok := principal.ParseRefresh(token)
	if !ok {
		return Opened{}, principal.ErrRefresh
	}
	var opened Opened
	err := journal.Again(func() error {
		doc, version, err := projection.Load[principal.Session](ctx, r.Docs, ws, principal.SessionProjection, string(s))
		if errors.Is(err, projection.ErrNotFound) {
			return principal.ErrRefresh
		}
		if err != nil {
			return err
		}
		now := r.Clock.Now().UTC()
		expect := []event.DocumentVersion{{Projection: principal.SessionProjection, Key: string(s), Version: version}}
		right, used := doc.Refreshes(principal.Seal(r.Secret, token), now)
		if used {
			return errors.Join(principal.ErrRefresh, r.end(ctx, ws, doc, reasonReuse, expect))
		}
		who, _, err := r.who(ctx, ws, doc.Principal)
		if err != nil || !right || who.Quarantined {
			return errors.Join(err, unless(err, principal.ErrRefresh))
		}
		if _, err := r.living(ctx, ws); err != nil {
			return err
		}
		opened, err = r.open(ctx, ws, principal.SessionRefreshedType, doc, "", now, expect)
		return err
	})
	return opened, err
}

// Logout ends a session.
func (r *sessions) Logout(ctx context.Context, ws id.Workspace, s id.Session) error {
	return journal.Again(func() error {
		doc, version, err := projection.Load[principal.Session](ctx, r.Docs, ws, principal.SessionProjection, string(s))
		if err != nil || !doc.EndedAt.IsZero() {
			return err
		}
		return r.end(ctx, ws, doc, reasonLogout, []event.DocumentVersion{{Projection: principal.SessionProjection, Key: string(s),
			Version: version}})
	})
}

func (r *sessions) end(ctx context.Context, ws id.Workspace, doc principal.Session, reason string, expect []event.DocumentVersion) error {
	ended := principal.SessionEnded{Session: doc.ID, Reason: reason}
	_, err := r.Log.Append(ctx, event.Batch{
		Workspace: ws, Documents: expect,
		Drafts: []event.Draft{r.draft(principal.SessionEndedType, event.Origin{Principal: doc.Principal}, ws, ended, principal.SessionEntity,
			string(doc.ID))},
	})
	return err
}
