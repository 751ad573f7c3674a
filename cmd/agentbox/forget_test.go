package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTheDaemonIsKilledWhileItRedacts kills the daemon with SIGKILL while it redacts a run, again and again: what was recorded by then is done
// by the next daemon, so that no file of the log has the text; what was not is there as before. The log verifies each time.
func TestTheDaemonIsKilledWhileItRedacts(t *testing.T) {
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, chance: rand.New(rand.NewPCG(5, 6))}
	c.start()
	c.space = c.post("/v1/spaces", `{"name":"forget","ttl_seconds":604800,"best_effort":true}`)["id"].(string)
	done := 0
	for round := range max(kills(t)/4, 3) {
		c.round = round
		text := fmt.Sprintf("PRIVATE-%d-TEXT", round)
		run := c.post("/v1/spaces/"+c.space+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"message","content":"`+text+`"}]}`)["runId"].(string)
		for try := 0; !c.logHolds(text); try++ { // documents are written down when the log has been quiet for a moment
			if try == 200 {
				t.Fatalf("round %d: the log does not hold the text before", round)
			}
			<-time.After(20 * time.Millisecond)
		}
		answered := make(chan bool, 1)
		go func() {
			status, _, ok := c.once("POST", "/v1/audit/redactions", `{"run_id":"`+run+`","reason":"a mistake"}`)
			answered <- ok && status == 200
		}()
		select {
		case <-time.After(time.Duration(c.chance.IntN(60)) * time.Millisecond): // the moment of the kill
		case <-t.Context().Done():
		}
		c.kill()
		acknowledged := <-answered
		c.start()
		_, list, _ := c.call("GET", "/v1/audit/redactions?limit=100", "")
		recorded := strings.Contains(fmt.Sprint(list), run)
		for cursor, _ := list["next_cursor"].(string); cursor != "" && !recorded; cursor, _ = list["next_cursor"].(string) {
			_, list, _ = c.call("GET", "/v1/audit/redactions?limit=100&cursor="+cursor, "")
			recorded = strings.Contains(fmt.Sprint(list), run)
		}
		if acknowledged && !recorded {
			t.Fatalf("round %d: the redaction was acknowledged and is not recorded", round)
		}
		if recorded == c.logHolds(text) {
			t.Fatalf("round %d: the redaction is recorded: %v, and the log holds the text: %v", round, recorded, !recorded)
		}
		if recorded {
			done++
		}
	}
	c.end()
	c.verify()
	t.Logf("%d redactions were recorded before the kill", done)
}

// logHolds reports whether the text can be read in a file of the log.
func (c *victim) logHolds(text string) bool {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "log.db*"))
	if err != nil || len(files) == 0 {
		c.t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			c.t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(text)) {
			return true
		}
	}
	return false
}

// TestTheForgettingPageIsTrue runs every command of docs/FORGETTING.md, in order, against a daemon.
func TestTheForgettingPageIsTrue(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "FORGETTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	c := &victim{t: t, bin: "agentbox", dir: data, seen: map[string]string{}}
	c.start()
	said := ""
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindAllSubmatch(page, -1) {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", string(block[1]))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "AGENTBOX_HOME="+data, "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s%s%v", block[1], out, err)
		}
		said += string(out)
	}
	for _, want := range []string{"events are destroyed", "were redacted, as the log says", "not in the proof", "the log is intact", "bring its keys", "start it with"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing says %q:\n%s", want, said)
		}
	}
}
