package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// property is one promise, and how it is checked.
type property struct {
	name    string
	promise string
	of      func(x *examiner) check
}

// check tries a promise and writes the outcome into the result.
type check func(ctx context.Context, r *result) error

// properties are the promises, in the order of the list of threats.
func properties() []property {
	return []property{
		{"P-Bind", "an action runs only if its stored bytes hash to the digest that the person saw",
			func(x *examiner) check { return binding{x}.bind }},
		{"P-Once", "one approval starts at most one action, also if clients race and the daemon dies",
			func(x *examiner) check { return x.once }},
		{"P-Render", "the text of an approval is the daemon's own, and two different actions never read the same",
			func(x *examiner) check { return x.render }},
		{"P-Crash", "after a kill or a power cut nothing acknowledged is lost, and nothing is done twice",
			func(x *examiner) check { return crashing{x}.crash }},
		{"P-Verify", "a copy of the log and a public key are enough to find the first event that is not what it was",
			func(x *examiner) check { return x.verify }},
		{"P-Witness", "a checkpoint kept elsewhere finds a log that was set back, and stock tools can check it",
			func(x *examiner) check { return x.witness }},
		{"P-Forget", "redaction removes a text everywhere, and every proof made before stays valid",
			func(x *examiner) check { return forgetting{x}.forget }},
		{"P-Closed", "what cannot be decided or recorded is refused with a reason code, never allowed",
			func(x *examiner) check { return closing{x}.closed }},
	}
}

// examiner is one examination of an installation.
type examiner struct {
	options
	bin      string
	live     *caller
	dir      string // of this program's own daemons and copies
	name     string // of its space on the installation, and the beginning of every text that it leaves there
	progress io.Writer
	began    time.Time

	space string // its space on the installation, once there is one

	mu      sync.Mutex // guards the fields below
	daemons []*daemon  // that it started
	scratch int        // folders that it has made
}

// all checks the requested properties. One that cannot be checked has the result "not shown".
func (x *examiner) all(ctx context.Context, only string) ([]result, error) {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	var results []result
	for _, p := range properties() {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		wanted = slices.DeleteFunc(wanted, func(name string) bool { return name == p.name })
		if len(wanted) == 0 && only != "" {
			wanted = []string{""} // nothing else
		}
		if ctx.Err() != nil {
			return results, errInterrupted
		}
		r := result{Property: p.name, Promise: p.promise, say: func(format string, args ...any) {
			fmt.Fprintf(x.progress, "%6.1fs  %-9s  %s\n", time.Since(x.began).Seconds(), p.name, fmt.Sprintf(format, args...))
		}}
		r.say("%s", p.promise)
		began := time.Now()
		err := x.examine(ctx, p, &r)
		if ctx.Err() != nil { // an interrupted check says nothing about the promise
			r.say("interrupted")
			return results, errInterrupted
		}
		if err != nil {
			r.try("the examination itself").fail("%v", err)
		}
		r.Seconds = time.Since(began).Seconds()
		r.Held = len(r.Trials) > 0 && !slices.ContainsFunc(r.Trials, func(t *trial) bool { return !t.Held || t.Tried == 0 })
		results = append(results, r)
		if x.failFast && !r.Held {
			return results, nil
		}
	}
	if wanted = slices.DeleteFunc(wanted, func(name string) bool { return name == "" }); len(wanted) > 0 {
		return results, fmt.Errorf("there is no property %s", strings.Join(wanted, ", "))
	}
	return results, nil
}

// errInterrupted ends an examination that a person interrupted.
var errInterrupted = errors.New("interrupted; the properties that are not listed were not examined to their end")

// patience is the time limit of one property, unless every moment of P-Crash was requested. A property that takes longer hangs.
const patience = 20 * time.Minute

// errFailed ends an examination that is to end at its first failure.
var errFailed = errors.New("a trial has failed")

// examine checks one property. With failFast it ends at the first failure.
func (x *examiner) examine(ctx context.Context, p property, r *result) error {
	if x.moments > 0 {
		limited, end := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it did not end within %s", patience))
		defer end()
		ctx = limited
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.failed = func() {
		if x.failFast {
			cancel(errFailed)
		}
	}
	err := p.of(x)(ctx, r)
	if errors.Is(context.Cause(ctx), errFailed) {
		return nil // later errors come from the end at the first failure
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return err
}

// own returns this program's space on the installation and makes it where there is none. Policy asks there about files below ask/ and
// about the command tee.
func (x *examiner) own(ctx context.Context) (string, error) {
	if x.space != "" {
		return x.space, nil
	}
	space, err := x.live.newSpace(ctx, x.name)
	if err != nil {
		return "", err
	}
	x.space = space
	return space, nil
}

// folder returns a new folder of this program's own.
func (x *examiner) folder() (string, error) {
	x.mu.Lock()
	x.scratch++
	dir := filepath.Join(x.dir, fmt.Sprint(x.scratch))
	x.mu.Unlock()
	return dir, os.Mkdir(dir, 0o700)
}

// begun notes a daemon, so that it ends with this program.
func (x *examiner) begun(d *daemon) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.daemons = append(x.daemons, d)
}

// forgotten drops the note of a daemon that has ended.
func (x *examiner) forgotten(d *daemon) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.daemons = slices.DeleteFunc(x.daemons, func(other *daemon) bool { return other == d })
}

// chance returns random numbers that are the same for the same seed.
func (x *examiner) chance(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(x.seed, stream)) }

// close ends the daemons, removes the space and everything else that was made.
func (x *examiner) close() error {
	var all []error
	for _, d := range x.daemons {
		d.kill()
	}
	if x.space != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		all = append(all, x.answered(ctx))
		a, err := x.live.call(ctx, "DELETE", "/v1/spaces/"+x.space, nil)
		if err == nil && a.status >= 300 {
			err = a.refusal()
		}
		if err != nil {
			all = append(all, fmt.Errorf("remove the space %s, which is this program's own: %w", x.space, err))
		}
	}
	return errors.Join(append(all, os.RemoveAll(x.dir))...)
}

// answered denies the open questions about the space, so that no question of this program stays.
func (x *examiner) answered(ctx context.Context) error {
	a, err := x.live.get(ctx, "/v1/approvals?status=pending")
	if err != nil {
		return err
	}
	var all []error
	for _, q := range items(a.body["approvals"]) {
		if at(q, "space_id") != x.space {
			continue
		}
		_, err := x.live.call(ctx, "POST", "/v1/approvals/"+at(q, "approval_id")+"/decide", map[string]string{"decision": "deny",
			"reason": "asked by a check of trust"})
		all = append(all, err)
	}
	return errors.Join(all...)
}
