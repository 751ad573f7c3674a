package policy_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// TestAnActionIsShownInOrder holds the text that a person reads: what matters first, then the rest by name, and each kind of value.
func TestAnActionIsShownInOrder(t *testing.T) {
	canonical := []byte(`{"a":null,"b":[],"argv":["x","y"],"env":{"B ` +
		`c":"1","A":"2","":"3"},"cwd":"d","command":"ls","n":1,"o":{},"path":"p","principal_id":"q","request":{"z":true,"path":"w"},"text":"one\ntwo ` +
		`` +
		` ","type":"t"}`)
	want := fmt.Sprintf("%d bytes, %s\n", len(canonical), event.DigestOf(canonical)) + `type: "t"
command: "ls"
path: "p"
request.path: "w"
request.z: true
argv[0]: "x"
argv[1]: "y"
cwd: "d"
env."": "3"
env.A: "2"
env."B c": "1"
principal_id: "q"
a: null
b: []
n: 1
o: {}
text:
  | one
  | two\u{20}\u{20}
`
	if got, err := policy.Render(canonical); err != nil || got != want {
		t.Errorf("got\n%s, %v, want\n%s", got, err, want)
	}
	if _, err := policy.Render([]byte("{")); fault.CodeOf(err) != "action_invalid" {
		t.Errorf("no JSON: %v", err)
	}
}

// TestTheLongestQuestion holds both bounds of what a person can read at their edges.
func TestTheLongestQuestion(t *testing.T) {
	shown := func(bytes int) ([]byte, int) {
		canonical := []byte(`{"a":"` + strings.Repeat("x", bytes) + `"}`)
		return canonical, len(fmt.Sprintf("%d bytes, %s\na: \"%s\"\n", len(canonical), event.DigestOf(canonical), strings.Repeat("x", bytes)))
	}
	n := policy.MaxQuestionBytes - 200
	for {
		if _, length := shown(n + 1); length > policy.MaxQuestionBytes {
			break
		}
		n++
	}
	for more, want := range []bool{true, false} {
		canonical, length := shown(n + more)
		text, err := policy.Render(canonical)
		if (err == nil) != want || err != nil && !errors.Is(err, policy.ErrTooLongToShow) || want && len(text) != policy.MaxQuestionBytes {
			t.Errorf("a text of %d bytes: %v", length, err)
		}
	}
	for lines, want := range map[int]bool{policy.MaxQuestionLines - 2: true,
		policy.MaxQuestionLines - 1: false} { // the first line and the name of the field are two
		text, err := policy.Render([]byte(`{"a":"` + strings.Repeat(`\n`, lines-1) + `"}`))
		if (err == nil) != want || want && strings.Count(text, "\n") != policy.MaxQuestionLines {
			t.Errorf("%d lines of text: %d in all, %v", lines, strings.Count(text, "\n"), err)
		}
	}
}

// TestEachByteIsEscapedInOneWay holds every class of characters at its edges.
func TestEachByteIsEscapedInOneWay(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " ~": " ~", "\x1f": `\u{1f}`, "\x7f": `\u{7f}`, `"`: `\"`, `\`: `\\`, "\n\r\t": `\n\r\t`, "\xff": `\xff`, "a\x80b": `a\x80b`,
		"\ufffd": `\u{fffd}`, "\u00bf": `\u{bf}`, "\u00c0": "\u00c0",
		"\u00ff": "\u00ff", "\u0100": `\u{100}`, "\u00d7": `\u{d7}`, "\u00f7": `\u{f7}`, "\u202e": `\u{202e}`, "\u00e9 \u00e9": "\u00e9 \u00e9",
		"a\u00a0":               `a\u{a0}`,
		strings.Repeat(" ", 16): strings.Repeat(" ", 16), strings.Repeat(" ", 17): strings.Repeat(`\u{20}`, 17), "\n" + strings.Repeat(" ",
			16): `\n` + strings.Repeat(" ", 16),
		"\n" + strings.Repeat(" ", 17) + "x": `\n` + strings.Repeat(`\u{20}`, 17) + "x",
	} {
		if got := policy.Escape(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestATitleIsCutBetweenCharacters holds the length of a title at its edge.
func TestATitleIsCutBetweenCharacters(t *testing.T) {
	for command, want := range map[string]string{
		strings.Repeat("x", 105):            "run a command: " + strings.Repeat("x", 105),
		strings.Repeat("x", 106):            "run a command: " + strings.Repeat("x", 102) + "...",
		strings.Repeat("x", 101) + "éééééé": "run a command: " + strings.Repeat("x", 101) + "...",
	} {
		if got := policy.Title(policy.Action{Type: policy.ShellExec, Command: command}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := policy.Title(policy.Action{Type: "never.heard", Path: "p"}); got != "never.heard: p" {
		t.Errorf("of no type: %q", got)
	}
	if got := policy.Title(policy.Action{Type: policy.QuestionAsk, Request: []byte(`{"question":1}`),
		Target: "t"}); got != "put a question to a person: t" {
		t.Errorf("of a question that is none: %q", got)
	}
	if got := policy.Title(policy.Action{Type: policy.EmailSend, Request: []byte(`{"question":"q"}`),
		Target: "t"}); got != "send an e-mail: t" {
		t.Errorf("of a request with a question in it: %q", got)
	}
}

// TestStoredActionsAreCanonical holds that only the canonical bytes of an action are read.
func TestStoredActionsAreCanonical(t *testing.T) {
	for _, text := range []string{"", "x", `{"type":1}`, `{"type": "t"}`, `{"workspace_id":"w","type":"t"}`,
		`{"fence":9007199254740993,"principal_id":"","type":"t","workspace_id":""}`} {
		if a, err := policy.ParseAction([]byte(text)); err == nil {
			t.Errorf("%q was read as %+v", text, a)
		}
	}
	limited := policy.Action{Type: policy.SpaceCreate, Workspace: "ws_dev", Principal: "usr_1", Limits: []byte(`{"b": 1, "a": 2}`)}
	raw, err := limited.Canonical()
	if err != nil || !strings.Contains(string(raw), `"a":2,"b":1`) {
		t.Errorf("got %s, %v", raw, err)
	}
	for _, text := range []string{"{", "[1", `{"a":`, "tru", `{"a":1e400}`} {
		if _, err := policy.Canonicalize([]byte(text)); err == nil || text == "tru" && fault.CodeOf(err) != "invalid_json" {
			t.Errorf("%q: got %v", text, err)
		}
	}
	deep := func(open, end string, n int) []byte {
		return []byte(strings.Repeat(open, n) + "1" + strings.Repeat(end, n))
	}
	for _, c := range []struct{ open, end string }{{"[", "]"}, {`{"a":`, "}"}} {
		if _, err := policy.Canonicalize(deep(c.open, c.end, 64)); err != nil {
			t.Errorf("64 of %s: %v", c.open, err)
		}
		if _, err := policy.Canonicalize(deep(c.open, c.end, 65)); fault.CodeOf(err) != "json_too_deep" {
			t.Errorf("65 of %s: %v", c.open, err)
		}
	}
}

// TestAPermitIsForTheBytesThatWereDecided holds that bytes which were changed behind the permit, or are no action, redeem nothing.
func TestAPermitIsForTheBytesThatWereDecided(t *testing.T) {
	raw, err := policy.Action{Type: policy.ShellExec, Workspace: "ws_1", Principal: "usr_1", Command: "ls"}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	p := policy.Issue(raw, func() error { return nil })
	if p.Digest() != event.DigestOf(raw) || !(policy.Permit{}).Digest().IsZero() {
		t.Errorf("got %s", p.Digest())
	}
	at := bytes.Index(raw, []byte("ls"))
	raw[at] = 'r'
	if _, err := p.Redeem(policy.ShellExec); !errors.Is(err, policy.ErrPermitMismatch) {
		t.Errorf("of changed bytes: %v", err)
	}
	raw[at] = 'l'
	if a, err := p.Redeem(policy.ShellExec); err != nil || a.Command != "ls" {
		t.Errorf("of the same bytes, where nothing was revoked: %+v, %v", a, err)
	}
	if _, err := policy.Issue([]byte("x"), nil).Redeem(policy.ShellExec, ""); err == nil {
		t.Error("what is not an action was redeemed")
	}
	if _, err := (policy.Permit{}).Redeem(policy.ShellExec); !errors.Is(err, policy.ErrNoPermit) {
		t.Errorf("no permit: %v", err)
	}
}

// TestTheTextOfASignedPermit holds what is cut, has more than a signature, or is longer than any permit.
func TestTheTextOfASignedPermit(t *testing.T) {
	s := seal(t, 1)
	text := s.Sign(permitted)
	body, signature, _ := strings.Cut(strings.TrimPrefix(text, "prm_"), ".")
	for name, bad := range map[string]string{
		"no dot": "prm_" + body + signature, "a body that is not base64": "prm_" + body + "!." + signature,
		"a signature that is not base64": "prm_" + body + "." + signature + "!",
		"a body with bits to spare":      "prm_" + body + "=." + signature,
	} {
		if p, err := s.Open(bad); !errors.Is(err, policy.ErrPermitInvalid) || p != (policy.SignedPermit{}) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	{ // a body whose last characters are whole, whatever stands behind them
		permitted := permitted
		permitted.Tool += "x"
		body, signature, _ := strings.Cut(strings.TrimPrefix(s.Sign(permitted), "prm_"), ".")
		for permitted.Tool += "x"; len(body)%4 != 0; permitted.Tool += "x" {
			body, signature, _ = strings.Cut(strings.TrimPrefix(s.Sign(permitted), "prm_"), ".")
		}
		if _, err := s.Open("prm_" + body + "." + signature); err != nil {
			t.Errorf("whole: %v", err)
		}
		if p, err := s.Open("prm_" + body + "!." + signature); !errors.Is(err, policy.ErrPermitInvalid) {
			t.Errorf("more behind a whole body: %+v, %v", p, err)
		}
	}
	for more, want := range []bool{true, false} {
		long := permitted
		for {
			long.Tool += "x"
			if len(s.Sign(long)) >= policy.MaxSignedPermit {
				break
			}
		}
		for len(s.Sign(long)) > policy.MaxSignedPermit {
			long.Tool = long.Tool[1:]
		}
		long.Tool += strings.Repeat("x", more)
		if _, err := s.Open(s.Sign(long)); (err == nil) != want {
			t.Errorf("%d bytes: %v", len(s.Sign(long)), err)
		}
	}
	if _, err := policy.OpenPermit(ed25519.PublicKey(base64.RawURLEncoding.EncodeToString(nil)), text); !errors.Is(err,
		policy.ErrPermitInvalid) {
		t.Errorf("no key: %v", err)
	}
}

// judges is a gate that says one thing.
type judges struct {
	policy.Gate
	ruling policy.Ruling
	err    error
}

func (j judges) Judge(context.Context, policy.Action) (policy.Ruling, error) { return j.ruling, j.err }

// TestARefusalIsRecorded holds what is recorded of a refusal that lies beyond policy, and that the refusal stands where nothing can be.
func TestARefusalIsRecorded(t *testing.T) {
	why := fault.New(fault.Denied, "too_much", "nobody gives more than they have").With("Ask for less.")
	broken := errors.New("broken")
	decided := func(o policy.Outcome, code string) policy.Ruling {
		return policy.Ruling{Action: policy.Action{Type: policy.RoomCreate, Workspace: "ws_dev"},
			Decision: policy.Decision{Outcome: o, ReasonCode: code, Reason: "before", Suggestion: "before"}}
	}
	for name, c := range map[string]struct {
		gate  judges
		why   error
		fails error
		code  string // of the refusal that is recorded; "" where none is
		says  string
	}{
		"what policy allows": {judges{ruling: decided(policy.Allow, "fine")}, why, nil, "too_much",
			"nobody gives more than they have Ask for less."},
		"what policy denies":       {judges{ruling: decided(policy.Deny, "closed")}, why, nil, "closed", "before before"},
		"of nobody":                {judges{ruling: decided(policy.Deny, policy.ReasonPrincipalNotFound)}, why, nil, "", ""},
		"in an archived workspace": {judges{ruling: decided(policy.Deny, policy.ReasonArchived)}, why, nil, "", ""},
		"what is not a refusal":    {judges{ruling: decided(policy.Allow, "fine")}, fault.New(fault.Invalid, "x", "x"), nil, "", ""},
		"what is not a fault":      {judges{ruling: decided(policy.Allow, "fine")}, broken, nil, "", ""},
		"what cannot be judged":    {judges{err: broken}, why, nil, "", ""},
		"where it cannot be recorded": {judges{ruling: decided(policy.Allow, "fine")}, why, broken, "too_much",
			"nobody gives more than they have Ask for less."},
	} {
		var recorded []event.Draft
		err := policy.RecordRefusal(t.Context(), c.gate, func(_ context.Context, b event.Batch) (event.Receipt, error) {
			if recorded = append(recorded, b.Drafts...); b.Workspace != "ws_dev" {
				t.Errorf("%s: recorded in %s", name, b.Workspace)
			}
			return event.Receipt{}, c.fails
		}, event.Origin{Principal: "usr_1"}, policy.Action{Workspace: "ws_dev"}, c.why)
		if !errors.Is(err, c.why) || c.gate.err != nil && !errors.Is(err, c.gate.err) || c.fails != nil && !errors.Is(err, c.fails) {
			t.Errorf("%s: got %v", name, err)
		}
		if c.code == "" {
			if len(recorded) != 0 {
				t.Errorf("%s: recorded %+v", name, recorded)
			}
			continue
		}
		if len(recorded) != 1 || recorded[0].Type != policy.DeniedType {
			t.Errorf("%s: recorded %+v", name, recorded)
			continue
		}
		d, err := event.Decode[policy.Refused](event.Event{Data: recorded[0].Data})
		if err != nil || d.Decision.Outcome != policy.Deny || d.Decision.ReasonCode != c.code ||
			d.Decision.Reason+" "+d.Decision.Suggestion != c.says {
			t.Errorf("%s: recorded %+v, %v, want %s: %s", name, d.Decision, err, c.code, c.says)
		}
	}
}
