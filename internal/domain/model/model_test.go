package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
)

// asked returns a request whose every field is used.
func asked() model.Request {
	warm := 0.5
	return model.Request{
		Messages: []model.Message{
			{Role: model.System, Parts: []model.Part{{Type: model.TextPart, Text: "Be brief.", Cache: true}}},
			{Role: model.User, Parts: []model.Part{model.Text("What is on it?"),
				{Type: model.ImagePart, Image: &model.Image{MediaType: "image/png", Data: []byte{1, 2}}}}},
			{Role: model.Assistant, Parts: []model.Part{{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: "zai", Text: "hm"}},
				{Type: model.CallPart, Call: &model.Call{ID: "c1", Name: "look", Arguments: `{"n":1}`}}}},
			{Role: model.User, Parts: []model.Part{{Type: model.ResultPart, Result: &model.Result{ID: "c1", Text: "a cat"}}}},
		},
		Tools:     []model.Tool{{Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}},
		MaxTokens: 10, Temperature: &warm, Effort: model.EffortLow, CacheKey: "k",
	}
}

// TestWhichModelsTakePictures tells them by their provider, and pictures by their first bytes.
func TestWhichModelsTakePictures(t *testing.T) {
	for want, entries := range map[bool][]model.Entry{
		true: {{Provider: model.Anthropic}, {Provider: model.Scripted}, {Provider: model.OpenAI, Dialect: model.DialectOpenAI},
			{Provider: model.OpenAI, Dialect: model.DialectGeneric, Images: true}},
		false: {{}, {Provider: model.OpenAI}, {Provider: model.OpenAI, Dialect: model.DialectZAI}, {Dialect: model.DialectOpenAI}},
	} {
		for _, e := range entries {
			if e.TakesImages() != want {
				t.Errorf("%+v: got %t", e, !want)
			}
		}
	}
	for text, want := range map[string]string{"\x89PNG\r\n\x1a\n": "image/png", "\xff\xd8\xff\xe0": "image/jpeg", "GIF87a": "image/gif",
		"GIF89a": "image/gif", "RIFF\x00\x00\x00\x00WEBP": "image/webp", "RIFF\x00\x00\x00\x00WAVE": "", "GIF88a": "", "": "", "<svg/>": ""} {
		if got := model.MediaOf([]byte(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestARequestIsNamedByItsContent changes one thing after the other, and each gives another hash; the form of the JSON gives none.
func TestARequestIsNamedByItsContent(t *testing.T) {
	first, err := asked().Hash()
	if err != nil {
		t.Fatal(err)
	}
	spaced := asked()
	spaced.Tools[0].Schema = json.RawMessage(`{ "properties": {"n": {"type": "integer"}}, "type": "object" }`)
	if got, err := spaced.Hash(); err != nil || got != first {
		t.Errorf("another form of the same JSON: got %s, %v, want %s", got, err, first)
	}
	for name, change := range map[string]func(*model.Request){
		"text":        func(r *model.Request) { r.Messages[1].Parts[0].Text = "What is in it?" },
		"image":       func(r *model.Request) { r.Messages[1].Parts[1].Image.Data[1] = 3 },
		"reasoning":   func(r *model.Request) { r.Messages[2].Parts[0].Reasoning.Opaque = "x" },
		"arguments":   func(r *model.Request) { r.Messages[2].Parts[1].Call.Arguments = `{"n":2}` },
		"failed":      func(r *model.Request) { r.Messages[3].Parts[0].Result.Failed = true },
		"schema":      func(r *model.Request) { r.Tools[0].Schema = json.RawMessage(`{}`) },
		"temperature": func(r *model.Request) { r.Temperature = nil },
		"effort":      func(r *model.Request) { r.Effort = "" },
		"cache":       func(r *model.Request) { r.Messages[0].Parts[0].Cache = false },
		"max tokens":  func(r *model.Request) { r.MaxTokens++ },
	} {
		r := asked()
		change(&r)
		if got, err := r.Hash(); err != nil || got == first {
			t.Errorf("%s: got the same hash, %v", name, err)
		}
	}
	r := asked()
	r.Messages[0].Parts[0].Text = "\xff"
	if _, err := r.Hash(); !errors.Is(err, policy.ErrNotText) {
		t.Errorf("bytes that are no text: got %v, want %v", err, policy.ErrNotText)
	}
}

// TestARequestIsCheckedBeforeItIsPaidFor holds what no endpoint answers.
func TestARequestIsCheckedBeforeItIsPaidFor(t *testing.T) {
	if err := asked().Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*model.Request){
		"no messages":            func(r *model.Request) { r.Messages = nil },
		"no parts":               func(r *model.Request) { r.Messages[0].Parts = nil },
		"negative":               func(r *model.Request) { r.MaxTokens = -1 },
		"unknown effort":         func(r *model.Request) { r.Effort = "huge" },
		"tool without schema":    func(r *model.Request) { r.Tools[0].Schema = nil },
		"tool without name":      func(r *model.Request) { r.Tools[0].Name = "" },
		"schema null":            func(r *model.Request) { r.Schema = json.RawMessage("null") },
		"call without result":    func(r *model.Request) { r.Messages = r.Messages[:3] },
		"result without call":    func(r *model.Request) { r.Messages[3].Parts[0].Result.ID = "c2" },
		"two calls of one id":    func(r *model.Request) { r.Messages[2].Parts = append(r.Messages[2].Parts, r.Messages[2].Parts[1]) },
		"image of the assistant": func(r *model.Request) { r.Messages[2].Parts = append(r.Messages[2].Parts, r.Messages[1].Parts[1]) },
		"image without bytes":    func(r *model.Request) { r.Messages[1].Parts[1].Image.Data = nil },
		"unknown role":           func(r *model.Request) { r.Messages[1].Role = "tool" },
		"unknown part":           func(r *model.Request) { r.Messages[1].Parts[0].Type = "sound" },
	} {
		r := asked()
		change(&r)
		if err := r.Check(); fault.KindOf(err) != fault.Invalid || fault.CodeOf(err) != "model_request_invalid" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestNoCallOfACutAnswerIsRun holds that tools run only where the model waits for them.
func TestNoCallOfACutAnswerIsRun(t *testing.T) {
	parts := []model.Part{model.Text("I look."), {Type: model.CallPart, Call: &model.Call{ID: "a", Name: "rm", Arguments: `{"path":"/`}}}
	for _, stop := range []model.Stop{model.StopEnd, model.StopLength, model.StopRefusal, model.StopFilter, model.StopOverflow, ""} {
		a := model.Answer{Parts: parts, Stop: stop}
		if got := a.Calls(); got != nil {
			t.Errorf("%s: got %v, want none", stop, got)
		}
		if m := a.Message(); len(m.Parts) != 1 || m.Parts[0].Type != model.TextPart {
			t.Errorf("%s: the next message has %v", stop, m.Parts)
		}
	}
	if got := (model.Answer{Parts: parts, Stop: model.StopTools}).Calls(); len(got) != 1 || got[0].ID != "a" {
		t.Errorf("got %v", got)
	}
}

// TestArgumentsAreAnObject holds what Input takes.
func TestArgumentsAreAnObject(t *testing.T) {
	for text, want := range map[string]string{"": "{}", `{"a":1}`: `{"a":1}`, `{"a":`: "", "[]": "", "null": "", `{}{}`: "", `"x"`: ""} {
		got, err := model.Call{Arguments: text}.Input()
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %s, %v, want %q", text, got, err, want)
		}
	}
}

// TestMoneyIsExact counts to the millionth, rounds up, and never overflows.
func TestMoneyIsExact(t *testing.T) {
	price := model.Price{Input: 3_000_000, Output: 15_000_000, CacheRead: 300_000, CacheWrite: 3_750_000}
	for _, c := range []struct {
		used model.Usage
		want model.Amount
	}{
		{model.Usage{}, 0},
		{model.Usage{Input: 1}, 3},
		{model.Usage{CacheRead: 1}, 1},
		{model.Usage{CacheRead: 10}, 3},
		{model.Usage{CacheRead: 11}, 4},
		{model.Usage{Input: 1000, CacheRead: 2000, CacheWrite: 4000, Output: 100, Reasoning: 50}, 3000 + 600 + 15000 + 1500},
		{model.Usage{Input: -5}, 0},
		{model.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, math.MaxInt64},
	} {
		if got := price.Cost(c.used); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.used, got, c.want)
		}
	}
	if got, want := price.Most(1000, 100), model.Amount(3750+1500); got != want {
		t.Errorf("at most: got %d, want %d", got, want)
	}
	for text, want := range map[string]model.Amount{"0": 0, "1": 1_000_000, "0.000001": 1, "2.50": 2_500_000,
		"9223372036854.775807": math.MaxInt64} {
		if got, err := model.ParseAmount(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
		if got, err := model.ParseAmount(want.String()); err != nil || got != want {
			t.Errorf("%d is written %s and read %d, %v", want, want, got, err)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "1e3", "0.0000001", "9223372036854.775808", "1 "} {
		if got, err := model.ParseAmount(text); err == nil {
			t.Errorf("%q: got %d, want a refusal", text, got)
		}
	}
	if got := model.Amount(math.MinInt64).String(); got != "-9223372036854.775808" {
		t.Errorf("got %s", got)
	}
}

// TestASecretIsNeverWritten tries every common way to print one.
func TestASecretIsNeverWritten(t *testing.T) {
	to := model.Target{Entry: model.Entry{Name: "m"}, Key: model.NewSecret("sk-hidden")}
	raw, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(raw), fmt.Sprint(to), fmt.Sprintf("%+v %#v %s %v", to, to, to.Key, to.Key)} {
		if strings.Contains(text, "sk-hidden") {
			t.Errorf("the secret is in %s", text)
		}
	}
	if to.Key.Reveal() != "sk-hidden" {
		t.Error("the secret is lost")
	}
}

// TestTheNearestRouteCounts holds that a room goes before a class.
func TestTheNearestRouteCounts(t *testing.T) {
	routes := []model.Route{{Models: []string{"all"}}, {Class: "coding", Models: []string{"class"}},
		{Room: "room_1", Models: []string{"room"}},
		{Class: "coding", Room: "room_1", Models: []string{"both"}}}
	for _, c := range []struct {
		class model.TaskClass
		room  string
		want  string
	}{{"chat", "", "all"}, {"coding", "", "class"}, {"chat", "room_1", "room"}, {"coding", "room_1", "both"}, {"coding", "room_2", "class"}} {
		if got, why := model.Choose(routes, c.class, id.Room(c.room)); !slices.Equal(got, []string{c.want}) || why == "" {
			t.Errorf("%s in %q: got %v (%s), want %s", c.class, c.room, got, why, c.want)
		}
	}
	if got, why := model.Choose(routes[1:2], "chat", ""); got != nil || why != "" {
		t.Errorf("without a route: got %v, %q", got, why)
	}
}

// TestAnEntryIsChecked holds what an entry may say.
func TestAnEntryIsChecked(t *testing.T) {
	glm := model.Entry{Name: "glm", Model: "glm-5", Key: "zai"}.Complete()
	if err := glm.Check(); err != nil || glm.BaseURL != "https://api.z.ai/api/paas/v4" || glm.Speaks() != model.DialectZAI {
		t.Fatalf("got %+v, %v", glm, err)
	}
	local := model.Entry{Name: "l", Model: "m", Provider: "openai", Dialect: "ollama",
		BaseURL: "http://127.0.0.1:11434/v1/", AllowPrivate: true}
	if err := local.Complete().Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*model.Entry){
		"name":           func(e *model.Entry) { e.Name = "GLM" },
		"hidden name":    func(e *model.Entry) { e.Name = ".." },
		"model":          func(e *model.Entry) { e.Model = "" },
		"provider":       func(e *model.Entry) { e.Provider = "acme" },
		"dialect":        func(e *model.Entry) { e.Dialect = "acme" },
		"a key itself":   func(e *model.Entry) { e.Key = "sk-ABCDEF0123456789" },
		"limits":         func(e *model.Entry) { e.IdleMS = -1 },
		"http":           func(e *model.Entry) { e.BaseURL = "http://api.example.com/v1" },
		"private":        func(e *model.Entry) { e.BaseURL = "https://10.0.0.1/v1" },
		"metadata":       func(e *model.Entry) { e.BaseURL = "https://169.254.169.254/v1" },
		"user":           func(e *model.Entry) { e.BaseURL = "https://a:b@api.example.com/v1" },
		"query":          func(e *model.Entry) { e.BaseURL = "https://api.example.com/v1?key=1" },
		"no address":     func(e *model.Entry) { e.BaseURL = "" },
		"another scheme": func(e *model.Entry) { e.BaseURL = "file:///etc" },
	} {
		e := glm
		change(&e)
		if err := e.Check(); fault.CodeOf(err) != "model_invalid" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestPublicAddresses holds one address of each kind.
func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "fe80::1": false, "fd00::1": false, "0.0.0.0": false, "::": false, "100.64.0.1": false, "224.0.0.1": false,
		"255.255.255.255": false, "::ffff:127.0.0.1": false, "::ffff:8.8.8.8": true, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
		"192.0.2.1": false, "240.0.0.1": false,
	} {
		if got := model.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

// TestAFailureIsAFault holds the kind of each class.
func TestAFailureIsAFault(t *testing.T) {
	for class, kind := range map[model.Class]fault.Kind{model.Retry: fault.Unavailable, model.Busy: fault.Unavailable,
		model.Final: fault.Invalid, model.Overflow: fault.Invalid, model.Refused: fault.Denied, model.Money: fault.Exhausted} {
		cause := errors.New("cause")
		err := fmt.Errorf("outer: %w", &model.Failure{Class: class, Message: "it failed", Status: 500, Code: "x", Err: cause})
		f, ok := model.FailureOf(err)
		if !ok || f.Class != class || fault.KindOf(err) != kind || fault.CodeOf(err) != "model_"+string(class) || !errors.Is(err, cause) {
			t.Errorf("%s: got %v, %s, %s", class, err, fault.KindOf(err), fault.CodeOf(err))
		}
		if class.Again() != (class == model.Retry || class == model.Busy) || class.Elsewhere() != (class != model.Refused) {
			t.Errorf("%s: again %t, elsewhere %t", class, class.Again(), class.Elsewhere())
		}
	}
}
