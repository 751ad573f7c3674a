package approvals

import (
	"agentbox/internal/command"
	"agentbox/internal/domain/policy"
)

// Read reads the command of a shell action, as the gate judges it and as an approval covers it. A command that gets input while it runs is
// not exact, so that no standing approval covers it: nobody knows the input.
func Read(a policy.Action) (reading command.Reading, err error) {
	if len(a.Argv) == 0 {
		reading, err = command.ReadScript(a.Command, command.Bash, a.Cwd)
	} else {
		reading, err = command.ReadArgv(a.Argv, a.Cwd)
	}
	reading.Exact = reading.Exact && a.Attach == ""
	return reading, err
}

// wordsOf returns the words of an action that is one command which a standing approval may cover.
func wordsOf(a policy.Action) []string {
	if a.Type != policy.ShellExec && (a.Type != policy.AgentTool || a.Command == "") {
		return nil
	}
	reading, err := Read(a)
	if err != nil {
		return nil
	}
	return reading.Words()
}

// leaves reports whether the command of an action moves files out of those of the space.
func leaves(a policy.Action) bool {
	if a.Type != policy.ShellExec {
		return false
	}
	reading, err := Read(a)
	return err == nil && reading.Leaves
}

// runsAnything reports whether an action outside names as its tool something that could turn into anything: a shell, an interpreter, a
// wrapper.
func runsAnything(a policy.Action) bool {
	if a.Tool == "" || a.Type == policy.AgentTool { // its tool is none of the space's programs
		return false
	}
	reading, err := command.ReadArgv([]string{a.Tool}, "")
	return err != nil || len(reading.Words()) == 0
}

// kindOf returns the kind of the action that an approval is about; false if it is not known.
func kindOf(doc policy.Approval) (policy.Kind, bool) {
	if k, ok := policy.KindOf(doc.Action); ok {
		return k, true
	}
	a, err := policy.ParseAction(doc.Request)
	if err != nil {
		return policy.Kind{}, false
	}
	return a.Kind()
}
