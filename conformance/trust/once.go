package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// racers is how many requests are made at once with one approval.
const racers = 100

// once checks P-Once: on the live installation with requests and answers that race, on a daemon of its own over kills.
func (x *examiner) once(ctx context.Context, r *result) error {
	space, err := x.own(ctx)
	if err != nil {
		return err
	}
	if err := x.racingRequests(ctx, r, space); err != nil {
		return err
	}
	if err := x.racingAnswers(ctx, r, space); err != nil {
		return err
	}
	return x.onceOverKills(ctx, r)
}

// race makes the same request many times at once.
func race(request func() (answer, error)) ([]answer, error) {
	answers, errs := make([]answer, racers), make([]error, racers)
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			<-begin
			answers[i], errs[i] = request()
		})
	}
	close(begin)
	all.Wait()
	return answers, errors.Join(errs...)
}

// used counts the uses of an approval in the log.
func (c *caller) used(ctx context.Context, from uint64, approval string) (n int, err error) {
	events, err := c.log(ctx, from, "event_types=approval.used")
	for _, e := range events {
		if at(e.Data, "approval_id") == approval {
			n++
		}
	}
	return n, err
}

func (x *examiner) racingRequests(ctx context.Context, r *result, space string) error {
	t := r.try(fmt.Sprintf("%d requests at once with one approval write once", racers))
	from, err := x.live.head(ctx)
	if err != nil {
		return err
	}
	put := func() (answer, error) { return x.live.put(ctx, space, "ask/once.txt", "once, by "+x.name) }
	a, err := put()
	if err != nil {
		return err
	}
	id, err := asked(a)
	if err != nil {
		return err
	}
	if a, err = x.live.approve(ctx, id); err != nil || !a.ok() {
		return fmt.Errorf("approve: %w, %w", err, a.refusal())
	}
	answers, err := race(put)
	if err != nil {
		return err
	}
	written := 0
	for _, a := range answers {
		t.tried(1)
		if a.ok() {
			written++
		}
		t.want(a.ok() || a.status == 409 || a.status == 403, "a request is answered with %d %s", a.status, a.text("error"))
	}
	uses, err := x.live.used(ctx, from, id)
	if err != nil {
		return err
	}
	t.want(written == 1, "%d requests were done", written)
	t.want(uses == 1, "the log has %d uses of the approval", uses)
	t.note("%d done, %d refused or asked anew, %d use in the log", written, racers-written, uses)
	return nil
}

func (x *examiner) racingAnswers(ctx context.Context, r *result, space string) error {
	t := r.try(fmt.Sprintf("%d answers at once to one question start the command once", racers))
	run, err := x.live.run(ctx, space, 20, shell("once", "echo once | tee -a once-ledger"))
	if err != nil {
		return err
	}
	if run.status != "awaiting_approval" {
		return fmt.Errorf("the command was to be asked about: %.300s", run.raw.raw)
	}
	id := at(run.events[len(run.events)-1], "approvalId")
	answers, err := race(func() (answer, error) { return x.live.approve(ctx, id) })
	if err != nil {
		return err
	}
	for _, a := range answers {
		t.tried(1)
		t.want(a.ok() || a.status == 409, "an answer is answered with %d %s", a.status, a.text("error"))
	}
	if err := x.live.settled(ctx, run.id); err != nil {
		return err
	}
	lines, err := x.live.lines(ctx, space, "once-ledger")
	if err != nil {
		return err
	}
	counts := map[string]int{}
	events, err := x.live.log(ctx, 1, "run_id="+run.id)
	for _, e := range events {
		counts[e.Type]++
	}
	t.want(len(lines) == 1, "the command ran %d times", len(lines))
	t.want(counts["approval.decided"] == 1 && counts["approval.used"] == 1 && counts["tool.invoked"] == 1, "the log has %v", counts)
	t.note("1 decision, 1 use, 1 start in the log; 1 line in the file to which the command appends")
	return err
}

// onceOverKills approves, lets many race and kills the daemon in the middle, again and again.
func (x *examiner) onceOverKills(ctx context.Context, r *result) error {
	t := r.try(fmt.Sprintf("%d requests at once, the daemon killed among them and started again, and %d more: at most one start", racers,
		racers))
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	chance, kept, done := x.chance(1), 0, 0
	for round := range x.kills {
		file, command := fmt.Sprintf("ask/round-%d", round), fmt.Sprintf("echo round | tee -a ledger-%d", round)
		put := func() (answer, error) { return d.put(ctx, space, file, "once") }
		a, err := put()
		if err != nil {
			return err
		}
		id, err := asked(a)
		if err != nil {
			return err
		}
		run, err := d.run(ctx, space, 20, shell("once", command))
		if err != nil {
			return err
		}
		ask := at(run.events[len(run.events)-1], "approvalId")
		if a, err = d.approve(ctx, id); err != nil || !a.ok() {
			return fmt.Errorf("approve: %w, %w", err, a.refusal())
		}
		var written atomic.Int64
		racing := make(chan struct{})
		go func() {
			defer close(racing)
			answers, _ := race(func() (answer, error) { // many are cut off by the kill
				_, _ = d.approve(ctx, ask)
				return put()
			})
			for _, a := range answers {
				if a.ok() {
					written.Add(1)
				}
			}
		}()
		select {
		case <-time.After(time.Duration(chance.IntN(60)) * time.Millisecond): // the moment of the kill
		case <-ctx.Done():
		}
		d.kill()
		<-racing
		if d, err = x.up(ctx, d.data, nil); err != nil {
			return err
		}
		answers, err := race(func() (answer, error) {
			_, _ = d.approve(ctx, ask) // it may have its answer
			return put()
		})
		if err != nil {
			return err
		}
		for _, a := range answers {
			if a.ok() {
				written.Add(1)
			}
		}
		if err := d.carryOn(ctx, run.id); err != nil {
			return err
		}
		t.tried(1)
		for _, approval := range []string{id, ask} {
			uses, err := d.used(ctx, 1, approval)
			if err != nil {
				return err
			}
			t.want(uses <= 1, "round %d: the log has %d uses of %s", round, uses, approval)
			kept += uses
		}
		lines, err := d.lines(ctx, space, fmt.Sprintf("ledger-%d", round))
		if err != nil {
			return err
		}
		t.want(len(lines) <= 1, "round %d: the command ran %d times", round, len(lines))
		t.want(written.Load() <= 1, "round %d: %d requests were done", round, written.Load())
		done += len(lines) + int(written.Load())
	}
	t.note("%d kills, %d approvals, %d uses in the log, %d effects acknowledged or found", x.kills, 2*x.kills, kept, done)
	return nil
}

// settled waits until a run has ended, or asks and has no answer.
func (c *caller) settled(ctx context.Context, run string) error {
	for {
		a, err := c.get(ctx, "/v1/runs/"+run)
		if err != nil {
			return err
		}
		status := a.text("status")
		if status == "awaiting_approval" {
			asks, err := c.asks(ctx, run)
			if err != nil || len(asks) > 0 {
				return err
			}
		} else if status != "queued" && status != "running" {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// asks returns the questions of a run, or of all where none is named, that have no answer.
func (c *caller) asks(ctx context.Context, run string) ([]string, error) {
	path := "/v1/approvals?status=pending&limit=100"
	if run != "" {
		path += "&run_id=" + run
	}
	a, err := c.get(ctx, path)
	var ids []string
	for _, q := range items(a.body["approvals"]) {
		ids = append(ids, at(q, "approval_id"))
	}
	return ids, err
}

// carryOn approves that a run goes on behind an operation whose outcome a crash hid, and waits for its end.
func (c *caller) carryOn(ctx context.Context, run string) error {
	for {
		if err := c.settled(ctx, run); err != nil {
			return err
		}
		asks, err := c.asks(ctx, run)
		if err != nil || len(asks) == 0 {
			return err
		}
		for _, id := range asks {
			if a, err := c.approve(ctx, id); err != nil || !a.ok() && a.status != 409 {
				return fmt.Errorf("approve: %w, %w", err, a.refusal())
			}
		}
	}
}

// finish lets every run that asks go on and waits until all have ended: a run that asks holds up those behind it in its space.
func (c *caller) finish(ctx context.Context, runs []string) error {
	for _, run := range runs {
		for {
			a, err := c.get(ctx, "/v1/runs/"+run)
			if err != nil {
				return err
			}
			if status := a.text("status"); status != "queued" && status != "running" && status != "awaiting_approval" {
				break
			}
			asks, err := c.asks(ctx, "")
			if err != nil {
				return err
			}
			for _, id := range asks {
				if a, err := c.approve(ctx, id); err != nil || !a.ok() && a.status != 409 {
					return fmt.Errorf("approve: %w, %w", err, a.refusal())
				}
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// lines reads a file of a space; one that is not there has none.
func (c *caller) lines(ctx context.Context, space, file string) ([]string, error) {
	a, err := c.call(ctx, "GET", "/v1/spaces/"+space+"/files/"+file, nil)
	if err != nil || a.status == 404 {
		return nil, err
	}
	if !a.ok() {
		return nil, a.refusal()
	}
	return strings.Fields(string(a.raw)), nil
}
