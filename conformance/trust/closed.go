package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// closing are the checks that what cannot be decided or recorded is refused.
type closing struct{ *examiner }

// closed checks P-Closed on daemons of its own: it takes away what a decision or a record needs, one thing at a time.
func (x closing) closed(ctx context.Context, r *result) error {
	for _, check := range []func(context.Context, *result) error{x.nobody, x.stopped, x.lawless, x.starved, x.logless, x.full} {
		if err := check(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// attempts are ways to ask for an effect. Each would leave a file of this name in the space.
func attempts(ctx context.Context, d *daemon, space, file string) map[string]func() (answer, error) {
	return map[string]func() (answer, error){
		"a file": func() (answer, error) { return d.put(ctx, space, file, "effect") },
		"a command": func() (answer, error) {
			return d.call(ctx, "POST", "/v1/spaces/"+space+"/runs", map[string]any{
				"protocolVersion": "1.0", "wait": 20, "operations": []operation{shell("effect", "echo effect > "+file)},
			})
		},
		"a space": func() (answer, error) {
			return d.call(ctx, "POST", "/v1/spaces", map[string]any{"name": file, "best_effort": true, "ttl_seconds": 60})
		},
	}
}

// refused reports with which reason code something was refused; false where it was done, or no reason is given.
func refused(a answer) (code string, ok bool) {
	if !a.ok() {
		code = a.text("error")
		return code, code != ""
	}
	results := items(a.body["events"])
	if len(results) == 0 { // a space or a file was made, or a run that has not come to anything
		return a.text("status"), false
	}
	last := results[len(results)-1]
	code = at(last, "reasonCode")
	if code == "" {
		code = at(last, "code")
	}
	return code, code != "" && at(last, "success") != "true"
}

// allRefused tries everything and wants each refused.
func (t *trial) allRefused(ctx context.Context, d *daemon, space, file string, only ...string) error {
	codes := map[string]bool{}
	for what, attempt := range attempts(ctx, d, space, file) {
		if len(only) > 0 && what != only[0] && what != only[len(only)-1] {
			continue
		}
		a, err := attempt()
		if err != nil {
			return err
		}
		t.tried(1)
		code, ok := refused(a)
		t.want(ok, "%s: %d, and the answer is %.300s", what, a.status, a.raw)
		codes[code] = true
	}
	names := slices.Sorted(maps.Keys(codes))
	t.note("refused with %s", strings.Join(names, ", "))
	return nil
}

// works checks that effects are possible, so that a later refusal has no other reason.
func works(ctx context.Context, d *daemon, space, file string) error {
	for what, attempt := range attempts(ctx, d, space, file) {
		if what == "a space" {
			continue
		}
		a, err := attempt()
		if err != nil {
			return err
		}
		if code, no := refused(a); no {
			return fmt.Errorf("%s is refused with %s although nothing is missing", what, code)
		}
	}
	return nil
}

// absent wants that no file is there; it looks itself, since the daemon may be unable to answer.
func (t *trial) absent(d *daemon, space, file string) {
	_, err := os.Stat(filepath.Join(d.data, "spaces", space, "files", file))
	t.want(errors.Is(err, os.ErrNotExist), "it was refused and done: the file is there (%v)", err)
}

func (x closing) nobody(ctx context.Context, r *result) error {
	t := r.try("nobody's key, a policy that there is not, and an operation that there is not")
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	defer d.kill()
	stranger := *d
	stranger.caller = newCaller(d.url, "abx_"+d.key, d.data, x.over)
	if err := t.allRefused(ctx, &stranger, space, "effect"); err != nil {
		return err
	}
	for _, body := range []map[string]any{
		{"name": "x", "policy": "none-of-the-name"}, {"name": "x", "policy_overrides": map[string]any{"alow": []string{"*"}}},
		{"name": "x", "tier": "none"},
	} {
		a, err := d.call(ctx, "POST", "/v1/spaces", body)
		if err != nil {
			return err
		}
		code, ok := refused(a)
		t.tried(1)
		t.want(ok, "a space with %v: %d %s", body, a.status, code)
	}
	a, err := d.call(ctx, "POST", "/v1/spaces/"+space+"/runs", map[string]any{"protocolVersion": "1.0",
		"operations": []operation{{"type": "launch", "id": "x"}}, "wait": 5})
	if err != nil {
		return err
	}
	code, ok := refused(a)
	t.tried(1)
	t.want(ok, "an operation that there is not: %d %s", a.status, code)
	t.absent(d, space, "effect")
	return nil
}

func (x closing) stopped(ctx context.Context, r *result) error {
	t := r.try("the kill switch is thrown, also over a crash")
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	if err := works(ctx, d, space, "before"); err != nil {
		return err
	}
	if _, err := d.must(ctx, "PUT", "/v1/kill-switch", map[string]any{"on": true, "reason": "a check of trust"}); err != nil {
		return err
	}
	if err := t.allRefused(ctx, d, space, "effect"); err != nil {
		return err
	}
	d.kill()
	if d, err = x.up(ctx, d.data, nil); err != nil {
		return err
	}
	defer d.kill()
	if err := t.allRefused(ctx, d, space, "effect"); err != nil {
		return err
	}
	t.absent(d, space, "effect")
	return nil
}

// lawless takes away the policy of a space.
func (x closing) lawless(ctx context.Context, r *result) error {
	t := r.try("the policy of a space is gone")
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	if err := works(ctx, d, space, "before"); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	if err := changed(d.data, func(db *database) error {
		return db.changed(`DELETE FROM documents WHERE projection = (SELECT no FROM projections WHERE name = 'policy_bundles')`)
	}); err != nil {
		return err
	}
	if d, err = x.up(ctx, d.data, nil); err != nil {
		return err
	}
	defer d.kill()
	if err := t.allRefused(ctx, d, space, "effect", "a file", "a command"); err != nil {
		return err
	}
	t.absent(d, space, "effect")
	return nil
}

// starved takes away the file descriptors of a daemon, and gives them back.
func (x closing) starved(ctx context.Context, r *result) error {
	t := r.try("no file descriptor is left; with some again it works")
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	defer d.kill()
	if err := works(ctx, d, space, "before"); err != nil {
		return err
	}
	pid := d.cmd.Process.Pid
	var most unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &most); err != nil {
		return err
	}
	none := unix.Rlimit{Cur: 4, Max: most.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		return err
	}
	if err := t.allRefused(ctx, d, space, "effect", "a command"); err != nil {
		return err
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &most, nil); err != nil {
		return err
	}
	if err := works(ctx, d, space, "after"); err != nil {
		t.fail("with file descriptors again: %v", err)
	}
	t.absent(d, space, "effect")
	return nil
}

// logless takes the log away from under a daemon that works.
func (x closing) logless(ctx context.Context, r *result) error {
	t := r.try("the log is moved away while the daemon works")
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	defer d.kill()
	if err := works(ctx, d, space, "before"); err != nil {
		return err
	}
	for _, name := range []string{"log.db", "log.db-wal"} {
		if err := os.Rename(filepath.Join(d.data, name), filepath.Join(d.data, name+".away")); err != nil {
			return err
		}
	}
	for { // it checks its files about each second; the moved log has all events that were acknowledged before
		if err := d.ready(ctx); err != nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	a, err := attempts(ctx, d, space, "effect")["a file"]()
	t.tried(1)
	if err != nil {
		t.note("the daemon has ended")
		return nil
	}
	code, ok := refused(a)
	t.want(ok, "a file: %d %.300s", a.status, a.raw)
	t.note("refused with %s", code)
	return nil
}

// again wants that a daemon which lacked something goes on by itself once it has it.
func (t *trial) again(ctx context.Context, d *daemon, space string) error {
	for ended := time.After(time.Minute); ; {
		err := works(ctx, d, space, "again")
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ended:
			t.fail("it does not go on by itself: %v", err)
			return nil
		}
	}
}

// full fills the disk of the log, which takes a small disk of its own.
func (x closing) full(ctx context.Context, r *result) (err error) {
	t := r.try("the disk of the log is full; with room again it works")
	dir, err := x.folder()
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=33554432,mode=0700"); err != nil {
		t.fail("a small disk cannot be made (%v); run this as root", err)
		return nil
	}
	defer func() { err = errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH)) }()
	d, err := x.up(ctx, filepath.Join(dir, "data"), nil)
	if err != nil {
		return err
	}
	defer d.kill()
	space, err := d.newSpace(ctx, "full")
	if err != nil {
		return err
	}
	if err := works(ctx, d, space, "before"); err != nil {
		return err
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		return err
	}
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 16
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	acknowledged := 0
	for ; acknowledged < 2000; acknowledged++ { // until the room that the log has kept is used up
		a, err := d.call(ctx, "GET", "/v1/spaces/"+space+"/files", nil)
		if err != nil {
			return err
		}
		if !a.ok() {
			break
		}
	}
	if err := t.allRefused(ctx, d, space, "effect"); err != nil {
		return err
	}
	t.absent(d, space, "effect")
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if err := t.again(ctx, d, space); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	found, err := x.audited(ctx, d.data)
	if err != nil {
		return err
	}
	t.want(found.Valid, "the log is not intact: %+v", found.Findings)
	if d, err = x.up(ctx, d.data, nil); err != nil {
		return err
	}
	if err := works(ctx, d, space, "after"); err != nil {
		t.fail("with room again: %v", err)
	}
	return nil
}
