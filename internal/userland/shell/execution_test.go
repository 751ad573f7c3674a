package shell_test

import (
	"io"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/vfs"
)

// printer counts what is printed against the account, as the tier's streams do.
type printer struct {
	account *bound.Account
	out     []byte
}

func (p *printer) Read([]byte) (int, error) { return 0, io.EOF }

func (p *printer) Write(b []byte) (int, error) {
	n, err := p.account.Print(len(b))
	p.out = append(p.out, b[:n]...)
	return n, err
}

// execution is one run of a script in an empty folder.
type execution struct {
	limits  bound.Limits
	account *bound.Account
	lacks   []program.Lack
	result  shell.Result
	args    []string
	seed    byte
	during  func(fs *vfs.FS) // before the script
	stdin   string
}

func newExecution(testing.TB) *execution {
	return &execution{limits: bound.Limits{Gas: 2_000_000_000, Time: time.Hour, MemoryBytes: 64 << 20, OutputBytes: 4 << 20,
		FileBytes: 16 << 20, OpenFiles: 128, Depth: 200}}
}

// run runs a script and returns its transcript.
func (x *execution) run(t testing.TB, script string) string {
	x.account = bound.New(x.limits, [32]byte{x.seed}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	out := &printer{account: x.account}
	fiber.Run(func(g *fiber.Group) {
		fs := vfs.New(x.account, g)
		programs := shell.Programs().Add(coreutils.Programs())
		if err := shell.Install(fs, programs); err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{"/tmp", "/w"} {
			if err := fs.Mount(folder, vfs.Options{Bytes: 64 << 20, Files: 10_000}); err != nil {
				t.Fatal(err)
			}
		}
		if x.during != nil {
			x.during(fs)
		}
		h := fs.Stream(out, vfs.Write)
		var in vfs.Stream = &printer{account: x.account}
		if x.stdin != "" {
			in = &text{rest: x.stdin}
		}
		sh := shell.New(shell.Options{FS: fs, Account: x.account, Programs: programs, Env: []string{"PATH=/usr/bin:/bin", "HOME=/root",
			"LC_ALL=C.UTF-8", "TZ=UTC"}, Cwd: "/w",
			Stdin: fs.Stream(in, vfs.Read), Stdout: h, Stderr: h, Umask: 0o022, Args: x.args, Report: func(l program.Lack) {
				x.lacks = append(x.lacks, l)
			}})
		x.result = sh.Run(script)
	})
	return transcript(string(out.out), x.result.Code)
}

type text struct{ rest string }

func (s *text) Read(p []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *text) Write([]byte) (int, error) { return 0, vfs.EBADF }
