package httpapi_test

import (
	"net/http"
	"testing"
)

// TestWhoIsNotKnownYetIsToldNothingOfTheBody sends an empty body to each operation that needs no key: the credential is judged first.
func TestWhoIsNotKnownYetIsToldNothingOfTheBody(t *testing.T) {
	d := startDaemon(t)
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/v1/auth/login":           {http.StatusUnauthorized, "login_failed"},
		"/v1/auth/refresh":         {http.StatusUnauthorized, "refresh_token_invalid"},
		"/v1/auth/bootstrap-owner": {http.StatusForbidden, "bootstrap_forbidden"},
	} {
		if status, raw := d.ask(t, "nobody", "POST", path, `{}`); status != want.status || code(raw) != want.code {
			t.Errorf("%s of {}: %d %s, want %d %s", path, status, raw, want.status, want.code)
		}
	}
}
