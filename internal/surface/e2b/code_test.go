package e2b

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The commands with which code begins are taken out of it. The rest keeps the numbers of its lines.
func TestCommandsOfANotebook(t *testing.T) {
	for code, want := range map[string]struct {
		commands []string
		rest     string
	}{
		"print(1)":                          {nil, "print(1)"},
		"\n\nprint(1)":                      {nil, "\n\nprint(1)"},
		"!ls":                               {[]string{"ls"}, "\n"},
		"!pip install numpy":                {[]string{"pip install numpy"}, "\n"},
		"%pip install numpy\nimport numpy":  {[]string{"pip install numpy"}, "\nimport numpy"},
		"\n  !ls -l \n\n!pwd\n\nprint(1)\n": {[]string{"ls -l", "pwd"}, "\n\n\n\n\nprint(1)\n"},
		"!echo a \\\n  b\nx = 1":            {[]string{"echo a  b"}, "\n\nx = 1"},
		"!echo a \\":                        {[]string{`echo a \`}, "\n"},
		"x = 1\n!ls":                        {nil, "x = 1\n!ls"},
		"%matplotlib inline\nprint(1)":      {nil, "%matplotlib inline\nprint(1)"},
		"%pipe = 1":                         {nil, "%pipe = 1"},
		"s = '''\n!not a command\n'''\ns":   {nil, "s = '''\n!not a command\n'''\ns"},
		"":                                  {nil, ""},
	} {
		commands, rest := leading(code)
		if !slices.Equal(commands, want.commands) || rest != want.rest {
			t.Errorf("%q: got %q, %q, want %q, %q", code, commands, rest, want.commands, want.rest)
		}
	}
}

// A command that policy denies, also by a person, ends for a package as a shell ends one that it may not execute.
func TestADeniedCommandEnds(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for name, event := range map[string]string{
		"denied":  `{"type":"policyDenied","reasonCode":"policy_forbids","reason":"no sudo here","suggestion":"do without"}`,
		"unasked": `{"type":"approvalRequired","approvalId":"apv_1","reason":"it deletes a folder"}`,
	} {
		s := at(&running{after: over, show: "event: event\ndata: " + event + "\n\nevent: complete\ndata: {}\n\n"}, &beating{})
		with := map[string]string{"E2b-Sandbox-Id": "spc_1", "X-Access-Token": s.tokens.of(&caller{bearer: key}, "spc_1")}
		w := send(t, s, "POST", "/e2b/process.Process/Start", streamType, message(`{"process":{"cmd":"sudo"}}`), with)
		_, said := framesOf(t, w.Body.Bytes())
		if len(said) != 4 || kind(said[0]) != "start" || kind(said[1]) != "data" || kind(said[2]) != "end" || len(said[3]) != 0 {
			t.Fatalf("%s: got %v", name, said)
		}
		if end := said[2]["event"].(map[string]any)["end"].(map[string]any); end["exitCode"] != float64(126) {
			t.Errorf("%s: got %v, want the code 126", name, end)
		}
	}
}

// A sandbox's own rules come as JSON in its metadata.
func TestTheRulesOfASandbox(t *testing.T) {
	api := &reply{status: 201, body: `{"id":"spc_1","metadata":{"e2b.template":"base"}}`}
	s := open(t, api)
	for overrides, want := range map[string]int{
		`{"ask":{"commands":["chown"]}}`: http.StatusCreated, ``: http.StatusCreated,
		`[]`: http.StatusBadRequest, `null`: http.StatusBadRequest, `{`: http.StatusBadRequest,
	} {
		body, err := json.Marshal(map[string]any{"templateID": "base", "metadata": map[string]string{choiceOverrides: overrides}})
		if err != nil {
			t.Fatal(err)
		}
		w := send(t, s, "POST", "/e2b/sandboxes", "application/json", string(body), map[string]string{"X-Api-Key": key})
		if w.Code != want {
			t.Errorf("%q: got %d %s, want %d", overrides, w.Code, w.Body, want)
		}
		sent := api.sent
		if has := strings.Contains(sent, `"policy_overrides":{"ask":{"commands":["chown"]}}`); want == 201 && has != (overrides != "") {
			t.Errorf("%q: sent %s", overrides, sent)
		}
	}
}

// The name of an error is that of its class alone.
func TestTheNameOfAnError(t *testing.T) {
	for line, want := range map[string][2]string{
		"ValueError: no number":                                     {"ValueError", "no number"},
		"json.decoder.JSONDecodeError: Expecting value: line 1":     {"JSONDecodeError", "Expecting value: line 1"},
		"Answer.forward.<locals>.FinalAnswerException: safe:\"42\"": {"FinalAnswerException", `safe:"42"`},
		"KeyboardInterrupt":                                         {"KeyboardInterrupt", ""},
		"Uncaught TypeError: x is not a function":                   {"TypeError", "x is not a function"},
	} {
		e := failed("Traceback (most recent call last):\n  File \"cell\", line 1\n"+line, result{})
		if e["name"] != want[0] || e["value"] != want[1] {
			t.Errorf("%q: got %q, %q, want %q", line, e["name"], e["value"], want)
		}
	}
}
