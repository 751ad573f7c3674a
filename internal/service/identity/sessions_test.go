package identity_test

import (
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/identity"
)

const right = "correct horse battery"

// bootstrapped is an office whose owner has a passphrase.
func bootstrapped(t *testing.T) *office {
	t.Helper()
	o := open(t)
	o.BootstrapToken = "the daemon's own"
	if _, err := o.Bootstrap(t.Context(), o.BootstrapToken, ws, "Olga", right); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) login(passphrase string) (identity.Opened, string) {
	o.t.Helper()
	opened, err := o.Login(o.t.Context(), ws, "", passphrase)
	return opened, fault.CodeOf(err)
}

func TestBootstrapIsForWhoHasTheDaemonsTokenOnce(t *testing.T) {
	o := open(t)
	_, err := o.Bootstrap(t.Context(), "", ws, "Olga", right)
	o.want("without a token where the daemon has none", err, "bootstrap_forbidden")
	o.BootstrapToken = "the daemon's own"
	for name, c := range map[string]struct{ token, name, passphrase, code string }{
		"no token":          {"", "Olga", right, "bootstrap_forbidden"},
		"a part of it":      {"the daemon's", "Olga", right, "bootstrap_forbidden"},
		"no name":           {o.BootstrapToken, "", right, "invalid_display_name"},
		"one byte too few":  {o.BootstrapToken, "Olga", strings.Repeat("x", principal.MinPassphrase-1), "invalid_passphrase"},
		"one byte too many": {o.BootstrapToken, "Olga", strings.Repeat("x", principal.MaxPassphrase+1), "invalid_passphrase"},
		"no text":           {o.BootstrapToken, "Olga", strings.Repeat("\xff", principal.MinPassphrase), "invalid_passphrase"},
	} {
		_, err := o.Bootstrap(t.Context(), c.token, ws, c.name, c.passphrase)
		o.want(name, err, c.code)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 4 {
		all.Go(func() {
			_, err := o.Bootstrap(t.Context(), o.BootstrapToken, ws, "Olga", strings.Repeat("x", principal.MinPassphrase))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else if fault.CodeOf(err) != "owner_already_exists" {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Errorf("the owner got %d passphrases", made)
	}
	fresh, err := o.Bootstrap(t.Context(), o.BootstrapToken, "ws_fresh", "Fred", right)
	if err != nil || fresh.Kind() != id.User {
		t.Errorf("a workspace without an owner: got %s, %v", fresh, err)
	}
}

// TestThreat16ALoginIsShutAfterFiveWrongTries walks over the edges of the lockout.
func TestThreat16ALoginIsShutAfterFiveWrongTries(t *testing.T) {
	o := bootstrapped(t)
	for range principal.MaxTries - 1 {
		_, code := o.login("wrong")
		if code != "login_failed" {
			t.Fatalf("got %s", code)
		}
	}
	if _, code := o.login(right); code != "" {
		t.Fatalf("the right one after four wrong ones: %s", code)
	}
	for n := range principal.MaxTries {
		if _, code := o.login("wrong"); code != "login_failed" {
			t.Fatalf("try %d after a success: %s", n+1, code)
		}
	}
	shut, err := event.Decode[principal.LoginRefused](o.last(principal.LoginShutType))
	if err != nil || shut.Failures != principal.MaxTries || !shut.Until.Equal(o.clock.Now().Add(principal.ShutTime)) {
		t.Errorf("the alert says %+v (%v)", shut, err)
	}
	before := o.count(principal.LoginRefusedType)
	o.clock.move(principal.ShutTime - 1)
	for _, passphrase := range []string{right, "wrong"} {
		if _, code := o.login(passphrase); code != "login_shut" {
			t.Errorf("in its last moment: %s", code)
		}
	}
	if o.count(principal.LoginRefusedType) != before {
		t.Error("a try while it is shut was recorded: whoever guesses could fill the log")
	}
	o.clock.move(1)
	if _, code := o.login("wrong"); code != "login_failed" {
		t.Errorf("afterwards: %s", code)
	}
	if _, code := o.login(right); code != "" {
		t.Errorf("the right one afterwards: %s", code)
	}
	if _, err := o.Login(t.Context(), "ws_none", "", right); fault.CodeOf(err) != "login_failed" {
		t.Errorf("of a workspace that is not there: %v", err)
	}
	if _, code := o.login(strings.Repeat("x", principal.MaxPassphrase+1)); code != "login_failed" {
		t.Errorf("a long one: %s", code)
	}
}

// TestThreat16ManyWhoGuessAtOnceGetFiveTries has twelve guess at the same time, the last of them right: no more than five are judged.
func TestThreat16ManyWhoGuessAtOnceGetFiveTries(t *testing.T) {
	o := bootstrapped(t)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if _, err := o.Login(t.Context(), ws, "", "wrong"); fault.CodeOf(err) != "login_failed" && fault.CodeOf(err) != "login_shut" {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if wrong, shut := o.count(principal.LoginRefusedType), o.count(principal.LoginShutType); wrong != principal.MaxTries-1 || shut != 1 {
		t.Errorf("%d were refused before it was shut %d times", wrong, shut)
	}
	if _, code := o.login(right); code != "login_shut" {
		t.Errorf("got %q", code)
	}
}

func TestSessionsEndInTime(t *testing.T) {
	o := bootstrapped(t)
	ctx := t.Context()
	opened, code := o.login(right)
	if code != "" {
		t.Fatal(code)
	}
	known := func(access string) bool {
		who, err := o.Authenticate(ctx, access)
		if err == nil && (who.Principal != o.owner || who.Role != principal.Overlord || who.Session != opened.ID) {
			t.Errorf("the session is %+v", who)
		}
		return err == nil
	}
	o.clock.move(principal.AccessTime - 1)
	if !known(opened.AccessToken) {
		t.Error("it ended before its time")
	}
	o.clock.move(1)
	if known(opened.AccessToken) {
		t.Error("it did not end in time")
	}
	next, err := o.Refresh(ctx, opened.RefreshToken)
	if err != nil || !known(next.AccessToken) || next.AccessToken == opened.AccessToken || next.RefreshToken == opened.RefreshToken {
		t.Fatalf("refreshed: %v", err)
	}
	o.clock.move(principal.RefreshTime - 1)
	last, err := o.Refresh(ctx, next.RefreshToken)
	if err != nil {
		t.Fatalf("in its last moment: %v", err)
	}
	o.clock.move(principal.RefreshTime)
	_, err = o.Refresh(ctx, last.RefreshToken)
	o.want("after its time", err, "refresh_token_invalid")
	for i := range last.RefreshToken {
		if _, err := o.Refresh(ctx, last.RefreshToken[:i]+string(last.RefreshToken[i]^1)+last.RefreshToken[i+1:]); err == nil {
			t.Fatalf("byte %d flipped refreshes", i)
		}
	}
	again, code := o.login(right)
	if code != "" {
		t.Fatal(code)
	}
	if err := o.Logout(ctx, ws, again.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Authenticate(ctx, again.AccessToken); err == nil {
		t.Error("it lives on after the logout")
	}
	_, err = o.Refresh(ctx, again.RefreshToken)
	o.want("after the logout", err, "refresh_token_invalid")
	if err := o.Logout(ctx, ws, again.ID); err != nil || o.count(principal.SessionEndedType) != 1 {
		t.Errorf("a second logout: %v, %d ends", err, o.count(principal.SessionEndedType))
	}
}

// TestARefreshTokenIsUsedOnce uses one at the same time from two places: one gets new tokens at most, and the session ends for both.
func TestARefreshTokenIsUsedOnce(t *testing.T) {
	o := bootstrapped(t)
	opened, code := o.login(right)
	if code != "" {
		t.Fatal(code)
	}
	var all sync.WaitGroup
	tokens := make(chan string, 2)
	for range 2 {
		all.Go(func() {
			if next, err := o.Refresh(t.Context(), opened.RefreshToken); err == nil {
				tokens <- next.AccessToken
			} else if fault.CodeOf(err) != "refresh_token_invalid" {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(tokens)
	n := 0
	for access := range tokens {
		n++
		if _, err := o.Authenticate(t.Context(), access); err == nil {
			t.Error("the session goes on although its refresh token was used twice")
		}
	}
	if n > 1 || o.count(principal.SessionEndedType) != 1 {
		t.Errorf("%d got tokens, and the session ended %d times", n, o.count(principal.SessionEndedType))
	}
}

// TestASecretStandsNowhere looks for what is shown once in everything that is kept.
func TestASecretStandsNowhere(t *testing.T) {
	o := bootstrapped(t)
	opened, code := o.login(right)
	if code != "" {
		t.Fatal(code)
	}
	found, err := o.log.Read(t.Context(), journal.Query{Workspace: ws, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		for _, secret := range []string{right, opened.AccessToken, opened.RefreshToken, opened.AccessToken[len(opened.AccessToken)-52:]} {
			if strings.Contains(string(e.Data), secret) {
				t.Errorf("%s holds it", e.Type)
			}
		}
	}
}

// TestEveryPersonLogsIn gives people passphrases. Each person logs in with their own one, is blocked only by their own mistakes, and
// changes it with the current one.
func TestEveryPersonLogsIn(t *testing.T) {
	o, ctx := bootstrapped(t), t.Context()
	const own = "a viewer's passphrase"
	login := func(p id.Principal, passphrase string) string {
		t.Helper()
		opened, err := o.Login(ctx, ws, p, passphrase)
		if err == nil {
			who, err := o.Authenticate(ctx, opened.AccessToken)
			if want := p; err != nil || who.Principal != want || who.Session != opened.ID {
				t.Errorf("the session of %s is of %+v, %v", want, who, err)
			}
		}
		return fault.CodeOf(err)
	}
	if code := login(o.viewer, own); code != "login_failed" {
		t.Errorf("without a passphrase: %q", code)
	}
	o.want("one byte too few", o.SetPassphrase(ctx, o.as(o.viewer), ws, "", strings.Repeat("x", principal.MinPassphrase-1)),
		"invalid_passphrase")
	o.want("an agent", o.SetPassphrase(ctx, o.as(o.agent), ws, "", own), "not_a_person")
	granted := o.give(o.as(o.owner), token.Grant{IssuedTo: o.viewer, Scopes: talk("*")})
	o.want("under a capability token", o.SetPassphrase(ctx, o.under(o.viewer, granted.ID), ws, "", own), policy.ReasonScopeAction)
	o.want("the first one", o.SetPassphrase(ctx, o.as(o.viewer), ws, "", own), "")
	if code := login(o.viewer, own); code != "" {
		t.Errorf("with it: %q", code)
	}
	if code := login(o.viewer, right); code != "login_failed" {
		t.Errorf("with the owner's: %q", code)
	}
	if code := login(o.owner, right); code != "" {
		t.Errorf("the owner by name: %q", code)
	}
	o.want("another one, without that", o.SetPassphrase(ctx, o.as(o.viewer), ws, "", right), "passphrase_needed")
	o.want("another one, with a wrong one", o.SetPassphrase(ctx, o.as(o.viewer), ws, "guessed by somebody", right), "login_failed")
	o.want("another one, with that", o.SetPassphrase(ctx, o.as(o.viewer), ws, own, right), "")
	if code := login(o.viewer, own); code != "login_failed" {
		t.Errorf("with the old one: %q", code)
	}
	o.want("the owner's, with that", o.SetPassphrase(ctx, o.as(o.owner), ws, right, own), "")
	if _, code := o.login(own); code != "" {
		t.Errorf("the owner, unnamed: %q", code)
	}
	for range principal.MaxTries {
		login(o.viewer, "guessed by somebody")
	}
	if code := login(o.viewer, right); code != "login_shut" {
		t.Errorf("after too many tries: %q", code)
	}
	o.want("another one, while it is shut", o.SetPassphrase(ctx, o.as(o.viewer), ws, right, own), "login_shut")
	if code := login(o.owner, own); code != "" {
		t.Errorf("the owner meanwhile: %q", code)
	}
	o.clock.move(principal.ShutTime)
	if code := login(o.viewer, right); code != "" {
		t.Errorf("afterwards: %q", code)
	}
	if err := o.Quarantine(ctx, o.as(o.owner), ws, o.viewer, true, ""); err != nil {
		t.Fatal(err)
	}
	if code := login(o.viewer, right); code != "login_failed" {
		t.Errorf("quarantined: %q", code)
	}
	if code := login("usr_01M7YNAYM0SM228XA4K3G6VDD4", right); code != "login_failed" {
		t.Errorf("nobody: %q", code)
	}
}

// TestAPassphraseDoesNotLeaveTheKeyByWhichItWasSet sets the passphrase of a member with a key that somebody else issued to the member. If
// an admin issued that key, the login counts as issued by the admin. If an owner issued it, the login does not.
func TestAPassphraseDoesNotLeaveTheKeyByWhichItWasSet(t *testing.T) {
	for issuer, want := range map[principal.Role]bool{principal.Admin: true, principal.Overlord: false} {
		o := open(t)
		by := map[principal.Role]id.Principal{principal.Admin: o.admin, principal.Overlord: o.owner}[issuer]
		origin := o.as(o.member)
		origin.Issuer = by
		if err := o.SetPassphrase(t.Context(), origin, ws, "", right); err != nil {
			t.Fatal(err)
		}
		opened, err := o.Login(t.Context(), ws, o.member, right)
		if err != nil {
			t.Fatal(err)
		}
		refreshed, err := o.Refresh(t.Context(), opened.RefreshToken)
		if err != nil {
			t.Fatal(err)
		}
		who, err := o.Authenticate(t.Context(), refreshed.AccessToken)
		if err != nil || who.Principal != o.member || (who.Issuer == by) != want {
			t.Errorf("set by a key that an %s issued: got %+v, %v, want issued by him: %t", issuer, who, err, want)
		}
	}
}
