package identity_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// A text that is too long for a passphrase is not a try, and the longest one logs in.
func TestTheLongestPassphrase(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	longest := strings.Repeat("x", principal.MaxPassphrase)
	o.want("one that is too long", o.SetPassphrase(ctx, o.as(o.member), ws, "", longest+"x"), principal.ErrPassphrase.Code)
	o.want("the longest", o.SetPassphrase(ctx, o.as(o.member), ws, "", longest), "")
	for range principal.MaxTries + 1 {
		_, err := o.Login(ctx, ws, o.member, longest+"x")
		o.want("one that is too long", err, principal.ErrWrong.Code)
	}
	opened, err := o.Login(ctx, ws, o.member, longest)
	if err != nil || opened.Principal != o.member {
		t.Errorf("the longest: got %+v, %v", opened, err)
	}
}

// A passphrase is set by its person alone, under no token, and says who issued the credential where that was somebody else.
func TestWhoSetsAPassphrase(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	all := o.give(o.as(o.owner), token.Grant{IssuedTo: o.member, Scopes: token.All()})
	o.want("under a token", o.SetPassphrase(ctx, o.under(o.member, all.ID), ws, "", right), policy.ReasonScopeAction)
	o.want("of an agent", o.SetPassphrase(ctx, o.as(o.agent), ws, "", right), principal.ErrNotAPerson.Code)
	for p, issuer := range map[id.Principal]id.Principal{o.member: "", o.viewer: o.admin} {
		origin := o.as(p)
		origin.Issuer = issuer
		o.want("one's own", o.SetPassphrase(ctx, origin, ws, "", right), "")
		set, err := event.Decode[principal.LoginSet](o.last(principal.LoginSetType))
		if err != nil || set.IssuedBy != issuer {
			t.Errorf("issued by %q, %v, want %q", set.IssuedBy, err, issuer)
		}
		opened, err := o.Login(ctx, ws, p, right)
		if err != nil || opened.IssuedBy != issuer {
			t.Errorf("the session is issued by %q, %v, want %q", opened.IssuedBy, err, issuer)
		}
	}
}

// A right passphrase takes back the wrong ones of its person, and of nobody else.
func TestWhoseTriesAreTakenBack(t *testing.T) {
	o := bootstrapped(t)
	ctx := t.Context()
	o.setsPassphrase(o.member)
	wrong := func(p id.Principal, times int) {
		t.Helper()
		for range times {
			_, err := o.Login(ctx, ws, p, "not "+right)
			o.want("a wrong one", err, principal.ErrWrong.Code)
		}
	}
	login := func(p id.Principal, want string) {
		t.Helper()
		_, err := o.Login(ctx, ws, p, right)
		o.want("the right one", err, want)
	}
	for range 2 {
		wrong(o.member, principal.MaxTries-1)
		login(o.member, "")
	}
	wrong("", principal.MaxTries-1)
	login(o.member, "")
	wrong("", 1)
	login("", principal.ErrShut.Code)
	login(o.member, "")
	begun, err := event.Decode[principal.SessionTokens](o.last(principal.SessionBegunType))
	if err != nil || begun.Login != string(o.member) {
		t.Errorf("the session says that it was opened by the login %q, %v", begun.Login, err)
	}
	o.clock.move(principal.ShutTime)
	login("", "")
	if begun, err = event.Decode[principal.SessionTokens](o.last(principal.SessionBegunType)); err != nil || begun.Login != "" {
		t.Errorf("the owner's session says that it was opened by the login %q, %v", begun.Login, err)
	}
}

// A session ends once, its tokens end with it and with its person, and one that is not there is told.
func TestTheEndOfASession(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	o.setsPassphrase(o.member)
	opened, err := o.Login(ctx, ws, o.member, right)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o.want("the end", o.Logout(ctx, ws, opened.ID), "")
	}
	if n := o.count(principal.SessionEndedType); n != 1 {
		t.Errorf("it has ended %d times", n)
	}
	_, err = o.Refresh(ctx, opened.RefreshToken)
	o.want("after its end", err, principal.ErrRefresh.Code)
	if err := o.Logout(ctx, ws, "ses_01M7YNAYM0SMK245AEDNVB5CNW"); !errors.Is(err, projection.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	stranger, err := principal.RefreshForm.New(ws, "ses_01M7YNAYM0SMK245AEDNVB5CNW", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Refresh(ctx, stranger)
	o.want("a token of a session that is not there", err, principal.ErrRefresh.Code)
	_, err = o.Refresh(ctx, "x")
	o.want("what is not a token", err, principal.ErrRefresh.Code)
	if opened, err = o.Login(ctx, ws, o.member, right); err != nil {
		t.Fatal(err)
	}
	o.want("quarantine", o.Quarantine(ctx, o.as(o.owner), ws, o.member, true, ""), "")
	_, err = o.Refresh(ctx, opened.RefreshToken)
	o.want("of somebody in quarantine", err, principal.ErrRefresh.Code)
	_, err = o.Login(ctx, ws, o.member, right)
	o.want("a login of somebody in quarantine", err, principal.ErrWrong.Code)
}

// A workspace has its first passphrase set once.
func TestTheFirstPassphraseIsSetOnce(t *testing.T) {
	o := bootstrapped(t)
	_, err := o.Bootstrap(t.Context(), o.BootstrapToken, ws, "Olga", right)
	o.want("the second time", err, principal.ErrOwnerExists.Code)
	_, err = o.Bootstrap(t.Context(), o.BootstrapToken, elsewhere, " ", right)
	o.want("without a name", err, principal.ErrInvalidName.Code)
}

// In an archived workspace nobody sets a passphrase, logs in or goes on with a session.
func TestNobodyLogsInToAnArchivedWorkspace(t *testing.T) {
	o := open(t)
	ctx := t.Context()
	o.BootstrapToken = "the daemon's own"
	owner := o.settled()
	o.want("a passphrase", o.SetPassphrase(ctx, o.as(owner), elsewhere, "", right), "")
	opened, err := o.Login(ctx, elsewhere, owner, right)
	if err != nil {
		t.Fatal(err)
	}
	archived := event.New(workspace.EventArchived, o.as(owner), elsewhere, "", workspace.Archiving{Reason: "over"})
	if _, err := o.log.Append(ctx, event.Batch{Workspace: elsewhere, Drafts: []event.Draft{archived.About(workspace.EntityType,
		string(elsewhere))}}); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"the first passphrase": func() error { _, err := o.Bootstrap(ctx, o.BootstrapToken, elsewhere, "Olga", right); return err },
		"a passphrase":         func() error { return o.SetPassphrase(ctx, o.as(owner), elsewhere, right, right) },
		"a login":              func() error { _, err := o.Login(ctx, elsewhere, owner, right); return err },
		"new tokens":           func() error { _, err := o.Refresh(ctx, opened.RefreshToken); return err },
	} {
		o.want(name, do(), workspace.ErrArchived.Code)
	}
}

// A failure of the store is not told as a wrong passphrase, and a passphrase that was not recorded is told.
func TestAFailureIsNoWrongPassphrase(t *testing.T) {
	ctx := t.Context()
	f := &frail{}
	o := openOver(t, f)
	o.setsPassphrase(o.member)
	failed := 0
	for at := 1; ; at++ {
		f.calls, f.at = 0, at
		_, err := o.Login(ctx, ws, o.member, right)
		if err == nil {
			break
		}
		if failed++; fault.CodeOf(err) == principal.ErrWrong.Code {
			t.Errorf("call %d has failed, and the login is told as wrong", at)
		}
	}
	if failed < 4 {
		t.Errorf("%d calls have failed", failed)
	}
	o = open(t)
	o.losing(journal.ErrConflict)
	if err := o.SetPassphrase(ctx, o.as(o.member), ws, "", right); !errors.Is(err, journal.ErrConflict) {
		t.Errorf("got %v", err)
	}
}
