// Package userland runs shell scripts over a virtual file system: bash's language, coreutils, grep, sed, awk, jq and more, in one process
// and without a kernel interface.
//
// It is a library. It needs no daemon, no WebAssembly engine and no files of the host. Every script runs under an account, which bounds its
// work, memory, output and files, and with a virtual clock and seeded chance: the same script with the same files gives the same bytes.
// The packages below it are the parts: shell, the commands, the file system (vfs), the bounds (bound) and the fibers.
package userland

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/toolbox"
	"agentbox/internal/userland/vfs"
	"agentbox/internal/userland/zstandard"
)

// Home is the folder in which scripts begin and in which Options.Files lie.
const Home = "/workspace"

// Commands returns the programs that a script finds in /usr/bin: those of the shell, coreutils and the tools.
func Commands() program.Table {
	return program.Table{}.Add(shell.Programs(), coreutils.Programs(), toolbox.Programs(), zstandard.Programs())
}

// Options say with what a script begins. The zero value has an empty folder, no input, and the bounds of Defaults.
type Options struct {
	Files  map[string]string // by the path below Home
	Env    []string          // NAME=VALUE, added to PATH, HOME, LC_ALL and TZ
	Stdin  string
	Limits bound.Limits // Defaults where it is the zero value
	Seed   [32]byte     // of $RANDOM, /dev/urandom and the like
	Start  time.Time    // where the virtual clock begins; the zero value means 2000-01-01 00:00 UTC
}

// Defaults are bounds that fit a script of some seconds.
var Defaults = bound.Limits{
	Gas: 10_000_000_000, Time: time.Minute, MemoryBytes: 256 << 20, OutputBytes: 16 << 20, FileBytes: 64 << 20, OpenFiles: 256, Depth: 256,
}

// Result is what a script did.
type Result struct {
	Stdout, Stderr string
	Code           int               // as $? has it after the script: 128 and the number of the signal that ended it
	Files          map[string]string // the files below Home after the script, by their path; nil where a bound ended it
	Gas            int64             // the work that was done, in units of the account
	Lacks          []program.Lack    // what the script asked for and the userland does not have
}

// Run runs a script and returns what it did. The error is a *bound.Stopped where a bound ended the script, or says which file of the
// options could not be made; the result holds what was done until then.
func Run(script string, o Options) (r Result, err error) {
	if o.Limits == (bound.Limits{}) {
		o.Limits = Defaults
	}
	if o.Start.IsZero() {
		o.Start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	fiber.Run(func(g *fiber.Group) {
		err = r.run(script, o, bound.New(o.Limits, o.Seed, o.Start), g)
	})
	return r, err
}

func (r *Result) run(script string, o Options, account *bound.Account, g *fiber.Group) error {
	files, commands := vfs.New(account, g), Commands()
	if err := errors.Join(shell.Install(files, commands),
		files.Mount(Home, vfs.Options{Bytes: o.Limits.MemoryBytes, Files: 100_000}),
		files.Mount("/tmp", vfs.Options{Bytes: o.Limits.MemoryBytes, Files: 100_000})); err != nil {
		return err
	}
	at := vfs.At{Dir: files.Root()}
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		if err := put(files, at, path.Join("/", name), o.Files[name]); err != nil {
			return fmt.Errorf("make the file %s: %w", name, err)
		}
	}
	stdout, stderr := &printed{account: account}, &printed{account: account}
	result := shell.New(shell.Options{
		FS: files, Account: account, Programs: commands, Cwd: Home, Umask: 0o022,
		Env:    append([]string{"PATH=/usr/bin:/bin", "HOME=" + Home, "LC_ALL=C.UTF-8", "TZ=UTC"}, o.Env...),
		Stdin:  files.Stream(&given{strings.NewReader(o.Stdin)}, vfs.Read),
		Stdout: files.Stream(stdout, vfs.Write), Stderr: files.Stream(stderr, vfs.Write),
		Report: func(l program.Lack) { r.Lacks = append(r.Lacks, l) },
	}).Run(script)
	r.Stdout, r.Stderr, r.Code, r.Gas = stdout.String(), stderr.String(), result.Code, account.Used()
	if result.Err != nil {
		return result.Err
	}
	r.Files = map[string]string{}
	return r.collect(files, at, Home)
}

// put makes a file below Home, and the folders that lead to it.
func put(files *vfs.FS, at vfs.At, name, text string) error {
	for end := range name {
		if end > 0 && name[end] == '/' {
			if err := files.Mkdir(at, Home+name[:end], 0o755); err != nil && !errors.Is(err, vfs.EEXIST) {
				return err
			}
		}
	}
	h, err := files.Open(at, Home+name, vfs.Write|vfs.Create|vfs.Exclusive, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(h, text)
	return errors.Join(err, h.Close())
}

// collect reads the files below a folder.
func (r *Result) collect(files *vfs.FS, at vfs.At, folder string) error {
	entries, err := files.List(at, folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name)
		switch e.Node.Kind() {
		case vfs.Directory:
			err = r.collect(files, at, name)
		case vfs.Regular:
			err = r.read(e.Node, files, strings.TrimPrefix(name, Home+"/"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) read(n *vfs.Node, files *vfs.FS, name string) error {
	h, err := files.OpenNode(n, vfs.Read)
	if err != nil {
		return err
	}
	text, err := h.ReadAll()
	r.Files[name] = string(text)
	return errors.Join(err, h.Close())
}

// printed is an output stream, which the account bounds.
type printed struct {
	account *bound.Account
	bytes.Buffer
}

// Read refuses: nobody reads from an output.
func (p *printed) Read([]byte) (int, error) { return 0, vfs.EBADF }

// Write takes what the account still allows.
func (p *printed) Write(b []byte) (int, error) {
	n, err := p.account.Print(len(b))
	p.Buffer.Write(b[:n])
	return n, err
}

// given is the input.
type given struct{ *strings.Reader }

// Write refuses: nobody writes into an input.
func (given) Write([]byte) (int, error) { return 0, vfs.EBADF }
