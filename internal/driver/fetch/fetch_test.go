package fetch_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/web"
	"agentbox/internal/driver/fetch"
)

// permit is a permit for a request.
func permit(t *testing.T, a policy.Action) policy.Permit {
	t.Helper()
	canonical, err := a.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return policy.Issue(canonical, nil)
}

func of(t *testing.T, r web.Request) policy.Permit {
	t.Helper()
	return permit(t, policy.Action{Type: r.Action(), Workspace: "ws_dev", Principal: "usr_1", Target: r.URL, Method: r.Method})
}

// serve starts a server at a name that leads to it: the client looks it up here.
func serve(t *testing.T, answer http.HandlerFunc) (at string, client *fetch.Client, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]netip.Addr{
		"inner.example": {netip.MustParseAddr("127.0.0.1")},
		"both.example":  {netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("127.0.0.1")},
		"none.example":  {},
	}
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) { return names[host], nil }
	return "http://inner.example:" + u.Port() + "/", fetch.New("agentbox/test", lookup), asked
}

// TestOnlyCheckedAddressesAreDialled asks hosts whose names lead inward: without the permit for that, nobody is dialled.
func TestOnlyCheckedAddressesAreDialled(t *testing.T) {
	at, client, asked := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inner")) })
	for _, host := range []string{"inner.example", "both.example", "127.0.0.1"} {
		r := web.Request{URL: strings.Replace(at, "inner.example", host, 1), Method: "GET"}
		if _, err := client.Fetch(t.Context(), of(t, r), r); !errors.Is(err, web.ErrPrivate) {
			t.Errorf("%s: got %v", host, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
	r := web.Request{URL: at, Method: "GET", Private: true}
	got, err := client.Fetch(t.Context(), of(t, r), r)
	if err != nil || string(got.Body) != "inner" || got.Status != 200 || got.Media != "text/plain" {
		t.Errorf("got %+v, %v", got, err)
	}
	none := web.Request{URL: "http://none.example:80/", Method: "GET"}
	if _, err := client.Fetch(t.Context(), of(t, none), none); !errors.Is(err, web.ErrFailed) {
		t.Errorf("a host without an address: %v", err)
	}
}

// TestAPermitIsForOneRequest shows permits for something else, and one twice.
func TestAPermitIsForOneRequest(t *testing.T) {
	at, client, asked := serve(t, func(http.ResponseWriter, *http.Request) {})
	r := web.Request{URL: at, Method: "GET", Private: true}
	public := r
	public.Private = false
	other := r
	other.URL += "x"
	head := r
	head.Method = "HEAD"
	post := web.Request{URL: at, Method: "POST", Private: true}
	for name, try := range map[string]struct {
		permit policy.Permit
		want   error
		r      web.Request
	}{
		"none": {policy.Permit{}, policy.ErrNoPermit, r}, "a public one": {of(t, public), policy.ErrPermitMismatch, r},
		"another address": {of(t, other), policy.ErrPermitMismatch, r}, "another method": {of(t, head), policy.ErrPermitMismatch, r},
		"post": {of(t, post), web.ErrMethod, post},
	} {
		if _, err := client.Fetch(t.Context(), try.permit, try.r); !errors.Is(err, try.want) {
			t.Errorf("%s: got %v, want %v", name, err, try.want)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
	p := of(t, r)
	if _, err := client.Fetch(t.Context(), p, r); err != nil {
		t.Error(err)
	}
	if _, err := client.Fetch(t.Context(), p, r); !errors.Is(err, policy.ErrPermitSpent) {
		t.Errorf("got %v", err)
	}
}

// TestTheSizeOfAnAnswer is at its edge, also where the host compresses it.
func TestTheSizeOfAnAnswer(t *testing.T) {
	size := 0
	at, client, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=ISO-8859-1")
		_, _ = w.Write([]byte(strings.Repeat("x", size)))
	})
	r := web.Request{URL: at, Method: "GET", Private: true}
	for n, cut := range map[int]bool{web.MaxBody: false, web.MaxBody + 1: true, 0: false} {
		size = n
		got, err := client.Fetch(t.Context(), of(t, r), r)
		if err != nil || got.Cut != cut || len(got.Body) != min(n, web.MaxBody) || got.Charset != "iso-8859-1" {
			t.Errorf("%d bytes: got %d, cut %t, %q, %v", n, len(got.Body), got.Cut, got.Charset, err)
		}
	}
}

// TestWhatIsNotFetched: no redirect is followed, no picture is read, no proxy is used, and no header beyond the bound is taken.
func TestWhatIsNotFetched(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	at, client, asked := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/x", http.StatusFound)
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("x"))
		case "/guess":
			w.Header()["Content-Type"] = nil
			_, _ = w.Write([]byte("\x89PNG\r\n\x1a\n"))
		case "/header":
			w.Header().Set("X", strings.Repeat("x", 80<<10))
		default:
			if len(r.Header["Cookie"])+len(r.Header["Authorization"])+len(r.Header["Referer"]) > 0 || r.UserAgent() != "agentbox/test" {
				t.Errorf("the host is sent %v", r.Header)
			}
		}
	})
	for path, want := range map[string]error{"picture": web.ErrMedia, "guess": web.ErrMedia, "header": web.ErrFailed, "": nil, "moved": nil} {
		r := web.Request{URL: at + path, Method: "GET", Private: true}
		got, err := client.Fetch(t.Context(), of(t, r), r)
		if !errors.Is(err, want) || path == "moved" && (got.Status != 302 || got.Location != "/x") {
			t.Errorf("%q: got %+v, %v, want %v", path, got, err, want)
		}
	}
	if n := asked.Load(); n != 5 {
		t.Errorf("the server was asked %d times", n)
	}
}

// TestAHostThatIsSilent ends with its caller.
func TestAHostThatIsSilent(t *testing.T) {
	at, client, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, stop := context.WithCancel(t.Context())
	r := web.Request{URL: at, Method: "GET", Private: true}
	ended := make(chan error, 1)
	go func() { _, err := client.Fetch(ctx, of(t, r), r); ended <- err }()
	stop()
	if err := <-ended; err == nil {
		t.Error("a host that is silent has answered")
	}
	r.URL = "http://127.0.0.1:1/"
	if _, err := client.Fetch(t.Context(), of(t, r), r); !errors.Is(err, web.ErrFailed) {
		t.Errorf("nobody listens: %v", err)
	}
}
