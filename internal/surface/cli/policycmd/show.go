package policycmd

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

func policyShow(i *cmdline.Invocation) *cobra.Command {
	var cedar bool
	c := &cobra.Command{
		Use: "show PRESET|SPACE", Short: "List what a policy allows, asks about and refuses", Args: cobra.ExactArgs(1),
		Long: "Show lists the rules of a preset, or of the policy of a space. A rule that refuses wins over one that asks, and one that asks " +
			"wins over one that allows. An action without a rule is refused.",
		Example: "  agentbox policy show standard\n  agentbox policy show spc_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			b, err := policyNamed(i, cmd, api, args[0])
			if err != nil {
				return err
			}
			return i.Show(b, func(p *term.Printer) {
				if cedar {
					p.Line("%s", strings.TrimSpace(term.Plain(b.Cedar)))
					return
				}
				writePolicy(p, b)
			})
		},
	}
	c.Flags().BoolVar(&cedar, "cedar", false, "the rules as they are, in Cedar")
	return c
}

// policyNamed returns the preset of a name, else the policy of a space.
func policyNamed(i *cmdline.Invocation, cmd *cobra.Command, api *client.Client, name string) (policy.Bundle, error) {
	presets, err := api.Presets(cmd.Context())
	if err != nil {
		return policy.Bundle{}, err
	}
	for _, b := range presets {
		if b.Name == name {
			return b, nil
		}
	}
	s, err := i.Named(cmd.Context(), api, name)
	if fault.CodeOf(err) == "space_not_found" {
		return policy.Bundle{}, fault.New(fault.NotFound, "space_not_found", "no preset has the name %q, and no space the id or name",
			term.OneLine(name, 60)).With("see: agentbox policy presets\nsee: agentbox space list")
	}
	if err != nil {
		return policy.Bundle{}, err
	}
	return api.SpacePolicy(cmd.Context(), s)
}

// shownRule is a rule of a policy for people.
type shownRule struct{ answer, id, about string }

var (
	annotation = regexp.MustCompile(`@(\w+)\("((?:[^"\\]|\\.)*)"\)`)
	named      = regexp.MustCompile(`\[((?:"[^"]*"(?:, )?)+)\]\.contains\(context\.(command|tool)\)`)
	condition  = regexp.MustCompile(`(?s)when \{ (.*) \}$`)
)

// shownRules takes the Cedar of a policy apart.
func shownRules(cedar string) []shownRule {
	var rules []shownRule
	for text := range strings.SplitSeq(cedar, ";\n") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		r := shownRule{answer: "allows"}
		reason := ""
		for _, a := range annotation.FindAllStringSubmatch(text, -1) {
			switch a[1] {
			case "id":
				r.id = a[2]
			case "reason":
				reason = a[2]
			case "decision":
				r.answer = "asks"
			}
		}
		if strings.Contains(text, "\nforbid (") || strings.HasPrefix(text, "forbid (") {
			r.answer = "refuses"
		}
		when := ""
		if found := condition.FindStringSubmatch(text); found != nil {
			when = found[1]
		}
		switch found := named.FindStringSubmatch(when); {
		case found != nil:
			r.about = strings.NewReplacer(`"`, "", ",", "").Replace(found[1])
		case reason != "":
			r.about = reason
		default:
			r.about = strings.Join(strings.Fields(when), " ")
		}
		if strings.HasPrefix(r.id, "domains.") {
			r.about = strings.TrimSpace(r.about + " (of actions outside, `agentbox policy evaluate`; a space has no network)")
		}
		rules = append(rules, r)
	}
	return rules
}

// writePolicy writes the actions that a policy allows, asks about and refuses.
func writePolicy(p *term.Printer, b policy.Bundle) {
	p.Line("%s", p.Paint(term.Bold, term.Plain(b.Name)))
	p.Fields("bundle", b.Hash.String(), "a file", term.Bytesize(b.Limits.FileBytes), "a command",
		term.Trimmed(float64(b.Limits.CommandMS)/1000)+" s",
		"weakest tier", b.Limits.Weakest)
	rules := shownRules(b.Cedar)
	for _, answer := range []string{"allows", "asks", "refuses"} {
		p.Line("")
		p.Line("%s", p.Paint(term.Bold, answer))
		for _, r := range rules {
			if r.answer == answer {
				p.Line("  %-36s %s", term.Plain(r.id), term.Plain(r.about))
			}
		}
	}
}
