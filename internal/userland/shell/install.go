package shell

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Install makes the files under which programs are found, read-only in /usr/bin with /bin leading there, and the devices of /dev.
func Install(fs *vfs.FS, programs program.Table) error { return NewKit(programs).Install(fs) }

// Kit is what Install makes, worked out once for many file systems.
type Kit struct{ programs []vfs.File }

// NewKit works out what is installed for the programs.
func NewKit(programs program.Table) *Kit {
	names := slices.AppendSeq([]string{"bash", "sh", "dash"}, maps.Keys(programs))
	slices.Sort(names)
	k := &Kit{}
	for _, name := range slices.Compact(names) {
		k.programs = append(k.programs, vfs.File{Name: name, Mode: 0o755, Data: []byte(stub + name + "\n")})
	}
	return k
}

// Install makes it in a file system.
func (k *Kit) Install(fs *vfs.FS) error {
	if err := fs.MakeFiles("/usr/bin", k.programs); err != nil {
		return fmt.Errorf("making /usr/bin: %w", err)
	}
	devices := []struct {
		name string
		s    vfs.Stream
	}{{"null", empty{}}, {"zero", zero{}}, {"full", full{}}, {"urandom", entropy{fs}}, {"random", entropy{fs}}}
	for _, d := range devices {
		if err := fs.MakeDevice("/dev/"+d.name, d.s); err != nil && !errors.Is(err, vfs.EEXIST) {
			return fmt.Errorf("making /dev/%s: %w", d.name, err)
		}
	}
	if err := fs.MakeLink("/bin", "/usr/bin"); err != nil && !errors.Is(err, vfs.EEXIST) {
		return fmt.Errorf("making /bin: %w", err)
	}
	return nil
}

type zero struct{}

func (zero) Read(p []byte) (int, error)  { clear(p); return len(p), nil }
func (zero) Write(p []byte) (int, error) { return len(p), nil }

type full struct{ zero }

func (full) Write([]byte) (int, error) { return 0, vfs.ENOSPC }

type entropy struct{ fs *vfs.FS }

func (e entropy) Read(p []byte) (int, error)  { e.fs.Account().Entropy(p); return len(p), nil }
func (e entropy) Write(p []byte) (int, error) { return len(p), nil }

type empty struct{}

func (empty) Read([]byte) (int, error)    { return 0, io.EOF }
func (empty) Write(p []byte) (int, error) { return len(p), nil }

// Programs returns the builtins that are programs too: for xargs, find and env.
func Programs() program.Table {
	test := program.Func(func(p *program.Process) int {
		c := &conditions{fs: p.FS, at: p.At(), stop: func(err error) { p.Check(err) }, file: p.File, number: testNumber,
			option: func(string) bool { return false }, isSet: func(string) bool { return false }, isRef: func(string) bool { return false }}
		args := append([]string{p.Name()[strings.LastIndexByte(p.Name(), '/')+1:]}, p.Args[1:]...)
		return c.run(args, func(text string) { p.Errorf("%s", text) })
	})
	return program.Table{
		"echo":  program.Func(func(p *program.Process) int { _, _ = p.Out().WriteString(echoText(p.Args[1:], false)); return 0 }),
		"true":  program.Func(func(*program.Process) int { return 0 }),
		"false": program.Func(func(*program.Process) int { return 1 }),
		"test":  test,
		"[":     test,
		"printf": program.Func(func(p *program.Process) int {
			args := p.Args[1:]
			if len(args) > 0 && args[0] == "--" {
				args = args[1:]
			}
			if len(args) == 0 {
				p.Errorf("missing operand")
				p.Stderrf("Try '%s --help' for more information.\n", p.Name())
				return 1
			}
			f := &format{args: args[1:], gnu: true, now: p.Now, start: p.Now(), zone: p.Zone, warn: func(text string) { p.Errorf("%s", text) }}
			f.grow = func(n int) {
				p.Charge(20)
				_, _ = p.Out().WriteString(f.out.String())
				f.out.Reset()
				if n > 1<<16 {
					p.Hold(n)
					p.Drop(n)
				}
			}
			f.run(args[0])
			_, _ = p.Out().WriteString(f.out.String())
			return f.status
		}),
	}
}
