package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// history holds the requests of one store's clients, the answers, and the daemon's view afterwards. The answers are in the order
// of no clock: many clients add to it.
type history struct {
	Posts    []post
	Runs     []order
	Claims   []claim
	Steps    []step
	Followed []followed

	Streams map[string][]entry   // of each room, from its first event on, as the log tells
	Pages   map[string][]message // of each thread, the oldest first, as the pages tell
	Shown   map[string]shown     // each run, as the API shows it
}

// post is a message that was acknowledged.
type post struct{ Room, Thread, Message, Content string }

// order is an acknowledged run; Ended is the end status in the answer to its engine, "" if there was none.
type order struct{ Room, Run, Ended string }

// claim is an answer to an engine that the run is its own.
type claim struct {
	Run, Engine string
	Fence       uint64
}

// step is a step that was acknowledged.
type step struct{ Run, Step string }

// entry is an event of a room's stream.
type entry struct {
	Seq        uint64
	ID, Type   string
	Prev, Hash string
	Thread     string
	Message    string // of message.created
	Run, Step  string
	Fence      uint64 // of run.claimed
	Content    string // of message.created
	Bytes      int    // of its data
}

// followed holds the events that one follower of a room got, in order.
type followed struct {
	Name, Room string
	Got        []ref
}

type ref struct {
	Seq uint64
	ID  string
}

// message is one of a thread's pages.
type message struct{ Message, Content string }

// shown is a run with its steps as they are shown.
type shown struct {
	Status string
	Steps  []string
}

// breach is a broken promise of the API, with its place.
type breach struct{ What, Where string }

// breaches accumulate what is wrong; after the first few of a kind the rest is only counted.
type breaches struct {
	list  []breach
	count map[string]int
}

const fewOfAKind = 5

func (b *breaches) add(what, where string, args ...any) {
	if b.count == nil {
		b.count = map[string]int{}
	}
	if b.count[what]++; b.count[what] <= fewOfAKind {
		b.list = append(b.list, breach{what, fmt.Sprintf(where, args...)})
	}
}

// check holds a history against the promises of the API: nothing acknowledged is lost or doubled, streams have neither gaps nor broken
// chains, followers get each event once and in order, documents are the fold of the events, and a run has one owner and one end. It returns
// the breaches, at most a few of each kind.
func (h *history) check() []breach {
	var b breaches
	h.streams(&b)
	h.messages(&b)
	h.followers(&b)
	h.runs(&b)
	slices.SortStableFunc(b.list, func(x, y breach) int { return cmp.Compare(x.What, y.What) })
	for what, n := range b.count {
		if n > fewOfAKind {
			b.list = append(b.list, breach{what, fmt.Sprintf("and %d more", n-fewOfAKind)})
		}
	}
	return b.list
}

// streams: places from 1 on without gaps, each event tied to the one before it, and no event twice.
func (h *history) streams(b *breaches) {
	seen := map[string]string{}
	for room, events := range h.Streams {
		prev := ""
		for i, e := range events {
			if e.Seq != uint64(i)+1 {
				b.add("stream_gap", "the event at place %d of room %s says that it is at %d", i+1, room, e.Seq)
			}
			if i > 0 && e.Prev != prev {
				b.add("chain_broken", "event %s at place %d of room %s is tied to %s, and the one before it is %s", e.ID, e.Seq, room, e.Prev, prev)
			}
			if before, doubled := seen[e.ID]; doubled {
				b.add("event_doubled", "event %s is in room %s and in room %s", e.ID, before, room)
			}
			seen[e.ID], prev = room, e.Hash
		}
	}
}

// messages checks three promises. Each acknowledged message is once in the pages of its thread and once in the stream of its room, word for
// word. The pages are the fold of the stream. No message appears that nobody sent.
func (h *history) messages(b *breaches) {
	folded := map[string][]message{}
	for room, events := range h.Streams {
		for _, e := range events {
			if e.Type == "message.created" {
				folded[e.Thread] = append(folded[e.Thread], message{e.Message, e.Content})
			}
			if e.Type == "message.created" && e.Thread == "" {
				b.add("message_astray", "message %s of room %s names no thread", e.Message, room)
			}
		}
	}
	sent := map[string]map[message]int{}
	for _, p := range h.Posts {
		if sent[p.Thread] == nil {
			sent[p.Thread] = map[message]int{}
		}
		sent[p.Thread][message{p.Message, p.Content}]++
	}
	threads := map[string]bool{}
	for _, of := range []map[string][]message{folded, h.Pages} {
		for thread := range of {
			threads[thread] = true
		}
	}
	for thread := range sent {
		threads[thread] = true
	}
	for thread := range threads {
		for where, found := range map[string][]message{"the pages": h.Pages[thread], "the stream": folded[thread]} {
			times := map[message]int{}
			for _, m := range found {
				times[m]++
			}
			for m := range sent[thread] {
				switch n := times[m]; {
				case n == 0:
					b.add("message_lost", "message %s of thread %s was acknowledged and is not in %s", m.Message, thread, where)
				case n > 1:
					b.add("message_doubled", "message %s of thread %s is %d times in %s", m.Message, thread, n, where)
				}
			}
			for m := range times {
				if sent[thread][m] == 0 {
					b.add("message_foreign", "message %s is in %s of thread %s, and nobody was told that it is", m.Message, where, thread)
				}
			}
		}
		if !slices.Equal(h.Pages[thread], folded[thread]) {
			b.add("fold_differs", "the pages of thread %s have %d messages and are not what the stream's %d fold to", thread, len(h.Pages[thread]),
				len(folded[thread]))
		}
	}
}

// followers: each got every event of its room, once, in order.
func (h *history) followers(b *breaches) {
	for _, f := range h.Followed {
		events := h.Streams[f.Room]
		for i, got := range f.Got {
			if i >= len(events) {
				b.add("follower_foreign", "%s got event %s, which is not in the stream", f.Name, got.ID)
				break
			}
			if want := (ref{events[i].Seq, events[i].ID}); got != want {
				b.add("follower_astray", "%s got event %s at place %d where %s at place %d was to come", f.Name, got.ID, got.Seq, want.ID, want.Seq)
				break
			}
		}
		if len(f.Got) < len(events) {
			b.add("follower_behind", "%s got %d of the %d events of room %s", f.Name, len(f.Got), len(events), f.Room)
		}
	}
}

// life is the life of one run in its events.
type life struct {
	room            string
	created, closed int
	status          string
	fences          []uint64
	steps           map[string]int
}

// lives folds the runs.
func (h *history) lives() map[string]*life {
	lives := map[string]*life{}
	for room, events := range h.Streams {
		for _, e := range events {
			if e.Run == "" {
				continue
			}
			l := lives[e.Run]
			if l == nil {
				l = &life{room: room, steps: map[string]int{}}
				lives[e.Run] = l
			}
			switch e.Type {
			case "run.created":
				l.created, l.status = l.created+1, "queued"
			case "run.claimed":
				l.fences = append(l.fences, e.Fence)
			case "run.started":
				l.status = "running"
			case "run.completed":
				l.closed, l.status = l.closed+1, "succeeded"
			case "run.failed":
				l.closed, l.status = l.closed+1, "failed"
			case "step.created":
				l.steps[e.Step]++
			}
		}
	}
	return lives
}

// runs: each that was acknowledged was made once, is owned by one engine per fence, ended once and as its engine was told; its steps are
// those that were acknowledged; and it is shown as its events fold.
func (h *history) runs(b *breaches) {
	lives := h.lives()
	known, owner := map[string]bool{}, map[string]string{}
	for _, o := range h.Runs {
		known[o.Run] = true
		l := lives[o.Run]
		if l == nil || l.created != 1 || l.room != o.Room {
			b.add("run_lost", "run %s of room %s was acknowledged and is not once in its stream", o.Run, o.Room)
			continue
		}
		if l.closed > 1 || o.Ended != "" && (l.closed != 1 || l.status != o.Ended) {
			b.add("run_end", "run %s has %d ends and is %s in the stream; its engine was told %q", o.Run, l.closed, l.status, o.Ended)
		}
		for i, fence := range l.fences {
			if i > 0 && fence <= l.fences[i-1] {
				b.add("fence_falls", "run %s was claimed with fence %d after %d", o.Run, fence, l.fences[i-1])
			}
		}
		if as := h.Shown[o.Run]; as.Status != l.status {
			b.add("fold_differs", "run %s is shown as %q and folds to %q", o.Run, as.Status, l.status)
		}
	}
	for run := range lives {
		if !known[run] {
			b.add("run_foreign", "run %s is in a stream, and nobody was told that it is", run)
		}
	}
	for _, c := range h.Claims {
		key := fmt.Sprintf("%s/%d", c.Run, c.Fence)
		if other := owner[key]; other != "" {
			b.add("claimed_twice", "run %s was given to %s and to %s under fence %d", c.Run, other, c.Engine, c.Fence)
		}
		owner[key] = c.Engine
		if l := lives[c.Run]; l == nil || !slices.Contains(l.fences, c.Fence) {
			b.add("claim_lost", "the claim of run %s with fence %d was acknowledged and is not in the stream", c.Run, c.Fence)
		}
	}
	h.steps(b, lives)
}

func (h *history) steps(b *breaches, lives map[string]*life) {
	told := map[step]bool{}
	for _, s := range h.Steps {
		told[s] = true
		times := 0
		if l := lives[s.Run]; l != nil {
			times = l.steps[s.Step]
		}
		if times == 0 {
			b.add("step_lost", "step %s of run %s was acknowledged and is not in the stream", s.Step, s.Run)
		}
	}
	for run, l := range lives {
		for name, times := range l.steps {
			if times > 1 {
				b.add("step_doubled", "step %s of run %s is %d times in the stream", name, run, times)
			}
			if !told[step{run, name}] {
				b.add("step_foreign", "step %s of run %s is in the stream, and no engine was told that it is", name, run)
			}
		}
		listed := slices.Clone(h.Shown[run].Steps)
		slices.Sort(listed)
		var folded []string
		for name, times := range l.steps {
			folded = append(folded, slices.Repeat([]string{name}, times)...)
		}
		slices.Sort(folded)
		if !slices.Equal(listed, folded) {
			b.add("fold_differs", "the steps of run %s are shown as %s and fold to %s", run, strings.Join(listed, " "), strings.Join(folded, " "))
		}
	}
}
