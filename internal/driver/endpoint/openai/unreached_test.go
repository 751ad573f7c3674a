package openai_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentbox/internal/domain/model"
	"agentbox/internal/driver/endpoint/endpointtest"
)

// TestAServerThatGivesNoAnswer holds what a person reads where no answer comes: the address and the cause, and no key.
func TestAServerThatGivesNoAnswer(t *testing.T) {
	const key = "sk-hidden-from-all"
	closed := endpointtest.Serve(t, endpointtest.Say(""))
	closed.Close()
	broken := endpointtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	plain := endpointtest.Serve(t, endpointtest.Say(""))
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for name, c := range map[string]struct{ base, want string }{
		"nobody listens":                 {closed.URL, "cannot be reached: no server listens there (connection refused); is it running?"},
		"the server ends":                {broken.URL, "ended the connection before it answered"},
		"no such name":                   {"http://nobody.invalid:8080", "cannot be reached: the "},
		"http, not https":                {strings.Replace(plain.URL, "http:", "https:", 1), " answers http, and base_url says https"},
		"an authority that nobody knows": {secure.URL, "has a certificate of an authority that this host does not trust"},
	} {
		t.Run(name, func(t *testing.T) {
			e := model.Entry{Name: "m", Provider: model.OpenAI, Dialect: model.DialectGeneric, BaseURL: c.base, Model: "glm", Key: "zai",
				AllowPrivate: true}
			_, _, err := ask(t, driver(t), e, key, endpointtest.Hello())
			f, ok := model.FailureOf(err)
			if !ok || f.Class != model.Retry || f.Advice != "" {
				t.Fatalf("got %+v, %v", f, err)
			}
			at := c.base[strings.Index(c.base, "//")+2:]
			if _, _, err := net.SplitHostPort(at); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(f.Error(), at+" ") || !strings.Contains(f.Error(), c.want) || strings.Contains(f.Error(), key) {
				t.Errorf("got %q, want %s and %q", f, at, c.want)
			}
		})
	}
}

// TestAPortThatNobodyNames adds the port of the scheme to the address of a failure.
func TestAPortThatNobodyNames(t *testing.T) {
	e := model.Entry{Name: "m", Provider: model.OpenAI, Dialect: model.DialectGeneric, BaseURL: "https://nobody.invalid/v1", Model: "glm"}
	_, _, err := ask(t, driver(t), e, "", endpointtest.Hello())
	if err == nil || !strings.HasPrefix(err.Error(), "nobody.invalid:443 cannot be reached") {
		t.Errorf("got %v", err)
	}
	e.BaseURL = "https://a%c2%9b31mb.invalid/v1" // a terminal would take it for a colour
	if _, _, err := ask(t, driver(t), e, "", endpointtest.Hello()); err == nil || strings.Contains(err.Error(), "\u009b") {
		t.Errorf("got %q", err)
	}
}

// TestARefusedKeyAndAMissingModel holds that an endpoint that answers is not called unreachable, and that the error says what to do.
func TestARefusedKeyAndAMissingModel(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		key    string
		want   string // HOST stands for the address
	}{
		"a refused key": {401, trouble("invalid_api_key", "wrong key sk-1"), "zai",
			`the endpoint HOST refused the key zai: "wrong key [secret]" (HTTP 401) [invalid_api_key]; set another one: agentbox model key set zai`},
		"no key": {401, "", "", `the endpoint HOST wants a key, and the entry m names none (HTTP 401); ` +
			`name one in models.yaml, or write the entry anew with all of its flags: ` +
			`agentbox model add m --model MODEL --key KEY --replace`},
		"no such model": {404, trouble("model_not_found", "no glm"), "zai", `the endpoint has no model glm, or nothing at ` +
			`http://HOST/chat/completions: "no glm" (HTTP 404) [model_not_found]; correct the entry m, then try: agentbox model test m`},
		"no such path": {404, "<html>not found</html>", "zai", `the endpoint has no model glm, or nothing at ` +
			`http://HOST/chat/completions (HTTP 404); correct the entry m, then try: agentbox model test m`},
		"something else": {403, "", "zai", "the endpoint refused the request (HTTP 403)"},
	} {
		t.Run(name, func(t *testing.T) {
			v := endpointtest.Serve(t, endpointtest.Refuse(c.status, c.body))
			e := entry(v, model.DialectOpenAI)
			e.Key = c.key
			_, _, err := ask(t, driver(t), e, "sk-1", endpointtest.Hello())
			f, ok := model.FailureOf(err)
			want := strings.ReplaceAll(c.want, "HOST", strings.TrimPrefix(v.URL, "http://"))
			if !ok || f.Class != model.Final || f.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func trouble(code, message string) string {
	return `{"error":{"code":` + quote(code) + `,"message":` + quote(message) + `}}`
}
