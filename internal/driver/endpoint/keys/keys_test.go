package keys_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint/keys"
	"agentbox/internal/driver/keyring"
)

const secret = "zai-0123456789abcdef.Secret"

func permit(t *testing.T, ws id.Workspace, name, method string) policy.Permit {
	t.Helper()
	raw, err := policy.Action{Type: policy.ModelKey, Workspace: ws, Principal: "usr_1", Subject: name, Method: method}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return policy.Issue(raw, nil)
}

func open(t *testing.T, env map[string]string) (*keys.Store, string) {
	t.Helper()
	folder := t.TempDir()
	ring, err := keyring.Open(filepath.Join(folder, "ring"), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := keys.Open(filepath.Join(folder, "keys"), ring, rand.Reader, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, filepath.Join(folder, "keys")
}

// TestAKeyIsSealedAndRemoved sets a key, replaces it and removes it. No file holds it, and nobody but the owner reads the files.
func TestAKeyIsSealedAndRemoved(t *testing.T) {
	s, folder := open(t, nil)
	ctx, ws := context.Background(), id.DefaultWorkspace
	for _, value := range []string{secret, secret + "2"} {
		if err := s.Set(ctx, permit(t, ws, "zai", "set"), ws, "zai", model.NewSecret(value)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Key(ctx, ws, "zai"); err != nil || got.Reveal() != value {
			t.Fatalf("got %q, %v", got.Reveal(), err)
		}
	}
	files := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		info, statErr := d.Info()
		if statErr != nil || info.Mode().Perm() != 0o600 || bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%s has the mode %v, or holds the key", path, info.Mode())
		}
		return err
	})
	if err != nil || files != 1 {
		t.Errorf("got %d files, %v", files, err)
	}
	kept, err := os.ReadFile(filepath.Join(folder, string(ws), "zai"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, permit(t, ws, "zai", "remove"), ws, "zai"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Key(ctx, ws, "zai"); !errors.Is(err, model.ErrNoKey) {
		t.Errorf("removed: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, string(ws), "zai"), kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Key(ctx, ws, "zai"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a file of a backup: got %q, %v", got.Reveal(), err)
	}
}

// TestAKeyOfTheEnvironment is there for the default workspace, by value or by file, and a key that was set goes before it.
func TestAKeyOfTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, map[string]string{"AGENTBOX_MODEL_KEY_Z_AI": "from-the-environment", "AGENTBOX_MODEL_KEY_OTHER_FILE": file,
		"AGENTBOX_MODEL_KEY_BAD": "a b", "AGENTBOX_MODEL_KEY_GONE_FILE": file + ".gone"})
	ctx, ws := context.Background(), id.DefaultWorkspace
	for name, want := range map[string]string{"z.ai": "from-the-environment", "other": "from-a-file"} {
		if got, err := s.Key(ctx, ws, name); err != nil || got.Reveal() != want {
			t.Errorf("%s: got %q, %v", name, got.Reveal(), err)
		}
		if _, err := s.Key(ctx, "ws_other", name); !errors.Is(err, model.ErrNoKey) {
			t.Errorf("%s in another workspace: got %v", name, err)
		}
	}
	for _, name := range []string{"bad", "gone"} {
		if _, err := s.Key(ctx, ws, name); err == nil || strings.Contains(err.Error(), "a b") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := s.Set(ctx, permit(t, ws, "z.ai", "set"), ws, "z.ai", model.NewSecret(secret)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Key(ctx, ws, "z.ai"); err != nil || got.Reveal() != secret {
		t.Errorf("got %q, %v", got.Reveal(), err)
	}
}

// TestNoKeyWithoutItsPermit refuses permits of other names, ways and workspaces, and what is not a key.
func TestNoKeyWithoutItsPermit(t *testing.T) {
	s, _ := open(t, nil)
	ctx, ws := context.Background(), id.DefaultWorkspace
	for what, p := range map[string]policy.Permit{
		"none": {}, "another name": permit(t, ws, "other", "set"), "another way": permit(t, ws, "zai", "remove"),
		"another workspace": permit(t, "ws_other", "zai", "set"),
	} {
		if err := s.Set(ctx, p, ws, "zai", model.NewSecret(secret)); err == nil {
			t.Errorf("%s: the key was set", what)
		}
	}
	for what, value := range map[string]string{"empty": "", "a line break": "a\nb", "too long": strings.Repeat("x", model.MaxKeyBytes+1)} {
		if err := s.Set(ctx, permit(t, ws, "zai", "set"), ws, "zai", model.NewSecret(value)); err == nil {
			t.Errorf("%s: the key was set", what)
		}
	}
	if err := s.Set(ctx, permit(t, ws, "zai", "set"), ws, "zai", model.NewSecret(strings.Repeat("x", model.MaxKeyBytes))); err != nil {
		t.Errorf("the longest key: %v", err)
	}
	if _, err := s.Key(ctx, ws, "../zai"); err == nil {
		t.Error("a name leads out of the folder")
	}
}

// TestGrantsAreSealed keeps the grant of a login with its permit, renews it and destroys it. No file holds it.
func TestGrantsAreSealed(t *testing.T) {
	folder := t.TempDir()
	ring, err := keyring.Open(filepath.Join(folder, "ring"), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := keys.OpenGrants(filepath.Join(folder, "logins"), ring, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ctx, ws := context.Background(), id.DefaultWorkspace
	may := func(ws id.Workspace, server, method string) policy.Permit {
		raw, err := policy.Action{Type: policy.MCPConfigure, Workspace: ws, Principal: "usr_1", Subject: server, Method: method}.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return policy.Issue(raw, nil)
	}
	for what, p := range map[string]policy.Permit{"none": {}, "another server": may(ws, "other", mcp.MethodLogin),
		"no login": may(ws, "shop", ""), "another workspace": may("ws_other", "shop", mcp.MethodLogin)} {
		if err := s.Keep(ctx, p, ws, "shop", mcp.NewGrant("tokens")); err == nil {
			t.Errorf("%s: the grant was kept", what)
		}
	}
	if _, err := s.Grant(ctx, ws, "shop"); !errors.Is(err, mcp.ErrLogin) {
		t.Errorf("before: got %v", err)
	}
	long := strings.Repeat(secret, mcp.MaxGrant/len(secret)+1)[:mcp.MaxGrant]
	if err := s.Keep(ctx, may(ws, "shop", mcp.MethodLogin), ws, "shop", mcp.NewGrant(long)); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(ctx, ws, "shop", mcp.NewGrant(long+"x")); err == nil {
		t.Error("a grant that is too long was kept")
	}
	if got, err := s.Grant(ctx, ws, "shop"); err != nil || got.Reveal() != long {
		t.Errorf("got %d bytes, %v", len(got.Reveal()), err)
	}
	path := filepath.Join(folder, "logins", string(ws), "shop")
	kept, err := os.ReadFile(path)
	if err != nil || bytes.Contains(kept, []byte(secret)) {
		t.Errorf("the file holds the grant, or %v", err)
	}
	if err := s.Renew(ctx, ws, "shop", mcp.NewGrant("other tokens")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Grant(ctx, ws, "shop"); !errors.Is(err, mcp.ErrLogin) {
		t.Errorf("the file of a backup: got %q, %v", got.Reveal(), err)
	}
	for range 2 {
		if err := s.Forget(ctx, ws, "shop"); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Grant(ctx, ws, "../shop"); err == nil || errors.Is(err, mcp.ErrLogin) {
		t.Errorf("a name leads out of the folder: %v", err)
	}
}
