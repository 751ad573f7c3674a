package wire

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/danielgtaylor/huma/v2"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// realClock tells the real time; the wire's deadlines are those of real connections.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// thing is the body of the operation that the wire is tested with.
type thing struct {
	Name    string            `json:"name" minLength:"1" maxLength:"10"`
	Count   int               `json:"count,omitempty" minimum:"0" maximum:"100"`
	Labels  map[string]string `json:"labels,omitempty"`
	Created bool              `json:"created,omitempty"`
}

type wire struct {
	*testing.T
	s   *Server
	url string
	log *strings.Builder
}

// newWire starts a server with operations of its own, besides the API's.
func newWire(t *testing.T, change func(*Config)) wire {
	var log strings.Builder
	c := Config{
		Authenticate: keyTable{"good": {Workspace: "ws_dev", Principal: "usr_01ARZ3NDEKTSV4RRFFQ69G5FAV"}}.find,
		Clock:        realClock{}, IDs: id.NewSource(time.Now, rand.Reader), Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Tags: []string{"test"},
	}
	if change != nil {
		change(&c)
	}
	s := New(c)
	Handle(s, Operation{ID: "make-thing", Method: "POST", Path: "/v1/test/things", Tag: "test", Status: 201, MaxBody: 200,
		Repeat: RepeatHarmless},
		func(_ context.Context, c Call, in *struct {
			Dry  bool `query:"dry"`
			Body thing
		}) (*struct{ Body thing }, error) {
			switch in.Body.Name {
			case "secret":
				return nil, errors.New("open /var/lib/agentbox/secret: permission denied")
			case "panic":
				panic("the handler broke")
			case "large":
				return nil, fault.New(fault.Exhausted, "file_too_large", "too large")
			case "wait":
				return nil, fault.New(fault.Waiting, "approval_required", "a person has to decide").With("see the approvals")
			}
			in.Body.Created = true
			return &struct{ Body thing }{in.Body}, nil
		})
	Handle(s, Operation{ID: "get-thing", Method: "GET", Path: "/v1/test/things/{name}", Tag: "test"},
		func(_ context.Context, c Call, in *struct {
			Name  string `path:"name"`
			Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
		}) (*struct{ Body thing }, error) {
			return &struct{ Body thing }{thing{Name: in.Name, Count: in.Limit}}, nil
		})
	Stream[struct {
		From  uint64 `query:"from"`
		Break string `query:"break"`
	}](s, Operation{ID: "count", Method: "GET", Path: "/v1/test/count", Tag: "test"},
		func(w http.ResponseWriter, r *http.Request, c Call) error {
			from, _, err := Cursor(r, "from")
			if err != nil {
				return err
			}
			return s.Feed(w, r, c, func(ctx context.Context) iter.Seq2[Message, error] {
				return countTo(ctx, from, r.URL.Query().Get("break"))
			})
		})
	s.Finish()
	hs := httptest.NewServer(s)
	t.Cleanup(hs.Close)
	return wire{t, s, hs.URL, &log}
}

// countTo yields the numbers up to 10 and then ends; where broken is set it fails after 5, and with "never" it waits after 3.
func countTo(ctx context.Context, from uint64, broken string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for n := max(from, 1); n <= 10; n++ {
			if broken == "yes" && n == 6 || broken == "first" {
				yield(Message{}, fault.New(fault.NotFound, "thing_not_found", "no such thing"))
				return
			}
			if broken == "never" && n == 4 {
				<-ctx.Done()
				yield(Message{}, ctx.Err())
				return
			}
			if !yield(Message{ID: n, Name: "number", Data: fmt.Appendf(nil, `{"n":%d}`, n), Last: n == 10}, nil) {
				return
			}
		}
	}
}

// keyTable authenticates by a fixed table.
type keyTable map[string]principal.Caller

func (k keyTable) find(_ context.Context, bearer string) (principal.Caller, error) {
	if c, ok := k[bearer]; ok {
		return c, nil
	}
	return principal.Caller{}, fault.New(fault.Denied, "key_unknown", "there is no such key")
}

// ask sends a request; headers are "Name: value" lines that replace the usual ones.
func (w wire) ask(method, path, body string, headers ...string) (*http.Response, string) {
	w.Helper()
	r, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer good")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		} else if r.Header.Set(name, value); value == "" {
			r.Header.Del(name)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	resp, err := client.Do(r)
	if err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		got = append(got, "\nBROKEN: "+err.Error()...)
	}
	return resp, string(got)
}

func TestBadRequestsGetPreciseProblems(t *testing.T) {
	w := newWire(t, nil)
	deep := strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70)
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code, says               string
	}{
		{"unknown route", "GET", "/v1/nothing", "", nil, 404, "route_not_found", "no such operation"},
		{"root", "GET", "/", "", nil, 404, "route_not_found", ""},
		{"trailing slash", "GET", "/v1/test/things/", "", nil, 404, "route_not_found", "empty part"},
		{"double slash", "GET", "/v1//test/count", "", nil, 404, "route_not_found", "empty part"},
		{"dot dot", "GET", "/v1/test/x/../count", "", nil, 404, "route_not_found", ".."},
		{"wrong method", "DELETE", "/v1/test/things", "", nil, 405, "method_not_allowed", "POST"},
		{"odd method", "BREW", "/v1/test/things", "", nil, 405, "method_not_allowed", "BREW"},
		{"no body", "POST", "/v1/test/things", "", nil, 400, "missing_body", ""},
		{"malformed", "POST", "/v1/test/things", `{"name":`, nil, 400, "invalid_json", "line 1, column 9"},
		{"trailing garbage", "POST", "/v1/test/things", `{"name":"a"} x`, nil, 400, "invalid_json", "line 1, column 14"},
		{"two fields of a name", "POST", "/v1/test/things", `{"name":"a","name":"b"}`, nil, 400, "duplicate_field", "name"},
		{"unknown field", "POST", "/v1/test/things", `{"nam":"a"}`, nil, 400, "unknown_field", `"name"`},
		{"field in another case", "POST", "/v1/test/things", `{"NAME":"a"}`, nil, 400, "unknown_field", `"name"`},
		{"deep", "POST", "/v1/test/things", deep, nil, 400, "json_too_deep", "64"},
		{"not an object", "POST", "/v1/test/things", `[]`, nil, 400, "invalid_field", "object"},
		{"null", "POST", "/v1/test/things", `null`, nil, 400, "invalid_field", "object"},
		{"missing field", "POST", "/v1/test/things", `{}`, nil, 400, "missing_field", `"name"`},
		{"field of another type", "POST", "/v1/test/things", `{"name":7}`, nil, 400, "invalid_field", `"name"`},
		{"nested field of another type", "POST", "/v1/test/things", `{"name":"a","labels":{"x":1}}`, nil, 400, "invalid_field", `labels.x`},
		{"a list for a body", "POST", "/v1/test/things", `[]`, nil, 400, "invalid_field", "the body is not accepted: expected object"},
		{"nothing for a body", "POST", "/v1/test/things", `null`, nil, 400, "invalid_field", "the body is not accepted: expected object"},
		{"fraction", "POST", "/v1/test/things", `{"name":"a","count":1.5}`, nil, 400, "invalid_field", `"count"`},
		{"as much as allowed", "POST", "/v1/test/things", `{"name":"a","count":100}`, nil, 201, "", ""},
		{"one more", "POST", "/v1/test/things", `{"name":"a","count":101}`, nil, 400, "invalid_field", `"count"`},
		{"below", "POST", "/v1/test/things", `{"name":"a","count":-1}`, nil, 400, "invalid_field", `"count"`},
		{"as long as allowed", "POST", "/v1/test/things", `{"name":"0123456789"}`, nil, 201, "", ""},
		{"one longer", "POST", "/v1/test/things", `{"name":"0123456789a"}`, nil, 400, "invalid_field", `"name"`},
		{"body at the limit", "POST", "/v1/test/things", `{"name":"a"}` + strings.Repeat(" ", 188), nil, 201, "", ""},
		{"body over the limit", "POST", "/v1/test/things", `{"name":"a"}` + strings.Repeat(" ", 189), nil, 413, "body_too_large", "200"},
		{"other content type", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Type: text/plain"}, 415, "unsupported_media_type",
			"application/json"},
		{"no content type", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Type: "}, 415, "unsupported_media_type", ""},
		{"other charset", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Type: application/json; charset=utf-16"}, 415,
			"unsupported_media_type", ""},
		{"a media type in capitals", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Type: APPLICATION/JSON"}, 201, "", ""},
		{"capitals and a charset", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Type: Application/Json; Charset=UTF-8"}, 201, "",
			""},
		{"a space before the parameter", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Type: application/json ; charset=utf-8"},
			201, "", ""},
		{"a relative of JSON", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Type: application/merge-patch+json"}, 415,
			"unsupported_media_type", ""},
		{"an answer in another form", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Accept: text/csv"}, 201, "", ""},
		{"charset", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Type: application/json; charset=UTF-8"}, 201, "", ""},
		{"compressed", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Content-Encoding: gzip"}, 415, "content_encoding_not_supported", ""},
		{"long key", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Idempotency-Key: " + strings.Repeat("k", 201)}, 400,
			"invalid_idempotency_key", "200"},
		{"longest key", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Idempotency-Key: " + strings.Repeat("k", 200)}, 201, "", ""},
		{"key with a space", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Idempotency-Key: a b"}, 400, "invalid_idempotency_key", ""},
		{"unknown parameter", "GET", "/v1/test/things/a?limt=5", "", nil, 400, "unknown_parameter", "did you mean limit?"},
		{"parameter that is not a number", "GET", "/v1/test/things/a?limit=many", "", nil, 400, "invalid_parameter", "limit"},
		{"parameter below", "GET", "/v1/test/things/a?limit=0", "", nil, 400, "invalid_parameter", "limit"},
		{"parameter above", "GET", "/v1/test/things/a?limit=101", "", nil, 400, "invalid_parameter", "limit"},
		{"no key", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Authorization: "}, 401, "unauthenticated", "Bearer"},
		{"wrong key", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Authorization: Bearer bad"}, 401, "unauthenticated", "Bearer"},
		{"other scheme", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Authorization: Basic good"}, 401, "unauthenticated", "Bearer"},
		{"endless key", "POST", "/v1/test/things", `{"name":"a"}`, []string{"Authorization: Bearer " + strings.Repeat("k", 5000)}, 401,
			"unauthenticated", ""},
		{"too large by code", "POST", "/v1/test/things", `{"name":"large"}`, nil, 413, "file_too_large", ""},
		{"waiting", "POST", "/v1/test/things", `{"name":"wait"}`, nil, 409, "approval_required", "see the approvals"},
		{"cause", "POST", "/v1/test/things", `{"name":"secret"}`, nil, 500, "internal_error", "request id"},
		{"panic", "POST", "/v1/test/things", `{"name":"panic"}`, nil, 500, "internal_error", "request id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := w
			w.T = t
			resp, got := w.ask(c.method, c.path, c.body, c.headers...)
			if resp.StatusCode != c.status {
				t.Fatalf("status %d, want %d: %s", resp.StatusCode, c.status, got)
			}
			for _, h := range []string{"X-Request-Id", "X-Correlation-Id", "X-Content-Type-Options"} {
				if resp.Header.Get(h) == "" {
					t.Errorf("no %s", h)
				}
			}
			if c.code == "" {
				return
			}
			if ct := resp.Header.Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("content type %q, want a problem document", ct)
			}
			var p Problem
			if err := json.Unmarshal([]byte(got), &p); err != nil {
				t.Fatalf("read %q: %v", got, err)
			}
			if p.Status != c.status || p.Code != c.code || p.Title == "" || p.Detail == "" ||
				string(p.RequestID) != resp.Header.Get("X-Request-Id") {
				t.Errorf("got %s, want status %d and error %s", got, c.status, c.code)
			}
			if !strings.Contains(p.Detail+" "+p.Suggestion, c.says) {
				t.Errorf("says %q %q, want %q in it", p.Detail, p.Suggestion, c.says)
			}
			if strings.Contains(got, "/var/lib") || strings.Contains(got, "the handler broke") {
				t.Errorf("the cause leaked: %s", got)
			}
			if (resp.StatusCode == 401) != (resp.Header.Get("WWW-Authenticate") != "") {
				t.Errorf("WWW-Authenticate is %q with status %d", resp.Header.Get("WWW-Authenticate"), resp.StatusCode)
			}
		})
	}
	if log := w.log.String(); !strings.Contains(log, "permission denied") || !strings.Contains(log, "the handler broke") {
		t.Errorf("the causes are not in the log: %s", log)
	}
}

// Row 21: a name that was made to point at this machine, and pages of other origins.
func TestThreat21RequestsThatAPageOfSomebodyElseSendsAreRefused(t *testing.T) {
	w := newWire(t, func(c *Config) { c.Hosts = []string{"box.example"} })
	port := w.url[strings.LastIndexByte(w.url, ':'):]
	for _, c := range []struct {
		name   string
		header []string
		status int
	}{
		{"loopback", nil, 200},
		{"localhost", []string{"Host: localhost" + port}, 200},
		{"localhost in capitals", []string{"Host: LOCALHOST"}, 200},
		{"IPv6", []string{"Host: [::1]:80"}, 200},
		{"named", []string{"Host: box.example"}, 200},
		{"rebound name", []string{"Host: evil.example" + port}, 421},
		{"rebound name that looks near", []string{"Host: localhost.evil.example"}, 421},
		{"address of another", []string{"Host: 192.0.2.1"}, 421},
		{"any address", []string{"Host: 0.0.0.0"}, 421},
		{"own origin", []string{"Origin: " + w.url}, 200},
		{"other origin", []string{"Origin: http://evil.example"}, 403},
		{"other port", []string{"Origin: http://127.0.0.1:1"}, 403},
		{"file", []string{"Origin: null"}, 403},
		{"extension", []string{"Origin: chrome-extension://" + strings.TrimPrefix(w.url, "http://")}, 403},
		{"other site", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"same origin", []string{"Sec-Fetch-Site: same-origin"}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := w
			w.T = t
			if resp, got := w.ask("GET", "/v1/test/things/a", "", c.header...); resp.StatusCode != c.status {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, c.status, got)
			}
		})
	}
}

// Row 27: what a caller sends as an identifier never becomes a second line or header.
func TestThreat27IdentifiersFromOutsideAreRepeatedOnlyWhenWellFormed(t *testing.T) {
	w := newWire(t, nil)
	for _, c := range []struct {
		sent string
		kept bool
	}{
		{"abc-123_X.y:z", true}, {strings.Repeat("a", 128), true}, {strings.Repeat("a", 129), false},
		{"a b", false}, {"a\tb", false}, {`{"a":1}`, false}, {"\u00e9", false}, {"a\x1b[31mred", false},
	} {
		for _, name := range []string{"X-Request-Id", "X-Correlation-Id"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "GET /v1/test/things/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\n%s: %s\r\nConnection: "+
				"close\r\n\r\n", name, c.sent)
			raw, err := io.ReadAll(conn)
			conn.Close()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(raw), name+": "+c.sent+"\r\n"); got != c.kept {
				t.Errorf("%s %q: repeated %v, want %v", name, c.sent, got, c.kept)
			}
		}
	}
	for line := range strings.Lines(w.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not one JSON object: %s", line)
		}
	}
}

func TestRates(t *testing.T) {
	w := newWire(t, func(c *Config) { c.Rates = Rates{Spaces: 1, Runs: 1, Files: 1, General: 3, Failures: 2, Streams: 1} })
	for i, want := range []int{200, 200, 200, 429, 429} {
		resp, got := w.ask("GET", "/v1/test/things/a", "")
		if resp.StatusCode != want || resp.Header.Get("X-RateLimit-Limit") != "3" {
			t.Fatalf("request %d: %d, limit %q, want %d: %s", i, resp.StatusCode, resp.Header.Get("X-RateLimit-Limit"), want, got)
		}
		if left := resp.Header.Get("X-RateLimit-Remaining"); want == 200 && left != fmt.Sprint(2-i) {
			t.Errorf("request %d: %s remain, want %d", i, left, 2-i)
		}
		if want == 429 && (resp.Header.Get("Retry-After") != "20" || !strings.Contains(got, `"error":"rate_limited"`) || !strings.Contains(got,
			`"retry_after":20`)) {
			t.Errorf("request %d: Retry-After %q, %s", i, resp.Header.Get("Retry-After"), got)
		}
	}
	for i, want := range []int{401, 401, 429} {
		if resp, got := w.ask("GET", "/v1/test/things/a", "", "Authorization: Bearer bad"); resp.StatusCode != want {
			t.Errorf("failure %d: %d, want %d: %s", i, resp.StatusCode, want, got)
		}
	}
}

func TestRatesAreReadFromRules(t *testing.T) {
	got, err := ParseRates([]string{"general=1", "streams=1000000", "runs=7", "runs=8", "files=2", "failures=3", "owner=9"})
	if want := (Rates{Spaces: 10, Runs: 8, Files: 2, Claims: 1000, General: 1, Failures: 3, Streams: 1_000_000, Owner: 9}); err != nil ||
		got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := ParseRates(nil); err != nil || got != DefaultRates() {
		t.Errorf("without rules: got %+v, %v", got, err)
	}
	for _, rule := range []string{"general=0", "general=1000001", "general=-1", "general=1e3", "general", "general=", "=5", "General=5",
		"all=5", ""} {
		if _, err := ParseRates([]string{rule}); fault.CodeOf(err) != "rate_invalid" {
			t.Errorf("%q: got %v", rule, err)
		}
	}
}

func TestAnOwnerMayMakeMoreThanOthers(t *testing.T) {
	r := DefaultRates()
	for _, c := range []struct {
		class  RateClass
		caller principal.Caller
		want   int
	}{
		{RateSpaces, principal.Caller{Role: principal.Overlord}, 1000},
		{RateRuns, principal.Caller{Role: principal.Overlord}, 1000},
		{RateFiles, principal.Caller{Role: principal.Overlord}, 1000},
		{RateGeneral, principal.Caller{Role: principal.Overlord}, 1000},
		{RateSpaces, principal.Caller{Role: principal.Overlord, Token: "tok"}, 10},
		{RateSpaces, principal.Caller{Role: principal.Admin}, 10},
		{RateRuns, principal.Caller{Role: principal.Admin}, 60},
		{RateSpaces, principal.Caller{}, 10},
	} {
		if got := r.of(c.class, c.caller); got != c.want {
			t.Errorf("%s of %+v: got %d, want %d", c.class, c.caller, got, c.want)
		}
	}
	r.Owner = 5
	if got := r.of(RateSpaces, principal.Caller{Role: principal.Overlord}); got != 10 {
		t.Errorf("an owner has less than others: %d", got)
	}
	l := newLimiter(r, realClock{})
	_ = l.allow(http.Header{}, "a", RateSpaces, 1)
	err := l.allow(http.Header{}, "a", RateSpaces, 1)
	if f, ok := errors.AsType[*fault.Error](err); !ok || !strings.Contains(f.Suggestion, "agentbox up --rate spaces=N") {
		t.Errorf("the refusal does not name the flag: %+v", err)
	}
}

func TestAValidKeyIsNotLockedOutByTheFailuresOfItsNeighbours(t *testing.T) {
	w := newWire(t, func(c *Config) { c.Rates = Rates{General: 10, Failures: 1} })
	w.ask("GET", "/v1/test/things/a", "", "Authorization: Bearer bad")
	w.ask("GET", "/v1/test/things/a", "", "Authorization: Bearer bad")
	if resp, got := w.ask("GET", "/v1/test/things/a", ""); resp.StatusCode != 200 {
		t.Errorf("status %d: %s", resp.StatusCode, got)
	}
}

func TestALimiterForgetsOnlyWhatIsFullAgain(t *testing.T) {
	l := newLimiter(Rates{General: 1}, realClock{})
	for i := range maxBuckets {
		if err := l.allow(http.Header{}, fmt.Sprint(i), RateGeneral, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.allow(http.Header{}, "newcomer", RateGeneral, 1); err != nil {
		t.Errorf("the first newcomer got %v", err)
	}
	if err := l.allow(http.Header{}, "another", RateGeneral, 1); fault.CodeOf(err) != "rate_limited" {
		t.Errorf("got %v: with the table full of callers, newcomers have one bucket together", err)
	}
	if err := l.allow(http.Header{}, "7", RateGeneral, 1); fault.CodeOf(err) != "rate_limited" {
		t.Errorf("got %v, want the known caller still counted", err)
	}
}

func TestAStreamIsResumedAtEveryCut(t *testing.T) {
	w := newWire(t, nil)
	_, whole := w.ask("GET", "/v1/test/count", "")
	for cut := range 10 {
		resp, rest := w.ask("GET", "/v1/test/count", "", fmt.Sprintf("Last-Event-ID: %d", cut))
		want := whole[strings.Index(whole, fmt.Sprintf("id: %d\n", cut+1)):]
		if rest != want || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("after %d: got %q, want %q", cut, rest, want)
		}
	}
	if resp, got := w.ask("GET", "/v1/test/count", "", "Last-Event-ID: x"); resp.StatusCode != 400 || !strings.Contains(got, "Last-Event-ID") {
		t.Errorf("a cursor that is none: %d %s", resp.StatusCode, got)
	}
}

func TestABrokenStreamDoesNotLookLikeAnEnd(t *testing.T) {
	w := newWire(t, nil)
	if _, got := w.ask("GET", "/v1/test/count?break=yes", ""); !strings.Contains(got, "id: 5\n") || !strings.Contains(got, "BROKEN") ||
		strings.Contains(got, "id: 10") {
		t.Errorf("got %q, want five messages and a broken connection", got)
	}
	if resp, got := w.ask("GET", "/v1/test/count?break=first", ""); resp.StatusCode != 404 || !strings.Contains(got, "thing_not_found") {
		t.Errorf("got %d %q, want the problem of a stream that never began", resp.StatusCode, got)
	}
}

// TestTheStatusOfWhatTheRouterRefusesIsThatOfTheAnswer holds the document against the answer's own status, for each status that the
// router has.
func TestTheStatusOfWhatTheRouterRefusesIsThatOfTheAnswer(t *testing.T) {
	for _, status := range []int{400, 406, 408, 413, 415, 422, 500} {
		p := ProblemOf(ofRouter(&huma.ErrorModel{Status: status, Detail: "it says so"}), "req_1")
		if want := ownStatus(status); p.Status != want || (p.Code == "internal_error") != (want == 500) {
			t.Errorf("the router's %d: the answer has %d, its document %d %s", status, want, p.Status, p.Code)
		}
	}
}
