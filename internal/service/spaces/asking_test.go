package spaces_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// asking is a space whose policy asks before anything below docs is touched.
func asking(s *testkit.Stack) id.Space {
	return s.SpaceOf(spaces.Request{TTL: 7 * 24 * time.Hour,
		Overrides: json.RawMessage(`{"ask":{"paths":["docs/**"],"traits":["deletes_tree"]}}`)}).ID
}

// put writes a text over the API.
func put(s *testkit.Stack, in id.Space, by id.Principal, path, text string) error {
	origin := event.Origin{Principal: by}
	_, err := s.Spaces.Files.Write(s.Context(), origin, testkit.WS, in, path, true, "", event.DigestOf([]byte(text)), int64(len(text)),
		strings.NewReader(text))
	return err
}

// question returns the approval that an error names.
func question(t *testing.T, err error) id.Approval {
	t.Helper()
	asked, ok := errors.AsType[*policy.Asked](err)
	if !ok || fault.KindOf(err) != fault.Waiting || fault.CodeOf(err) != policy.CodeApprovalRequired {
		t.Fatalf("got %v, want a question", err)
	}
	return asked.Approval
}

func answer(t *testing.T, s *testkit.Stack, q id.Approval, word policy.DecisionWord) {
	t.Helper()
	if _, err := s.Gate.Approvals.Decide(s.Context(), s.Origin, testkit.WS, q, policy.Answer{Decision: word, Reason: "because"}); err != nil {
		t.Fatal(err)
	}
}

// The questions about a space end with it, also those that a daemon which died did not come to.
func TestQuestionsEndWithTheirSpace(t *testing.T) {
	s := open(t)
	withdrawn := func(q id.Approval) {
		t.Helper()
		doc, err := s.Gate.Approvals.Get(s.Context(), testkit.WS, q)
		if err != nil || doc.Status != policy.Withdrawn || doc.Reason != "the space was destroyed" {
			t.Errorf("the question is %s, %q, %v; want withdrawn", doc.Status, doc.Reason, err)
		}
		if _, err := s.Gate.Approvals.Decide(s.Context(), s.Origin, testkit.WS, q, policy.Answer{Decision: policy.Approve}); err == nil {
			t.Error("it takes an answer")
		}
	}
	in, other := asking(s), asking(s)
	one, two, stays := question(t, put(s, in, s.Owner, "docs/a", "one")), question(t, put(s, in, s.Owner, "docs/b", "two")),
		question(t, put(s, other, s.Owner, "docs/a", "one"))
	answer(t, s, two, policy.Hold)
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in); err != nil {
		t.Fatal(err)
	}
	withdrawn(one)
	withdrawn(two)
	s.Log.DieAt(func(r event.Receipt) testkit.Death {
		for _, e := range r.Events {
			if e.Type == space.EventDestroyed {
				return testkit.Recorded
			}
		}
		return testkit.Survive
	})
	_, _ = s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, other)
	if doc, err := s.Gate.Approvals.Get(s.Context(), testkit.WS, stays); err != nil || doc.Status != policy.Pending {
		t.Fatalf("before the next start the question is %s, %v", doc.Status, err)
	}
	s.Crash()
	withdrawn(stays)
}

func TestAFileThatPolicyAsksAboutIsWrittenOnceApproved(t *testing.T) {
	s := open(t)
	in := asking(s)
	first := question(t, put(s, in, s.Owner, "docs/a", "one"))
	for range 3 {
		if again := question(t, put(s, in, s.Owner, "docs/a", "one")); again != first {
			t.Errorf("the same request asks again: %s, then %s", first, again)
		}
	}
	doc, err := s.Gate.Approvals.Get(s.Context(), testkit.WS, first)
	if err != nil || doc.Space != in || doc.RequestedBy != s.Owner || !strings.Contains(doc.Question.What,
		event.DigestOf([]byte("one")).String()) {
		t.Errorf("the question is %+v, %v", doc, err)
	}
	s.Restart()
	answer(t, s, first, policy.Approve)
	if err := put(s, in, s.Owner, "docs/a", "one"); err != nil {
		t.Fatalf("after the approval: %v", err)
	}
	second := question(t, put(s, in, s.Owner, "docs/a", "one"))
	if second == first {
		t.Error("one approval answers for two requests")
	}
	answer(t, s, second, policy.Refuse)
	err = put(s, in, s.Owner, "docs/a", "one")
	if asked, ok := errors.AsType[*policy.Asked](err); !ok || asked.Approval != second || fault.KindOf(err) != fault.Denied ||
		!strings.Contains(err.Error(), "because") {
		t.Errorf("after the denial: got %v", err)
	}
	s.Tick(policy.DefaultQuestionTime)
	if third := question(t, put(s, in, s.Owner, "docs/a", "one")); third == second {
		t.Error("a denial holds beyond its time")
	}
	if err := put(s, in, s.Owner, "other/a", "one"); err != nil {
		t.Errorf("what policy does not ask about: %v", err)
	}
}

// Reading asks too, and what was approved is read once.
func TestAFileThatPolicyAsksAboutIsReadOnceApproved(t *testing.T) {
	s := open(t)
	in := asking(s)
	q := question(t, put(s, in, s.Owner, "docs/a", "one"))
	answer(t, s, q, policy.Approve)
	if err := put(s, in, s.Owner, "docs/a", "one"); err != nil {
		t.Fatal(err)
	}
	read := func() (string, error) {
		file, err := s.Spaces.Files.Read(s.Context(), s.Origin, testkit.WS, in, "docs/a", spaces.Any)
		if err != nil {
			return "", err
		}
		defer file.Close()
		raw, err := io.ReadAll(file)
		return string(raw), err
	}
	_, err := read()
	answer(t, s, question(t, err), policy.Approve)
	if got, err := read(); err != nil || got != "one" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err = read(); err == nil {
		t.Error("read twice by one approval")
	}
	question(t, err)
	for name, do := range map[string]func() error{
		"list": func() error {
			_, err := s.Spaces.Files.List(s.Context(), s.Origin, testkit.WS, in, "docs", false)
			return err
		},
		"delete": func() error {
			return s.Spaces.Files.Delete(s.Context(), s.Origin, testkit.WS, in, "docs/a", spaces.Any)
		},
		"archive": func() error {
			write, err := s.Spaces.Files.Archive(s.Context(), s.Origin, testkit.WS, in, "docs", spaces.Any)
			if err == nil {
				err = write(io.Discard)
			}
			return err
		},
	} {
		answer(t, s, question(t, do()), policy.Approve)
		if err := do(); err != nil {
			t.Errorf("%s, approved: %v", name, err)
		}
		if err := do(); err == nil {
			t.Errorf("%s: done twice by one approval", name)
		}
	}
	s.Verify()
}

// A request that differs from the approved one is another question, and the approval stays unused.
func TestThreat06AnotherRequestIsNotWhatWasApproved(t *testing.T) {
	s := open(t)
	in, elsewhere := asking(s), asking(s)
	other, err := s.Identity.AddPerson(s.Context(), s.Origin, testkit.WS, "other", principal.Member)
	if err != nil {
		t.Fatal(err)
	}
	q := question(t, put(s, in, s.Owner, "docs/a", "one"))
	answer(t, s, q, policy.Approve)
	for name, do := range map[string]func() error{
		"content": func() error { return put(s, in, s.Owner, "docs/a", "two") },
		"path":    func() error { return put(s, in, s.Owner, "docs/b", "one") },
		"space":   func() error { return put(s, elsewhere, s.Owner, "docs/a", "one") },
		"person":  func() error { return put(s, in, other, "docs/a", "one") },
		"overwrite": func() error {
			_, err := s.Spaces.Files.Write(s.Context(), s.Origin, testkit.WS, in, "docs/a", false, "", event.DigestOf([]byte("one")), 3,
				strings.NewReader("one"))
			return err
		},
		"action": func() error {
			return s.Spaces.Files.Delete(s.Context(), s.Origin, testkit.WS, in, "docs/a", spaces.Any)
		},
	} {
		if asked := question(t, do()); asked == q {
			t.Errorf("another %s: the same question", name)
		}
	}
	if doc, err := s.Gate.Approvals.Get(s.Context(), testkit.WS, q); err != nil || doc.Used {
		t.Errorf("the approval is used: %t, %v", doc.Used, err)
	}
	if err := put(s, in, s.Owner, "docs/a", "one"); err != nil {
		t.Errorf("what was approved: %v", err)
	}
}

// The daemon writes no bytes whose hash is not the approved one. It does not matter who sends them.
func TestThreat08ContentThatChangesUnderWayIsRefused(t *testing.T) {
	s := open(t)
	in := asking(s)
	answer(t, s, question(t, put(s, in, s.Owner, "docs/a", "one")), policy.Approve)
	_, err := s.Spaces.Files.Write(s.Context(), s.Origin, testkit.WS, in, "docs/a", true, "", event.DigestOf([]byte("one")), 3,
		bytes.NewReader([]byte("two")))
	if err == nil {
		t.Fatal("other bytes are written")
	}
	question(t, put(s, in, s.Owner, "docs/a", "one")) // the approval is used up all the same
	answer(t, s, question(t, s.Spaces.Files.Delete(s.Context(), s.Origin, testkit.WS, in, "docs/a", spaces.Any)), policy.Approve)
	if err := s.Spaces.Files.Delete(s.Context(), s.Origin, testkit.WS, in, "docs/a", spaces.Any); !errors.Is(err, space.ErrFileNotFound) {
		t.Errorf("got %v, want %v", err, space.ErrFileNotFound)
	}
}

// However many send the same request: they ask one question, and one of them is let through by its answer.
func TestThreat09ManyRequestsAndOneApproval(t *testing.T) {
	s := open(t)
	in := asking(s)
	var mu sync.Mutex
	asked := map[id.Approval]int{}
	each := func(n int, do func()) {
		var wg sync.WaitGroup
		for range n {
			wg.Go(do)
		}
		wg.Wait()
	}
	each(50, func() {
		err := put(s, in, s.Owner, "docs/a", "one")
		q, ok := errors.AsType[*policy.Asked](err)
		mu.Lock()
		defer mu.Unlock()
		if !ok {
			t.Errorf("got %v, want a question", err)
			return
		}
		asked[q.Approval]++
	})
	if len(asked) != 1 {
		t.Fatalf("%d questions were asked, want 1", len(asked))
	}
	for q := range asked {
		answer(t, s, q, policy.Approve)
	}
	var through atomic.Int32
	var refused sync.Map
	each(50, func() {
		switch err := put(s, in, s.Owner, "docs/a", "one"); fault.KindOf(err) {
		case fault.Waiting, fault.Denied:
			refused.Store(fault.CodeOf(err), true)
		default:
			if err != nil {
				t.Errorf("got %v", err)
				return
			}
			through.Add(1)
		}
	})
	if n := through.Load(); n != 1 {
		t.Errorf("%d requests went through, want 1", n)
	}
	refused.Range(func(code, _ any) bool {
		if code != policy.CodeApprovalRequired && code != "approval_used" {
			t.Errorf("refused with %v", code)
		}
		return true
	})
	begun := 0
	for _, e := range s.Events(0) {
		if e.Type == space.EventFileBegun {
			begun++
		}
	}
	if begun != 1 {
		t.Errorf("%d changes were begun, want 1", begun)
	}
	s.Verify()
}

// Nobody approves their own request while another person could. An agent's rights do not grow over the API either.
func TestThreat14OnlySomebodyElseApproves(t *testing.T) {
	s := open(t)
	in := asking(s)
	otto, err := s.Identity.AddPerson(s.Context(), s.Origin, testkit.WS, "otto", principal.Operator)
	if err != nil {
		t.Fatal(err)
	}
	q := question(t, put(s, in, otto, "docs/a", "one"))
	if _, err := s.Gate.Approvals.Decide(s.Context(), event.Origin{Principal: otto}, testkit.WS, q,
		policy.Answer{Decision: policy.Approve}); !errors.Is(err, approvals.ErrOwnRequest) {
		t.Errorf("got %v, want %v", err, approvals.ErrOwnRequest)
	}
	question(t, put(s, in, otto, "docs/a", "one"))
	answer(t, s, q, policy.Approve)
	s.Tick(time.Minute)
	if err := put(s, in, otto, "docs/a", "one"); err != nil {
		t.Error(err)
	}
	for i := range approvals.MaxOpen + 1 {
		err := put(s, in, otto, fmt.Sprintf("docs/%d", i), "x")
		if i < approvals.MaxOpen {
			question(t, err)
		} else if fault.CodeOf(err) != policy.ReasonQuotaExceeded {
			t.Errorf("question %d: got %v, want quota_exceeded", i+1, err)
		}
	}
}
