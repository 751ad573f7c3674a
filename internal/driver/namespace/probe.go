//go:build linux

package namespace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

// probeUser is the host user of the probe's space where the daemon is root: the one that owns nothing.
const probeUser = 65534

// probeLimits bound the probe's space; the memory is small so that it is filled fast.
func probeLimits() space.Limits {
	l := space.DefaultLimits()
	l.MemoryBytes, l.Pids, l.TmpBytes = 256<<20, 64, 8<<20
	return l
}

// prober makes the checks of one probe.
type prober struct {
	tier   *Tier
	report space.Report
	space  *instance
}

// Try implements space.Tier.
func (t *Tier) Try(ctx context.Context) error {
	p := &prober{tier: t}
	dir, err := os.MkdirTemp("", "agentbox-try-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := p.start(ctx, "try-", dir); err != nil {
		return err
	}
	return p.space.Close()
}

// Probe starts a real space and tries the promises of the tier in it. It takes about a second.
func (t *Tier) Probe(ctx context.Context) space.Report {
	offer := t.Offer()
	p := &prober{tier: t, report: space.Report{Tier: Name, Offer: &offer}}
	p.hostChecks()
	dir, err := os.MkdirTemp("", "agentbox-probe-")
	defer func() { _ = os.RemoveAll(dir) }()
	if err == nil {
		err = p.start(ctx, "probe-", dir)
	}
	p.add("a space", err, "started in "+p.report.Start.Round(time.Millisecond).String(), mendStart(), "")
	if err != nil {
		return p.report
	}
	p.boundChecks(ctx)
	p.wallChecks(ctx)
	required := true
	for _, c := range p.report.Checks {
		required = required && c.OK
	}
	if t.sharing != nil { // without it a fork is the same, and takes longer
		p.add("forks share files", t.sharing(), "a fork costs what it changes", mendSharing(), "")
	}
	p.programChecks(ctx) // a person can add missing programs; no promise depends on them
	if err := p.space.Close(); err != nil {
		p.add("the end", err, "", "look for processes called "+initName, "")
		required = false
	}
	p.report.OK, p.report.Limited = required && len(p.space.unenforced) == 0, true
	return p.report
}

// add records a check; a nil error is a success.
func (p *prober) add(name string, err error, seen, mend, bound string) {
	c := space.Check{Name: name, OK: err == nil, Detail: seen}
	if err != nil {
		c.Detail, c.Mend, c.Bound = err.Error(), mend, bound
	}
	p.report.Checks = append(p.report.Checks, c)
}

// hostChecks look at the settings of the host that decide whether a space can be made at all.
func (p *prober) hostChecks() {
	limit := setting("/proc/sys/user/max_user_namespaces")
	var err error
	if limit == "0" {
		err = errors.New("this host allows no user namespaces: user.max_user_namespaces is 0")
	}
	p.add("user namespaces", err, "up to "+limit, "sysctl -w user.max_user_namespaces=10000", "")
	if p.tier.privileged {
		return
	}
	err = nil
	if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
		err = errors.New("this host reserves user namespaces for root")
	}
	p.add("user namespaces without root", err, "allowed", "sysctl -w kernel.unprivileged_userns_clone=1, or run the daemon as root", "")
	err = nil
	if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
		err = errors.New("AppArmor takes the privileges of user namespaces away from programs without a profile")
	}
	p.add("AppArmor", err, "does not restrict user namespaces",
		"give the agentbox program a profile with `userns,`, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or run the daemon as "+
			"root", "")
}

func setting(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func mendStart() string {
	return "Linux 5.12 or newer is needed, with namespaces and a readable /proc; in a container, one that is allowed to nest: " +
		"seccomp and AppArmor unconfined, /proc not masked"
}

func mendSharing() string {
	return "run the daemon as root, with overlay and Linux 6.15 or newer, on a file system that takes idmapped mounts; until then a fork " +
		"makes all its files"
}

// start makes the probe's space, whose name begins as told, and runs a first command.
func (p *prober) start(ctx context.Context, name, dir string) error {
	var err error
	spec := space.Spec{ID: id.Space(name + strconv.Itoa(os.Getpid())), Dir: dir, Limits: probeLimits(), BestEffort: true}
	if p.tier.privileged {
		spec.UID = probeUser
		err = os.Chown(dir, probeUser, probeUser)
	} else {
		spec.UID = os.Geteuid()
	}
	if err != nil {
		return err
	}
	began := p.tier.clock.Now()
	s, err := p.tier.create(ctx, spec)
	if err != nil {
		return cause(err)
	}
	p.space = s
	_, err = s.run(ctx, spaceinit.Exec{Argv: []string{"echo", "hello"}, Env: environment(nil, nil), Cwd: workdir}, time.Minute, nil,
		func(string, []byte) error {
			p.report.Start = p.tier.clock.Now().Sub(began)
			return nil
		})
	if err != nil {
		return errors.Join(cause(err), s.Close())
	}
	return nil
}

// cause is the part of a fault for administrators: the reason below the sentence for the user.
func cause(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Err != nil {
		return f.Err
	}
	return err
}

// shell runs a script in the probe's space.
func (p *prober) shell(ctx context.Context, script string) (string, space.Exit, error) {
	var out strings.Builder
	exit, err := p.space.run(ctx, spaceinit.Exec{Argv: []string{"sh", "-c", script}, Env: environment(nil, nil), Cwd: workdir}, 20*time.Second,
		nil,
		func(_ string, data []byte) error {
			out.Write(data)
			return nil
		})
	return strings.TrimSpace(out.String()), exit, err
}

// boundChecks hit the bounds.
func (p *prober) boundChecks(ctx context.Context) {
	groups := "run the daemon as root, or give it a control group of its own: systemd-run --user --scope -p Delegate=yes agentbox up"
	missing := func(bound string) bool { return slices.Contains(p.space.unenforced, bound) }
	for _, b := range []struct {
		name, bound, script string
		holds               func(out string, exit space.Exit) bool
	}{
		{"memory", "memory_bytes", "head -c 1000m /dev/zero | tail >/dev/null; exit 1", func(_ string, e space.Exit) bool {
			return e.Limit == "memory_bytes"
		}},
		{
			"processor time", "cpu_millis", "", func(string, space.Exit) bool { return true },
		},
		{
			"processes", "pids", "n=0; while [ $n -lt 200 ]; do sleep 100 & n=$((n+1)); done; echo all run",
			func(out string, e space.Exit) bool { return e.Code != 0 && !strings.HasSuffix(out, "all run") },
		},
		{"size of a file", "file_bytes", "ulimit -f", func(out string, _ space.Exit) bool { return out != "unlimited" }},
		{"size of /tmp", "tmp_bytes", "head -c 9m /dev/zero 2>/dev/null >/tmp/x || echo full", func(out string, _ space.Exit) bool {
			return strings.HasSuffix(out, "full")
		}},
	} {
		var err error
		if missing(b.bound) {
			err = fmt.Errorf("this host cannot enforce %s", b.bound)
		} else if b.script != "" {
			var out string
			var exit space.Exit
			if out, exit, err = p.shell(ctx, b.script); err == nil && !b.holds(out, exit) {
				err = fmt.Errorf("the bound did not hold: exit %d, limit %q", exit.Code, exit.Limit)
			}
		}
		p.add(b.name, err, "bounded", groups, b.bound)
	}
	p.add("size of the files", nil, fmt.Sprintf("watched every %v; a command may overshoot by what it writes in that time", tick), "",
		"disk_bytes")
}

// wallChecks look for the walls.
func (p *prober) wallChecks(ctx context.Context) {
	var err error
	if p.space.ready.Landlock == 0 {
		err = errors.New("the kernel has no Landlock, or it is not switched on; the other walls stand")
	}
	p.add("Landlock", err, fmt.Sprintf("version %d", p.space.ready.Landlock), "boot with lsm=landlock,... (Linux 5.19 or newer)", "")
	err = nil
	if slices.Contains(p.space.ready.Missing, "max_user_namespaces") {
		err = errors.New("/proc/sys is read-only here, so only the system call filter forbids further user namespaces")
	}
	p.add("no further user namespaces", err, "their number is limited to 0", "let the daemon see a writable /proc/sys", "")
	host, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.space.process.Pid), "status"))
	if err == nil && strings.Contains(string(host), "Uid:\t0\t") {
		err = errors.New("its processes run as root of the host")
	}
	p.add("user of the host", err, "user "+strconv.Itoa(p.space.spec.UID), "", "")
	for _, w := range []struct{ name, script, want, seen string }{
		{"capabilities", "grep -c '^Cap...:.0000000000000000$' /proc/self/status", "5", "none in any set"},
		{"system call filter", "grep '^Seccomp:' /proc/self/status | tr -dc 0-9; unshare -U true 2>/dev/null && echo passed", "2", "on"},
		{"network", "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo", "only loopback"},
		{"other processes", "for p in /proc/[0-9]*; do echo x; done | wc -l | tr -d ' '", "", "only the space's own"},
		{"the system", "touch /usr/x /etc/x /x /proc/sys/kernel/core_pattern 2>/dev/null || echo refused", "refused", "read-only"},
	} {
		out, _, err := p.shell(ctx, w.script)
		if w.name == "other processes" {
			if n, failed := strconv.Atoi(out); failed == nil && n <= 6 {
				out = ""
			}
		}
		if err == nil && out != w.want {
			err = fmt.Errorf("got %.60q, want %q", out, w.want)
		}
		p.add(w.name, err, w.seen, "", "")
	}
}

// programChecks ask the runtimes for their versions.
func (p *prober) programChecks(ctx context.Context) {
	var err error
	seen := "the host's own programs, read-only"
	if p.tier.root.dir != "" {
		seen = p.tier.root.name
	}
	p.add("root file system", err, seen, "", "")
	for _, name := range []string{"bun", "node", "python3", "npm"} {
		out, exit, err := p.shell(ctx, name+" --version")
		if err == nil && exit.Code != 0 {
			err = fmt.Errorf("%s does not run in a space", name)
		}
		p.add(name, err, out, "make rootfs", "")
	}
}
