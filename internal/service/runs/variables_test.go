package runs_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// A possible secret in a space's environment is in no event and in no document, also where a person is asked about a command. The command
// gets it.
func TestASecretVariableIsInNoRecord(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program})
	secrets := map[string]string{
		"SERVICE_KEY": "s3cr3t-value-of-the-space", "NOTE": "a text with ghp" + "_" + strings.Repeat("aB3dE6gH9k", 3) + " in it",
		"DATABASE": "postgres://me:hunter22@db/x", "PLAIN": "Zx81Qq77Yw03Ab55",
	}
	env := map[string]string{"MODE": "production"}
	for name, value := range secrets {
		env[name] = value
	}
	in := s.SpaceOf(spaces.Request{Env: env, BestEffort: true})
	doc := s.Start(in.ID, `[{"type":"shell","command":"mkdir -p d; printf '%s' \"$SERVICE_KEY$NOTE$DATABASE$PLAIN$MODE\" | wc -c; rm -r d"}]`)
	if doc = s.Rest(doc.ID); doc.Status != run.AwaitingApproval {
		t.Fatalf("got %+v, want a question", doc)
	}
	_, question := doc.Pending()
	asked, _, err := projection.Load[policy.Approval](t.Context(), s.Docs, testkit.WS, policy.ApprovalProjection, string(question))
	if err != nil {
		t.Fatal(err)
	}
	a, err := policy.ParseAction(asked.Request)
	if err != nil || a.Env["MODE"] != "production" || !policy.IsMask(a.Env["SERVICE_KEY"]) || a.Env["PLAIN"] == a.Env["NOTE"] {
		t.Fatalf("the question is about %v, %v", a.Env, err)
	}
	if !strings.Contains(asked.Question.What, a.Env["SERVICE_KEY"]) {
		t.Errorf("the question does not show which value it is about: %s", asked.Question.What)
	}
	s.Decide(doc.ID, policy.Approve, "")
	s.Ended(doc.ID)
	want := 0
	for _, value := range env {
		want += len(value)
	}
	if got := strings.TrimSpace(*s.Results(doc.ID)[0].Stdout); got != strconv.Itoa(want) {
		t.Errorf("the command got %s bytes of variables, want %d", got, want)
	}
	nothing := func() {
		t.Helper()
		for _, e := range s.Events(0) {
			for name, value := range secrets {
				if bytes.Contains(e.Data, []byte(value)) {
					t.Errorf("%s has the value of %s: %s", e.Type, name, e.Data)
				}
			}
		}
		kept, err := s.Spaces.Catalog.Space(t.Context(), testkit.WS, in.ID)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range kept.Env {
			if _, secret := secrets[name]; secret != policy.IsMask(value) {
				t.Errorf("the space shows %s as %q", name, value)
			}
		}
	}
	nothing()

	// Answers can be written back: a mask keeps its value, and a new value is masked like the first ones.
	kept, err := s.Spaces.Catalog.Space(t.Context(), testkit.WS, in.ID)
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]string{"SERVICE_KEY": kept.Env["SERVICE_KEY"], "PLAIN": kept.Env["PLAIN"], "OTHER_TOKEN": "0ther-s3cr3t"}
	secrets["OTHER_TOKEN"] = changed["OTHER_TOKEN"]
	s.Restart()
	after, err := s.Spaces.Settings.Update(t.Context(), s.Origin, testkit.WS, in.ID, spaces.Change{Env: &changed})
	if err != nil || after.Env["SERVICE_KEY"] != kept.Env["SERVICE_KEY"] || len(after.Env) != 3 {
		t.Fatalf("got %v, %v", after.Env, err)
	}
	nothing()
	ended := s.Ended(s.Start(in.ID, `[{"type":"shell",
		"command":"printf '%s' \"$SERVICE_KEY$PLAIN$OTHER_TOKEN$NOTE\" | wc -c; echo $OTHER_TOKEN"}]`).ID)
	if got := *s.Results(ended.ID)[0].Stdout; got != "53\n[redacted]\n" {
		t.Errorf("after the change the command printed %q", got)
	}
	nothing()
	for name, wrong := range map[string]map[string]string{
		"a mask of another variable": {"OTHER_TOKEN": kept.Env["SERVICE_KEY"]}, "a mask that is no longer its own": {"NOTE": kept.Env["NOTE"]},
	} {
		if _, err := s.Spaces.Settings.Update(t.Context(), s.Origin, testkit.WS, in.ID, spaces.Change{Env: &wrong}); fault.KindOf(err) !=
			fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	masked := map[string]string{"SERVICE_KEY": kept.Env["SERVICE_KEY"]}
	_, err = s.Spaces.Creation.Create(t.Context(), s.Origin, spaces.Request{Workspace: testkit.WS, Env: masked})
	if fault.KindOf(err) != fault.Invalid {
		t.Errorf("a mask in a new space: %v", err)
	}
	none := map[string]string{}
	if after, err = s.Spaces.Settings.Update(t.Context(), s.Origin, testkit.WS, in.ID, spaces.Change{Env: &none}); err != nil ||
		after.Secrets != nil {
		t.Errorf("without an environment: %+v, %v", after.Secrets, err)
	}
}

// A value that was exchanged while a person was asked is not the value that they approved: the command is asked about again.
func TestAnExchangedSecretIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program})
	in := s.SpaceOf(spaces.Request{Env: map[string]string{"SERVICE_KEY": "first-value"}, BestEffort: true}).ID
	doc := s.Rest(s.Start(in, `[{"type":"shell","command":"mkdir -p d; rm -r d; printf '%s' \"$SERVICE_KEY\" > f"}]`).ID)
	other := map[string]string{"SERVICE_KEY": "second-value"}
	if _, err := s.Spaces.Settings.Update(t.Context(), s.Origin, testkit.WS, in, spaces.Change{Env: &other}); err != nil {
		t.Fatal(err)
	}
	s.Decide(doc.ID, policy.Approve, "")
	doc = s.Rest(doc.ID)
	if doc.Status == run.AwaitingApproval {
		return
	}
	if got := s.Results(doc.ID)[0]; got.Success != nil && *got.Success {
		t.Errorf("it ran: %+v %q", got, s.File(in, "f"))
	}
}

// Without the key, or with a sealed value that is not the one of its mask, a space's operations are refused; and nobody seals without
// keys.
func TestSecretVariablesWithoutTheirKey(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program})
	in := s.SpaceOf(spaces.Request{Env: map[string]string{"SERVICE_KEY": "s3cr3t-value"}, BestEffort: true})
	if got, err := s.Spaces.Variables.Values(in); err != nil || got["SERVICE_KEY"] != "s3cr3t-value" {
		t.Fatalf("got %v, %v", got, err)
	}
	bent := in
	bent.Env = map[string]string{"SERVICE_KEY": policy.Mask(make([]byte, 32))}
	if _, err := s.Spaces.Variables.Values(bent); err == nil {
		t.Error("another mask was taken")
	}
	sealed := *in.Secrets
	sealed.Sealed = append([]byte(nil), sealed.Sealed...)
	sealed.Sealed[0] ^= 1
	bent, bent.Secrets = in, &sealed
	if _, err := s.Spaces.Variables.Values(bent); err == nil {
		t.Error("changed values were opened")
	}
	short := *in.Secrets
	short.Nonce = short.Nonce[1:]
	if bent.Secrets = &short; func() error { _, err := s.Spaces.Variables.Values(bent); return err }() == nil {
		t.Error("a short nonce was taken")
	}
	other := *in.Secrets
	other.Generation++
	bent.Secrets = &other
	if _, err := s.Spaces.Variables.Values(bent); fault.CodeOf(err) != "keys_missing" {
		t.Errorf("a key that is not here: %v", err)
	}
}

// A mask in an operation is not a value: the operation is refused with what to do instead, and the others run.
func TestAMaskInAnOperation(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program})
	in := s.SpaceOf(spaces.Request{Env: map[string]string{"SERVICE_KEY": "s3cr3t-value"}, BestEffort: true})
	for name, mask := range map[string]string{"its own": in.Env["SERVICE_KEY"], "another one": policy.Mask(make([]byte, 32))} {
		doc := s.Ended(s.Start(in.ID, `[{"type":"shell","id":"masked","command":"echo $SERVICE_KEY > f","env":{"SERVICE_KEY":"`+mask+`"}},
			{"type":"shell","id":"plain","command":"printf %s $SERVICE_KEY | wc -c"}]`).ID)
		results := s.Results(doc.ID)
		if len(results) != 2 || results[0].ReasonCode != "operation_invalid" || !strings.Contains(results[0].Message, "leave it out") ||
			strings.TrimSpace(*results[1].Stdout) != "12" {
			t.Errorf("%s: got %+v", name, results)
		}
	}
	if _, err := s.Spaces.Files.Read(t.Context(), s.Origin, testkit.WS, in.ID, "f", spaces.Any); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the operation ran: %v", err)
	}
}

// A space that an earlier daemon recorded has its values in its events. It works as before, also when a person is asked about a command.
// Its values are sealed when its environment is changed.
func TestAnUnsealedEnvironmentOfAnEarlierDaemon(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program})
	in := s.SpaceOf(spaces.Request{BestEffort: true})
	env := map[string]string{"SERVICE_KEY": "s3cr3t-value", "MODE": "old"}
	draft := event.New(space.EventUpdated, s.Origin, testkit.WS, in.Room, space.Updated{Space: in.ID, Env: &env}).About(space.EntityType,
		string(in.ID))
	if _, err := s.Log.Append(t.Context(), event.Batch{Workspace: testkit.WS, Drafts: []event.Draft{draft}}); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	doc := s.Rest(s.Start(in.ID, `[{"type":"shell",
		"command":"mkdir -p d; rm -r d; printf %s $SERVICE_KEY$MODE | wc -c; echo $SERVICE_KEY"}]`).ID)
	if doc.Status != run.AwaitingApproval {
		t.Fatalf("got %+v, want a question", doc)
	}
	s.Decide(doc.ID, policy.Approve, "")
	s.Ended(doc.ID)
	if got := *s.Results(doc.ID)[0].Stdout; got != "15\n[redacted]\n" {
		t.Errorf("the command printed %q", got)
	}
	since := len(s.Events(0))
	after, err := s.Spaces.Settings.Update(t.Context(), s.Origin, testkit.WS, in.ID, spaces.Change{Env: &env})
	if err != nil || !policy.IsMask(after.Env["SERVICE_KEY"]) || after.Env["MODE"] != "old" || after.Secrets == nil {
		t.Fatalf("got %+v, %v", after, err)
	}
	for _, e := range s.Events(0)[since:] {
		if bytes.Contains(e.Data, []byte(env["SERVICE_KEY"])) {
			t.Errorf("%s has the value: %s", e.Type, e.Data)
		}
	}
	doc = s.Ended(s.Start(in.ID, `[{"type":"shell","command":"printf %s $SERVICE_KEY | wc -c"}]`).ID)
	if got := strings.TrimSpace(*s.Results(doc.ID)[0].Stdout); got != "12" {
		t.Errorf("after the change the command printed %q", got)
	}
}
