package main_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const holding = `,"withhold":{"paths":["*.env","*.key"],"except":["site-packages/**"]}`

// reaches are some of the attempts, one of each kind.
var reaches = []string{
	"cat .env", "cat deep/prod.key hard.txt link", "grep -r hunter2 . /tmp", "find / -name '.env' -exec cat {} + 2>/dev/null",
	"tar cf - . | strings", "cat ../withheld/files/.env",
	"for d in /proc/[0-9]*; do cat $d/cwd/.env $d/root/workspace/.env; done", `python3 -c 'print(open(".env").read())'`,
	`node -e 'console.log(require("fs").readFileSync(".env", "utf8"))'`,
}

// holds looks at a space with the project: code reaches nothing of what is withheld, and a person reads all of it.
func (c *victim) holds(when, in string) {
	c.t.Helper()
	for k, said := range c.tries(in, reaches...) {
		if shows(said) {
			c.t.Errorf("%s %q shows it: %.400s", when, reaches[k], said)
		}
	}
	for path, want := range map[string]string{".env": "TOKEN=" + marker + "\n", "hard.txt": "TOKEN=" + marker + "\n", "a/b/.env": marker,
		"deep/prod.key": marker, "x.key/inner.txt": marker, "UPPER.ENV": marker} {
		if status, got := c.file("/v1/spaces/"+in+"/files/"+path+"?withheld=true", c.key); status != 200 || got != want {
			c.t.Errorf("%s %s is %d %q, want %q", when, path, status, got, want)
		}
	}
	if _, got := c.file("/v1/spaces/"+in+"/files/deep/readme", c.key); got != "plain" {
		c.t.Errorf("%s what is not withheld is %q", when, got)
	}
}

// keeping starts a daemon on a data directory, for tests that make many requests.
func keeping(t *testing.T, dir string) *victim {
	t.Helper()
	c := &victim{t: t, bin: "agentbox", dir: dir, seen: map[string]string{}, flags: []string{"--rate", "spaces=1000", "--rate", "runs=1000",
		"--rate", "files=10000"}}
	c.start()
	return c
}

// command runs the command line without a daemon of its own.
func (c *victim) command(args ...string) {
	c.t.Helper()
	if out, err := exec.CommandContext(c.t.Context(), c.bin, args...).CombinedOutput(); err != nil {
		c.t.Fatalf("%q: %v: %s", args, err, out)
	}
}

// cell runs a cell and returns its whole answer.
func (c *victim) cell(in, language, code string) string {
	c.t.Helper()
	body, err := json.Marshal(map[string]string{"language": language, "code": code})
	if err != nil {
		c.t.Fatal(err)
	}
	_, answer, _ := c.call("POST", in+"/contexts/c/cells", string(body))
	raw, err := json.Marshal(answer)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(raw)
}

// TestThreatCellsRememberWhatAStricterPolicyWithholds has cells of both languages read a file before a policy comes that withholds it. Then
// their memory of it is gone, also after a rewind to before and in a fork of before; the answer and the event say so.
func TestThreatCellsRememberWhatAStricterPolicyWithholds(t *testing.T) {
	t.Setenv("AGENTBOX_CACHE", cache())
	c := keeping(t, filepath.Join(t.TempDir(), "data"))
	read := map[string]string{"python": `kept = open(".env").read(); print("read")`,
		"javascript": `let kept = require("fs").readFileSync(".env", "utf8"); console.log("read")`}
	show := map[string]string{"python": `print(kept)`, "javascript": `console.log(kept)`}
	in := "/v1/spaces/" + c.within("nano", `,"withhold":{"paths":[]}`)["id"].(string)
	for language := range read {
		if got := c.cell(in, language, read[language]); !strings.Contains(got, "read\\n") {
			t.Fatalf("%s: %s", language, got)
		}
	}
	last := ""
	for language := range show {
		got := c.cell(in, language, show[language])
		if !shows(got) {
			t.Fatalf("%s does not remember what it read, so that nothing is tried: %s", language, got)
		}
		_, rest, _ := strings.Cut(got, `"runId":"`)
		last, _, _ = strings.Cut(rest, `"`)
	}
	forgot := func(when, in string) {
		t.Helper()
		for language := range show {
			if got := c.cell(in, language, show[language]); shows(got) || strings.Contains(got, `"success":true`) {
				t.Errorf("%s %s remembers it: %s", when, language, got)
			}
		}
		for _, said := range c.tries(strings.TrimPrefix(in, "/v1/spaces/"), "grep -r hunter2 .", "cat .agentbox/contexts/*",
			"strings .agentbox/contexts/c.py") {
			if shows(said) {
				t.Errorf("%s it is in a file that code sees: %.500s", when, said)
			}
		}
	}
	changed := c.post(in+"/policy", `{"policy":"standard"}`)
	if warnings := fmt.Sprint(changed["warnings"]); !strings.Contains(warnings, "contexts that ended: 2") {
		t.Errorf("the answer says %s", warnings)
	}
	if _, answer, _ := c.call("GET", "/v1/events?event_type=space.policy.changed", ""); !strings.Contains(fmt.Sprint(answer),
		"ended_contexts:2") {
		t.Errorf("the event says %v", answer)
	}
	if _, answer, _ := c.call("GET", in+"/contexts", ""); strings.Contains(fmt.Sprint(answer), ".agentbox") {
		t.Errorf("the contexts are %v, want none", answer)
	}
	forgot("after the change", in)

	// The later memory of cells is under the new policy, and stays when the next policy withholds the same.
	c.cell(in, "python", "kept = 'fresh'")
	for _, policy := range []string{"restrictive", "standard"} {
		if changed := c.post(in+"/policy", `{"policy":"`+policy+`"}`); changed["warnings"] != nil {
			t.Errorf("%s withholds the same, and the answer says %v", policy, changed["warnings"])
		}
	}
	if got := c.cell(in, "python", "print(kept)"); !strings.Contains(got, "fresh") {
		t.Errorf("under policies that withhold the same: %s", got)
	}
	c.post(in+"/rewind", `{"to":"`+last+`"}`)
	forgot("after a rewind", in)
	forgot("in a fork", "/v1/spaces/"+c.post(in+"/fork", `{"at":"`+last+`"}`)["id"].(string))
}

// TestWithheldFilesArePromoted promotes a space from nano to the tier of containers. The way back is refused, and a fork of a snapshot of
// before is in the heavier tier as well.
func TestWithheldFilesArePromoted(t *testing.T) {
	t.Setenv("AGENTBOX_CACHE", cache())
	c := keeping(t, filepath.Join(t.TempDir(), "data"))
	in := c.within("auto", holding)["id"].(string)
	c.holds("in nano", in)
	if got := c.post("/v1/spaces/"+in+"/promote", `{"tier":"namespace"}`)["tier"]; got != "namespace" {
		t.Fatalf("the tier is %v", got)
	}
	c.holds("after the promotion", in)
	if status, answer, _ := c.call("POST", "/v1/spaces/"+in+"/promote", `{"tier":"nano"}`); status != 409 ||
		answer["error"] != "tier_not_heavier" {
		t.Errorf("back: %d %v", status, answer)
	}
	c.holds("after the way back was refused", in)
	c.holds("in a fork", c.post("/v1/spaces/"+in+"/fork", `{}`)["id"].(string))
}

// TestWithheldFilesComeBackFromABackup backs a data directory up while its daemon runs, restores it elsewhere, and looks there.
func TestWithheldFilesComeBackFromABackup(t *testing.T) {
	t.Setenv("AGENTBOX_CACHE", cache())
	work := t.TempDir()
	c := keeping(t, filepath.Join(work, "data"))
	nano, heavy := c.within("nano", holding)["id"].(string), c.within("namespace", holding)["id"].(string)
	open := c.within("nano", `,"withhold":{"paths":[]}`)["id"].(string)
	c.post("/v1/spaces/"+open+"/policy", `{"policy":"standard"}`)
	file := filepath.Join(work, "kept.tar.gz")
	c.command("backup", file, "--with-keys", "--data", c.dir)
	c.end()
	again := filepath.Join(work, "again")
	c.command("restore", file, "--data", again)
	c = keeping(t, again)
	c.holds("in nano, restored", nano)
	c.holds("in a container, restored", heavy)
	if said := c.tries(open, "cat .env", `python3 -c 'print(open(".env").read())'`); shows(strings.Join(said, "")) {
		t.Errorf("what a later policy withholds, restored: %s", said)
	}
	if status, got := c.file("/v1/spaces/"+open+"/files/.env", c.key); status != 200 || !strings.Contains(got, marker) {
		t.Errorf("a person reads what a later policy withholds: %d %q", status, got)
	}
	c.holds("in a fork of what was restored", c.post("/v1/spaces/"+nano+"/fork", `{}`)["id"].(string))
}

// TestAWorkspaceLeavesWithoutItsWithheldFiles exports the workspace and takes it in elsewhere: files of spaces stay where they are, and
// no space is there in which something could be withheld no more.
func TestAWorkspaceLeavesWithoutItsWithheldFiles(t *testing.T) {
	t.Setenv("AGENTBOX_CACHE", cache())
	work := t.TempDir()
	c := keeping(t, filepath.Join(work, "data"))
	in := c.within("nano", holding)["id"].(string)
	c.holds("at home", in)
	file, other := filepath.Join(work, "workspace"), filepath.Join(work, "other")
	c.command("export", file, "--data", c.dir)
	c.holds("at home, after the export", in)
	c.command("import", file, "--data", other)
	if left, err := filepath.Glob(filepath.Join(other, "spaces", "spc_*")); err != nil || len(left) > 0 {
		t.Errorf("the other installation has files of spaces: %q, %v", left, err)
	}
	key := c.key
	c = keeping(t, other)
	for _, path := range []string{"/files/.env", "/files/.env?withheld=true"} {
		if status, got := c.file("/v1/spaces/"+in+path, key); status < 400 || shows(got) {
			t.Errorf("%s there: %d %q", path, status, got)
		}
	}
}
