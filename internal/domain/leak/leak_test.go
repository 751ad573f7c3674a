package leak_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
)

// The secrets of these tests are made here, so that none stands in the source.
func secrets() map[string]string {
	run := strings.Repeat("aB3dE6gH9k", 3)
	return map[string]string{
		leak.OpenAIKey: "sk-" + run[:20], leak.OpenAIKey + " of a project": "sk-" + "proj-" + run[:10] + "_-" + run[:10],
		leak.GitHubToken:           "ghp" + "_" + run[:20],
		leak.GitHubToken + " fine": "github" + "_pat_" + run, leak.AWSKey: "AKIA" + strings.ToUpper(run[:16]), leak.BearerToken: "bEaReR " +
			run[:20],
		leak.AnthropicKey: "sk-" + "ant-" + run[:24], leak.OpenRouterKey: "sk-" + "or-" + run[:24], leak.SlackToken: "xox" + "b-" + run[:12] +
			"-" + run[:12],
		leak.SlackToken + " of an app": "xapp" + "-1-" + run[:20], leak.GitLabToken: "glpat" + "-" + run[:20], leak.StripeKey: "sk" + "_live_" +
			run[:24],
		leak.GoogleKey: "AI" + "za" + (run + run)[:35], leak.NPMToken: "npm" + "_" + (run + run)[:36],
	}
}

func secret(t *testing.T, rule string) string {
	t.Helper()
	return secrets()[rule]
}

// bare is the part of a secret that has to be gone.
func bare(s string) string { return s[strings.LastIndexByte(s, ' ')+1:] }

func quote(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestSecretsAreTakenOutWhereverTheyStand(t *testing.T) {
	for name, s := range secrets() {
		rule, _, _ := strings.Cut(name, " ")
		deep := any(s)
		for range leak.MaxDepth - 1 {
			deep = []any{deep}
		}
		for where, v := range map[string]any{
			"a text": map[string]any{"a": "before " + s + " after"}, "a name": map[string]any{s: 1}, "an array": map[string]any{"a": []any{1, s}},
			"the whole depth": map[string]any{"a": deep},
			"a path":          map[string]any{"path": "out/" + s + ".txt"}, "an address": map[string]any{"url": "https://x:" + s +
				"@example.com/?k=" + s},
			"split by a character that nobody sees": map[string]any{"a": s[:12] + "\u200b" + s[12:]},
			"split by a line break":                 map[string]any{"a": "x\n" + s[:12] + "\n   " + s[12:]},
			"split over an array":                   map[string]any{"a": []any{s[:12], s[12:]}}, "two, as names": map[string]any{s: 1, "x " + s: 2},
		} {
			clean, found := leak.Scan(quote(t, v))
			if len(found) == 0 || found[0].Rule != rule {
				t.Errorf("%s in %s: found %+v", name, where, found)
			}
			if strings.Contains(string(clean), bare(s)) || !strings.Contains(string(clean), leak.Redacted) || !json.Valid(clean) ||
				strings.Contains(string(clean), s[12:]) {
				t.Errorf("%s in %s: left is %s", name, where, clean)
			}
			for _, m := range found {
				if strings.Contains(m.Where+m.Preview, bare(s)) {
					t.Errorf("%s in %s: it is told as %+v", name, where, m)
				}
			}
		}
		// As escapes, which mean the same to a reader.
		var escaped strings.Builder
		for _, r := range s {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
		if clean, found := leak.Scan(json.RawMessage(`{"a":"` + escaped.String() + `"}`)); len(found) != 1 || string(clean) != `{"a":"`+
			leak.Redacted+`"}` && rule != leak.BearerToken {
			t.Errorf("%s in escapes: %s, %+v", name, clean, found)
		}
	}
}

func TestWhatIsNoSecretStaysByteForByte(t *testing.T) {
	run := strings.Repeat("aB3dE6gH9k", 3)
	for _, v := range []json.RawMessage{
		json.RawMessage(`{ "a" : 9007199254740993, "b":1e400, "c":"<a&b>" }`), quote(t, map[string]string{"a": "task-" + run, "b": "sk-" +
			run[:19], "c": "ghp_" + run[:19]}),
		quote(t, "AKIA"+strings.ToUpper(run[:15])), quote(t, "the bearer of good news"), quote(t, "Bearer "+run[:19]),
		quote(t, "zero\u200bwidth"), quote(t, "a\nb\nc"),
		json.RawMessage(`{`), json.RawMessage(``), quote(t, "room_00000000000000000000000000 path_segment_"+run),
	} {
		if clean, found := leak.Scan(v); string(clean) != string(v) || len(found) > 0 {
			t.Errorf("%s became %s, %+v", v, clean, found)
		}
	}
	if clean, _ := leak.Scan(json.RawMessage(`{"n":9007199254740993,"k":"` + secret(t, leak.GitHubToken) + `","e":1e400}`)); string(
		clean) != `{"e":1e400,"k":"[redacted]","n":9007199254740993}` {
		t.Errorf("beside a secret: %s", clean)
	}
}

// A text beyond the limits that may hold a secret is taken out as a whole.
func TestPaddingHidesNothing(t *testing.T) {
	s := secret(t, leak.GitHubToken)
	deep := any(s)
	for range leak.MaxDepth + 1 {
		deep = []any{deep}
	}
	clean, found := leak.Scan(quote(t, deep))
	if len(found) != 1 || found[0].Rule != leak.Unscanned || strings.Contains(string(clean), s) {
		t.Errorf("too deep: %s, %+v", clean, found)
	}
	fits := strings.Repeat("x", leak.MaxCharacters-len(s)-1) + " " + s
	if clean, found = leak.Scan(quote(t, fits)); len(found) != 1 || found[0].Rule != leak.GitHubToken ||
		len(clean) < leak.MaxCharacters-len(s) {
		t.Errorf("the longest text: %d bytes, %+v", len(clean), found)
	}
	if clean, found = leak.Scan(quote(t, "x"+fits)); len(found) != 1 || found[0].Rule != leak.Unscanned || string(clean) != `"[redacted]"` {
		t.Errorf("a longer text: %d bytes, %+v", len(clean), found)
	}
	if clean, found = leak.Scan(quote(t, strings.Repeat("x", 2*leak.MaxCharacters))); len(found) != 0 || len(clean) < 2*leak.MaxCharacters {
		t.Errorf("a long text that holds nothing: %+v", found)
	}
	for n, want := range map[int]int{leak.MaxMatches: leak.MaxMatches, leak.MaxMatches + 1: 1} {
		clean, found = leak.Scan(quote(t, strings.Repeat(s+" ", n)))
		if len(found) != want || strings.Contains(string(clean), s) {
			t.Errorf("%d of them: %d found, %.100s", n, len(found), clean)
		}
	}
	var many []any
	for i := range 3 * leak.MaxMatches {
		many = append(many, map[string]any{"n": i, "k": s + fmt.Sprint(i)})
	}
	if clean, found = leak.Scan(quote(t, many)); len(found) != leak.MaxMatches || strings.Contains(string(clean), s) {
		t.Errorf("in many places: %d found, %.100s", len(found), clean)
	}
}

func TestPreviews(t *testing.T) {
	s := secret(t, leak.OpenAIKey)
	if _, found := leak.Text(s); len(found) != 1 || found[0].Preview != s[:4]+"..."+s[len(s)-4:] {
		t.Errorf("got %+v", found)
	}
}

func TestACleanDraftSaysSo(t *testing.T) {
	origin := event.Origin{Principal: "usr_00000000000000000000000000", Correlation: "cor_1"}
	next := func() id.Event { return "00000000-0000-7000-8000-000000000001" }
	d := event.New("message.created", origin, "ws_dev", "room_00000000000000000000000000", map[string]string{"content_md": "use " + secret(t,
		leak.AWSKey)})
	clean, said, leaked := leak.Clean(d, "svc_00000000000000000000000000", next)
	if !leaked || !clean.ContainsSecrets || clean.Redaction != event.RedactPartial || clean.ID != next() ||
		strings.Contains(string(clean.Data), "AKIA") {
		t.Errorf("got %+v %s", clean.Header, clean.Data)
	}
	if said.Type != leak.EventDetected || said.Causation != clean.ID || said.Actor != (event.Actor{Type: id.Service, ID: "dlp"}) ||
		said.Stream != d.Stream || said.Correlation != "cor_1" {
		t.Errorf("got %+v", said.Header)
	}
	plain := event.New("message.created", origin, "ws_dev", "", map[string]string{"content_md": "hello"})
	if same, _, leaked := leak.Clean(plain, "", next); leaked || same.ID != "" || same.ContainsSecrets || same.Redaction != event.RedactNone {
		t.Errorf("got %+v", same.Header)
	}
	if leak.InHeader(plain) {
		t.Error("a header without a secret has one")
	}
	for name, change := range map[string]func(*event.Draft){
		"key": func(d *event.Draft) {
			d.IdempotencyKey = "incident:" + secret(t, leak.GitHubToken)
		}, "entity": func(d *event.Draft) { d.EntityID = "a/" + secret(t, leak.AWSKey) },
		"correlation": func(d *event.Draft) { d.Correlation = id.Correlation(secret(t, leak.OpenAIKey)) },
	} {
		d := plain
		if change(&d); !leak.InHeader(d) {
			t.Errorf("the secret in the %s is not seen", name)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range secrets() {
		f.Add(`{"a":"`+s+`"}`, s)
	}
	f.Add(`{"a":["sk-"]}`, "sk-")
	f.Add(`"sk-00000000000000000000"00`, "")
	f.Fuzz(func(t *testing.T, data, _ string) {
		clean, found := leak.Scan(json.RawMessage(data))
		if len(found) == 0 && string(clean) != data {
			t.Fatalf("%q became %q, and nothing was found", data, clean)
		}
		if len(found) > leak.MaxMatches {
			t.Fatalf("%d were found", len(found))
		}
		if json.Valid([]byte(data)) != json.Valid(clean) {
			t.Fatalf("%q became %q", data, clean)
		}
		if again, more := leak.Scan(clean); len(found) > 0 && len(more) > 0 && string(again) == string(clean) {
			t.Fatalf("%q still has %+v", clean, more)
		}
	})
}

// FuzzHidden hides a secret somewhere in JSON: it is found, wherever it stands and whatever stands around it.
func FuzzHidden(f *testing.F) {
	kinds := slices.Sorted(maps.Values(secrets()))
	for n := range kinds {
		f.Add(n, "before ", " after", `{"a":[1,{"b":"%"}]}`)
	}
	f.Add(0, "", "", `{"%":"%"}`)
	f.Add(1, "\"", "\\", `[[["%"]],"%"]`)
	f.Add(2, "é", "\n", `{"a":"x%","b":[" ","%"]}`)
	f.Fuzz(func(t *testing.T, n int, before, after, shape string) {
		var v any
		if n < 0 || json.Unmarshal([]byte(shape), &v) != nil || !strings.Contains(shape, "%") {
			return
		}
		hidden := kinds[n%len(kinds)]
		// A text that continues a secret, or stands before it like a letter of its word, makes it another word.
		text := before + " " + hidden + " " + after
		planted := 0
		var plant func(v any) any
		plant = func(v any) any {
			switch v := v.(type) {
			case string:
				planted += strings.Count(v, "%")
				return strings.ReplaceAll(v, "%", text)
			case []any:
				for i := range v {
					v[i] = plant(v[i])
				}
			case map[string]any:
				for _, name := range slices.Sorted(maps.Keys(v)) {
					value := plant(v[name])
					delete(v, name)
					v[plant(name).(string)] = value
				}
			}
			return v
		}
		raw, err := json.Marshal(plant(v))
		if err != nil || planted == 0 {
			return
		}
		clean, found := leak.Scan(raw)
		if len(found) == 0 || strings.Contains(string(clean), bare(hidden)) || !json.Valid(clean) {
			t.Fatalf("%s became %s with %+v", raw, clean, found)
		}
		for _, m := range found {
			if strings.Contains(m.Preview+m.Where, bare(hidden)) {
				t.Fatalf("what is told tells it: %+v", m)
			}
		}
	})
}

// BenchmarkScan shows what a record costs that holds no secret: a message of a kilobyte.
func BenchmarkScan(b *testing.B) {
	raw, err := json.Marshal(map[string]string{"message_id": "msg_00000000000000000000000000",
		"content_md": strings.Repeat("The quick brown fox jumps over it.\n", 30)})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, found := leak.Scan(raw); len(found) > 0 {
			b.Fatal("found")
		}
	}
}

// Nobody reads the first value of a repeated name, so nobody would find a secret there.
func TestANameThatStandsTwiceHidesNothing(t *testing.T) {
	s := secret(t, leak.GitHubToken)
	for data, want := range map[string]string{
		`{"a":"` + s + `","a":"b"}`: `{"a":"b"}`, `{"x":[{"a":{"k":"` + s + `"},"b":1,"a":2}]}`: `{"x":[{"a":2,"b":1}]}`,
		`{"a":1,"b":{"a":"sk-","a":2}}`: `{"a":1,"b":{"a":2}}`,
	} {
		if clean, found := leak.Scan(json.RawMessage(data)); string(clean) != want || len(found) != 1 || found[0].Rule != leak.Unscanned {
			t.Errorf("%s became %s with %+v", data, clean, found)
		}
	}
	for _, data := range []string{`{"a":1,"a":2}`, `{"a":"sk-","b":{"a":"sk-"},"c":[{"a":1},{"a":1}]}`, `["sk-","sk-"]`,
		`{"a":"a","b":"a","sk-":["a",{"a":"b"}]}`} {
		if clean, found := leak.Scan(json.RawMessage(data)); string(clean) != data || len(found) > 0 {
			t.Errorf("%s became %s with %+v", data, clean, found)
		}
	}
}
