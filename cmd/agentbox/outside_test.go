package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestThreat14KilledWhileAnApprovalLives kills the real daemon with SIGKILL at each request of the life of an approval: once as soon as
// its event can be read, while its answer may still be on the way, and once behind its answer. The client sends the request again,
// under the same key. Nothing is allowed that nobody approved, and what was approved once is allowed once.
func TestThreat14KilledWhileAnApprovalLives(t *testing.T) {
	t.Parallel()
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data")}
	c.start()
	agent := c.post("/v1/agents", `{"display_name":"mailer"}`)["principal_id"].(string)
	asker := c.post("/v1/keys", `{"name":"mailer","principal_id":"`+agent+`"}`)["key"].(string)
	deaths, stories := 0, 0
	for at := 0; ; at++ { // the request at which it dies
		s := &asking{victim: c, asker: asker, at: at / 2, early: at%2 == 0, name: fmt.Sprint("reader-", at)}
		s.play()
		stories++
		if !s.died {
			break
		}
		deaths++
	}
	if deaths != 2*7 {
		t.Errorf("it died %d times; the story has seven requests", deaths)
	}
	starts, used, decided := 0, map[string]int{}, map[string]bool{}
	for from := 1.0; ; {
		_, page, ok := c.call("GET", fmt.Sprintf("/v1/events?from_seq=%.0f&limit=200", from), "")
		if !ok {
			t.Fatal("the daemon does not answer")
		}
		events := page["events"].([]any)
		for _, raw := range events {
			e := raw.(map[string]any)
			data := e["data"].(map[string]any)
			switch about, _ := e["entity_id"].(string); e["event_type"] {
			case "approval.decided":
				decided[about] = data["status"] == "approved" && e["actor_principal_id"] != agent
			case "approval.used":
				used[about]++
			case "action.begun":
				approval, _ := data["approval_id"].(string)
				if starts++; !decided[approval] {
					t.Errorf("event %v is a start that nobody approved: %v", e["seq"], data)
				}
			}
		}
		if from = page["next_from_seq"].(float64); len(events) < 200 {
			break
		}
	}
	if starts != stories || len(used) != stories {
		t.Errorf("%d starts and %d used approvals in %d stories", starts, len(used), stories)
	}
	for approval, n := range used {
		if n != 1 {
			t.Errorf("%s was used %d times", approval, n)
		}
	}
	c.end()
	c.verify()
}

// asking is one program that asks before it acts.
type asking struct {
	*victim
	asker string // its key
	name  string
	at    int  // the request at which the daemon dies
	early bool // before its answer is read
	n     int  // of the next request
	died  bool
}

func (s *asking) play() {
	s.t.Helper()
	mail := `{"action":"email.send","zone":"high_stakes","target":"` + s.name + `@example.com","request":{"subject":"Report"}}`
	refused := func(when string) {
		s.t.Helper()
		if a := s.does(s.asker, "/v1/policy/evaluate", mail); a["decision"] != "require_approval" || a["blocked"] != true {
			s.t.Errorf("%s, %s: %v", s.name, when, a)
		}
	}
	refused("before it is asked")
	approval := s.does(s.asker, "/v1/approvals", mail)["approval_id"].(string)
	refused("while it is open")
	s.does(s.key, "/v1/approvals/"+approval+"/decide", `{"decision":"hold"}`)
	s.does(s.key, "/v1/approvals/"+approval+"/decide", `{"decision":"approve"}`)
	if a := s.does(s.asker, "/v1/policy/evaluate", mail); a["decision"] != "allow" || a["blocked"] != false || a["approval_id"] != approval {
		s.t.Errorf("%s, approved: %v", s.name, a)
	}
	refused("after its use")
}

// does sends a request until it is answered, and kills the daemon where it is to die.
func (s *asking) does(key, path, body string) map[string]any {
	s.t.Helper()
	mine, owner := s.n, s.key
	s.n++
	send := func() (map[string]any, bool) {
		s.key = key
		status, answer, ok := s.call("POST", path, body, "Idempotency-Key", fmt.Sprintf("%s-%d", s.name, mine))
		s.key = owner
		if ok && status >= 300 {
			s.t.Errorf("%s: POST %s: %d %v", s.name, path, status, answer)
		}
		return answer, ok
	}
	if mine == s.at {
		s.died = true
		if s.early {
			s.killed(func() { send() })
		} else {
			if _, ok := send(); !ok {
				s.t.Fatalf("the daemon died too early\n%s", s.output.String())
			}
			s.kill()
		}
		s.verify()
		s.start()
	}
	answer, ok := send()
	if !ok {
		s.t.Fatalf("the daemon does not answer\n%s", s.output.String())
	}
	return answer
}

// killed kills the daemon as soon as an event of a request can be read.
func (s *asking) killed(request func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/events/stream", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "id: ") { // the stream has begun: it says where
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		request()
	}()
	var e map[string]any
	for e == nil && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	if e == nil {
		s.t.Errorf("no event came: %v", lines.Err())
	}
	s.kill()
	<-sent
}
