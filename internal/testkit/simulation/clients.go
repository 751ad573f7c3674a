package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
)

// operations are the operations of runs; %[1]s is a name of their own.
var operations = []string{
	`{"type":"message","id":"%[1]s","content":"x"}`,
	`{"type":"shell","id":"%[1]s","command":"echo %[1]s"}`,
	`{"type":"shell","id":"%[1]s","command":"echo %[1]s; exit 1"}`,
	`{"type":"shell","id":"%[1]s","command":"rm -rf d; echo %[1]s"}`,
	`{"type":"shell","id":"%[1]s","command":"rm -rf e; echo %[1]s"}`,
	`{"type":"shell","id":"%[1]s","command":"sudo true"}`,
	`{"type":"shell","id":"%[1]s","command":"echo %[1]s # compiler"}`,
	`{"type":"shell","id":"%[1]s","command":"echo %[1]s # lacking"}`,
	`{"type":"createFile","id":"%[1]s","path":"f-%[1]s","content":"x"}`,
	`{"type":"readFile","id":"%[1]s","path":"f"}`,
	`{"type":"deleteFile","id":"%[1]s","path":"f-o0"}`,
}

// play lets everybody act and returns when all that was asked for has ended.
func (s *simulation) play() {
	chance := dice(s.seed, "play")
	over := make(chan struct{})
	var life, people, crowd sync.WaitGroup
	lives := dice(s.seed, "lives")
	life.Go(func() { s.lives(lives, 2+lives.IntN(6), over) })

	spaces := make(chan id.Space, 3)
	maker := dice(s.seed, "maker")
	people.Go(func() {
		defer close(spaces)
		for n := range 1 + maker.IntN(3) {
			spaces <- s.makeSpace(maker, fmt.Sprint("space", n))
		}
	})
	ended, gone := context.WithCancel(context.Background())
	for n := range 2 {
		name := fmt.Sprint("approver", n)
		crowd.Go(func() { s.answers(ended, dice(s.seed, name)) })
	}
	crowd.Go(func() { s.switches(ended, dice(s.seed, "switch")) })
	for in := range spaces {
		for n := range 1 + chance.IntN(2) {
			people.Go(func() { s.client(dice(s.seed, fmt.Sprint("client", in[len(in)-4:], n)), in, n) })
		}
	}
	people.Wait()
	gone()
	crowd.Wait()
	s.verify("at the end")
	close(over)
	life.Wait()
}

// rest lets a random time pass, which the acting client draws from its own source.
func rest(chance *rand.Rand, most time.Duration) {
	time.Sleep(1 + time.Duration(chance.Int64N(int64(most))))
}

// makeSpace asks for a space until it has one; the same request twice is one space.
func (s *simulation) makeSpace(chance *rand.Rand, key string) id.Space {
	runtime := []string{"", space.RuntimeAuto, space.RuntimeHeavy, space.Nano}[dice(s.seed, "runtime of "+key).IntN(4)]
	for {
		var made id.Space
		err := s.call(chance, func(ctx context.Context, d *daemon) error {
			doc, err := d.spaces.Creation.Create(ctx, d.owner, spaces.Request{Workspace: WS, TTL: spaces.MaxTTL, Runtime: runtime, Key: key})
			made = doc.ID
			return err
		})
		if err == nil {
			return made
		}
		s.note("no space: %s", fault.CodeOf(err))
		rest(chance, 50*time.Millisecond)
	}
}

// client asks for runs, each until it is acknowledged and now and then once more, and waits until it has ended.
func (s *simulation) client(chance *rand.Rand, in id.Space, n int) {
	for r := range 1 + chance.IntN(4) {
		rest(chance, 60*time.Millisecond)
		parts := make([]string, 1+chance.IntN(4))
		for i := range parts {
			parts[i] = fmt.Sprintf(operations[chance.IntN(len(operations))], fmt.Sprint("o", i))
		}
		message, err := run.ParseMessage(fmt.Appendf(nil, `{"protocolVersion":"1.0","operations":[%s]}`, strings.Join(parts, ",")))
		if err != nil {
			s.wrong("a message: %v", err)
			return
		}
		q := runs.Request{Workspace: WS, Space: in, Message: message, Key: fmt.Sprintf("%d-%d", n, r), Waits: chance.IntN(2) == 0}
		made := s.start(chance, q)
		if chance.IntN(4) == 0 {
			if again := s.start(chance, q); again != made {
				s.wrong("the same request is run %s and run %s", made, again)
			}
		}
		s.count(func(h *History) { h.Runs++ })
		if chance.IntN(6) == 0 {
			rest(chance, 150*time.Millisecond)
			err := s.call(chance, func(ctx context.Context, d *daemon) error {
				return d.runs.Cancel(ctx, d.owner, WS, made, "the client cancels it")
			})
			s.note("cancelled %s: %s", s.world.name(string(made)), fault.CodeOf(err))
		}
		s.watch(chance, made)
	}
}

func (s *simulation) start(chance *rand.Rand, q runs.Request) id.Run {
	for {
		var made id.Run
		err := s.call(chance, func(ctx context.Context, d *daemon) error {
			doc, err := d.runs.Start(ctx, d.owner, q)
			made = doc.ID
			return err
		})
		if err == nil {
			return made
		}
		s.note("no run: %s", fault.CodeOf(err))
		rest(chance, 30*time.Millisecond)
	}
}

// watch waits until a run has ended. Events that it has seen must not change.
func (s *simulation) watch(chance *rand.Rand, r id.Run) {
	seen := map[string]string{}
	for {
		var doc run.Run
		err := s.call(chance, func(ctx context.Context, d *daemon) (err error) {
			if doc, err = d.runs.History.Find(ctx, WS, r); err != nil {
				s.wrong("run %s was acknowledged, and now: %v", r, err)
				return err
			}
			m, err := d.runs.History.Events(ctx, doc)
			if err != nil {
				return err
			}
			for _, result := range m.Events {
				if result.Type == run.ResApprovalRequired {
					continue
				}
				was := fmt.Sprint(result.Type, result.OK(), result.ReasonCode, result.Timestamp)
				if before, ok := seen[result.OperationID]; ok && before != was {
					s.wrong("the result of %s of %s was %s and is %s", result.OperationID, r, before, was)
				}
				seen[result.OperationID] = was
			}
			return nil
		})
		if err == nil && doc.Status.Ended() {
			s.note("%s is %s", s.world.name(string(r)), doc.Status)
			return
		}
		rest(chance, 40*time.Millisecond)
		if time.Since(s.began) > time.Hour {
			s.wrong("run %s stays %s", r, doc.Status)
			return
		}
	}
}

// answers decides open questions, and repeats some decisions at random. At the end it approves every open question.
func (s *simulation) answers(ended context.Context, chance *rand.Rand) {
	for ended.Err() == nil {
		rest(chance, 80*time.Millisecond)
		_ = s.call(chance, func(ctx context.Context, d *daemon) error {
			for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
				open, err := d.gate.Approvals.List(ctx, WS, approvals.Filter{Status: status})
				if err != nil {
					return err
				}
				// Questions of the same moment have ids in random order.
				slices.SortFunc(open, func(a, b policy.Approval) int {
					return strings.Compare(s.world.name(string(a.Run)), s.world.name(string(b.Run)))
				})
				for _, a := range open {
					word := []policy.DecisionWord{policy.Approve, policy.Approve, policy.Approve, policy.Refuse, policy.Hold}[chance.IntN(5)]
					_, err := d.gate.Approvals.Decide(ctx, d.owner, WS, a.ID, policy.Answer{Decision: word})
					s.note("%s %s: %s", word, s.world.name(string(a.Run)), fault.CodeOf(err))
				}
			}
			return nil
		})
	}
}

// switches throws the kill switch now and then, and lifts it.
func (s *simulation) switches(ended context.Context, chance *rand.Rand) {
	for ended.Err() == nil {
		rest(chance, 2*time.Second)
		if chance.IntN(3) > 0 {
			continue
		}
		err := s.call(chance, func(ctx context.Context, d *daemon) error {
			_, err := d.gate.KillSwitch.Throw(ctx, d.owner, WS, "")
			if err == nil {
				s.world.throw(true)
			}
			return err
		})
		s.note("the kill switch is thrown: %s", fault.CodeOf(err))
		s.count(func(h *History) { h.Switched++ })
		rest(chance, 200*time.Millisecond)
		s.world.throw(false)
		for lifted := false; !lifted; {
			err := s.call(chance, func(ctx context.Context, d *daemon) error {
				state, err := d.gate.KillSwitch.Lift(ctx, d.owner, WS, "")
				return errors.Join(err, onError(state.On))
			})
			if lifted = err == nil; !lifted {
				rest(chance, 20*time.Millisecond)
			}
		}
		s.note("the kill switch is lifted")
	}
}

func onError(on bool) error {
	if on {
		return errors.New("it is thrown")
	}
	return nil
}
