package hostcmd

import (
	"bytes"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// The bounds of a module for which none are named.
const (
	moduleGas    = 100_000_000_000 // about a minute of work
	moduleTime   = "10m"
	moduleMemory = "512MiB"
)

// Wasi runs WebAssembly without a daemon.
func Wasi(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("wasi", "Run WebAssembly modules of WASI preview 1, without a daemon", wasiRun(i))
}

func wasiRun(i *cmdline.Invocation) *cobra.Command {
	m := cmdline.Module{Gas: moduleGas}
	var dirs, env []string
	var memory, span, start string
	c := &cobra.Command{
		Use: "run MODULE [ARG...]", Short: "Run a module, with the folders that are named and nothing else", Args: cobra.MinimumNArgs(1),
		Long: "Run executes a WebAssembly module as the nano tier does: metered, over copies of its folders, with a virtual clock and seeded " +
			"chance. It needs no daemon.\n" +
			"The module uses the input, the output and the exit code of this command. When it ends by itself, with any " +
			"code, the\n" +
			"folders keep its changes. When it is stopped or traps, they stay as they were. The exit code of a trap is 134. " +
			"Flags stand before\n" +
			"MODULE; everything behind it belongs to the module, even --. A folder without ::GUEST that is the only one is also /, so that a path " +
			"may begin at it.",
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
		if m.Memory, err = cmdline.ParseSize(memory); err != nil {
			return err
		}
		if m.Time, err = cmdline.ParseSpan(span); err != nil {
			return err
		}
		if m.Gas <= 0 || m.Memory <= 0 || m.Time <= 0 {
			return cmdline.Usage("--gas, --time and --memory are more than nothing")
		}
		if start != "" {
			if m.Start, err = time.Parse(time.RFC3339, start); err != nil {
				return cmdline.Usage("--clock %s: write a time as in 2026-01-02T15:04:05Z", term.OneLine(start, 40))
			}
		}
		if m.Env, err = variables(i, env); err != nil {
			return err
		}
		if m.Folders, err = moduleFolders(dirs); err != nil {
			return err
		}
		var out, says bytes.Buffer
		m.In, m.Out, m.Err = i.In, i.Out, i.Err
		if i.JSON {
			m.Out, m.Err = &out, &says
		}
		end, err := i.RunModule(cmd.Context(), m)
		if err != nil {
			return err
		}
		if i.JSON {
			end.Stdout, end.Stderr = out.String(), says.String()
			if err := i.Show(end, nil); err != nil {
				return err
			}
		}
		if end.ExitCode != 0 {
			return &cmdline.Ended{Code: end.ExitCode}
		}
		return nil
	}
	return c
}

// variables are those of a module: as they are written, and of this environment where only a name is; one that is not set there is not set.
func variables(i *cmdline.Invocation, written []string) (all []string, err error) {
	for _, v := range written {
		name, _, valued := strings.Cut(v, "=")
		if name == "" {
			return nil, cmdline.Usage("--env %s: write NAME=VALUE, or NAME for a variable of this environment", term.OneLine(v, 60))
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
func moduleFolders(written []string) (all []cmdline.ModuleFolder, err error) {
	for _, dir := range written {
		host, guest, named := strings.Cut(dir, "::")
		if !named {
			guest = host
		}
		if host == "" || guest == "" {
			return nil, cmdline.Usage("--dir %s: write HOST or HOST::GUEST", term.OneLine(dir, 80))
		}
		f := cmdline.ModuleFolder{Host: host, Guests: []string{guest}}
		if len(written) == 1 && !named && guest != "/" {
			f.Guests = []string{"/", guest}
		}
		all = append(all, f)
	}
	return all, nil
}
