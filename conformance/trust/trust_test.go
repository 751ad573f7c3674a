package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentbox/internal/spaceinit/inittest"
)

// program is the environment variable that says where the program lies that TestMain has built.
const program = "TRUST_AGENTBOX"

// TestMain builds the program as `make build` does.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "agentbox-trust-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := 1
	if err := compile(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir) // what is left of it harms nobody
	os.Exit(code)
}

// compile puts the program into a folder. The init goes in through an overlay, so that nothing is written into the source tree.
func compile(dir string) error {
	guest, err := inittest.Build()
	if err != nil {
		return err
	}
	file, made := filepath.Join(dir, "init"), filepath.Join(dir, "agentbox")
	if err := os.WriteFile(file, guest, 0o600); err != nil {
		return err
	}
	place, err := filepath.Abs(filepath.Join("..", "..", "internal", "spaceinit", "embedded", "program", "agentbox-init"))
	if err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {place: file}})
	if err != nil {
		return err
	}
	over := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(over, overlay, 0o600); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", detector, "-overlay", over, "-o", made, "agentbox/cmd/agentbox").CombinedOutput(); err != nil {
		return fmt.Errorf("build agentbox: %w\n%s", err, out)
	}
	return errors.Join(os.Setenv(program, made), os.Setenv("GORACE", "halt_on_error=1"))
}

// installation starts a daemon as its owner would, and returns its data directory.
func installation(t *testing.T, bin string) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command(bin, "up", "--data", data, "--listen", "127.0.0.1:0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("end the daemon: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the daemon ended with %v\n%s", err, said.String())
		}
	})
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if c, err := locate(data, "", "", http.DefaultTransport); err == nil && c.ready(t.Context()) == nil {
			tick.Stop()
			return data
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the daemon ended with %v\n%s", err, said.String())
		default:
		}
	}
}

// examined runs the examination and returns its exit code and its results by property.
func examined(t *testing.T, data, bin string, over http.RoundTripper, args ...string) (int, map[string]result) {
	t.Helper()
	var out, progress bytes.Buffer
	o, err := parse(append([]string{"--json", "--data", data, "--agentbox", bin, "--temp", t.TempDir(), "--kills", "2", "--moments", "3",
		"--tries", "1"}, args...), &progress)
	if err != nil {
		t.Fatal(err)
	}
	if over != nil {
		o.over = over
	}
	code := examine(t.Context(), o, &out, &progress)
	var report struct {
		Held       bool     `json:"held"`
		Properties []result `json:"properties"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), progress.String())
	}
	if report.Held != (code == exitHeld) {
		t.Errorf("it ends with %d and says held: %v", code, report.Held)
	}
	found := map[string]result{}
	for _, r := range report.Properties {
		found[r.Property] = r
		t.Logf("%s held: %v, %.1f s, %d trials", r.Property, r.Held, r.Seconds, len(r.Trials))
	}
	return code, found
}

// TestEveryPropertyIsShown runs the whole examination against a daemon, as a stranger does.
func TestEveryPropertyIsShown(t *testing.T) {
	bin := os.Getenv(program)
	data := installation(t, bin)
	_, found := examined(t, data, bin, nil)
	for _, p := range properties() {
		r, ok := found[p.name]
		if !ok || len(r.Trials) == 0 {
			t.Errorf("%s was not tried", p.name)
		}
		if p.name == "P-Forget" && !(redacts(t, bin) && seals(t, data)) {
			if r.Held {
				t.Error("P-Forget was shown of a program that cannot redact, or keeps contents as they are")
			}
			continue
		}
		if r.Held {
			continue
		}
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s was not shown: %s", p.name, text)
	}
	c, err := locate(data, "", "", http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	left, err := c.get(t.Context(), "/v1/spaces?limit=100")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range items(left.body["spaces"]) {
		if at(s, "status") != "destroyed" {
			t.Errorf("the space %s is left on the installation, %s", at(s, "name"), at(s, "status"))
		}
	}
	open, err := c.get(t.Context(), "/v1/approvals?status=pending")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(items(open.body["approvals"])); n > 0 {
		t.Errorf("%d questions are left open on the installation: %v", n, open.body["approvals"])
	}
}

// redacts reports whether the program can redact; one that cannot must not be said to forget.
func redacts(t *testing.T, bin string) bool {
	t.Helper()
	out, err := exec.Command(bin, "audit", "redact", "--help").CombinedOutput()
	return err == nil && bytes.Contains(out, []byte("--reason"))
}

// seals reports whether the daemon keeps long contents so that they can be made unreadable; one that does not must not be said to forget.
func seals(t *testing.T, data string) bool {
	t.Helper()
	const word = "is this text kept as it is?\n"
	c, err := locate(data, "", "", http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	space, err := c.newSpace(t.Context(), "seals")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.run(t.Context(), space, 20, operation{"type": "createFile", "id": "long", "path": "long", "content": strings.Repeat(word,
		4000)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.must(t.Context(), "DELETE", "/v1/spaces/"+space, nil); err != nil {
		t.Fatal(err)
	}
	sealed, files := true, 0
	if err := filepath.WalkDir(filepath.Join(data, "blobs"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(name)
		files, sealed = files+1, sealed && !bytes.Contains(raw, []byte(word))
		return err
	}); err != nil || files == 0 {
		t.Fatalf("%d contents, %v", files, err)
	}
	return sealed
}

// mutant is an installation that breaks a promise: its daemon or its program.
type mutant struct {
	property, trial string                                              // that has to fail: its name, and a part of what is tried
	request         func(r *http.Request) (answer string, handled bool) // answers in place of the daemon
	answer          func(r *http.Request, body []byte) []byte           // changes what the daemon answers
	script          string                                              // of a shell, before the program gets its arguments
}

// RoundTrip implements http.RoundTripper: it stands between the examination and every daemon.
func (m mutant) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.request != nil {
		if answer, handled := m.request(r); handled {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		}
	}
	got, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || m.answer == nil {
		return got, err
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, err
	}
	changed := m.answer(r, body)
	if got.StatusCode >= 400 && !bytes.Equal(changed, body) {
		got.StatusCode = 200
	}
	got.Body = io.NopCloser(bytes.NewReader(changed))
	return got, nil
}

// replaced changes one text of some answers into another.
func replaced(path, from, to string) func(*http.Request, []byte) []byte {
	return func(r *http.Request, body []byte) []byte {
		if strings.Contains(r.URL.Path, path) {
			return bytes.ReplaceAll(body, []byte(from), []byte(to))
		}
		return body
	}
}

// intact says that a log is intact, whatever it is.
const intact = `if [ "$1 $2" = "audit verify" ]; then echo '{"valid":true,"workspaces":[{"valid":true,"checked":40,"findings":[]}]}'; ` +
	`exit 0; fi`

// mutants are the programs of which each has to be found out.
func mutants() map[string]mutant {
	return map[string]mutant{
		"a question shows another file": {
			property: "P-Bind", trial: "the one that was asked for", answer: replaced("/v1/approvals/", `"path":"ask/bound.txt"`,
				`"path":"ask/other.txt"`),
		},
		"an approval opens every file": {
			property: "P-Bind", trial: "differs by one thing is refused",
			request: func(r *http.Request) (string, bool) {
				return `{"path": "x"}`, r.Method == "PUT" && strings.Contains(r.URL.Path, "/files/ask/") && !strings.HasSuffix(r.URL.Path, "/bound.txt")
			},
		},
		"the log tells of another action": {
			property: "P-Bind", trial: "bytes that the person saw", answer: replaced("/v1/events", `"timeout_ms":30000`, `"timeout_ms":30001`),
		},
		"every request with an approval is done": {
			property: "P-Once", trial: "write once",
			answer: func() func(*http.Request, []byte) []byte {
				var puts atomic.Int64
				return func(r *http.Request, body []byte) []byte {
					if r.Method == "PUT" && puts.Add(1) > 1 {
						return []byte(`{"path": "ask/once.txt"}`)
					}
					return body
				}
			}(),
		},
		"the text hides a Cyrillic letter": {
			property: "P-Render", trial: "read back", answer: replaced("/explain", `\\u{430}`, "a"),
		},
		"the text is not escaped": {
			property: "P-Render", trial: "nothing but printable", answer: replaced("/explain", `\\u{202e}`, "\u202e"),
		},
		"runs are acknowledged and lost": {
			property: "P-Crash", trial: "killed with SIGKILL",
			answer: func(r *http.Request, body []byte) []byte {
				if r.Method == "GET" && strings.Contains(r.URL.Path, "/v1/runs/") {
					return bytes.ReplaceAll(body, []byte(`"operationId":"two"`), []byte(`"operationId":"one"`))
				}
				return body
			},
		},
		"every log is intact": {property: "P-Verify", trial: "is the first that is named", script: intact},
		"no log was set back": {property: "P-Witness", trial: "set back as a whole", script: intact},
		"proofs are of another tree": {
			property: "P-Witness", trial: "inclusion of the installation's events",
			answer: replaced("/proofs/inclusion", `\"event_version\":1`, `\"event_version\":2`),
		},
		"redaction does nothing": {
			property: "P-Forget", trial: "takes away whole runs",
			script: `if [ "$1 $2" = "audit redact" ]; then echo '{}'; exit 0; fi`,
		},
		"the kill switch is not thrown": {
			property: "P-Closed", trial: "kill switch",
			request: func(r *http.Request) (string, bool) { return `{"on": true}`, r.URL.Path == "/v1/kill-switch" },
		},
	}
}

// TestEachCheckCanFail runs the examination against installations that break a promise, and wants each found out by the trial that is for
// it.
func TestEachCheckCanFail(t *testing.T) {
	for name, m := range mutants() {
		if m.property == "P-Forget" && !redacts(t, os.Getenv(program)) {
			continue // every program of which that is true is found out, by the test above
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := os.Getenv(program)
			if m.script != "" {
				bin = filepath.Join(t.TempDir(), "agentbox")
				if err := os.WriteFile(bin, []byte("#!/bin/sh\n"+m.script+"\nexec "+os.Getenv(program)+" \"$@\"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			code, found := examined(t, installation(t, bin), bin, m, "--only", m.property, "--fail-fast")
			r := found[m.property]
			if code != exitBroken || r.Held {
				t.Fatalf("it ends with %d, and %s held: %v", code, m.property, r.Held)
			}
			for _, tried := range r.Trials {
				if !tried.Held && strings.Contains(tried.What, m.trial) {
					t.Logf("found out: %s: %s", tried.What, strings.Join(tried.Failures, "; "))
					return
				}
			}
			text, err := json.MarshalIndent(r, "", "  ")
			t.Errorf("it was not found out by %q: %s (%v)", m.trial, text, err)
		})
	}
}

// TestUsage refuses what cannot be examined.
// TestAnInterruptionBreaksNoPromise reports an examination that a person ended.
func TestAnInterruptionBreaksNoPromise(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := &examiner{progress: io.Discard, began: time.Now()}
	results, err := x.all(ctx, "")
	if !errors.Is(err, errInterrupted) || len(results) != 0 {
		t.Errorf("got %d results and %v", len(results), err)
	}
	for asJSON, want := range map[bool]string{false: "interrupted: the others were not examined", true: `"held": false`} {
		var out bytes.Buffer
		if err := report(&out, results, true, asJSON); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: %q", err, out.String())
		}
	}
}

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown flag": {"--nonsense"}, "an argument": {"P-Bind"}, "no daemon": {"--data", t.TempDir(), "--agentbox", "true"},
		"no program": {"--agentbox", "no-such-program"}, "no kills": {"--kills", "0"},
	} {
		var out, progress bytes.Buffer
		if code := run(t.Context(), args, &out, &progress); code != exitUsage || progress.Len() == 0 || out.Len() > 0 {
			t.Errorf("%s: got %d, %q, %q", name, code, out.String(), progress.String())
		}
	}
}
