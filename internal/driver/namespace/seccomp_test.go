//go:build linux

package namespace

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// seccompData is what the kernel shows a filter.
type seccompData struct {
	nr   uint32
	arch uint32
	args [6]uint64
}

// eval runs the filter's program as the kernel does, and counts its steps.
func eval(t *testing.T, program []byte, d seccompData) (verdict, int) {
	t.Helper()
	memory := binary.NativeEndian.AppendUint32(nil, d.nr)
	memory = binary.NativeEndian.AppendUint32(memory, d.arch)
	memory = binary.NativeEndian.AppendUint64(memory, 0)
	for _, a := range d.args {
		memory = binary.NativeEndian.AppendUint64(memory, a)
	}
	var acc uint32
	for pc, steps := 0, 1; ; pc, steps = pc+1, steps+1 {
		if 8*pc >= len(program) {
			t.Fatalf("%+v: the program runs out at %d", d, pc)
		}
		in := program[8*pc:]
		code, jt, jf, k := binary.NativeEndian.Uint16(in), in[2], in[3], binary.NativeEndian.Uint32(in[4:])
		branch := func(yes bool) {
			if yes {
				pc += int(jt)
			} else {
				pc += int(jf)
			}
		}
		switch code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.NativeEndian.Uint32(memory[k:])
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			branch(acc == k)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			branch(acc >= k)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			branch(acc&k != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(k)
		case unix.BPF_RET | unix.BPF_K:
			return verdict(k), steps
		default:
			t.Fatalf("no such instruction: %#x", code)
		}
	}
}

func TestFilter(t *testing.T) {
	program := filterProgram()
	if n := len(program) / 8; n > 4096 {
		t.Errorf("the program has %d instructions, more than the kernel takes", n)
	}
	want := map[uint32]verdict{}
	for _, nr := range slices.Concat(allowed, allowedHere) {
		want[nr] = allow
	}
	for _, nr := range slices.Concat(denied, deniedHere) {
		if want[nr] == allow {
			t.Errorf("call %d is allowed and denied", nr)
		}
		want[nr] = eperm
	}
	most := 0
	for nr := range uint32(1024) {
		if _, depends := checked()[nr]; depends {
			if _, twice := want[nr]; twice {
				t.Errorf("call %d is checked and has a fixed verdict", nr)
			}
			continue
		}
		w, ok := want[nr]
		if !ok {
			w = enosys
		}
		got, steps := eval(t, program, seccompData{nr: nr, arch: auditArch})
		if got != w {
			t.Errorf("call %d: got %#x, want %#x", nr, got, w)
		}
		most = max(most, steps)
	}
	if most > 24 {
		t.Errorf("a call takes %d steps, more than a binary search should", most)
	}
	t.Logf("%d instructions, at most %d steps", len(program)/8, most)
}

func TestFilterArguments(t *testing.T) {
	program := filterProgram()
	const high = 7 << 32 // the kernel ignores the upper half of an int, and so must the filter
	for _, c := range []struct {
		name string
		nr   uint32
		args [6]uint64
		want verdict
	}{
		{"a thread", unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		{"a process", unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCHLD)}, allow},
		{"a user namespace", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, eperm},
		{"a network namespace", unix.SYS_CLONE, [6]uint64{high | unix.CLONE_NEWNET}, eperm},
		{"clone3", unix.SYS_CLONE3, [6]uint64{}, enosys},
		{"a unix socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allow},
		{"an internet socket", unix.SYS_SOCKET, [6]uint64{high | unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, allow},
		{"the route socket", unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, allow},
		{"another netlink socket", unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, nosupp},
		{"vsock", unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK}, nosupp},
		{"a socket pair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX}, allow},
		{"a pair of others", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_TIPC}, nosupp},
		{"the size of a terminal", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCGWINSZ}, allow},
		{"TIOCSTI", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCSTI}, eperm},
		{"TIOCSTI in disguise", unix.SYS_IOCTL, [6]uint64{0, high | unix.TIOCSTI}, eperm},
		{"TIOCLINUX", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCLINUX}, eperm},
		{"a thread's name", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_NAME}, allow},
		{"become a subreaper", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_CHILD_SUBREAPER, 1}, allow},
		{"stop being one", unix.SYS_PRCTL, [6]uint64{high | unix.PR_SET_CHILD_SUBREAPER, 0}, eperm},
		{"move the image", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_MM, 1}, eperm},
		{"the present personality", unix.SYS_PERSONALITY, [6]uint64{0xffffffff}, allow},
		{"no randomisation", unix.SYS_PERSONALITY, [6]uint64{0x0040000}, eperm},
	} {
		if got, _ := eval(t, program, seccompData{c.nr, auditArch, c.args}); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
	if got, _ := eval(t, program, seccompData{nr: unix.SYS_GETPID, arch: auditArch ^ 1}); got != kill {
		t.Errorf("another architecture: got %#x, want a kill", got)
	}
	if got, _ := eval(t, program, seccompData{nr: x32bit | unix.SYS_GETPID, arch: auditArch}); got != enosys {
		t.Errorf("the x32 interface: got %#x, want no such call", got)
	}
}
