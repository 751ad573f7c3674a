package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentbox/internal/command"
	"agentbox/internal/domain/policy"
)

// text is the text of a rule for people.
type text struct{ reason, suggestion string }

// traitTexts explain the traits; their keys are the traits that the short form knows.
var traitTexts = map[string]text{
	policy.TraitDeletesTree: {"it deletes a folder, or files whose number is not known",
		"Delete single files by name, with deleteFile or rm."},
	policy.TraitInstalls: {"it installs packages: code of others that may run at once", "Do without the package, or ask for approval."},
	policy.TraitRunsFile: {"it runs a file", "Put the code into the command itself."},
	policy.TraitUnresolved: {"what it runs is only known when it runs",
		"Write the command out, without eval and without variables in its place."},
	policy.TraitUnknownOptions: {"its arguments are only known when it runs", "Write the arguments out."},
	policy.TraitPoisons: {"it changes what later commands mean",
		"Set the variable for a single program only, or call the program by its full path."},
	policy.TraitRecursive:  {"it works on a whole tree", "Name the files."},
	policy.TraitByPath:     {"it is named by a path", "Call it by its name."},
	policy.TraitOwnProgram: {"it is a program that somebody put into the space", "Run it through its interpreter."},
	policy.TraitFunction:   {"it is a function of the command line", "Write the commands out."},
	policy.TraitInlineCode: {"it runs code that stands in its arguments", "Put the code into a file."},
	policy.TraitNetwork: {"a space has no network",
		"Put the data into the space as files: createFile, an upload, or a folder given when the space is made. Packages: use those that the " +
			"image brings (docs/RUNTIMES.md), or install them from such files."},
	policy.TraitPrivilege: {"it exists to gain rights, or to reach another machine or the kernel",
		"Work as the space's own user on the space's own files; nothing here needs more rights."},
	policy.TraitInterpreter: {"it can run anything that it is given", "Use a program that does one thing."},
}

// Traits returns the traits that the short form knows, in order.
func Traits() []string {
	var list []string
	for trait := range traitTexts {
		list = append(list, trait)
	}
	slices.Sort(list)
	return list
}

// entry returns the error of a list entry.
func entry(key, value string) error {
	if len(value) > maxEntry || !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return fmt.Errorf("an entry of %s has control characters or more than %d bytes", key, maxEntry)
	}
	switch key {
	case "commands":
		name, _, _ := strings.Cut(value, " ")
		if strings.Contains(name, "/") || strings.Contains(name, "*") && value != "*" || name == "" {
			return fmt.Errorf("%q is not a command: a name without a folder, the words that must follow it, or *", value)
		}
	case "paths", "except":
		if strings.HasPrefix(value, "/") || strings.ContainsAny(value, "?[]{}\\") || strings.Contains("/"+value+"/", "/../") {
			return fmt.Errorf("%q is not a path glob: relative, with * for anything", value)
		}
	case "domains":
		if host, _ := domain(value); value != "*" && !policy.IsEndpoint(value) && (host == policy.Unreadable || policy.Host(host) != host) {
			return fmt.Errorf("%q is not a domain: a host in small letters, *.host, or *; in allow also host:port", value)
		}
	case "actions", "delegated":
		if _, ok := policy.KindOf(value); !ok && policy.Declarable(value) != nil {
			return fmt.Errorf("%q is no action; `agentbox policy actions` lists those outside, docs/RIGHTS.md all", value)
		}
	case "traits":
		if _, ok := traitTexts[value]; !ok {
			return fmt.Errorf("%q is not a trait; did you mean %s?", value, policy.Nearest(value, Traits()))
		}
	}
	return nil
}

// conditions are the actions of each class of rules, as conditions of Cedar.
type conditions struct{ reads, writes, files, control, effects string }

// one is the condition that an action is of a class of rules. Comparing one by one costs Cedar less than asking whether one is in a list.
func one(class policy.Rules) string {
	var all []string
	for _, action := range policy.Ruled(class) {
		all = append(all, "action == Action::"+quote(action))
	}
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " || ") + ")"
}

func conditionsOfRules() conditions {
	c := conditions{reads: one(policy.RulesReads), writes: one(policy.RulesWrites), control: one(policy.RulesControl)}
	c.files = "(" + c.reads + " || " + c.writes + ")"
	c.effects = "(" + c.writes + " || " + c.control + " || " + one(policy.RulesCommands) +
		` || action == Action::"run.continue" || action == Action::"mcp.call" || ` + one(policy.RulesHosts) + ")"
	return c
}

const anything = `principal, action, resource`

// writer writes Cedar.
type writer struct {
	strings.Builder
	conditions
}

// rule writes one policy. The answer is allow, ask or deny; an empty condition always holds.
func (w *writer) rule(answer, id, code string, t text, scope, when string) {
	fmt.Fprintf(w, "@id(%s)\n", quote(id))
	effect := "permit"
	switch answer {
	case "ask":
		fmt.Fprintf(w, "@decision(\"require_approval\")\n")
	case "deny":
		effect = "forbid"
	}
	if code != "" {
		fmt.Fprintf(w, "@code(%s)\n", quote(code))
	}
	if t.reason != "" {
		fmt.Fprintf(w, "@reason(%s)\n", quote(t.reason))
	}
	if t.suggestion != "" {
		fmt.Fprintf(w, "@suggestion(%s)\n", quote(t.suggestion))
	}
	fmt.Fprintf(w, "%s (%s)", effect, scope)
	if when != "" {
		fmt.Fprintf(w, "\nwhen { %s }", when)
	}
	w.WriteString(";\n\n")
}

// Compile writes a spec as Cedar and returns its bundle.
func Compile(s Spec) (policy.Bundle, error) {
	if s.FileBytes == 0 {
		s.FileBytes = 10 << 20
	}
	if s.CommandMS == 0 {
		s.CommandMS = 30_000
	}
	if s.Name == "" {
		s.Name = "custom"
	}
	w := &writer{conditions: conditionsOfRules()}
	w.rule("allow", "message.send", "", text{}, `principal, action == Action::"message.send", resource`, "")
	w.rule("allow", "control.users", "", text{"people may keep spaces and start runs", ""}, `principal is User, action, resource`, w.control)
	w.rule("allow", "redact.owners", "", text{"an owner may destroy the data of events", ""},
		`principal is User, action == Action::"audit.redact", resource`,
		`context.role == "overlord" || context.role == "admin"`)
	w.rule("allow", "import.owners", "", text{"an owner may import a workspace", ""},
		`principal is User, action == Action::"workspace.import", resource`,
		`context.role == "overlord" || context.role == "admin"`)
	w.rule("ask", "run.continue", "", text{"an operation was interrupted and its outcome is not known", ""},
		`principal, action == Action::"run.continue", resource`, "")
	w.rule("deny", "viewers", policy.ReasonRoleTooLow, text{"a viewer only reads", "Ask an owner for the role member."}, anything,
		`context.role == "viewer" && `+w.effects)
	s.files(w)
	s.commands(w)
	s.domains(w)
	s.servers(w)
	s.tools(w)
	s.actions(w)
	limits := policy.Limits{
		FileBytes: s.FileBytes, CommandMS: s.CommandMS, Blocked: s.Deny.Paths, Approvers: s.Approvers,
		Weakest: s.WeakestTier,
	}
	if !s.Withhold.IsZero() {
		limits.Withhold = &s.Withhold
	}
	return policy.NewBundle(s.Name, w.String(), limits)
}

func (s Spec) files(w *writer) {
	if s.Read {
		w.rule("allow", "files.read", "", text{}, anything, w.reads)
	}
	if s.Write {
		w.rule("allow", "files.write", "", text{}, anything, w.writes)
	}
	if when := globs(s.Allow.Paths); when != "" {
		w.rule("allow", "paths.allowed", "", text{}, anything, w.files+" && "+when)
	}
	if when := globs(s.Ask.Paths); when != "" {
		w.rule("ask", "paths.ask", "", text{"the policy asks for " + list(s.Ask.Paths), ""}, anything, w.files+" && "+when)
	}
	if when := globs(s.Deny.Paths); when != "" {
		w.rule("deny", "paths.refused", "", text{"the policy refuses " + list(s.Deny.Paths), "Use a file of another name."}, anything, w.files+
			" && "+when)
	}
	w.rule("deny", "files.outside", "", text{"it would write outside the space's files", "Write to a relative path, or below /tmp."},
		anything, w.writes+` && context.path like "/*" && !(context.path like "/tmp/*")`)
	w.rule("deny", "files.size", policy.ReasonLimitExceeded, text{fmt.Sprintf("a file may have at most %d bytes", s.FileBytes),
		"Write several smaller files."},
		anything, fmt.Sprintf("context.size_bytes > %d && ", s.FileBytes)+w.writes)
}

const execScope = `principal, action == Action::"shell.exec", resource`

func (s Spec) commands(w *writer) {
	named, lines, all := split(s.Allow.Commands)
	if len(s.Allow.Commands) > 0 {
		w.rule("allow", "commands.builtins", "", text{}, execScope, set(command.Builtins())+
			`.contains(context.command) && !context.traits.contains("by_path")`)
	}
	if all {
		w.rule("allow", "commands.any", "", text{}, execScope, `context.command != ""`)
	}
	if len(named) > 0 {
		w.rule("allow", "commands.allowed", "", text{}, execScope, set(named)+
			`.contains(context.command) && !context.traits.contains("own_program")`)
	}
	if when := starting(lines); when != "" {
		w.rule("allow", "commands.allowed_lines", "", text{}, execScope, when+` && !context.traits.contains("own_program")`)
	}
	for _, trait := range s.Allow.Traits {
		w.rule("allow", "commands."+trait+".allowed", "", text{}, execScope, has(trait))
	}
	for _, answer := range []string{"ask", "deny"} {
		l, verb, word := s.Ask, "asks before", "ask"
		if answer == "deny" {
			l, verb, word = s.Deny, "refuses", "refused"
		}
		named, lines, all := split(l.Commands)
		if all {
			w.rule(answer, "commands.all."+word, "", text{"the policy " + verb + " every command", ""}, execScope, "")
		}
		if len(named) > 0 {
			w.rule(answer, "commands."+word, "", text{"the policy " + verb + " " + list(named), suggestion(answer)}, execScope, set(named)+
				`.contains(context.command)`)
		}
		if when := starting(lines); when != "" {
			w.rule(answer, "commands."+word+"_lines", "", text{"the policy " + verb + " " + list(lines), suggestion(answer)}, execScope, when)
		}
		for _, trait := range l.Traits {
			w.rule(answer, "commands."+trait+"."+word, "", traitTexts[trait], execScope, has(trait))
		}
	}
	w.rule("deny", "commands.time", policy.ReasonLimitExceeded, text{fmt.Sprintf("a command may take at most %d ms", s.CommandMS),
		"Ask for less time, or split the work."},
		execScope, fmt.Sprintf("context.timeout_ms > %d", s.CommandMS))
}

func suggestion(answer string) string {
	if answer == "deny" {
		return "Do it another way: run a script through its interpreter, or use the file operations."
	}
	return ""
}

func (s Spec) domains(w *writer) {
	const write = `principal, action == Action::"external.write", resource`
	for _, a := range []struct {
		answer, id string
		list       []string
		t          text
	}{
		{"allow", "domains.allowed", s.Allow.Domains, text{}},
		{"ask", "domains.ask", s.Ask.Domains, text{"the policy asks for each host", ""}},
		{"deny", "domains.refused", s.Deny.Domains, text{"the policy refuses this host", ""}},
	} {
		var when []string
		for _, d := range a.list {
			switch host, sub := domain(d); {
			case policy.IsEndpoint(d): // it is about fetched content
			case d == "*" && a.answer == "allow":
				when = append(when, `context.host != "" && `+readable)
			case d == "*":
				when = append(when, `context.target != ""`)
			case sub:
				when = append(when, "context.host == "+quote(host), "context.host like "+pattern("*", "."+host, ""))
			default:
				when = append(when, "context.host == "+quote(host))
			}
		}
		// A target without a clear host could be at any of them.
		if len(when) > 0 && a.answer == "ask" && !slices.Contains(a.list, "*") {
			when = append(when, unreadable)
		}
		if len(when) == 0 {
			continue
		}
		w.rule(a.answer, a.id, "", a.t, write, strings.Join(when, " || "))
		switch {
		case a.answer == "deny":
			w.rule("deny", a.id+".fetch", "", a.t, anything, "("+fetches+" || "+fetchesPrivate+") && ("+strings.Join(when, " || ")+")")
		case a.answer == "ask" && slices.ContainsFunc(s.Allow.Domains, policy.IsEndpoint):
			// No answer of a person reaches a private address that the policy does not name.
			w.rule("ask", a.id+".fetch", "", a.t, anything, "("+fetches+" || "+fetchesPrivate+" && ("+strings.Join(s.endpoints(), " || ")+
				`)) && (`+strings.Join(when, " || ")+")")
		case a.answer == "ask":
			w.rule("ask", a.id+".fetch", "", a.t, anything, fetches+" && ("+strings.Join(when, " || ")+")")
		}
	}
	s.fetches(w)
	if len(s.Deny.Domains) > 0 && !slices.Contains(s.Deny.Domains, "*") {
		w.rule("deny", "domains.unreadable", "", text{"the target has no host that every program reads alike, so it could be a refused one",
			"Write a target as https://host/path, without a user, spaces and backslashes."}, write, unreadable)
	}
}

// fetches permits fetching from the named hosts. A star names no host here. Only an entry with a port reaches private addresses, and only
// at that port.
func (s Spec) fetches(w *writer) {
	var hosts []string
	endpoints := s.endpoints()
	for _, d := range s.Allow.Domains {
		host, sub := domain(d)
		switch {
		case d == "*", policy.IsEndpoint(d):
		case sub:
			hosts = append(hosts, "context.host == "+quote(host), "context.host like "+pattern("*", "."+host, ""))
		default:
			hosts = append(hosts, "context.host == "+quote(host))
		}
	}
	if all := slices.Concat(hosts, endpoints); len(all) > 0 {
		w.rule("allow", "domains.fetched", "", text{}, anything, fetches+" && ("+strings.Join(all, " || ")+")")
	}
	if len(endpoints) > 0 {
		w.rule("allow", "domains.fetched.private", "", text{}, anything, fetchesPrivate+" && ("+strings.Join(endpoints, " || ")+")")
	}
}

// endpoints are the conditions that a target is at a host and port which the policy names.
func (s Spec) endpoints() []string {
	var when []string
	for _, d := range s.Allow.Domains {
		if !policy.IsEndpoint(d) {
			continue
		}
		name, _, _ := strings.Cut(d, ":")
		for _, scheme := range []string{"http://", "https://"} {
			when = append(when, "context.host == "+quote(name)+" && context.target like "+pattern("", scheme+d+"/", "*"))
		}
	}
	return when
}

// The requests of the daemon itself to hosts: pages, and MCP servers.
const (
	fetches        = `(action == Action::"http.fetch" || action == Action::"mcp.connect")`
	fetchesPrivate = `(action == Action::"http.fetch.private" || action == Action::"mcp.connect.private")`
)

const (
	readable   = `context.host != "` + policy.Unreadable + `"`
	unreadable = `context.host == "` + policy.Unreadable + `"`
)

// domain is the host of an entry of domains, as a target has it, and whether the entry stands for its subdomains, too.
func domain(entry string) (host string, sub bool) {
	host, sub = strings.CutPrefix(entry, "*.")
	return strings.TrimSuffix(host, "."), sub
}

// servers permits to reach an MCP server in the space, whose command was judged as a command. Each call of a tool of a server asks, unless
// the policy permits that tool by its name.
func (s Spec) servers(w *writer) {
	w.rule("allow", "mcp.inside", "", text{}, `principal, action == Action::"mcp.connect", resource`, `context.target == ""`)
	unless := ""
	if len(s.Allow.Tools) > 0 {
		unless = "!(" + set(s.Allow.Tools) + ".contains(context.tool))"
	}
	w.rule("ask", "mcp.call", "", text{"a tool of an MCP server may act anywhere, so a person is asked", ""},
		`principal, action == Action::"mcp.call", resource`, unless)
}

func (s Spec) tools(w *writer) {
	if len(s.Allow.Tools) > 0 {
		w.rule("allow", "tools.allowed", "", text{}, anything, set(s.Allow.Tools)+".contains(context.tool)")
	}
	if len(s.Ask.Tools) > 0 {
		when := set(s.Ask.Tools) + ".contains(context.tool)"
		if slices.ContainsFunc(s.Ask.Tools, func(name string) bool { return strings.Contains(name, "__") }) {
			when += ` && !(action == Action::"tool.call" && context.tool like "*__*")` // it asks when the server is called
		}
		w.rule("ask", "tools.ask", "", text{"the policy asks before " + list(s.Ask.Tools), ""}, anything, when)
	}
	if len(s.Deny.Tools) > 0 {
		w.rule("deny", "tools.refused", "", text{"the policy refuses " + list(s.Deny.Tools), ""}, anything, set(s.Deny.Tools)+
			".contains(context.tool)")
	}
}

// actions permits agents and services some actions with their own key, or under a token that a person handed on. It permits or asks about
// actions outside in a space, and refuses actions to everybody.
func (s Spec) actions(w *writer) {
	of := func(action string) string { return "principal, action == Action::" + quote(action) + ", resource" }
	const noPerson = "(principal is Agent || principal is Service)"
	for _, a := range unique(s.Allow.Actions) {
		if policy.Outside(a) { // the registry or the declaration says who may do it at all
			w.rule("allow", "actions."+a+".allowed", "", text{"the policy permits " + a, ""}, of(a), "")
			continue
		}
		w.rule("allow", "actions."+a+".allowed", "", text{"agents and services may " + a, ""}, of(a), noPerson)
	}
	for _, a := range unique(s.Allow.Delegated) {
		w.rule("allow", "actions."+a+".delegated", "", text{"agents and services may " + a + " under a capability token that names it", ""},
			of(a), noPerson+" && context.delegated")
	}
	for _, a := range unique(s.Ask.Actions) {
		w.rule("ask", "actions."+a+".ask", "", text{"the policy asks before " + a, ""}, of(a), "")
	}
	for _, a := range unique(s.Deny.Actions) {
		w.rule("deny", "actions."+a+".refused", "", text{"the policy refuses " + a, ""}, of(a), "")
	}
}

// unique returns the entries once each, so that each makes one rule.
func unique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// split sorts the entries of a list of commands: names, names with words behind them, and whether * is among them.
func split(commands []string) (named, lines []string, all bool) {
	for _, c := range commands {
		switch {
		case c == "*":
			all = true
		case strings.Contains(c, " "):
			lines = append(lines, strings.Join(strings.Fields(c), " "))
		default:
			named = append(named, c)
		}
	}
	return named, lines, all
}

// starting is the condition that a command line begins with one of the lines.
func starting(lines []string) string {
	var when []string
	for _, l := range lines {
		when = append(when, "context.line == "+quote(l), "context.line like "+pattern("", l+" ", "*"))
	}
	if len(when) == 0 {
		return ""
	}
	return "(" + strings.Join(when, " || ") + ")"
}

// globs is the condition that a path matches one of the globs at any depth, or is below a match.
func globs(list []string) string {
	var when []string
	for _, g := range list {
		g = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(g, "**/"), "/**"), "/")
		if g == "*" || g == "**" || g == "" {
			return "true"
		}
		for _, p := range []string{g, "*/" + g, g + "/*", "*/" + g + "/*"} {
			when = append(when, "context.path like "+globPattern(p))
		}
	}
	if len(when) == 0 {
		return ""
	}
	return `context.path != "." && (` + strings.Join(when, " || ") + ")"
}

// globPattern writes a glob as a Cedar pattern; both know only the star.
func globPattern(glob string) string {
	for strings.Contains(glob, "**") {
		glob = strings.ReplaceAll(glob, "**", "*")
	}
	return quote(glob)
}

// pattern writes a Cedar pattern: literal text, with its stars escaped, between two parts that are patterns.
func pattern(before, literal, after string) string {
	quoted := quote(literal)
	return `"` + before + strings.ReplaceAll(quoted[1:len(quoted)-1], "*", `\*`) + after + `"`
}

func has(trait string) string { return "context.traits.contains(" + quote(trait) + ")" }

func set(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func list(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// quote writes a Cedar string.
func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r >= 0x20 && r < 0x7f:
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\u{%x}`, r)
		}
	}
	out.WriteByte('"')
	return out.String()
}
