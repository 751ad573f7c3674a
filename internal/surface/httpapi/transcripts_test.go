package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/audit"
)

// A transcript carries the proof of its events, which needs nothing but the file, and which a change breaks.
func TestATranscriptProvesItsEvents(t *testing.T) {
	d := startDaemon(t)
	space := d.must(t, "POST", "/v1/spaces", `{"name":"proven"}`, "id")
	made := d.must(t, "POST", "/v1/spaces/"+space+"/runs",
		`{"protocolVersion":"1.0","operations":[{"type":"createFile","id":"a","path":"f","content":"<x>"}]}`, "runId")
	if err := d.app.Signer.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, raw := d.ask(t, "", "GET", "/v1/runs/"+made+"/transcript?redact=none", "")
	read := func(raw []byte) (run.Attestation, error) {
		t.Helper()
		told, err := run.ReadTranscript(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		return audit.Attest(&told)
	}
	a, err := read(raw)
	if err != nil || a.Proven != a.Events || a.Whole != a.Events || a.Bound != 1 || a.Size == 0 ||
		a.PublicKey != string(d.app.Prover.PublicKey()) {
		t.Fatalf("got %+v, %v", a, err)
	}
	for name, change := range map[string]func(*run.Proof){
		"another path": func(p *run.Proof) { p.Inclusions[0].Hashes[0] = p.Inclusions[0].Hashes[1] },
		"another place": func(p *run.Proof) {
			p.Inclusions[0].Seq, p.Inclusions[1].Seq = p.Inclusions[1].Seq, p.Inclusions[0].Seq
		},
		"one place twice":      func(p *run.Proof) { p.Inclusions[0].Seq = p.Inclusions[1].Seq },
		"a place of no event":  func(p *run.Proof) { p.Inclusions[0].Seq = 1 << 40 },
		"another checkpoint":   func(p *run.Proof) { p.Checkpoint = strings.Replace(p.Checkpoint, "/ws_dev", "/ws_own", 1) },
		"a key of another log": func(p *run.Proof) { p.PublicKey = "x" + p.PublicKey },
	} {
		told, err := run.ReadTranscript(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		change(told.Proof)
		if _, err := audit.Attest(&told); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

// A transcript whose hash was made anew after a change is refused, and one that comes while another is read has to wait.
func TestWhatIsNotImported(t *testing.T) {
	d := startDaemon(t)
	space := d.must(t, "POST", "/v1/spaces", `{"name":"here"}`, "id")
	made := d.must(t, "POST", "/v1/spaces/"+space+"/runs",
		`{"protocolVersion":"1.0","operations":[{"type":"shell","id":"a","command":"echo one"}]}`, "runId")
	_, raw := d.ask(t, "", "GET", "/v1/runs/"+made+"/transcript?redact=none", "")
	changed := bytes.Replace(raw, []byte(`"stdout":"one\n"`), []byte(`"stdout":"two\n"`), 1)
	at := bytes.LastIndexByte(changed[:len(changed)-1], '\n') + 1
	var end run.TranscriptLine
	if err := json.Unmarshal(changed[at:], &end); err != nil {
		t.Fatal(err)
	}
	end.End.Digest = event.Digest(sha256.Sum256(changed[:at]))
	last, err := json.Marshal(end)
	if err != nil {
		t.Fatal(err)
	}
	changed = append(append(bytes.Clone(changed[:at]), last...), '\n')
	if status, _, got := d.keyed(t, "POST", "/v1/runs/import", "application/x-ndjson", "k", string(changed)); status != 400 ||
		!strings.Contains(got, `"transcript_forged"`) {
		t.Errorf("a forged one: %d %s", status, got)
	}

	slow, feed := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", d.address+"/v1/runs/import", slow)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[""])
	r.Header.Set("Content-Type", "application/x-ndjson")
	first := make(chan int, 1)
	go func() {
		status := 0
		if answer, err := http.DefaultClient.Do(r); err == nil {
			status = answer.StatusCode
			answer.Body.Close()
		}
		first <- status
	}()
	half := len(raw) / 2
	if _, err := feed.Write(raw[:half]); err != nil {
		t.Fatal(err)
	}
	// The first one may not have been let in yet; then the second is, and the first is told to come again.
	status, _, got := d.keyed(t, "POST", "/v1/runs/import", "application/x-ndjson", "other", string(raw))
	if _, err := feed.Write(raw[half:]); err != nil && status != 201 {
		t.Fatal(err)
	}
	feed.Close()
	if one := <-first; !(status == 503 && strings.Contains(got, `"busy"`) && one == 201 || status == 201 && (one == 503 || one == 0 ||
		one == 201)) {
		t.Errorf("the second: %d %s; the first: %d", status, got, one)
	}
}
