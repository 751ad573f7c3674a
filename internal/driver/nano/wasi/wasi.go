// Package wasi is a host of WASI preview 1: all of its functions, over a virtual file system, a virtual clock and seeded chance.
//
// An engine is given the functions once; the program that they work for is found in the state of the instance that calls. Every pointer
// and length comes from code that is not trusted: what lies outside of its memory is the error fault. Every call charges gas. proc_exit
// and proc_raise end the call of the guest with *engine.Exit.
package wasi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/vfs"
)

// Module is the name of the module that programs import the functions from.
const Module = "wasi_snapshot_preview1"

// Gas costs of calls, besides those of the file system, and bounds of one call.
const (
	gasPerCall      = 100
	gasPerItem      = 20 // of a vector, a subscription or an entry
	bytesPerGas     = 8
	maxVectors      = 1024
	maxSubscription = 4096
)

// Config is the environment in which a program begins.
type Config struct {
	Args     []string
	Env      []string // as in NAME=value
	Stdio    [3]*vfs.Handle
	Terminal [3]bool // whether those of Stdio are a terminal: C libraries then print line by line
	Preopens []Preopen
	Umask    uint32 // what nobody gets of the modes of what the program makes
	// Deadline is when the program may go on no longer, on the virtual clock; the zero time is never. Late is called then, and ends it by a
	// panic.
	Deadline time.Time
	Late     func()
}

// Preopen is a folder that a program has open from the beginning. It reaches nothing outside of it.
type Preopen struct {
	Name     string // by which the program knows it
	Dir      *vfs.Node
	ReadOnly bool // nothing may be written or changed
}

// Program is the state of one running module. Make it with New. One fiber at a time uses it.
type Program struct {
	fs  *vfs.FS
	arg []string
	env []string
	fds []*descriptor // by number; nil for one that is free

	deadline time.Time
	late     func()

	umask   uint32
	creates uint32 // the mode of what the next call makes, with chosen set
}

// chosen stands in a mode that was said, 0 too.
const chosen = 1 << 31

// SetUmask sets the mode bits that later files and folders of the program do not get.
func (p *Program) SetUmask(mask uint32) { p.umask = mask & 0o777 }

// SetCreates sets the mode of the file or folder that the next call creates, less the umask: calls of WASI carry no mode.
func (p *Program) SetCreates(mode uint32) { p.creates = mode&0o777 | chosen }

// ForgetCreates forgets what SetCreates has said, where there was no such call.
func (p *Program) ForgetCreates() { p.creates = 0 }

// made returns the mode of new files if the caller sets none.
func (p *Program) made(mode uint32) uint32 {
	if p.creates&chosen != 0 {
		mode = p.creates &^ chosen
	}
	p.creates = 0
	return mode &^ p.umask
}

// New returns the state of a program. The handles of Stdio are its own from then on, also when an error is returned: Close closes them.
func New(fs *vfs.FS, c Config) (*Program, error) {
	p := &Program{fs: fs, arg: c.Args, env: c.Env, deadline: c.Deadline, late: c.Late, umask: c.Umask & 0o777}
	for i, h := range c.Stdio {
		if h == nil {
			p.fds = append(p.fds, nil)
			continue
		}
		d := &descriptor{handle: h, base: possible(h.Kind()), terminal: c.Terminal[i]}
		if h.Kind() == vfs.Directory {
			d.inheriting = allRights
		}
		if h.Flags()&vfs.Read == 0 {
			d.base &^= fdRead
		}
		if h.Flags()&(vfs.Write|vfs.Append) == 0 {
			d.base &^= fdWrite | fdAllocate | fdFilestatSetSize
		}
		if h.Node() == nil {
			d.base &= streamRights
		}
		d.had = d.base
		p.fds = append(p.fds, d)
	}
	for _, s := range append(append([]string(nil), c.Args...), c.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			p.Close()
			return nil, errors.New("an argument or variable has a NUL in it: remove it")
		}
	}
	for _, o := range c.Preopens {
		h, err := fs.OpenNode(o.Dir, vfs.Read)
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("open the folder %s for the program: %w", o.Name, err)
		}
		d := &descriptor{handle: h, base: dirRights, inheriting: allRights, preopened: true, name: o.Name}
		if o.ReadOnly {
			d.base &= fdReaddir | pathOpen | pathReadlink | pathFilestatGet | fdFilestatGet | pollFdReadwrite | fdAdvise
			d.inheriting &= d.base | fdRead | fdSeek | fdTell | fdAdvise | fdFdstatSetFlags
		}
		d.had = d.base
		p.fds = append(p.fds, d)
	}
	return p, nil
}

// Check ends the program where its deadline is over. Every function calls it; who runs the program calls it while that computes.
func (p *Program) Check() {
	if !p.deadline.IsZero() && !p.fs.Now().Before(p.deadline) {
		p.late()
	}
}

// Close closes the descriptors that the program left open.
func (p *Program) Close() {
	for i, d := range p.fds {
		if d != nil {
			_ = d.handle.Close()
			p.fds[i] = nil
		}
	}
}

// Handle returns the open file of a descriptor, or nil. The program keeps it open.
func (p *Program) Handle(fd int) *vfs.Handle {
	if fd < 0 || fd >= len(p.fds) || p.fds[fd] == nil {
		return nil
	}
	return p.fds[fd].handle
}

// Descriptors returns how many descriptors are open.
func (p *Program) Descriptors() (n int) {
	for _, d := range p.fds {
		if d != nil {
			n++
		}
	}
	return n
}

// Functions returns what programs import from Module, for the engine. of finds the program in the state of an instance.
func Functions(of func(state any) *Program) []wasm.Function {
	all := make([]wasm.Function, len(functions))
	for i, f := range functions {
		all[i] = wasm.Function{Name: f.name, Params: types(f.params), Call: func(in *wasm.Instance, stack []uint64) {
			c := call{Program: of(in.State), instance: in, args: stack}
			c.charge(gasPerCall)
			if e := f.do(&c); len(stack) > 0 {
				stack[0] = uint64(e)
			}
		}}
		if f.name != "proc_exit" {
			all[i].Results = []api.ValueType{wasm.I32}
		}
	}
	return all
}

// function is one of the functions of preview 1. In params, i is an i32 and I an i64.
type function struct {
	name   string
	params string
	do     func(c *call) errno
}

func types(params string) []api.ValueType {
	all := make([]api.ValueType, len(params))
	for i := range params {
		all[i] = wasm.I32
		if params[i] == 'I' {
			all[i] = wasm.I64
		}
	}
	return all
}

var functions = []function{
	{"args_get", "ii", (*call).argsGet},
	{"args_sizes_get", "ii", (*call).argsSizesGet},
	{"environ_get", "ii", (*call).environGet},
	{"environ_sizes_get", "ii", (*call).environSizesGet},
	{"clock_res_get", "ii", (*call).clockResGet},
	{"clock_time_get", "iIi", (*call).clockTimeGet},
	{"fd_advise", "iIIi", (*call).fdAdvise},
	{"fd_allocate", "iII", (*call).fdAllocate},
	{"fd_close", "i", (*call).fdClose},
	{"fd_datasync", "i", (*call).fdDatasync},
	{"fd_fdstat_get", "ii", (*call).fdFdstatGet},
	{"fd_fdstat_set_flags", "ii", (*call).fdFdstatSetFlags},
	{"fd_fdstat_set_rights", "iII", (*call).fdFdstatSetRights},
	{"fd_filestat_get", "ii", (*call).fdFilestatGet},
	{"fd_filestat_set_size", "iI", (*call).fdFilestatSetSize},
	{"fd_filestat_set_times", "iIIi", (*call).fdFilestatSetTimes},
	{"fd_pread", "iiiIi", (*call).fdPread},
	{"fd_prestat_get", "ii", (*call).fdPrestatGet},
	{"fd_prestat_dir_name", "iii", (*call).fdPrestatDirName},
	{"fd_pwrite", "iiiIi", (*call).fdPwrite},
	{"fd_read", "iiii", (*call).fdRead},
	{"fd_readdir", "iiiIi", (*call).fdReaddir},
	{"fd_renumber", "ii", (*call).fdRenumber},
	{"fd_seek", "iIii", (*call).fdSeek},
	{"fd_sync", "i", (*call).fdSync},
	{"fd_tell", "ii", (*call).fdTell},
	{"fd_write", "iiii", (*call).fdWrite},
	{"path_create_directory", "iii", (*call).pathCreateDirectory},
	{"path_filestat_get", "iiiii", (*call).pathFilestatGet},
	{"path_filestat_set_times", "iiiiIIi", (*call).pathFilestatSetTimes},
	{"path_link", "iiiiiii", (*call).pathLink},
	{"path_open", "iiiiiIIii", (*call).pathOpen},
	{"path_readlink", "iiiiii", (*call).pathReadlink},
	{"path_remove_directory", "iii", (*call).pathRemoveDirectory},
	{"path_rename", "iiiiii", (*call).pathRename},
	{"path_symlink", "iiiii", (*call).pathSymlink},
	{"path_unlink_file", "iii", (*call).pathUnlinkFile},
	{"poll_oneoff", "iiii", (*call).pollOneoff},
	{"proc_exit", "i", (*call).procExit},
	{"proc_raise", "i", (*call).procRaise},
	{"random_get", "ii", (*call).randomGet},
	{"sched_yield", "", (*call).schedYield},
	{"sock_accept", "iii", (*call).sockAny},
	{"sock_recv", "iiiiii", (*call).sockAny},
	{"sock_send", "iiiii", (*call).sockAny},
	{"sock_shutdown", "ii", (*call).sockShutdown},
}

// call is one call of a function. It has as many methods as WASI has functions: they are the entries of the table above, and each reads
// only its own arguments. A split would only spread the table.
type call struct {
	*Program
	instance *wasm.Instance
	args     []uint64
}

// i returns an argument of 32 bits, n one of 64.
func (c *call) i(at int) uint32 { return uint32(c.args[at]) }
func (c *call) n(at int) uint64 { return c.args[at] }

// charge counts gas; a program that has none left ends here.
func (c *call) charge(gas int64) {
	if err := c.fs.Account().Charge(gas); err != nil {
		panic(err)
	}
	c.Check()
}

// bytes returns a part of the memory, not a copy.
func (c *call) bytes(at, length uint32) ([]byte, errno) {
	if b, ok := c.instance.Bytes(at, length); ok {
		return b, success
	}
	return nil, fault
}

// path reads a path; one that is to become a new name has to be text.
func (c *call) path(at, length uint32, fresh bool) (string, errno) {
	if length >= vfs.MaxPath {
		return "", nametoolong
	}
	b, e := c.bytes(at, length)
	if e != success {
		return "", e
	}
	if fresh && !utf8.Valid(b) {
		return "", ilseq
	}
	return string(b), success
}

func (c *call) put32(at, v uint32) errno {
	b, e := c.bytes(at, 4)
	if e == success {
		binary.LittleEndian.PutUint32(b, v)
	}
	return e
}

func (c *call) put64(at uint32, v uint64) errno {
	b, e := c.bytes(at, 8)
	if e == success {
		binary.LittleEndian.PutUint64(b, v)
	}
	return e
}

// fd returns a descriptor with rights.
func (c *call) fd(number uint32, r rights) (*descriptor, errno) {
	if uint64(number) >= uint64(len(c.fds)) || c.fds[number] == nil {
		return nil, badf
	}
	d := c.fds[number]
	return d, d.may(r)
}

// at returns the folder that a path begins at.
func (c *call) at(number uint32, r rights) (vfs.At, errno) {
	d, e := c.fd(number, 0)
	if e != success {
		return vfs.At{}, e
	}
	if d.kind() != vfs.Directory {
		return vfs.At{}, notdir
	}
	if d.base&r != r {
		return vfs.At{}, notcapable
	}
	n := d.handle.Node()
	return vfs.At{Dir: n, Beneath: n}, success
}
