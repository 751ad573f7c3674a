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

// TestTheDaemonIsKilledWhileItRedacts kills the daemon with SIGKILL while it redacts a run, again and again. The next daemon finishes
// recorded redactions, so that no file of the log has the text. Data without a recorded redaction are there as before. The log verifies
// each time.
func TestTheDaemonIsKilledWhileItRedacts(t *testing.T) {
	t.Parallel()
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, chance: rand.New(rand.NewPCG(5,
		6))}
	c.start()
	c.space = c.post("/v1/spaces", `{"name":"forget","runtime":"heavy","ttl_seconds":604800,"best_effort":true}`)["id"].(string)
	done := 0
	for round := range max(kills(t)/4, 3) {
		c.round = round
		text := fmt.Sprintf("PRIVATE-%d-TEXT", round)
		run := c.post("/v1/spaces/"+c.space+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"message","content":"`+text+
			`"}]}`)["runId"].(string)
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

// TestTheDaemonIsKilledWhileTheTimeOfRunsEnds kills the daemon with SIGKILL at the moments at which runs come to the end of their time. The
// next daemon does the rest: in the end each run is forgotten once, each of its events is redacted once, and no file of the log has a text.
func TestTheDaemonIsKilledWhileTheTimeOfRunsEnds(t *testing.T) {
	t.Parallel() // most of it is a minute of waiting
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, chance: rand.New(rand.NewPCG(7,
		8))}
	c.start()
	c.space = c.post("/v1/spaces", `{"name":"keep","runtime":"heavy","ttl_seconds":604800,"best_effort":true}`)["id"].(string)
	const runs = 30
	text := func(n int) string { return fmt.Sprintf("PRIVATE-%d-TEXT", n) }
	for n := range runs {
		c.post("/v1/spaces/"+c.space+"/runs", `{"protocolVersion":"1.0","retention":"1m","operations":[{"type":"message","content":"`+text(n)+
			`"}]}`)
	}
	var last time.Time
	for _, r := range c.list("/v1/runs?limit=100", "runs") {
		until, err := time.Parse(time.RFC3339Nano, r["kept_until"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if until.After(last) {
			last = until
		}
	}
	forgotten := func() (n int) {
		for _, r := range c.list("/v1/runs?limit=100", "runs") {
			if r["forgotten_at"] != nil {
				n++
			}
		}
		return n
	}
	for between := 0; ; c.round++ {
		wait := time.Duration(1000+c.chance.IntN(300)) * time.Millisecond // the daemon looks at its clock every second
		if c.round == 0 {
			wait = time.Until(last) - time.Second
		}
		select {
		case <-time.After(wait):
		case <-t.Context().Done():
		}
		c.kill()
		c.start()
		done := forgotten()
		if done > 0 && done < runs {
			between++
		}
		if done == runs {
			t.Logf("%d kills, %d of them with some of the runs forgotten", c.round+1, between)
			break
		}
		if c.round == 60 {
			t.Fatalf("after %d kills %d of %d runs are forgotten", c.round, done, runs)
		}
	}
	count := map[string]int{}
	for from := 1.0; ; {
		events := c.list(fmt.Sprintf("/v1/events?event_types=run.forgotten,event.redacted&limit=200&from_seq=%.0f", from), "events")
		for _, e := range events {
			from = e["seq"].(float64) + 1
			if e["event_type"] == "run.forgotten" {
				count[e["run_id"].(string)]++
			} else {
				count[e["causation_id"].(string)]++
			}
		}
		if len(events) < 200 {
			break
		}
	}
	if len(count) < 4*runs {
		t.Errorf("%d runs and events were forgotten, want %d and more", len(count), 4*runs)
	}
	for what, n := range count {
		if n != 1 {
			t.Errorf("%s was forgotten %d times", what, n)
		}
	}
	c.end()
	c.verify()
	for n := range runs {
		if c.logHolds(text(n)) {
			t.Errorf("the log holds the text of run %d", n)
		}
	}
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
	for _, want := range []string{"events are destroyed", "were redacted, as the log says", "not in the proof", "the log is intact",
		"bring its keys", "start it with"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing says %q:\n%s", want, said)
		}
	}
}
