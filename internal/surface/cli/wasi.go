package cli

import (
	"bytes"
	"io"
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

// ModuleFolder is a folder of the host, and the names under which a module finds it open.
type ModuleFolder struct {
	Host   string
	Guests []string
}

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
	var dirs, env []string
	var memory, span, start string
	c := &cobra.Command{
		Use: "run MODULE [ARG...]", Short: "Run a module, with the folders that are named and nothing else", Args: cobra.MinimumNArgs(1),
		Long: "Run executes a WebAssembly module as the nano tier does: metered, over copies of its folders, with a virtual clock and seeded " +
			"chance. It needs no daemon.\n" +
			"What it reads and writes is this command's input and output; its exit code is this command's. When it ends by itself, with whatever " +
			"code, the\n" +
			"folders are changed as it has left them; when it is stopped or traps, they stay as they were, and the exit code of a trap is 134. " +
			"Flags stand before\n" +
			"MODULE; what stands behind it is the module's, -- too. A folder without ::GUEST that is the only one is also /, so that a path may " +
			"begin at it.",
		Example: "  agentbox wasi run --dir . --env HOME=/ tool.wasm -v file.txt\n  agentbox wasi run --dir src::/in --dir out --env LANG " +
			"convert.wasm /in/a out/b\n  agentbox wasi run --gas 1000000000 --seed 7 --json program.wasm",
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringArrayVar(&dirs, "dir", nil,
		"HOST or HOST::GUEST: a folder that the module finds open under the name GUEST (default: HOST as it is written); repeatable")
	f.StringArrayVar(&env, "env", nil,
		"NAME=VALUE, or NAME for one of this environment: a variable of its own, which is empty else; repeatable")
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
		if m.Env, err = i.variables(env); err != nil {
			return err
		}
		if m.Folders, err = moduleFolders(dirs); err != nil {
			return err
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

// variables are those of a module: as they are written, and of this environment where only a name is; one that is not set there is not set.
func (i *invocation) variables(written []string) (all []string, err error) {
	for _, v := range written {
		name, _, valued := strings.Cut(v, "=")
		if name == "" {
			return nil, usage("--env %s: write NAME=VALUE, or NAME for a variable of this environment", oneLine(v, 60))
		}
		if !valued {
			value := i.Getenv(name)
			if value == "" {
				continue
			}
			v += "=" + value
		}
		all = append(all, v)
	}
	return all, nil
}

// moduleFolders are the folders of a module. A single one that has no other name is also the root, where the paths of most programs begin.
func moduleFolders(written []string) (all []ModuleFolder, err error) {
	for _, dir := range written {
		host, guest, named := strings.Cut(dir, "::")
		if !named {
			guest = host
		}
		if host == "" || guest == "" {
			return nil, usage("--dir %s: write HOST or HOST::GUEST", oneLine(dir, 80))
		}
		f := ModuleFolder{Host: host, Guests: []string{guest}}
		if len(written) == 1 && !named && guest != "/" {
			f.Guests = []string{"/", guest}
		}
		all = append(all, f)
	}
	return all, nil
}
