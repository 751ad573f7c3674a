package main

import (
	"fmt"
	"slices"
	"testing"
)

// right is a history with which all is well: two rooms, a thread each, two messages in the first, and a run with two steps, whose first
// engine lost it to a second.
func right() *history {
	h := &history{
		Posts: []post{{"r1", "t1", "m1", "one"}, {"r1", "t1", "m2", "two"}, {"r2", "t2", "m3", "one"}},
		Runs:  []order{{"r1", "run1", "succeeded"}, {"r2", "run2", ""}}, Claims: []claim{{"run1", "e1", 1}, {"run1", "e2", 2}},
		Steps: []step{{"run1", "s1"}, {"run1", "s2"}},
		Pages: map[string][]message{"t1": {{"m1", "one"}, {"m2", "two"}}, "t2": {{"m3", "one"}}},
		Shown: map[string]shown{"run1": {"succeeded", []string{"s2", "s1"}}, "run2": {"queued", nil}},
		Streams: map[string][]entry{
			"r1": {
				{Type: "room.created"}, {Type: "thread.created", Thread: "t1"}, {Type: "message.created", Thread: "t1", Message: "m1", Content: "one"},
				{Type: "run.created", Run: "run1"}, {Type: "run.claimed", Run: "run1", Fence: 1}, {Type: "run.started", Run: "run1"},
				{Type: "step.created", Run: "run1", Step: "s1"}, {Type: "message.created", Thread: "t1", Message: "m2", Content: "two"},
				{Type: "run.claimed", Run: "run1", Fence: 2}, {Type: "step.created", Run: "run1", Step: "s2"}, {Type: "run.completed", Run: "run1"},
			},
			"r2": {
				{Type: "room.created"}, {Type: "thread.created", Thread: "t2"}, {Type: "message.created", Thread: "t2", Message: "m3", Content: "one"},
				{Type: "run.created", Run: "run2"},
			},
		},
	}
	for room, events := range h.Streams {
		f := followed{Name: "follower of " + room, Room: room}
		for i := range events {
			e := &events[i]
			e.Seq, e.ID, e.Hash = uint64(i)+1, fmt.Sprint(room, "-", i), fmt.Sprint("hash ", room, i)
			if i > 0 {
				e.Prev = events[i-1].Hash
			}
			f.Got = append(f.Got, ref{e.Seq, e.ID})
		}
		h.Followed = append(h.Followed, f)
	}
	slices.SortFunc(h.Followed, func(a, b followed) int { return len(b.Got) - len(a.Got) }) // that of r1 first
	return h
}

// TestARightHistoryHasNoBreach is the ground on which the other test stands.
func TestARightHistoryHasNoBreach(t *testing.T) {
	if found := right().check(); len(found) > 0 {
		t.Errorf("got %v", found)
	}
}

// TestEveryBreachIsFound feeds the checks one history for each thing that can go wrong.
func TestEveryBreachIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		breach string
		wrong  func(h *history)
	}{
		"a place is left out":                 {"stream_gap", func(h *history) { h.Streams["r1"][10].Seq = 12 }},
		"a stream begins at 2":                {"stream_gap", func(h *history) { h.Streams["r2"] = h.Streams["r2"][1:] }},
		"an event is tied to none":            {"chain_broken", func(h *history) { h.Streams["r1"][3].Prev = "" }},
		"an event was changed after the next": {"chain_broken", func(h *history) { h.Streams["r1"][3].Hash = "other" }},
		"an event is in two streams":          {"event_doubled", func(h *history) { h.Streams["r2"][1].ID = h.Streams["r1"][1].ID }},
		"a message is not in the pages":       {"message_lost", func(h *history) { h.Pages["t1"] = h.Pages["t1"][:1] }},
		"a whole thread is not in the pages":  {"message_lost", func(h *history) { delete(h.Pages, "t2") }},
		"a message is not in the stream":      {"message_lost", func(h *history) { h.Streams["r1"][7].Type = "message.other" }},
		"a message has other words":           {"message_lost", func(h *history) { h.Pages["t1"][0].Content = "tow" }},
		"a message is in another thread":      {"message_lost", func(h *history) { h.Posts[0].Thread = "t2" }},
		"a message is twice in the pages": {"message_doubled", func(h *history) {
			h.Pages["t2"] = append(h.Pages["t2"],
				h.Pages["t2"][0])
		}},
		"a message came twice from one post": {"message_foreign", func(h *history) {
			h.Pages["t1"] = append(h.Pages["t1"], message{"m9", "two"})
		}},
		"a message without a thread":   {"message_astray", func(h *history) { h.Streams["r1"][2].Thread = "" }},
		"the pages have another order": {"fold_differs", func(h *history) { slices.Reverse(h.Pages["t1"]) }},
		"a follower missed the last":   {"follower_behind", func(h *history) { h.Followed[0].Got = h.Followed[0].Got[:10] }},
		"a follower missed one in the middle": {"follower_astray", func(h *history) {
			h.Followed[0].Got = slices.Delete(h.Followed[0].Got, 4, 5)
		}},
		"a follower got one twice": {"follower_astray", func(h *history) {
			h.Followed[0].Got = slices.Insert(h.Followed[0].Got, 4, h.Followed[0].Got[4])
		}},
		"a follower got two in the wrong order": {"follower_astray", func(h *history) { g := h.Followed[0].Got; g[1], g[2] = g[2], g[1] }},
		"a follower got one that is not in the log": {"follower_foreign", func(h *history) {
			h.Followed[0].Got = append(h.Followed[0].Got, ref{12, "x"})
		}},
		"a run is not in its room": {"run_lost", func(h *history) { h.Runs[1].Room = "r1" }},
		"a run was made twice": {"run_lost", func(h *history) {
			h.Streams["r1"][7] = entry{Seq: 8, Type: "run.created", Run: "run1"}
		}},
		"a run that nobody made":           {"run_foreign", func(h *history) { h.Runs = h.Runs[:1] }},
		"a run ended twice":                {"run_end", func(h *history) { h.Streams["r1"][9].Type = "run.failed" }},
		"a run that was completed failed":  {"run_end", func(h *history) { h.Streams["r1"][10].Type = "run.failed" }},
		"a run that was completed goes on": {"run_end", func(h *history) { h.Streams["r1"][10].Type = "run.other" }},
		"a run is shown as it was": {"fold_differs", func(h *history) {
			h.Shown["run1"] = shown{"running",
				h.Shown["run1"].Steps}
		}},
		"two engines own a run":      {"claimed_twice", func(h *history) { h.Claims[1].Fence = 1 }},
		"a claim is not in the log":  {"claim_lost", func(h *history) { h.Claims[1].Fence = 3 }},
		"a fence came again":         {"fence_falls", func(h *history) { h.Streams["r1"][8].Fence = 1 }},
		"a step is not in the log":   {"step_lost", func(h *history) { h.Streams["r1"][6].Type = "step.other" }},
		"a step is twice in the log": {"step_doubled", func(h *history) { h.Streams["r1"][9].Step = "s1" }},
		"a step that no engine made": {"step_foreign", func(h *history) { h.Steps = h.Steps[:1] }},
		"a step is not shown": {"fold_differs", func(h *history) {
			h.Shown["run1"] = shown{"succeeded",
				[]string{"s1"}}
		}},
		"a step is shown twice": {"fold_differs", func(h *history) {
			h.Shown["run1"] = shown{"succeeded", []string{"s1", "s2", "s2"}}
		}},
		"a run is not shown":                           {"fold_differs", func(h *history) { delete(h.Shown, "run2") }},
		"a stream was not read, and a follower was on": {"follower_foreign", func(h *history) { delete(h.Streams, "r2") }},
	} {
		h := right()
		c.wrong(h)
		found := h.check()
		if !slices.ContainsFunc(found, func(b breach) bool { return b.What == c.breach && b.Where != "" }) {
			t.Errorf("%s: got %v, want %s", name, found, c.breach)
		}
	}
}

// TestManyBreachesOfAKindAreCounted keeps a broken log from filling the screen.
func TestManyBreachesOfAKindAreCounted(t *testing.T) {
	h := right()
	h.Pages = nil
	for i := range 20 {
		h.Posts = append(h.Posts, post{"r1", "t1", fmt.Sprint("lost", i), "x"})
	}
	lost, last := 0, ""
	for _, b := range h.check() {
		if b.What == "message_lost" {
			lost, last = lost+1, b.Where
		}
	}
	if lost != fewOfAKind+1 || last != "and 38 more" {
		t.Errorf("got %d lines, the last of which is %q; want %d and \"and 38 more\"", lost, last, fewOfAKind+1)
	}
}
