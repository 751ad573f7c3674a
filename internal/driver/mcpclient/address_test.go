package mcpclient

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"agentbox/internal/domain/mcp"
)

// TestTheAddressOfALogin holds to which addresses a person is sent. They have at most mcp.MaxAddress bytes.
// They are of https unless the issuer is one of the own network.
func TestTheAddressOfALogin(t *testing.T) {
	long := func(scheme string, size int) string {
		at := scheme + "://issuer.example/login?state="
		return at + strings.Repeat("a", size-len(at))
	}
	for _, c := range []struct {
		name    string
		address string
		private bool
		visited bool
	}{
		{"the longest", long("https", mcp.MaxAddress), false, true},
		{"a byte more", long("https", mcp.MaxAddress+1), false, false},
		{"without https", "http://issuer.example/login", false, false},
		{"without https in the own network", "http://issuer.example/login", true, true},
		{"no address", "https://%", false, false},
		{"a script", "javascript:alert(1)//", true, false},
		{"a file", "file:///etc/passwd", true, false},
		{"letters of another script", "https://\u0456ssuer.example/login", false, false},
		{"a user in front of the host", "https://issuer.example@other.example/", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			visited := ""
			f := &flow{guard: &guard{target: mcp.Target{Private: c.private}}, by: mcp.Browser{
				Visit: func(_ context.Context, at string) (mcp.Returned, error) {
					visited = at
					return mcp.Returned{Code: "code", State: "state"}, nil
				},
			}}
			_, err := f.visit(t.Context(), &auth.AuthorizationArgs{URL: c.address})
			if (err == nil) != c.visited || (visited == c.address) != c.visited {
				t.Errorf("visited %.60q, %v", visited, err)
			}
		})
	}
}
