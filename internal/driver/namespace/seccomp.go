//go:build linux

package namespace

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// The system call filter. Calls in allowed may be called, calls in denied fail with EPERM, and calls in checked depend on their
// arguments. All other calls, including those of future kernels, fail with ENOSYS; then the C library falls back to an older call. The
// filter finds a number by binary search. The kernel runs the filter once per number when it is installed, and that is most of the
// cost.

// verdict is the filter's answer to a system call.
type verdict uint32

const (
	allow   verdict = unix.SECCOMP_RET_ALLOW
	kill    verdict = unix.SECCOMP_RET_KILL_PROCESS
	eperm   verdict = unix.SECCOMP_RET_ERRNO | verdict(unix.EPERM)
	enosys  verdict = unix.SECCOMP_RET_ERRNO | verdict(unix.ENOSYS)
	nosupp  verdict = unix.SECCOMP_RET_ERRNO | verdict(unix.EAFNOSUPPORT)
	offNR           = 0
	offArch         = 4
	x32bit          = 0x40000000 // numbers of the x32 interface of x86-64
)

// newNamespace are the flags of clone that make namespaces. CLONE_NEWTIME is not a flag of clone, only of clone3 and unshare.
const newNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// argument returns the offset of the low half of an argument; the kernel reads only that half of an int.
func argument(n int) uint32 { return uint32(16 + 8*n) }

func load(off uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
}

func ret(v verdict) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: uint32(v)}
}

func jump(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

// oneOf returns yes if an argument is one of the values, else no.
func oneOf(arg int, yes, no verdict, values ...uint32) []unix.SockFilter {
	code := []unix.SockFilter{load(argument(arg))}
	for i, v := range values {
		code = append(code, jump(unix.BPF_JEQ, v, uint8(len(values)-i), 0))
	}
	return append(code, ret(no), ret(yes))
}

// checked are the system calls that depend on their arguments.
func checked() map[uint32][]unix.SockFilter {
	return map[uint32][]unix.SockFilter{
		// The first argument holds the flags on every architecture that we build for.
		unix.SYS_CLONE: {load(argument(0)), jump(unix.BPF_JSET, newNamespace, 0, 1), ret(eperm), ret(allow)},
		// Ordinary sockets, and the route protocol of netlink, by which programs list their network interfaces. No vsock, which ignores
		// network namespaces and reaches the hypervisor; no packet, no algorithm, no other netlink sockets.
		unix.SYS_SOCKET: {
			load(argument(0)),
			jump(unix.BPF_JEQ, unix.AF_UNIX, 5, 0), jump(unix.BPF_JEQ, unix.AF_INET, 4, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 3, 0),
			jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 3),
			load(argument(2)), jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 0, 1),
			ret(allow), ret(nosupp),
		},
		unix.SYS_SOCKETPAIR: oneOf(0, allow, nosupp, unix.AF_UNIX),
		// Typing into a terminal that another process reads, and similar calls.
		unix.SYS_IOCTL: oneOf(1, eperm, allow, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCCONS, unix.TIOCSETD),
		// A command's own process cannot stop being the subreaper of its children, and cannot change its memory layout with PR_SET_MM.
		unix.SYS_PRCTL: {
			load(argument(0)), jump(unix.BPF_JEQ, unix.PR_SET_MM, 3, 0), jump(unix.BPF_JEQ, unix.PR_SET_CHILD_SUBREAPER, 0, 3),
			load(argument(1)), jump(unix.BPF_JEQ, 0, 0, 1), ret(eperm), ret(allow),
		},
		// Asking for the present personality and setting the ordinary one.
		unix.SYS_PERSONALITY: oneOf(0, allow, eperm, 0, 0xffffffff),
	}
}

// span is a run of numbers from first to the next span's first that are treated alike.
type span struct {
	first uint32
	code  []unix.SockFilter
}

// filterProgram returns the filter in the form that the kernel takes.
func filterProgram() []byte {
	rules := map[uint32][]unix.SockFilter{}
	for _, nr := range slices.Concat(allowed, allowedHere) {
		rules[nr] = []unix.SockFilter{ret(allow)}
	}
	for _, nr := range slices.Concat(denied, deniedHere) {
		rules[nr] = []unix.SockFilter{ret(eperm)}
	}
	for nr, code := range checked() {
		rules[nr] = code
	}
	var last uint32
	for nr := range rules {
		last = max(last, nr)
	}
	missing := []unix.SockFilter{ret(enosys)}
	var spans []span
	for nr := range last + 2 {
		code := rules[nr]
		if code == nil {
			code = missing
		}
		if len(spans) == 0 || !slices.Equal(spans[len(spans)-1].code, code) {
			spans = append(spans, span{nr, code})
		}
	}
	program := []unix.SockFilter{
		load(offArch), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(kill),
		load(offNR), jump(unix.BPF_JGE, x32bit, 0, 1), ret(enosys),
	}
	program = append(program, search(spans)...)
	var bytes []byte
	for _, in := range program {
		bytes = binary.NativeEndian.AppendUint16(bytes, in.Code)
		bytes = append(bytes, in.Jt, in.Jf)
		bytes = binary.NativeEndian.AppendUint32(bytes, in.K)
	}
	return bytes
}

// search returns code that finds the span of the number in the accumulator and goes on with its code.
func search(spans []span) []unix.SockFilter {
	if len(spans) == 1 {
		return spans[0].code
	}
	half := len(spans) / 2
	low, high := search(spans[:half]), search(spans[half:])
	var code []unix.SockFilter
	if len(low) <= 255 {
		code = []unix.SockFilter{jump(unix.BPF_JGE, spans[half].first, uint8(len(low)), 0)}
	} else {
		code = []unix.SockFilter{
			jump(unix.BPF_JGE, spans[half].first, 0, 1),
			{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))},
		}
	}
	return append(append(code, low...), high...)
}
