package policy

import "agentbox/internal/domain/id"

// Facts are the inputs of a policy. An action gives one; a command line gives several, because policy judges each simple command and each
// file that the shell opens separately. In Cedar, Principal is `principal` (User, Agent or Service) and Action is `action`. The space is
// `resource`; without a space the workspace is. The other fields are in `context` under the names given here. A text that does not apply is
// "", and a number is 0.
type Facts struct {
	Principal id.Principal
	Workspace id.Workspace
	Space     id.Space
	Action    string // Action::"shell.exec"

	Role      string   // context.role: of the principal; "" for agents
	Path      string   // context.path: relative to the space's files; absolute where it lies outside of them
	Size      int64    // context.size_bytes
	MaxBytes  int64    // context.max_bytes
	Overwrite bool     // context.overwrite
	Mode      string   // context.mode
	Command   string   // context.command: the simple command's name without its folder
	Args      []string // context.args: a set of its arguments, as far as they are known
	Line      string   // context.line: name and arguments, joined by spaces
	Traits    []string // context.traits: a set of what the analysis found out; the TraitX constants
	TimeoutMS int64    // context.timeout_ms
	Tool      string   // context.tool
	Method    string   // context.method
	Target    string   // context.target: host, recipient or channel
	Delegated bool     // context.delegated: a capability token that an owner or admin granted names the action, not only with *
}

// Host is context.host: the host of the target in small letters, without its port and a dot at its end; Unreadable where programs could
// read different ones, "" where there is no target.
func (f *Facts) Host() string {
	if f.Target == "" {
		return ""
	}
	return Host(f.Target)
}

// The traits of a simple command. Policies are written over them instead of over its text.
const (
	TraitDeletesTree    = "deletes_tree"         // removes a folder, or files whose number is not known
	TraitInstalls       = "installs_packages"    // fetches code of others and may run it
	TraitRunsFile       = "runs_file"            // runs a file that an approval cannot seal
	TraitUnresolved     = "unresolved"           // the command is only known when it runs: eval, $cmd
	TraitPoisons        = "poisons_environment"  // changes what later commands mean: PATH=, LD_PRELOAD=, alias
	TraitRecursive      = "recursive"            // works on a whole tree: chmod -R
	TraitByPath         = "by_path"              // was named by a path instead of by its bare name
	TraitOwnProgram     = "own_program"          // is a file that somebody made: named by a path outside the system folders
	TraitFunction       = "function"             // is a function that the same command line defines
	TraitInlineCode     = "inline_code"          // python3 -c, node -e: code of another language in an argument
	TraitNetwork        = "network"              // exists to talk to a network
	TraitPrivilege      = "privilege"            // exists to gain rights, or to reach another machine or the kernel
	TraitInterpreter    = "interpreter"          // can run anything that it is given
	TraitUnknownOptions = "unresolved_arguments" // its options are only known when it runs
)

// Rule is a policy that took part in a decision, with what its annotations say.
type Rule struct {
	ID         string
	Code       string // the annotation @code: a reason code of the bundle's own
	Reason     string
	Suggestion string
	Approvers  int // the annotation @approvers: number of persons who have to approve; 0 means one
}

// Verdict is a bundle's result for facts. The zero value denies, and names no rule: nothing matched.
type Verdict struct {
	Outcome Outcome
	Rules   []Rule // those that decided, in the order of the bundle
}

// Matched reports whether any rule decided; a refusal without one means that nothing permits it.
func (v Verdict) Matched() bool { return len(v.Rules) > 0 }

// Evaluator evaluates bundles. A rule that forbids wins; a rule that permits with require_approval wins over one that merely permits;
// where nothing matches, or a rule cannot be evaluated, the answer is no. Every method is safe for concurrent use and depends on nothing
// but its arguments.
type Evaluator interface {
	// Evaluate decides. An error means that the bundle could not be evaluated; callers treat it as a refusal.
	Evaluate(b Bundle, f Facts) (Verdict, error)
	// Validate reports the errors in a bundle's text, with line and column.
	Validate(b Bundle) error
}
