package cmdline

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentbox/internal/domain/fault"
)

// deciding are the variables that say which daemon is meant, and with whose key.
var deciding = []string{"AGENTBOX_KEY", "AGENTBOX_URL", "AGENTBOX_HOME", "AGENTBOX_STORE", "AGENTBOX_SHARED"}

// RefuseEmpty rejects a variable or a global flag that is set and empty. An unset secret of a script would otherwise mean the local owner.
func RefuseEmpty(i *Invocation, cmd *cobra.Command) error {
	if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
		return nil // connect checks the variables for completion, which prints nothing
	}
	err := i.emptyVariable()
	global := cmd.Root().PersistentFlags()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && global.Lookup(f.Name) == f && f.Value.Type() == "string" && strings.TrimSpace(f.Value.String()) == "" {
			err = fault.New(fault.Invalid, "empty_setting", "--%s is empty", f.Name).With("give it a value, or leave it out")
		}
	})
	return err
}

// things are the names of arguments that say which thing of a daemon is meant. None of them may be empty: the address of nothing is that of
// all things.
var things = map[string]bool{
	"ACTION": true, "AGENT": true, "APPROVAL": true, "ARTIFACT": true, "CONTEXT": true, "ENGINE": true, "EVENT": true, "ID": true,
	"INCIDENT": true, "KEY": true, "LABEL": true, "NODE": true, "PERMIT": true, "PRINCIPAL": true, "ROOM": true, "RUN": true, "SPACE": true,
	"STEP": true, "THREAD": true, "TOKEN": true, "TYPE": true, "WORKSPACE": true,
}

// refuseNothing rejects an argument that names a thing and is empty, as the unset variable of a script is.
func refuseNothing(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	for n, arg := range args[:min(len(args), len(names))] {
		if name := strings.Trim(names[n], "[]."); things[name] && strings.TrimSpace(arg) == "" {
			return Usage("%s: %s is empty", Within(cmd), name).With("see: " + cmd.CommandPath() + " --help")
		}
	}
	return nil
}

// RefuseLimit rejects a number of entries that is none: the daemon reads its absence as its own default.
func RefuseLimit(cmd *cobra.Command) (err error) {
	if f := cmd.Flags().Lookup("limit"); f != nil && f.Changed && f.Value.Type() == "int" {
		if n, wrong := strconv.Atoi(f.Value.String()); wrong != nil || n < 1 {
			err = Usage("%s: --limit is %s; it is 1 at least", Within(cmd), f.Value).With("see: " + cmd.CommandPath() + " --help")
		}
	}
	return err
}

// emptyVariable rejects a variable that is set and empty.
func (i *Invocation) emptyVariable() error {
	for _, name := range deciding {
		if i.Isset != nil && i.Isset(name) && strings.TrimSpace(i.Getenv(name)) == "" {
			return fault.New(fault.Invalid, "empty_setting", "%s is set, but empty", name).
				With("give it a value, or remove it with: unset " + name)
		}
	}
	return nil
}
