package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// A proof of the API is checked without the daemon, with the key that it published before. Each workspace has its own proofs.
func TestProofsOfTheAPI(t *testing.T) {
	d := startDaemon(t)
	get := func(as, path string) []byte {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+d.keys[as])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, resp.StatusCode, body, err)
		}
		return body
	}
	var key struct {
		PublicKey string `json:"public_key"`
		Ed25519   string `json:"ed25519"`
	}
	var checkpoint struct {
		Note string `json:"checkpoint"`
		Size uint64 `json:"size"`
	}
	for as, origin := range map[string]string{"": "ws_dev", "other": "ws_other"} {
		if err := json.Unmarshal(get(as, "/v1/audit/key"), &key); err != nil {
			t.Fatal(err)
		}
		public, err := merkle.ParsePublicKey(key.PublicKey)
		if err != nil || base64.StdEncoding.EncodeToString(public.Raw()) != key.Ed25519 {
			t.Fatalf("key %+v, %v", key, err)
		}
		if err := json.Unmarshal(get(as, "/v1/audit/checkpoint"), &checkpoint); err != nil {
			t.Fatal(err)
		}
		c, err := merkle.Open([]byte(checkpoint.Note), public)
		if err != nil || c.Size != checkpoint.Size || c.Origin != public.Name()+"/"+origin {
			t.Errorf("checkpoint %+v, %v", c, err)
		}
		checked, err := audit.Check(bytes.NewReader(get(as, "/v1/audit/proofs/inclusion?seq=2")), public)
		if err != nil || checked.Kind != "event" || checked.Event.Seq != 2 || !checked.Event.HasData ||
			string(checked.Event.Workspace) != origin {
			t.Errorf("inclusion %+v, %v", checked, err)
		}
		checked, err = audit.Check(bytes.NewReader(get(as, "/v1/audit/proofs/consistency?old_size=1")), public)
		if err != nil || checked.Kind != "consistency" || checked.Old != 1 || checked.Checkpoint.Size < 2 {
			t.Errorf("consistency %+v, %v", checked, err)
		}
	}
}
