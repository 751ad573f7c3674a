package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/model"
	"agentbox/internal/driver/endpoint"
	"agentbox/internal/driver/endpoint/endpointtest"
)

// TestAHostileAnswer makes the daemon work: with as many calls as fit in an answer, and with names that each make it read all arguments so
// far. Both end soon.
func TestAHostileAnswer(t *testing.T) {
	calls := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"index":0,"id":"c%d","function":{"name":"f","arguments":"{}"}}`, i)
		}
		return list
	}
	open := strings.Repeat(" ", 1<<20) + `[{}`
	var names []string
	for range 30_000 {
		names = append(names, `{"index":0,"function":{"name":"f","arguments":"}"}}`)
	}
	event := func(list []string) string { return delta(`"tool_calls":[` + strings.Join(list, ",") + `]`) }
	for _, c := range []struct{ name, stream, code string }{
		{"as many calls as there can be", sse(event(calls(endpoint.MaxCalls)), tools, done), ""},
		{"one call more", sse(event(calls(endpoint.MaxCalls+1)), tools, done), "too_many_calls"},
		{"many calls", sse(event(calls(30_000)), tools, done), "too_many_calls"},
		{"names and open arguments", sse(call(0, "", "f", open), event(names), tools, done), "too_many_calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := endpointtest.Serve(t, endpointtest.Say(c.stream))
			begun := time.Now()
			a, _, err := ask(t, driver(t), entry(v, "openai"), "", endpointtest.Hello())
			f, failed := model.FailureOf(err)
			if c.code == "" && (err != nil || len(a.Parts) != endpoint.MaxCalls) || c.code != "" && (!failed || f.Code != c.code) {
				t.Errorf("got %d parts, %v", len(a.Parts), err)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestIdsOfCallsAreUnique gives a call the id that another one would get.
func TestIdsOfCallsAreUnique(t *testing.T) {
	v := endpointtest.Serve(t, endpointtest.Say(sse(call(0, "acall_2", "f", `{}`), call(1, "a", "g", `{}`), call(2, "a", "h", `{}`), tools,
		done)))
	a, _, err := ask(t, driver(t), entry(v, "openai"), "", endpointtest.Hello())
	if got := shown(a); err != nil || got != `acall_2:f({}) a:g({}) acall_2call_2:h({}) tools` {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestACodeIsAWord refuses a code of an endpoint that is the key or more than a word: it is recorded and shown as it is.
func TestACodeIsAWord(t *testing.T) {
	for code, want := range map[string]string{"rate_limit": "rate_limit", "sk-hidden": "", "x-sk-hidden": "", "two words": "",
		"a\u001b[2Jb": "", "\u202eabc": "", strings.Repeat("x", 65): ""} {
		v := endpointtest.Serve(t, endpointtest.Refuse(http.StatusBadRequest, `{"error":{"message":"no","code":"`+code+`"}}`))
		_, _, err := ask(t, driver(t), entry(v, "openai"), "sk-hidden", endpointtest.Hello())
		if f, failed := model.FailureOf(err); !failed || f.Code != want {
			t.Errorf("%q: got %+v, want %q", code, f, want)
		}
	}
}
