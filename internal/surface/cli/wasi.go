package cli

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Module is a WebAssembly module to be run on this machine, and what it may use.
type Module struct {
	File     string
	Args     []string
	Env      []string // as in NAME=value
	Folders  []ModuleFolder
	In       io.Reader
	Out, Err io.Writer
	Gas      int64
	Time     time.Duration
	Memory   int64
	Seed     string
	Start    time.Time // zero for now
	Cache    string    // "" for none
}

// ModuleFolder is a folder of the host under the name by which a module knows it.
type ModuleFolder struct{ Host, Guest string }

// ModuleEnd is how a module ended by itself.
type ModuleEnd struct {
	ExitCode   int    `json:"exit_code"`
	Gas        int64  `json:"gas"`
	MemoryPeak int64  `json:"memory_peak"`
	SleptMS    int64  `json:"slept_ms"`
	Changes    int    `json:"changes"` // steps by which its folders were changed
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
}

// The bounds of a module for which none are named.
const (
	moduleGas    = 100_000_000_000 // about a minute of work
	moduleTime   = "10m"
	moduleMemory = "512MiB"
)

// wasiCommands runs WebAssembly without a daemon.
func wasiCommands(i *invocation) *cobra.Command {
	return group("wasi", "Run WebAssembly modules of WASI preview 1, without a daemon", wasiRun(i))
}

func wasiRun(i *invocation) *cobra.Command {
	m := Module{Gas: moduleGas}
	var dirs []string
	var memory, span, start string
	c := &cobra.Command{
		Use: "run MODULE [ARG...]", Short: "Run a module, with the folders that are named and nothing else", Args: cobra.MinimumNArgs(1),
		Long: "Run executes a WebAssembly module as the nano tier does: metered, over copies of its folders, with a virtual clock and seeded chance. It needs no daemon.\n" +
			"What it reads and writes is this command's input and output; its exit code is this command's. When it ends by itself, with whatever code, the\n" +
			"folders are changed as it has left them; when it is stopped or traps, they stay as they were. Flags stand before MODULE.",
		Example: "  agentbox wasi run --dir .::/ --env HOME=/ tool.wasm -v file.txt\n  agentbox wasi run --gas 1000000000 --seed 7 --json program.wasm",
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringArrayVar(&dirs, "dir", nil, "HOST or HOST::GUEST: a folder that the module finds open under the name GUEST (default: the folder's own name); repeatable")
	f.StringArrayVar(&m.Env, "env", nil, "NAME=VALUE: a variable of its environment, which is empty else; repeatable")
	f.Int64Var(&m.Gas, "gas", moduleGas, "work that it may do, in units of gas: about one per instruction")
	f.StringVar(&span, "time", moduleTime, "how long it may run and sleep; what it sleeps takes no time")
	f.StringVar(&memory, "memory", moduleMemory, "memory that it may hold, files included")
	f.StringVar(&m.Seed, "seed", "", "what its chance is made from: the same seed gives the same")
	f.StringVar(&m.Cache, "cache", "", "folder in which compiled code is kept for the next time; only you may write there (default: none)")
	f.StringVar(&start, "clock", "", "where its clock begins, as in 2026-01-02T15:04:05Z (default: now)")
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		m.File, m.Args = args[0], args[1:]
		if m.Memory, err = parseSize(memory); err != nil {
			return err
		}
		if m.Time, err = parseSpan(span); err != nil {
			return err
		}
		if m.Gas <= 0 || m.Memory <= 0 || m.Time <= 0 {
			return usage("--gas, --time and --memory are more than nothing")
		}
		if start != "" {
			if m.Start, err = time.Parse(time.RFC3339, start); err != nil {
				return usage("--clock %s: write a time as in 2026-01-02T15:04:05Z", oneLine(start, 40))
			}
		}
		for _, v := range m.Env {
			if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
				return usage("--env %s: write NAME=VALUE", oneLine(v, 60))
			}
		}
		for _, dir := range dirs {
			host, guest, named := strings.Cut(dir, "::")
			if !named {
				guest = filepath.Base(host)
			}
			if host == "" || guest == "" {
				return usage("--dir %s: write HOST or HOST::GUEST", oneLine(dir, 80))
			}
			m.Folders = append(m.Folders, ModuleFolder{Host: host, Guest: guest})
		}
		var out, says bytes.Buffer
		m.In, m.Out, m.Err = i.In, i.Out, i.Err
		if i.json {
			m.Out, m.Err = &out, &says
		}
		end, err := i.RunModule(cmd.Context(), m)
		if err != nil {
			return err
		}
		if i.json {
			end.Stdout, end.Stderr = out.String(), says.String()
			if err := i.show(end, nil); err != nil {
				return err
			}
		}
		if end.ExitCode != 0 {
			return &ended{end.ExitCode}
		}
		return nil
	}
	return c
}
