package rules

import (
	"regexp"
	"slices"
	"strings"

	"agentbox/internal/command"
	"agentbox/internal/domain/policy"
)

// Warnings returns the parts of a policy without an effect where a reader may expect one.
func Warnings(b policy.Bundle) []string {
	var said []string
	for _, rule := range []string{"domains.allowed", "domains.ask"} {
		if strings.Contains(b.Cedar, `@id("`+rule+`")`) {
			said = append(said, rule+" opens no network for a space: a space has none (docs/POLICY.md, Domains)")
		}
	}
	return said
}

// named finds the action types that a policy names.
var named = regexp.MustCompile(`Action::"([^"\\]{1,200})"`)

// Named returns the action types that a policy names, each once, at most 1,000 of them.
func Named(b policy.Bundle) []string {
	var found []string
	for _, match := range named.FindAllStringSubmatch(b.Cedar, 1_000) {
		found = append(found, match[1])
	}
	return unique(found)
}

// EnvironmentWarnings returns the variables of a space's own environment that change the meaning of every command in it. The gate does not
// judge them again.
func EnvironmentWarnings(env map[string]string) []string {
	var said []string
	for name, value := range env {
		switch {
		case command.Poisonous(name):
			said = append(said, name+
				" changes what every command in the space means, and the gate does not judge it again; set it for single commands")
		case command.Trap(value):
			said = append(said, name+" holds a command that arithmetic of a shell runs, and the gate does not judge it again")
		}
	}
	slices.Sort(said)
	return said
}
