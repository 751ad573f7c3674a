//go:build linux

package namespace

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/testkit/wall"
)

// prison is a space with a neighbour, on a host that has what an escape would be after.
type prison struct {
	spacetest.Host
	spec     space.Spec
	living   space.Instance
	secret   string // a file of the host that everybody may read
	private  string // a file of the daemon's data beside the spaces
	other    string // a file of the neighbour
	variable string // the value of a variable of the daemon
	victim   string // process id, inside, of another command of the space
	port     string // address of a listener on the host's loopback
	socket   string // a socket file of the host
	name     string // an abstract socket of the host
	device   string // a disk's node that the host put among the files, "" where that needs root
	setuid   string // a program of root that the host put among the files, likewise
}

func escapes(p *prison) []way {
	return []way{
		{"clone user namespace", "make a user namespace by clone, in which one is root again", "", true},
		{"clone3 user namespace", "the same by clone3, whose flags a filter cannot see", "", true},
		{"unshare user namespace", "the same by unshare", "", true},
		{"clone other namespaces", "make a mount, process, network or cgroup namespace by clone", "", true},
		{"unshare other namespace", "the same by unshare, the time namespace too", "", true},
		{"setns", "enter namespaces through /proc or a process descriptor", "", false},
		{"mount", "mount file systems and binds", "", true},
		{"remount read-only parts", "make the read-only parts writable", "", false},
		{"unmount", "take away what hides something", "", false},
		{"new mount interface", "the same with fsopen, open_tree, move_mount, mount_setattr", "", true},
		{"pivot_root and chroot", "change the root", "", false},
		{"above the root", "climb above the root from a folder kept open", p.secret, true},
		{"ptrace the init", "trace process 1", "", false},
		{"ptrace another command", "trace a process of another command", p.victim, false},
		{"read another process's memory", "read it with process_vm_readv", p.victim, false},
		{"the init through /proc", "reach the init's root, memory, environment and descriptors", "", true},
		{"take the init's connection", "copy the init's descriptor to the daemon with pidfd_getfd", "", false},
		{"inherited descriptors", "find a descriptor that the daemon or the init left open", "", false},
		{"signal the host", "signal the daemon", strconv.Itoa(os.Getpid()), true},
		{"the daemon's environment", "find a variable of the daemon's", p.variable, true},
		{"the launcher", "find the process that starts spaces", "", true},
		{"processes of the host", "see the daemon in /proc", strconv.Itoa(os.Getpid()), true},
		{"core_pattern", "name a program that the host runs as root when a process crashes", "", true},
		{"settings of the kernel", "write other settings of the kernel", "", true},
		{"sysrq", "make the kernel reboot or dump", "", false},
		{"memory of the kernel", "read the kernel's memory, symbols and messages", "", true},
		{"what runs on the host", "read the kernel's command line, keys, timers, modules", "", true},
		{"log of the kernel", "read dmesg", "", true},
		{"keyrings", "use keyrings, which namespaces do not divide", "", true},
		{"bpf", "load programs into the kernel", "", false},
		{"perf events", "watch the processor's counters", "", true},
		{"io_uring", "use the interface that filters do not see", "", true},
		{"userfaultfd", "stop the kernel at a page fault of one's choice", "", true},
		{"kernel modules", "load or remove one", "", false},
		{"another kernel", "load another kernel or reboot", "", false},
		{"clock", "set the clock", "", false},
		{"names of the host", "change the host's name", "", false},
		{"swap, quota, accounting", "other things of an administrator", "", false},
		{"personality", "switch off address randomisation", "", true},
		{"file notifications", "watch all file systems", "", true},
		{"typing into a terminal", "put characters into the input of another program (TIOCSTI, TIOCLINUX)", "", true},
		{"privileges", "become another user or gain capabilities", "", true},
		{"more than the limits", "raise limits and priority", "", true},
		{"maps of the user namespace", "map further users", "", false},
		{"leave the command's tree", "stop being the subreaper of one's descendants", "", true},
		{"control groups", "reach control groups and their release agent", "", false},
		{"system calls of other interfaces", "call the kernel through the x32 and 32-bit interfaces, and unknown calls", "", true},
		{"vsock", "talk to the hypervisor, past the network namespace", "", true},
		{"packet sockets", "read and write raw packets", "", true},
		{"kernel's crypto", "use the kernel's crypto sockets", "", false},
		{"netlink", "talk to the packet filter, the audit and the device events", "", true},
		{"other families", "use seldom-used network families", "", false},
		{"host's loopback", "connect to a server of the host", p.port, true},
		{"host's abstract socket", "connect to an abstract socket of the host", p.name, true},
		{"host's socket file", "connect to a socket file of the host", p.socket, true},
		{"interfaces", "find or make another interface than loopback", "", false},
		{"a file of the host", "read a file of the host by its path", p.secret, true},
		{"a file of the host", "read the daemon's data by its path", p.private, true},
		{"a file of the host", "read a neighbour's file by its path", p.other, true},
		{"write to the system", "write to programs and settings that all spaces share", "", false},
		{"device nodes", "make or open the node of a disk or of memory", "", true},
		{"a device that the host left", "open a disk's node among the files", p.device, true},
		{"files by handle", "open files by handle, past the mounts", "", true},
		{"links out of the files", "leave the files by symbolic and hard links", p.secret, true},
	}
}

// way is one way out.
type way struct {
	name, what, arg string
	bare            bool // it works for root without a space, which is tried too: else a mistake in the try would pass for a wall
}

func imprison(t *testing.T, h spacetest.Host) *prison {
	t.Helper()
	p := &prison{Host: h}
	p.spec = p.Spec(t)
	put := func(path, content string, mode os.FileMode) string {
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put(filepath.Join(p.spec.Dir, "escape"), string(attempts), 0o755)
	neighbour := p.Spec(t)
	p.Create(t, neighbour)
	p.other = put(filepath.Join(neighbour.Dir, "theirs"), "theirs", 0o644)
	p.private = put(filepath.Join(filepath.Dir(p.spec.Dir), "owner.key"), "key", 0o644)
	p.secret = put(filepath.Join(t.TempDir(), "secret"), "secret", 0o644)
	p.variable = "variable-" + strconv.Itoa(os.Getpid())
	t.Setenv("AGENTBOX_TEST_VARIABLE", p.variable)
	p.name = "agentbox-test-" + strconv.Itoa(os.Getpid())
	p.socket = filepath.Join(t.TempDir(), "s")
	p.port = listen(t, "tcp", "127.0.0.1:0")
	listen(t, "unix", "@"+p.name)
	listen(t, "unix", p.socket)
	if os.Geteuid() == 0 {
		p.device = "/workspace/disk"
		if err := unix.Mknod(filepath.Join(p.spec.Dir, "disk"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(p.spec.Dir, "disk"), 0o666); err != nil {
			t.Fatal(err)
		}
		p.setuid = put(filepath.Join(p.spec.Dir, "setuid"), string(attempts), 0o755)
		if err := os.Chmod(p.setuid, 0o4755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p.setuid, 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
	}
	p.living = p.Create(t, p.spec)
	p.victim = begin(t, p.living, spacetest.Shell(p.spec.ID, "echo $$; exec sleep 1000"))
	return p
}

// begin starts a command that goes on beside the test, and returns the first thing that it prints.
func begin(t *testing.T, s space.Instance, c spacetest.Command) string {
	t.Helper()
	type ending struct {
		exit space.Exit
		err  error
	}
	said, ended := make(chan string, 1), make(chan ending, 1)
	go func() {
		exit, err := s.Exec(t.Context(), issue(c.Action()), nil, func(_ string, data []byte) error {
			select {
			case said <- strings.TrimSpace(string(data)):
			default: // it goes on to print
			}
			return nil
		})
		ended <- ending{exit, err}
	}()
	select {
	case first := <-said:
		return first
	case e := <-ended:
		t.Fatalf("%q ended before it printed anything: %+v, %v", c.Argv, e.exit, e.err)
		return ""
	}
}

// listen serves connections until the test ends.
func listen(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// TestEscape tries every way out. None may work inside; those that work for root outside are tried there as well, so that it is the space
// which holds and not a mistake in the try.
func TestEscape(t *testing.T) { tryAll(t, imprison(t, host(t)), true) }

// tryAll tries every way out of a space and, where outside is set, those that work for root also there.
func tryAll(t *testing.T, p *prison, outside bool) {
	t.Helper()
	ways := escapes(p)
	if len(ways) < 60 {
		t.Errorf("got %d ways, want at least 60", len(ways))
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			if w.arg == "" && w.name == "a device that the host left" {
				t.Log("left out: only root can leave one")
				return
			}
			r := p.Exec(t, p.living, spacetest.Command{Space: p.spec.ID, Argv: []string{"/workspace/escape", w.name, w.arg}, MS: 20_000})
			if !strings.HasPrefix(r.Stdout, "held: ") && r.Signal != "SIGSYS" {
				t.Errorf("%s: got %+v, want held", w.what, r)
			}
			t.Log(strings.TrimSpace(r.Stdout), r.Signal)
			if !w.bare || !outside || os.Geteuid() != 0 {
				return
			}
			arg := strings.Replace(w.arg, "/workspace", p.spec.Dir, 1)
			out, err := exec.CommandContext(t.Context(), filepath.Join(p.spec.Dir, "escape"), w.name, arg).CombinedOutput()
			if !strings.HasPrefix(string(out), "out: ") {
				t.Errorf("%s: without a space: got %q, %v; the try proves nothing", w.what, out, err)
			}
		})
	}
	t.Run("a privileged program", func(t *testing.T) {
		if p.setuid == "" {
			t.Log("left out: only root can leave one")
			return
		}
		r := p.Exec(t, p.living, spacetest.Command{Space: p.spec.ID, Argv: []string{"/workspace/setuid", "a privileged program"}, MS: 20_000})
		if !strings.HasPrefix(r.Stdout, "held: ") {
			t.Errorf("a program of root with its set-user-id bit: got %+v, want held", r)
		}
	})
	if r := p.Exec(t, p.living, spacetest.Shell(p.spec.ID, "echo alive")); r.Stdout != "alive\n" {
		t.Errorf("afterwards: got %+v", r)
	}
}

// named returns the processes of the host, as folders of /proc, whose command lines hold a text.
func named(t *testing.T, text string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f string) bool {
		line, err := os.ReadFile(f + "/cmdline")
		return err != nil || !strings.Contains(string(line), text)
	})
}

// TestHostUser looks at a space from outside: no process of it is root or has a privilege on the host.
func TestHostUser(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	want := spec.UID
	if want == 0 {
		want = os.Geteuid()
	}
	command := spacetest.Command{Space: spec.ID, Argv: []string{"bash", "-c", "echo up; exec -a " + string(spec.ID) + " sleep 54321"},
		MS: 60_000}
	begin(t, s, command)
	var found []string
	for start := time.Now(); len(found) < 2; found = named(t, string(spec.ID)) { // the command becomes what it is called in its own time
		if time.Since(start) > wall.Patience {
			t.Fatalf("got processes %v of the space, want the init and the command", found)
		}
	}
	for _, f := range found {
		line, _ := os.ReadFile(f + "/cmdline")
		status, err := os.ReadFile(f + "/status")
		if err != nil {
			t.Fatal(err)
		}
		id := strings.Repeat(fmt.Sprintf("\t%d", want), 4) + "\n"
		for _, w := range []string{
			"Uid:" + id, "Gid:" + id, "CapInh:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n",
			"CapAmb:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
		} {
			if !strings.Contains(string(status), w) && (os.Geteuid() == 0 || !strings.HasPrefix(w, "Gid")) {
				t.Errorf("%q: no %q in its status:\n%s", line, w, status)
			}
		}
	}
	if len(found) != 2 {
		t.Errorf("got processes %v of the space, want the init and the command", found)
	}
	if os.Geteuid() == 0 {
		var st syscall.Stat_t
		h.Exec(t, s, spacetest.Shell(spec.ID, ": >made"))
		if err := syscall.Stat(filepath.Join(spec.Dir, "made"), &st); err != nil || int(st.Uid) != spec.UID || int(st.Gid) != spec.UID {
			t.Errorf("a file that it made: got user %d, group %d, %v, want %d", st.Uid, st.Gid, err, spec.UID)
		}
	}
}
