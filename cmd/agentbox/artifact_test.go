package main_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

const gibibyte = 1 << 30

// pattern reads n bytes that repeat only after a mebibyte and some, so that no two blocks of anybody's are alike.
func pattern(n int64) io.Reader { return io.LimitReader(&repeated{block: block()}, n) }

func block() []byte {
	b := make([]byte, 1<<20+13)
	for i := range b {
		b[i] = byte(i*7 + i>>9)
	}
	return b
}

type repeated struct {
	block []byte
	at    int
}

// Read implements io.Reader.
func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.block[r.at:])
	r.at = (r.at + n) % len(r.block)
	return n, nil
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that a process had so far, in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := highWater.FindSubmatch(raw)
	if m == nil {
		t.Fatalf("the kernel says nothing of it:\n%s", raw)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// TestAnArtifactOfAGibibyte sends one to the daemon, which takes it as it comes and keeps little of it in memory, and reads it back. A
// byte more is refused, when it is declared and when it is announced.
func TestAnArtifactOfAGibibyte(t *testing.T) {
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, flags: []string{"--engine",
		"external", "--claim-time", "10m"}} // no heartbeat is sent, and a slow machine hashes a gibibyte for longer than 30 s
	c.start()
	c.post("/v1/runs", `{"room_id":"room_00000000000000000000000000","title":"a large output"}`)
	claim := c.post("/v1/runs/claim", `{}`)
	token := claim["claim_token"].(string)
	run := claim["run"].(map[string]any)["run_id"].(string)
	step := c.post("/v1/runs/"+run+"/steps", `{"kind":"work","claim_token":"`+token+`"}`)["step_id"].(string)
	hash := sha256.New()
	if n, err := io.Copy(hash, pattern(gibibyte)); err != nil || n != gibibyte {
		t.Fatal(n, err)
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	declared := func(size int64) string {
		return fmt.Sprintf(`{"kind":"disk","claim_token":%q,"size_bytes":%d,"sha256":%q,"content":{"type":"none"}}`, token, size, digest)
	}
	status, answer, _ := c.call("POST", "/v1/steps/"+step+"/artifacts", declared(gibibyte+1))
	if status != 400 && status != 413 {
		t.Errorf("a byte more, as declared: %d %v", status, answer)
	}
	artifact := c.post("/v1/steps/"+step+"/artifacts", declared(gibibyte))["artifact_id"].(string)
	path := "/v1/artifacts/" + artifact + "/content"
	send := func(content io.Reader, length int64) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "PUT", c.url+path, content)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = length
		r.Header.Set("Authorization", "Bearer "+c.key)
		r.Header.Set("X-Claim-Token", token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		var problem struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(raw, &problem)
		return resp.StatusCode, problem.Error
	}
	if status, code := send(pattern(gibibyte+1), gibibyte+1); status != 413 || code != "artifact_too_large" {
		t.Errorf("a byte more, as announced: %d %s", status, code)
	}
	before := peak(t, c.daemon.Process.Pid)
	if status, code := send(pattern(gibibyte), gibibyte); status != 200 {
		t.Fatalf("a gibibyte: %d %s\n%s", status, code, c.output.String())
	}
	const most = 64 << 20
	if grown := peak(t, c.daemon.Process.Pid) - before; grown > most {
		t.Errorf("the daemon's memory grew by %d bytes, at most %d are right", grown, most)
	} else {
		t.Logf("the daemon's memory grew by %d KiB from %d", grown>>10, before>>10)
	}
	r, err := http.NewRequestWithContext(context.Background(), "GET", c.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-", gibibyte-1000))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	end, err := io.ReadAll(resp.Body)
	want := &repeated{block: block(), at: (gibibyte - 1000) % (1<<20 + 13)}
	tail := make([]byte, 1000)
	if _, full := io.ReadFull(want, tail); full != nil {
		t.Fatal(full)
	}
	if err != nil || resp.StatusCode != 206 || !bytes.Equal(end, tail) {
		t.Errorf("its last bytes: %d, %d of them, %v", resp.StatusCode, len(end), err)
	}
	c.end()
}
