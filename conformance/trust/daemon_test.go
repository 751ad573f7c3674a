package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTheKeyIsThatOfADaemonThatCanWork has a daemon find a key of which a power cut has left a part. It makes another one between the
// moments at which it says where it listens and at which it can work.
func TestTheKeyIsThatOfADaemonThatCanWork(t *testing.T) {
	data, whole := t.TempDir(), "abx_whole"
	key := filepath.Join(data, "owner.key")
	put := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Error(err)
		}
	}
	put(key, []byte("abx_wh"))
	var asked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz" && asked.CompareAndSwap(false, true):
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/readyz":
			put(key, []byte(whole+"\n"))
		case r.Header.Get("Authorization") != "Bearer "+whole:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	x := &examiner{options: options{over: http.DefaultTransport}, bin: "agentbox"}
	d, err := x.up(t.Context(), data, func(*exec.Cmd, chan<- error) error {
		state, err := json.Marshal(map[string]string{"addr": strings.TrimPrefix(server.URL, "http://")})
		put(filepath.Join(data, "daemon.json"), state)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.get(t.Context(), "/v1/runs"); err != nil {
		t.Errorf("a request with the key of the daemon: %v", err)
	}
}
