package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheProofsPageIsTrue runs every command of docs/PROOFS.md, in order, on a data directory that a daemon made, and the programs that
// check a proof with stock tools alone. They refuse the same proof with one byte changed.
func TestTheProofsPageIsTrue(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "PROOFS.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	c := &victim{t: t, bin: "agentbox", dir: data, seen: map[string]string{}}
	c.start()
	c.post("/v1/spaces", `{"name":"proof","runtime":"heavy","ttl_seconds":60,"best_effort":true}`)
	c.end()
	program := regexp.MustCompile("(?s)\n```(?:python|go) file=(\\S+)\n(.*?)\n```\n")
	commands := regexp.MustCompile("(?s)\n```sh\n(.*?)```\n")
	for _, found := range program.FindAllSubmatch(page, -1) {
		if err := os.WriteFile(filepath.Join(dir, string(found[1])), append(found[2], '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shell := func(script string) (string, error) {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "AGENTBOX_HOME="+data, "HOME="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	blocks := commands.FindAllSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	said := ""
	for _, block := range blocks {
		out, err := shell(string(block[1]))
		if err != nil {
			t.Fatalf("%s%s%v", block[1], out, err)
		}
		said += out
	}
	for _, want := range []string{"is event 2 of ", " continue 1 with the root ", "the whole log"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing says %q:\n%s", want, said)
		}
	}
	gocheck := func(file string) (string, error) {
		cmd := exec.Command("go", "run", filepath.Join(dir, "check.go"), filepath.Join(dir, file), filepath.Join(dir, "agentbox.pub"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := gocheck("proof.json"); err != nil || !strings.Contains(out, "is record 1 of ") {
		t.Errorf("the Go program says %s, %v", out, err)
	}
	for _, change := range []struct{ name, file, from, to string }{
		{"the type", "proof.json", "key.issued", "key.revoked"},
		{"the place", "proof.json", `\"seq\":2`, `\"seq\":1`},
		{"the size", "proof.json", `/ws_dev\n`, `/ws_dev\n1`},
		{"the earlier size", "continues.json", `"old_size": 1`, `"old_size": 2`},
		{"a type", "log.jsonl", "principal.registered", "principal.registeref"},
		{"completeness", "log.jsonl", `"complete":true`, `"complete":false`},
	} {
		raw, err := os.ReadFile(filepath.Join(dir, change.file))
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Replace(raw, []byte(change.from), []byte(change.to), 1)
		if bytes.Equal(raw, changed) {
			t.Errorf("%s: %s has no %s:\n%s", change.name, change.file, change.from, raw)
		}
		if err := os.WriteFile(filepath.Join(dir, "changed"), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := shell("python3 check_proof.py changed agentbox.pem"); err == nil {
			t.Errorf("%s was changed and the program says %s", change.name, out)
		}
		if out, err := shell("agentbox audit check changed --public-key agentbox.pub"); err == nil {
			t.Errorf("%s was changed and check says %s", change.name, out)
		}
	}
	if out, err := shell("openssl genpkey -algorithm ed25519 -out other && openssl pkey -in other -pubout -out other.pem && python3 " +
		"check_proof.py proof.json other.pem"); err == nil {
		t.Errorf("another key verifies it: %s", out)
	}
	var evidence map[string]any
	raw, err := os.ReadFile(filepath.Join(dir, "proof.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &evidence); err != nil {
		t.Fatal(err)
	}
	proof := evidence["proof"].(map[string]any)
	proof["leaf_index"] = 0
	if raw, err = json.Marshal(evidence); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "changed"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := gocheck("changed"); err == nil {
		t.Errorf("the Go program accepts another place: %s", out)
	}
}
