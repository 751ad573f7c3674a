package registrar

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
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/projection"
)

// What scrypt costs: 32 MiB and about a tenth of a second for each try.
const (
	scryptN      = 1 << 15
	scryptR      = 8
	scryptP      = 1
	scryptBytes  = 32
	maxHashing   = 2 // at once, so that whoever guesses does not use up the memory
	reasonLogout = "logout"
	reasonReuse  = "refresh_token_reused"
)

// Opened is a session with its tokens, which are shown once.
type Opened struct {
	principal.Session
	AccessToken, RefreshToken string
}

// stretch makes of a passphrase what is stored.
func (r *Registrar) stretch(ctx context.Context, passphrase string, salt []byte) ([]byte, error) {
	select {
	case r.hashing <- struct{}{}:
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Unavailable, "interrupted", "the request was given up")
	}
	defer func() { <-r.hashing }()
	return scrypt.Key([]byte(passphrase), salt, scryptN, scryptR, scryptP, scryptBytes)
}

// Bootstrap gives the owner of a workspace a passphrase, and makes the owner where there is none. Token is the daemon's own; only who can read
// its data directory has it.
func (r *Registrar) Bootstrap(ctx context.Context, owners Owners, token string, ws id.Workspace, name, passphrase string) (id.Principal, error) {
	if r.BootstrapToken == "" || subtle.ConstantTimeCompare([]byte(token), []byte(r.BootstrapToken)) != 1 {
		return "", principal.ErrBootstrap
	}
	if err := principal.CheckName(name); err != nil {
		return "", err
	}
	if len(passphrase) < principal.MinPassphrase || len(passphrase) > principal.MaxPassphrase || !utf8.ValidString(passphrase) {
		return "", principal.ErrPassphrase
	}
	if _, _, err := r.login(ctx, ws); err == nil || !errors.Is(err, projection.ErrNotFound) {
		return "", errors.Join(err, unless(err, principal.ErrOwnerExists))
	}
	owner, err := owners.Owner(ctx, ws, name)
	if err != nil {
		return "", err
	}
	set := principal.LoginSet{Principal: owner, Salt: make([]byte, principal.SaltBytes)}
	if _, err := io.ReadFull(r.Entropy, set.Salt); err != nil {
		return "", fault.Wrap(err, fault.Internal, "no_randomness", "no passphrase can be set: the source of chance failed")
	}
	if set.Verifier, err = r.stretch(ctx, passphrase, set.Salt); err != nil {
		return "", err
	}
	// The document's key is the workspace: there is one owner who logs in, whoever is first.
	_, err = r.Log.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{r.draft(principal.LoginSetType, event.Origin{Principal: owner}, ws, set, principal.LoginEntity, string(ws))},
		Documents: []event.DocumentVersion{{Projection: principal.LoginProjection, Key: string(ws)}},
	})
	if fault.KindOf(err) == fault.Conflict {
		err = principal.ErrOwnerExists
	}
	return owner, err
}

// Owners knows the owner of a workspace.
type Owners interface {
	// Owner returns the owner of a workspace and makes one, with the given name, where there is none.
	Owner(ctx context.Context, ws id.Workspace, name string) (id.Principal, error)
}

// unless returns other where there is no error.
func unless(err, other error) error {
	if err == nil {
		return other
	}
	return nil
}

func (r *Registrar) login(ctx context.Context, ws id.Workspace) (principal.Login, uint64, error) {
	return projection.Load[principal.Login](ctx, r.Docs, ws, principal.LoginProjection, string(ws))
}

// Login opens a session of the owner of a workspace. After MaxTries wrong passphrases in a row nobody logs in for ShutTime, and the log says
// so; of many who guess at once none is let in once that number is reached.
func (r *Registrar) Login(ctx context.Context, ws id.Workspace, passphrase string) (Opened, error) {
	var opened Opened
	if len(passphrase) > principal.MaxPassphrase {
		return opened, principal.ErrWrong
	}
	stretched := map[string][]byte{} // by salt: a try that meets another one is not stretched twice
	err := again(func() error {
		doc, version, err := r.login(ctx, ws)
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
		expect := []event.DocumentVersion{{Projection: principal.LoginProjection, Key: string(ws), Version: version}}
		switch {
		case doc.Principal == "":
			return principal.ErrWrong
		case !right:
			return r.wrong(ctx, ws, doc, now, expect)
		}
		who, _, err := r.who(ctx, ws, doc.Principal)
		if err != nil || who.Quarantined {
			return errors.Join(err, unless(err, principal.ErrWrong))
		}
		opened, err = r.open(ctx, ws, principal.SessionBegunType, principal.Session{ID: id.New[id.Session](r.IDs), Principal: doc.Principal}, now, expect)
		return err
	})
	return opened, err
}

// wrong records a wrong passphrase, and shuts the login where it is one too many.
func (r *Registrar) wrong(ctx context.Context, ws id.Workspace, doc principal.Login, now time.Time, expect []event.DocumentVersion) error {
	d := principal.LoginRefused{Principal: doc.Principal, Failures: doc.Failures + 1}
	typ, why := principal.LoginRefusedType, error(principal.ErrWrong)
	if !doc.ShutUntil.IsZero() {
		d.Failures = 1 // it was shut, and is open again
	}
	if d.Failures >= principal.MaxTries {
		typ, d.Until = principal.LoginShutType, now.Add(principal.ShutTime)
	}
	_, err := r.Log.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{r.draft(typ, event.Origin{Principal: doc.Principal}, ws, d, principal.LoginEntity, string(ws))}, Documents: expect,
	})
	return errors.Join(err, unless(err, why))
}

// open records new tokens of a session.
func (r *Registrar) open(ctx context.Context, ws id.Workspace, typ string, s principal.Session, now time.Time, expect []event.DocumentVersion) (Opened, error) {
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
		Refresh: principal.Seal(r.Secret, o.RefreshToken), RefreshUntil: now.Add(principal.RefreshTime),
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
func (r *Registrar) Refresh(ctx context.Context, token string) (Opened, error) {
	ws, s, ok := principal.ParseRefresh(token)
	if !ok {
		return Opened{}, principal.ErrRefresh
	}
	var opened Opened
	err := again(func() error {
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
		opened, err = r.open(ctx, ws, principal.SessionRefreshedType, doc, now, expect)
		return err
	})
	return opened, err
}

// Logout ends a session.
func (r *Registrar) Logout(ctx context.Context, ws id.Workspace, s id.Session) error {
	return again(func() error {
		doc, version, err := projection.Load[principal.Session](ctx, r.Docs, ws, principal.SessionProjection, string(s))
		if err != nil || !doc.EndedAt.IsZero() {
			return err
		}
		return r.end(ctx, ws, doc, reasonLogout, []event.DocumentVersion{{Projection: principal.SessionProjection, Key: string(s), Version: version}})
	})
}

func (r *Registrar) end(ctx context.Context, ws id.Workspace, doc principal.Session, reason string, expect []event.DocumentVersion) error {
	ended := principal.SessionEnded{Session: doc.ID, Reason: reason}
	_, err := r.Log.Append(ctx, event.Batch{
		Workspace: ws, Documents: expect,
		Drafts: []event.Draft{r.draft(principal.SessionEndedType, event.Origin{Principal: doc.Principal}, ws, ended, principal.SessionEntity, string(doc.ID))},
	})
	return err
}
