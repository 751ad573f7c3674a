package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentbox/bench/yardstick"
)

var built = flag.String("agentbox", "", "the daemon's program, where it is built already")

// TestAnUnmodifiedClient lets a client that was written against the first generation of the kernel's contract, and knows nothing else,
// work with the daemon's program on each store: it makes a room, a thread, a message, an approval and a run, claims it, adds a step, a
// tool call and an artifact, follows the room and verifies its chain; and it is refused with the codes of that contract.
func TestAnUnmodifiedClient(t *testing.T) {
	program := *built
	if program == "" {
		program = filepath.Join(t.TempDir(), "agentbox")
		build := exec.Command("go", "build", "-o", program, "./cmd/agentbox")
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the daemon: %v\n%s", err, out)
		}
	}
	t.Run("sqlite", func(t *testing.T) { begin(t, program).story() })
	t.Run("postgres", func(t *testing.T) {
		server, err := yardstick.StartPostgres(t.Context(), 64)
		if errors.Is(err, yardstick.ErrNoPostgres) && os.Getenv("CI") == "" {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
		url, err := server.Database(t.Context(), "agentbox")
		if err != nil {
			t.Fatal(err)
		}
		begin(t, program, "--store", url).story()
	})
}

// stranger is the client: maps and a connection.
type stranger struct {
	t      *testing.T
	c      *client
	engine *client // it is known by its token where it claims runs and keeps them, as the contract has it, and sends a key elsewhere
}

type object = map[string]any

func begin(t *testing.T, program string, store ...string) *stranger {
	t.Helper()
	d, err := newDaemon(program, filepath.Join(t.TempDir(), "data"), store...)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		if _, _, err := d.audit(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c, err := d.client()
	if err != nil {
		t.Fatal(err)
	}
	s := &stranger{t: t, c: c}
	engine := s.id(c, "/v1/engines/register", "engine_id", "", object{"display_name": "Stranger's engine"})
	token := s.id(c, "/v1/engines/"+engine+"/tokens/issue", "token", "engtok_", object{})
	s.engine = c.as(map[string]string{"Authorization": "", "X-Engine-Id": engine, "X-Engine-Token": token})
	return s
}

// does makes a request that is to be answered with success, and returns the answer.
func (s *stranger) does(c *client, method, path string, in any) object {
	s.t.Helper()
	var out object
	if err := c.do(s.t.Context(), method, path, "", in, &out); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

// id makes something and returns its id, of which the contract fixes the name and the prefix.
func (s *stranger) id(c *client, path, field, prefix string, in object) string {
	s.t.Helper()
	made, ok := s.does(c, http.MethodPost, path, in)[field].(string)
	if !ok || !strings.HasPrefix(made, prefix) {
		s.t.Fatalf("POST %s: %s is %q, want one with the prefix %s", path, field, made, prefix)
	}
	return made
}

// refused makes a request that is to be refused.
func (s *stranger) refused(c *client, method, path string, in any, status int, code string) {
	s.t.Helper()
	no, ok := refused(c.do(s.t.Context(), method, path, "", in, nil))
	if !ok || no.Status != status || no.Code != code {
		s.t.Errorf("%s %s: got %v, want %d %s", method, path, no, status, code)
	}
}

func (s *stranger) story() {
	t := s.t
	room := s.id(s.c, "/v1/rooms", "room_id", "room_", object{"title": "Operations", "topic": "Reports", "room_mode": "default",
		"default_lang": "en"})
	thread := s.id(s.c, "/v1/rooms/"+room+"/threads", "thread_id", "th_", object{"title": "Weekly report"})
	var messages []string
	for _, text := range []string{"First.", "Second.", "Third."} {
		messages = append(messages, s.id(s.c, "/v1/threads/"+thread+"/messages", "message_id", "msg_", object{"content_md": text, "lang": "en"}))
	}
	approval := s.id(s.c, "/v1/approvals", "approval_id", "appr_", object{
		"action": "external.write", "title": "Send the report", "room_id": room, "thread_id": thread, "request": object{"to": "everyone"},
		"context": object{"why": "it is Friday"},
		"scope":   "once", "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	s.does(s.c, http.MethodPost, "/v1/approvals/"+approval+"/decide", object{"decision": "approve", "reason": "It is true."})
	s.refused(s.c, http.MethodPost, "/v1/approvals/"+approval+"/decide", object{"decision": "deny"}, 409, "approval_already_decided")
	if decided := s.does(s.c, http.MethodGet, "/v1/approvals/"+approval, nil); decided["status"] != "approved" {
		t.Errorf("the approval is %v", decided)
	}
	run := s.id(s.c, "/v1/runs", "run_id", "run_", object{"room_id": room, "thread_id": thread, "title": "Report", "goal": "One page",
		"input": object{"week": 47}, "tags": []string{"weekly"}})

	claim := s.does(s.engine, http.MethodPost, "/v1/runs/claim", object{"room_id": room})
	token, _ := claim["claim_token"].(string)
	if had, _ := claim["run"].(object); claim["claimed"] != true || token == "" || had["run_id"] != run {
		t.Fatalf("claim: got %v", claim)
	}
	if none := s.does(s.engine, http.MethodPost, "/v1/runs/claim", object{"room_id": room}); none["claimed"] != false {
		t.Errorf("a second claim got %v", none)
	}
	s.does(s.engine, http.MethodPost, "/v1/runs/"+run+"/lease/heartbeat", object{"claim_token": token})
	step := s.id(s.c, "/v1/runs/"+run+"/steps", "step_id", "step_", object{"claim_token": token, "kind": "tool", "title": "Look",
		"input": object{"query": "week 47"}})
	call := s.id(s.c, "/v1/steps/"+step+"/toolcalls", "tool_call_id", "tc_", object{"claim_token": token, "tool_name": "search",
		"title": "Search", "input": object{"query": "week 47"}})
	s.does(s.c, http.MethodPost, "/v1/toolcalls/"+call+"/succeed", object{"claim_token": token, "output": object{"hits": 3}})
	s.id(s.c, "/v1/steps/"+step+"/artifacts", "artifact_id", "art_", object{
		"claim_token": token, "kind": "report", "title": "Week 47", "mime_type": "text/markdown", "content": object{"type": "text",
			"text": "# Week 47"}, "metadata": object{"pages": 1},
	})
	s.refusals(room, thread, run, step, token)
	s.does(s.c, http.MethodPost, "/v1/runs/"+run+"/complete", object{"claim_token": token, "summary": "Done", "output": object{"pages": 1}})
	s.refused(s.c, http.MethodPost, "/v1/runs/"+run+"/complete", object{"claim_token": token}, 409, "run_already_ended")
	s.refused(s.c, http.MethodPost, "/v1/runs/"+run+"/steps", object{"claim_token": token, "kind": "tool"}, 409, "run_not_running")
	if shown := s.does(s.c, http.MethodGet, "/v1/runs/"+run, nil); shown["status"] != "succeeded" {
		t.Errorf("the run is %v", shown["status"])
	}
	s.pages(thread, messages)
	s.follow(room, []string{
		"room.created", "thread.created", "message.created", "message.created", "message.created", "approval.requested", "approval.decided",
		"run.created", "run.started", "step.created",
		"tool.invoked", "tool.succeeded", "artifact.created", "run.completed",
	})
}

// refusals are those of a run under way.
func (s *stranger) refusals(room, thread, run, step, token string) {
	s.t.Helper()
	const none = "01JAAAAAAAAAAAAAAAAAAAAAAA"
	post := http.MethodPost
	s.refused(s.c, post, "/v1/rooms/room_"+none+"/threads", object{"title": "x"}, 404, "room_not_found")
	s.refused(s.c, post, "/v1/threads/th_"+none+"/messages", object{"content_md": "x"}, 404, "thread_not_found")
	s.refused(s.c, http.MethodGet, "/v1/threads/"+thread+"/messages?before=yesterday", nil, 400, "invalid_before")
	s.refused(s.c, post, "/v1/approvals", object{"title": "x", "room_id": room}, 400, "missing_action")
	s.refused(s.c, post, "/v1/runs", object{"room_id": "room_" + none}, 404, "room_not_found")
	s.refused(s.c, http.MethodGet, "/v1/runs?status=asleep", nil, 400, "invalid_status")
	s.refused(s.engine, post, "/v1/runs/"+run+"/lease/heartbeat", object{}, 400, "missing_claim_token")
	s.refused(s.engine, post, "/v1/runs/"+run+"/lease/heartbeat", object{"claim_token": token + "x"}, 409, "lease_token_mismatch")
	s.refused(s.c, post, "/v1/runs/"+run+"/start", object{}, 409, "run_locked")
	s.refused(s.c, post, "/v1/runs/"+run+"/steps", object{"claim_token": token}, 400, "missing_kind")
	s.refused(s.c, post, "/v1/steps/"+step+"/toolcalls", object{"claim_token": token}, 400, "missing_tool_name")
	s.refused(s.c, post, "/v1/steps/"+step+"/artifacts", object{"claim_token": token}, 400, "missing_kind")
	s.refused(s.c, http.MethodGet, "/v1/events?stream_type=room", nil, 400, "stream_type_and_stream_id_required_together")
}

// pages reads a thread from its newest message back.
func (s *stranger) pages(thread string, want []string) {
	s.t.Helper()
	var got []string
	for before := ""; ; {
		page, _ := s.does(s.c, http.MethodGet, "/v1/threads/"+thread+"/messages?limit=2&before="+before, nil)["messages"].([]any)
		for _, m := range page {
			before, _ = m.(object)["message_id"].(string)
			got = append(got, before)
		}
		if len(page) < 2 {
			break
		}
	}
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		s.t.Errorf("the thread has %v, want %v", got, want)
	}
}

// follow reads the room's stream, which has these types of events in this order and maybe others, goes on behind its third as a client
// does that was cut off, and lets the daemon verify the chain.
func (s *stranger) follow(room string, types []string) {
	s.t.Helper()
	all := s.stream("/v1/streams/rooms/"+room+"?from_seq=1", "", types[len(types)-1])
	for i, e := range all {
		if e["stream_seq"] != float64(i+1) || e["workspace_id"] == "" || e["room_id"] != room {
			s.t.Errorf("event %d of the stream is %v", i+1, e)
		}
		if len(types) > 0 && e["event_type"] == types[0] {
			types = types[1:]
		}
	}
	if len(types) > 0 {
		s.t.Errorf("no %s came where it was to come, in %d events", types[0], len(all))
	}
	rest := s.stream("/v1/streams/rooms/"+room, "3", "run.completed")
	if len(rest) != len(all)-3 || rest[0]["event_id"] != all[3]["event_id"] {
		s.t.Errorf("behind the third of %d events came %d", len(all), len(rest))
	}
	events, _ := s.does(s.c, http.MethodGet, "/v1/events?limit=200&stream_type=room&stream_id="+room+"&from_seq=1", nil)["events"].([]any)
	before := any(nil) // the first names none before it
	for i, e := range all {
		if e["prev_event_hash"] != before || i < len(events) && events[i].(map[string]any)["event_hash"] != e["event_hash"] {
			s.t.Errorf("event %d of the stream comes after %v, and the one before it is %v", i+1, e["prev_event_hash"], before)
		}
		before = e["event_hash"]
	}
	if one := s.does(s.c, http.MethodGet, "/v1/events/"+all[0]["event_id"].(string), nil); one["event_hash"] != all[0]["event_hash"] ||
		one["event_hash"] == "" {
		s.t.Errorf("by its id the first event is %v", one)
	}
	report := s.does(s.c, http.MethodGet, "/v1/audit/hash-chain/verify?stream_type=room&stream_id="+room, nil)
	if report["valid"] != true || report["checked"] != float64(len(events)) || report["first_mismatch"] != nil ||
		report["last_event_hash"] != events[len(events)-1].(map[string]any)["event_hash"] {
		s.t.Errorf("the chain of %d events: %v", len(events), report)
	}
}

// stream reads data lines until an event of a type has come.
func (s *stranger) stream(path, last, until string) (events []object) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.c.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", s.c.header["Authorization"])
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%s: %s, %s", path, answer.Status, answer.Header.Get("Content-Type"))
	}
	id := ""
	for in := bufio.NewScanner(answer.Body); in.Scan(); {
		if text, ok := strings.CutPrefix(in.Text(), "id: "); ok {
			id = text
		}
		raw, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		var e object
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			s.t.Fatal(err)
		}
		if seq, _ := e["stream_seq"].(float64); id != strconv.Itoa(int(seq)) {
			s.t.Errorf("event %v has the cursor %s", e["stream_seq"], id)
		}
		if events = append(events, e); e["event_type"] == until {
			return events
		}
	}
	s.t.Fatalf("%s ended before %s came, after %d events", path, until, len(events))
	return nil
}
