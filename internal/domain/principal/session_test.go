package principal

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// happened is an event with everything that an envelope says of it.
func happened(t *testing.T, typ string, data any) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{Header: event.Header{Type: typ, Workspace: "ws_dev", Principal: "usr_9", OccurredAt: noon}, Data: raw}
}

func spoilt(e event.Event) event.Event {
	e.Data = json.RawMessage(`[]`)
	return e
}

// folds holds what an event changes, and that one with broken data changes nothing.
func folds[T interface{ Evolve(event.Event) (T, error) }](t *testing.T, before T, typ string, data any, want T) {
	t.Helper()
	e := happened(t, typ, data)
	if got, err := before.Evolve(e); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v, want %+v", typ, got, err, want)
	}
	if data == nil {
		return
	}
	if got, err := before.Evolve(spoilt(e)); err == nil || !reflect.DeepEqual(got, before) {
		t.Errorf("%s with broken data: got %+v, %v", typ, got, err)
	}
}

func TestTheDocumentsOfWhoActs(t *testing.T) {
	p := Principal{ID: "usr_1", Role: Member, Name: "Ada"}
	quarantined := p
	quarantined.Quarantined, quarantined.Reason = true, "strange"
	admin := p
	admin.Role = Admin
	folds(t, Principal{}, RegisteredType, Registered{Principal: "usr_1", Kind: id.User, Role: Member, Name: "Ada", Legacy: "user:7"},
		Principal{ID: "usr_1", Workspace: "ws_dev", Kind: id.User, Role: Member, Name: "Ada", Legacy: "user:7", CreatedBy: "usr_9",
			CreatedAt: noon})
	folds(t, p, QuarantinedType, Quarantined{Principal: "usr_1", Reason: "strange"}, quarantined)
	folds(t, quarantined, UnquarantinedType, nil, p)
	folds(t, p, RoleChangedType, RoleChanged{Principal: "usr_1", From: Member, To: Admin}, admin)
	folds(t, p, "thread.created", nil, p)

	hash := HashSecret("x")
	k := Key{ID: "key_1", Workspace: "ws_dev", Principal: "usr_1", Hash: hash, Name: "laptop", IssuedBy: "usr_2", CreatedAt: noon}
	revoked := k
	revoked.RevokedAt = noon
	folds(t, Key{}, KeyIssuedType, KeyIssued{Key: "key_1", Principal: "usr_1", Hash: hash, Name: "laptop", IssuedBy: "usr_2"}, k)
	k.IssuedBy = "usr_9"
	folds(t, Key{}, KeyIssuedType, KeyIssued{Key: "key_1", Principal: "usr_1", Hash: hash, Name: "laptop"}, k)
	k.IssuedBy = "usr_2"
	folds(t, k, KeyRevokedType, nil, revoked)
	folds(t, k, "thread.created", nil, k)

	l := Login{Principal: "usr_1", Workspace: "ws_dev", Salt: []byte("s"), Verifier: []byte("v"), SetAt: noon, IssuedBy: "usr_2"}
	shut := l
	shut.Failures, shut.ShutUntil = 5, noon.Add(ShutTime)
	folds(t, Login{}, LoginSetType, LoginSet{Principal: "usr_1", Salt: []byte("s"), Verifier: []byte("v"), IssuedBy: "usr_2"}, l)
	folds(t, l, LoginRefusedType, LoginRefused{Failures: 5, Until: noon.Add(ShutTime)}, shut)
	folds(t, l, LoginShutType, LoginRefused{Failures: 5, Until: noon.Add(ShutTime)}, shut)
	folds(t, shut, SessionBegunType, nil, l)
	folds(t, l, "thread.created", nil, l)
}

func TestTheDocumentOfASession(t *testing.T) {
	digest := func(text string) event.Digest { return HashSecret(text) }
	tokens := SessionTokens{Session: "ses_1", Principal: "usr_1", Access: digest("a1"), AccessUntil: noon.Add(AccessTime),
		Refresh: digest("r1"), RefreshUntil: noon.Add(RefreshTime), IssuedBy: "usr_2"}
	s := Session{
		ID: "ses_1", Workspace: "ws_dev", Principal: "usr_1", Access: digest("a1"), AccessUntil: noon.Add(AccessTime), Refresh: digest("r1"),
		RefreshUntil: noon.Add(RefreshTime), IssuedBy: "usr_2", BegunAt: noon,
	}
	folds(t, Session{}, SessionBegunType, tokens, s)
	folds(t, s, "thread.created", nil, s)
	ended := s
	ended.EndedAt, ended.Reason = noon, "logout"
	folds(t, s, SessionEndedType, SessionEnded{Session: "ses_1", Reason: "logout"}, ended)

	began := s
	began.BegunAt = noon.Add(-time.Hour)
	tokens.Access, tokens.Refresh = digest("a2"), digest("r2")
	next := began
	next.Access, next.Refresh, next.Earlier = digest("a2"), digest("r2"), []event.Digest{digest("r1")}
	folds(t, began, SessionRefreshedType, tokens, next)
	for n := range maxEarlier + 5 {
		tokens.Refresh = digest(strings.Repeat("r", n+3))
		was := next
		var err error
		if next, err = was.Evolve(happened(t, SessionRefreshedType, tokens)); err != nil {
			t.Fatal(err)
		}
		if len(next.Earlier) != min(n+2, maxEarlier) || next.Earlier[len(next.Earlier)-1] != was.Refresh {
			t.Fatalf("after %d: %d earlier tokens, the last %s, want %s", n+2, len(next.Earlier), next.Earlier[len(next.Earlier)-1], was.Refresh)
		}
	}

	for name, c := range map[string]struct {
		s                         Session
		opens, refreshes, earlier bool
	}{
		"in force": {s, true, true, false}, "ended": {ended, false, false, false},
		"none": {Session{Access: s.Access, Refresh: s.Refresh, AccessUntil: s.AccessUntil, RefreshUntil: s.RefreshUntil}, false, false, false},
	} {
		if got := c.s.Opens(digest("a1"), noon); got != c.opens {
			t.Errorf("%s: opens %t", name, got)
		}
		if ok, again := c.s.Refreshes(digest("r1"), noon); ok != c.refreshes || again != c.earlier {
			t.Errorf("%s: refreshes %t, again %t", name, ok, again)
		}
	}
	if s.Opens(digest("a2"), noon) || s.Opens(digest("a1"), s.AccessUntil) || !s.Opens(digest("a1"), s.AccessUntil.Add(-1)) {
		t.Error("an access token opens its session until its end, and no other one does")
	}
	if ok, _ := s.Refreshes(digest("r1"), s.RefreshUntil); ok {
		t.Error("a refresh token refreshes at its end")
	}
	used := s
	used.Earlier = []event.Digest{digest("old"), digest("older"), digest("oldest")}
	for token, want := range map[string]bool{"old": true, "older": true, "oldest": true, "none": false} {
		if ok, again := used.Refreshes(digest(token), noon); ok || again != want {
			t.Errorf("%s: refreshes %t, again %t, want %t", token, ok, again, want)
		}
	}
	empty := Session{ID: "ses_1", AccessUntil: noon.Add(1), RefreshUntil: noon.Add(1), Earlier: []event.Digest{{}}}
	if ok, again := empty.Refreshes(event.Digest{}, noon); ok || again || empty.Opens(event.Digest{}, noon) {
		t.Error("no seal opens a session without seals")
	}
}

// TestWhichLoginAnEventIsAbout holds the key of a login: the person, or the workspace for its owner.
func TestWhichLoginAnEventIsAbout(t *testing.T) {
	about := happened(t, LoginSetType, nil)
	about.EntityType, about.EntityID = LoginEntity, "usr_1"
	other := about
	other.EntityType = "x"
	for name, c := range map[string]struct {
		e    event.Event
		want string
	}{
		"of a login": {about, "usr_1"}, "of another entity": {other, ""}, "a session of a person": {happened(t, SessionBegunType,
			SessionTokens{Login: "usr_1"}), "usr_1"},
		"a session of the owner":              {happened(t, SessionBegunType, SessionTokens{}), "ws_dev"},
		"a broken session":                    {spoilt(happened(t, SessionBegunType, nil)), "ws_dev"},
		"a broken session that names a login": {happened(t, SessionBegunType, map[string]any{"login": "usr_1", "session_id": 7}), "ws_dev"},
	} {
		if got := LoginKey(c.e); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestWhoseCredentialsWhoIssues holds for each pair of roles whether one may act as the other, and who counts as the issuer.
func TestWhoseCredentialsWhoIssues(t *testing.T) {
	all := []Role{Overlord, Admin, Operator, Member, Viewer, ""}
	for r, want := range map[Role]string{Overlord: "admin operator member viewer ", Admin: "member viewer ", Operator: "", Member: "",
		Viewer: "", "": "", "x": ""} {
		var got []string
		for _, other := range all {
			if r.Issues(other) {
				got = append(got, string(other))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s issues for %q, want %q", r, strings.Join(got, " "), want)
		}
	}
	for _, r := range all {
		got, err := ParseRole(string(r))
		if known := r != ""; known != (err == nil) || known && got != r || !known && (got != "" || !errors.Is(err, ErrInvalidRole)) {
			t.Errorf("%q: got %q, %v", r, got, err)
		}
	}
	for _, c := range []struct {
		origin event.Origin
		role   Role
		want   id.Principal
	}{
		{event.Origin{Principal: "usr_1"}, "", "usr_1"}, {event.Origin{Principal: "agt_1", By: "usr_1"}, "", "usr_1"},
		{event.Origin{Principal: "usr_1", Issuer: "usr_2"}, Admin, "usr_2"},
		{event.Origin{Principal: "usr_1", Issuer: "usr_2"}, Overlord, "usr_1"}, {event.Origin{Principal: "usr_1"}, Admin, "usr_1"},
	} {
		if got := IssuerOf(c.origin, c.role); got != c.want {
			t.Errorf("%+v with the role %s: got %s, want %s", c.origin, c.role, got, c.want)
		}
	}
	k := Key{ID: "key_1", Hash: HashBearer("x")}
	revoked := k
	revoked.RevokedAt = noon
	if !k.Opens("x") || k.Opens("y") || revoked.Opens("x") || (Key{Hash: k.Hash}).Opens("x") {
		t.Error("a key opens until it is revoked")
	}
}

// TestTheTextsOfSecrets makes a secret of each form and holds what is read of it, and of what is none.
func TestTheTextsOfSecrets(t *testing.T) {
	const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	chance := strings.NewReader(strings.Repeat("x", 200))
	read := map[Form]func(string) (id.Workspace, string, bool){
		KeyForm:     func(s string) (id.Workspace, string, bool) { ws, x, ok := ParseBearer(s); return ws, string(x), ok },
		TokenForm:   func(s string) (id.Workspace, string, bool) { ws, x, ok := ParseToken(s); return ws, string(x), ok },
		AccessForm:  func(s string) (id.Workspace, string, bool) { ws, x, ok := ParseAccess(s); return ws, string(x), ok },
		RefreshForm: func(s string) (id.Workspace, string, bool) { ws, x, ok := ParseRefresh(s); return ws, string(x), ok },
		EngineForm:  func(s string) (id.Workspace, string, bool) { ws, x, ok := ParseEngine(s); return ws, string(x), ok },
	}
	names := map[Form]string{KeyForm: "key_", TokenForm: "cap_", AccessForm: "ses_", RefreshForm: "ses_", EngineForm: "engtok_"}
	for form, parse := range read {
		text, err := form.New("ws_dev", names[form]+ulid, chance)
		if err != nil {
			t.Fatal(err)
		}
		if ws, name, ok := parse(text); !ok || ws != "ws_dev" || name != names[form]+ulid || !form.Is(text) || form.Is("x"+text) {
			t.Errorf("%s: got %s, %s, %t", text, ws, name, ok)
		}
		for what, bad := range map[string]string{
			"a workspace that is none": strings.Replace(text, "dev", "D v", 1), "an id that is none": strings.Replace(text, ulid, "x", 1),
			"another form": "x" + text, "a part too many": text + ".x",
			"a short secret": text[:len(text)-1], "a long workspace": string(form) + strings.Repeat("d", 300) + text[len(form)+3:],
		} {
			if ws, name, ok := parse(bad); ok || ws != "" || name != "" {
				t.Errorf("%s, %s: got %s, %s, %t", form, what, ws, name, ok)
			}
		}
	}
	if _, err := KeyForm.New("ws_dev", "key_"+ulid, strings.NewReader("short")); fault.CodeOf(err) != "no_randomness" {
		t.Errorf("without chance: %v", err)
	}
	if Seal([]byte("k"), "a") == Seal([]byte("k"), "b") || Seal([]byte("k"), "a") == Seal([]byte("l"), "a") ||
		Seal([]byte("k"), "a").IsZero() {
		t.Error("a seal depends on the key and on the text")
	}
	for name, want := range map[string]bool{"a\u007fb": false, "a\u009fb": false, "a\u00a0b": true, "a\u2028b": false, "a\u2029b": false,
		"a\x1fb": false, "a b": true, "a~b": true} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
