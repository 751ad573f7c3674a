package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentbox/internal/domain/fault"
)

// deciding are the variables that say which daemon is meant, and with whose key.
var deciding = []string{"AGENTBOX_KEY", "AGENTBOX_URL", "AGENTBOX_HOME", "AGENTBOX_STORE", "AGENTBOX_SHARED"}

// refuseEmpty rejects a variable or a global flag that is set and empty. An unset secret of a script would otherwise mean the local owner.
func (i *invocation) refuseEmpty(cmd *cobra.Command) error {
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

// emptyVariable rejects a variable that is set and empty.
func (i *invocation) emptyVariable() error {
	for _, name := range deciding {
		if i.Isset != nil && i.Isset(name) && strings.TrimSpace(i.Getenv(name)) == "" {
			return fault.New(fault.Invalid, "empty_setting", "%s is set, but empty", name).
				With("give it a value, or remove it with: unset " + name)
		}
	}
	return nil
}
