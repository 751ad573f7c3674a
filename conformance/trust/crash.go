package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"agentbox/internal/testkit/platter"
)

// crashing are the checks of kills and power cuts.
type crashing struct{ *examiner }

// crash checks P-Crash: with real kills of a daemon that works, and with every disk that a power cut may leave behind a daemon whose system
// calls were recorded.
func (x crashing) crash(ctx context.Context, r *result) error {
	if err := x.killed(ctx, r); err != nil {
		return err
	}
	return x.powerless(ctx, r)
}

// work is the clients' view of acknowledged runs.
type work struct {
	mu      sync.Mutex
	runs    []string          // acknowledged
	results map[string]string // by run and operation
}

// remember keeps results; one that was seen before must not change.
func (w *work) remember(t *trial, run string, results []map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range results {
		if at(e, "type") == "approvalRequired" {
			continue
		}
		key := run + " " + at(e, "operationId")
		text, _ := json.Marshal(e) // it was JSON a moment ago
		before, known := w.results[key]
		t.want(!known || before == string(text), "the result of %s was %s and is %s", key, before, text)
		w.results[key] = string(text)
	}
}

// killed lets clients work and kills the daemon, again and again.
func (x crashing) killed(ctx context.Context, r *result) error {
	t := r.try("a daemon that works is killed with SIGKILL and started again: nothing acknowledged is lost or changed, nothing is done twice")
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	w, chance := &work{results: map[string]string{}}, x.chance(3)
	for round := range x.kills {
		var clients sync.WaitGroup
		for client := range 3 {
			clients.Go(func() { w.until(ctx, t, d.caller, space, fmt.Sprintf("r%d-c%d", round, client)) })
		}
		select {
		case <-time.After(time.Duration(50+chance.IntN(350)) * time.Millisecond): // the moment of the kill
		case <-ctx.Done():
		}
		d.kill()
		clients.Wait()
		found, err := x.audited(ctx, d.data)
		if err != nil {
			return err
		}
		t.want(found.Valid, "after kill %d the log is not intact: %+v", round, found.Findings)
		if d, err = x.up(ctx, d.data, nil); err != nil {
			return err
		}
		t.tried(1)
	}
	events, err := d.log(ctx, 1, "event_types=run.created") // a run whose answer the kill took away is in the log only
	if err != nil {
		return err
	}
	if err := d.finish(ctx, created(events)); err != nil {
		return fmt.Errorf("let the interrupted runs go on: %w", err)
	}
	unknown := 0
	for _, run := range w.runs {
		a, err := d.call(ctx, "GET", "/v1/runs/"+run, nil)
		if err != nil {
			return err
		}
		t.want(a.ok(), "the run %s was acknowledged and is %d %s", run, a.status, a.text("error"))
		message, _ := a.body["result"].(map[string]any)
		results := items(message["events"])
		t.want(len(results) == 3, "the run %s of 3 operations has %d results", run, len(results))
		w.remember(t, run, results)
		for _, e := range results {
			if at(e, "type") == "unknown" {
				unknown++
			}
		}
	}
	lines, err := d.lines(ctx, space, "ledger")
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, line := range lines {
		counts[line]++
		t.want(counts[line] == 1, "%s was done %d times", line, counts[line])
	}
	if err := d.singly(ctx, t); err != nil {
		return err
	}
	t.note("%d kills, %d runs acknowledged, %d commands done, each once; %d were interrupted, are marked unknown and were asked about",
		x.kills, len(w.runs), len(lines), unknown)
	return nil
}

// until sends runs whose commands write down that they ran, until the daemon dies.
func (w *work) until(ctx context.Context, t *trial, c *caller, space, name string) {
	for i := 0; ; i++ {
		line := fmt.Sprintf("%s-%d", name, i)
		run, err := c.run(ctx, space, 0,
			shell("one", "echo "+line+".one >> ledger; sleep 0.02"), shell("two", "echo "+line+".two >> ledger"),
			operation{"type": "createFile", "id": "make", "path": line, "content": line})
		if err != nil || run.id == "" {
			return
		}
		w.mu.Lock()
		w.runs = append(w.runs, run.id)
		w.mu.Unlock()
		for {
			a, err := c.get(ctx, "/v1/runs/"+run.id)
			if err != nil {
				return
			}
			message, _ := a.body["result"].(map[string]any)
			w.remember(t, run.id, items(message["events"]))
			if status := a.text("status"); status != "queued" && status != "running" {
				break
			}
		}
	}
}

// created returns the runs that events made.
func created(events []event) (runs []string) {
	for _, e := range events {
		if e.Type == "run.created" {
			runs = append(runs, e.Run)
		}
	}
	return runs
}

// singly counts intents and results in the log: each operation has at most one of each, and a result where it has an intent.
func (c *caller) singly(ctx context.Context, t *trial) error {
	events, err := c.log(ctx, 1, "event_types=tool.invoked,tool.succeeded,tool.failed,tool.unknown")
	if err != nil {
		return err
	}
	begun, ended := map[string]int{}, map[string]int{}
	for _, e := range events {
		op := e.Run + " " + at(e.Data, "operation_id")
		if e.Type == "tool.invoked" {
			begun[op]++
		} else {
			ended[op]++
		}
	}
	for op, n := range begun {
		t.want(n == 1, "%s began %d times", op, n)
		t.want(ended[op] == 1, "%s began and has %d results", op, ended[op])
	}
	for op, n := range ended {
		t.want(n == 1, "%s has %d results", op, n)
	}
	return nil
}

// promised is the state that a daemon had acknowledged at a moment: runs with their results, the log up to a place, and the owner's key.
type promised struct {
	run, results string
	head         uint64
	key          string
}

// powerless records the system calls of a daemon and starts others on what a kill or a power cut may have left at moments of it.
func (x crashing) powerless(ctx context.Context, r *result) error {
	t := r.try("the power fails under a daemon: killed, cut (what was not synced is lost) and torn (512-byte sectors, in any order)")
	dir, err := x.folder()
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	disk := platter.Load(nil)
	d, err := x.up(ctx, data, func(cmd *exec.Cmd, ended chan<- error) error {
		go func() { ended <- platter.Trace(cmd, data, disk) }()
		return nil
	})
	if err != nil {
		return err
	}
	space, err := d.newSpace(ctx, "power")
	if err != nil {
		return err
	}
	for n := range 3 {
		p, err := d.promise(ctx, space, n)
		if err != nil {
			return err
		}
		disk.Mark(p)
	}
	hashes := map[uint64]string{}
	events, err := d.log(ctx, 1, "")
	if err != nil {
		return err
	}
	for _, e := range events {
		hashes[e.Seq] = e.Chain.Hash
	}
	if err := d.stop(); err != nil {
		return err
	}
	stride, chance, seen := 1, x.chance(4), map[[32]byte]bool{}
	if x.moments > 0 {
		stride = max(1, disk.Len()/x.moments)
	}
	var starting sync.WaitGroup
	room := make(chan struct{}, runtime.NumCPU())
	for m := range disk.Moments() {
		if m.At%stride != 0 || ctx.Err() != nil {
			continue
		}
		for _, left := range states(m, chance) {
			digest := left.files.Digest()
			if seen[digest] {
				continue
			}
			seen[digest] = true
			at, marks := m.At, slices.Clone(m.Marks)
			room <- struct{}{}
			starting.Go(func() {
				defer func() { <-room }()
				t.tried(1)
				if err := x.goesOn(ctx, t, left.files, marks, hashes); err != nil {
					t.fail("%s at step %d of %d: %v", left.how, at, disk.Len(), err)
				}
			})
			if len(seen)%20 == 0 {
				r.say("step %d of %d, %d different disks", m.At, disk.Len(), len(seen))
			}
		}
	}
	starting.Wait()
	t.note("%d different disks from %d recorded writes, syncs, truncations and names; each was started on and verified", len(seen), disk.Len())
	return ctx.Err()
}

type state struct {
	how   string
	files platter.Files
}

func states(m *platter.Moment, chance *rand.Rand) []state {
	all := []state{{"killed", m.Killed()}, {"cut", m.Cut()}, {"torn", m.Torn(chance)}}
	if half, ok := m.Halved(chance); ok {
		all = append(all, state{"killed within a write", half})
	}
	return all
}

// promise makes a run of each kind of operation and returns what was acknowledged.
func (c *caller) promise(ctx context.Context, space string, n int) (promised, error) {
	run, err := c.run(ctx, space, 60,
		operation{"type": "createFile", "id": "make", "path": fmt.Sprint("f", n), "content": strings.Repeat("content ", 1000*n)},
		shell("short", "echo short"), shell("ask", fmt.Sprintf("echo x | tee -a asked-%d", n)),
		shell("long", "head -c 70000 /dev/zero | tr '\\0' x"))
	if err != nil {
		return promised{}, err
	}
	if run.status != "awaiting_approval" {
		return promised{}, fmt.Errorf("the run was to ask: %.300s", run.raw.raw)
	}
	if a, err := c.approve(ctx, at(run.events[len(run.events)-1], "approvalId")); err != nil || !a.ok() {
		return promised{}, fmt.Errorf("approve: %w, %w", err, a.refusal())
	}
	if err := c.settled(ctx, run.id); err != nil {
		return promised{}, err
	}
	results, err := c.results(ctx, run.id)
	if err != nil {
		return promised{}, err
	}
	head, err := c.head(ctx)
	return promised{run.id, results, head, c.key}, err
}

// results returns the result events of a run as text.
func (c *caller) results(ctx context.Context, run string) (string, error) {
	a, err := c.get(ctx, "/v1/runs/"+run)
	if err != nil {
		return "", err
	}
	message, _ := a.body["result"].(map[string]any)
	raw, err := json.Marshal(message["events"])
	return string(raw), err
}

// goesOn starts a daemon on the rest of a data directory, compares it with the acknowledged state, kills it and verifies the log.
func (x crashing) goesOn(ctx context.Context, t *trial, files platter.Files, marks []any, hashes map[uint64]string) error {
	dir, err := x.folder()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	data := filepath.Join(dir, "data")
	if err := files.Write(data); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	d, err := x.up(ctx, data, nil)
	if err != nil {
		return err
	}
	defer func() {
		d.kill()
		x.forgotten(d)
	}()
	head := uint64(0)
	for _, m := range marks {
		p, ok := m.(promised)
		if !ok {
			continue // a line that the daemon wrote
		}
		results, err := d.results(ctx, p.run)
		if err != nil {
			return err
		}
		if results != p.results {
			return fmt.Errorf("the results of %s are %.300s, and were %.300s", p.run, results, p.results)
		}
		if d.key != p.key {
			return errors.New("the owner's key is another one")
		}
		head = p.head
	}
	events, err := d.log(ctx, 1, "")
	if err != nil {
		return err
	}
	if uint64(len(events)) < head {
		return fmt.Errorf("the log has %d events, and %d were acknowledged", len(events), head)
	}
	for _, e := range events[:head] {
		if e.Chain.Hash != hashes[e.Seq] {
			return fmt.Errorf("event %d was acknowledged with the hash %s and has %s", e.Seq, hashes[e.Seq], e.Chain.Hash)
		}
	}
	if err := d.finish(ctx, created(events)); err != nil {
		return err
	}
	if err := d.singly(ctx, t); err != nil {
		return err
	}
	d.kill()
	found, err := x.audited(ctx, data)
	if err == nil && !found.Valid {
		err = fmt.Errorf("the log is not intact: %+v", found.Findings)
	}
	return err
}
