// Package policycmd has the commands about policy and safety: rules, approvals, action types, labels, incidents and the kill switch.
package policycmd

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Policies are the commands that look at policy without doing anything.
func Policies(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("policy", "Show, explain and test policies", policyPresets(i), policyShow(i), policyExplain(i), policyTest(i),
		policyValidate(i), policyEvaluate(i), policyActions(i))
	c.Aliases = []string{"policies"}
	return c
}

func policyPresets(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "presets", Short: "List the policies that come with the program", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := api.Presets(cmd.Context())
			if err != nil {
				return err
			}
			return i.List("presets", found, "", func(p *term.Printer) {
				rows := make([][]term.Cell, len(found))
				for n, b := range found {
					rows[n] = []term.Cell{
						term.Text(b.Name), {Text: term.Bytesize(b.Limits.FileBytes), Colour: ""}, {Text: term.Trimmed(float64(b.Limits.CommandMS)/1000) +
							" s", Colour: ""},
						term.Text(b.Hash.String()), term.Text(strings.Join(walls(b.Limits), " ")), term.Text(strings.Join(b.Limits.Blocked, " ")),
					}
				}
				p.Table("There are no presets.", []string{"preset", "a file", "a command", "bundle", "withheld (wall)", "refused (guard)"}, rows)
			})
		},
	}
}

// walls returns the patterns of files that are kept from code.
func walls(l policy.Limits) []string {
	if l.Withhold == nil {
		return nil
	}
	return l.Withhold.Paths
}

// writePathRules shows what protects paths, and how strongly.
func writePathRules(p *term.Printer, rules []policy.PathRule) {
	if len(rules) == 0 {
		return
	}
	type line struct{ kind, says string }
	lines, patterns := []line{}, map[line][]string{}
	for _, r := range rules {
		l := line{r.Strength, r.Says}
		if r.Except {
			l.kind += ", except"
		}
		if patterns[l] == nil {
			lines = append(lines, l)
		}
		patterns[l] = append(patterns[l], r.Pattern)
	}
	p.Line("")
	for _, l := range lines {
		p.Line("%s: %s", l.kind, p.Paint(term.Faint, l.says))
		p.Line("  %s", term.Plain(strings.Join(patterns[l], " ")))
	}
}

// Trial is an operation to try against a policy.
type Trial struct {
	Preset, space string
	Rules         string // file with policy in its short form, or Cedar
}

func (t *Trial) flags(c *cobra.Command) {
	c.Flags().StringVar(&t.Preset, "policy", "", "preset: restrictive, standard or permissive (default standard)")
	c.Flags().StringVar(&t.space, "space", "", "the policy of this space")
	c.Flags().StringVar(&t.Rules, "file", "", "policy of a file: the short form (.yaml) or Cedar (.cedar)")
}

// Request reads the policy that was named.
func (t *Trial) Request() (client.Trial, error) {
	q := client.Trial{Policy: t.Preset, Space: id.Space(t.space)}
	if t.Rules == "" {
		return q, nil
	}
	if t.Preset != "" || t.space != "" {
		return q, cmdline.Usage("name one policy: --policy, --space or --file")
	}
	raw, err := os.ReadFile(t.Rules)
	if err != nil {
		return q, cmdline.Unreadable(err, t.Rules)
	}
	if strings.HasSuffix(t.Rules, ".cedar") {
		q.Cedar = string(raw)
	} else {
		q.YAML = string(raw)
	}
	return q, nil
}

func policyExplain(i *cmdline.Invocation) *cobra.Command {
	var (
		t         Trial
		operation string
		outside   outsideFlags
		action    string
	)
	c := &cobra.Command{
		Use: "explain [COMMAND]", Short: "Explain how an operation would be decided; nothing runs", Args: cobra.MaximumNArgs(1),
		Long: "Explain judges a shell command, or an operation of the protocol as JSON, and shows the judgement of each part. The strictest " +
			"decides.",
		Example: "  agentbox policy explain 'cat notes.txt | grep todo'\n  agentbox policy explain --space spc_... 'rm -r build'\n  agentbox " +
			"policy explain --operation '{\"type\":\"createFile\",\"path\":\".git/config\",\"content\":\"\"}'",
	}
	t.flags(c)
	c.Flags().StringVar(&operation, "operation", "", "an operation of the protocol, as JSON")
	c.Flags().StringVar(&action, "action", "", "an action that is done outside, as email.send")
	c.Flags().StringVar(&outside.target, "target", "", "of the action: the host or recipient")
	c.Flags().StringVar(&outside.zone, "zone", "", "of the action: the posture of who acts")
	c.Flags().StringVar(&outside.request, "request", "", "of the action: what is done, in full, as a JSON object")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := t.Request()
		if err != nil {
			return err
		}
		switch {
		case action != "" && operation == "" && len(args) == 0:
			asks, err := outside.action([]string{action})
			if err != nil {
				return err
			}
			q.Action = &asks
		case action == "" && operation != "" && len(args) == 0:
			if q.Operation = json.RawMessage(operation); !json.Valid(q.Operation) {
				return cmdline.Usage("--operation is not JSON")
			}
		case action == "" && operation == "" && len(args) == 1:
			if q.Operation, err = json.Marshal(map[string]string{"type": "shell", "command": args[0]}); err != nil {
				return err
			}
		default:
			return cmdline.Usage("name a command, an operation with --operation, or an action with --action")
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if q.Space, err = i.Named(cmd.Context(), api, string(q.Space)); err != nil {
			return err
		}
		e, err := api.Explain(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.Show(e, func(p *term.Printer) { writeExplanation(p, e) })
	}
	return c
}

// colours of the outcomes.
func colourOf(o policy.Outcome) string {
	return map[policy.Outcome]string{policy.Allow: term.Green, policy.RequireApproval: term.Yellow, policy.Deny: term.Red}[o]
}

func writeExplanation(p *term.Printer, e policy.Explanation) {
	d := e.Decision
	p.Line("%s  %s", p.Paint(colourOf(d.Outcome), d.Outcome.String()), term.Plain(d.Reason))
	if d.Suggestion != "" {
		p.Line("%s %s", p.Paint(term.Yellow, "→"), term.Plain(here(d.Suggestion)))
	}
	p.Fields("reason code", d.ReasonCode, "policies", strings.Join(d.Policies, ", "), "not sealed", strings.Join(d.Unsealed, "; "), "bundle",
		d.Bundle.String())
	rows := make([][]term.Cell, len(e.Parts))
	for n, part := range e.Parts {
		rows[n] = []term.Cell{
			{Text: part.Outcome.String(), Colour: colourOf(part.Outcome)}, {Text: p.Cut(part.What, 48),
				Colour: ""}, term.Text(strings.Join(part.Policies, ", ")),
			term.Text(cmdline.First(part.Reason, strings.Join(part.Traits, ", "))),
		}
	}
	if len(rows) > 0 {
		p.Line("")
		p.Table("", []string{"decision", "part", "policies", "why"}, rows)
	}
	writePathRules(p, e.PathRules)
	WriteWarnings(p, e.Warnings)
}

// WriteWarnings writes the parts of a policy that have no effect, or more effect than a reader may expect.
func WriteWarnings(p *term.Printer, list []string) {
	for _, one := range list {
		p.Line("%s %s", p.Paint(term.Yellow, "warning:"), term.Plain(one))
	}
}

// expectation is one case of a file of policy tests.
type expectation struct {
	Name      string         `yaml:"name"`
	Command   string         `yaml:"command"`
	Operation map[string]any `yaml:"operation"`
	Expect    string         `yaml:"expect"` // allow, deny or require_approval
}

// tested is the outcome of one case.
type tested struct {
	Name   string `json:"name"`
	Expect string `json:"expect"`
	Got    string `json:"got"`
	Reason string `json:"reason"`
	OK     bool   `json:"ok"`
}

func policyTest(i *cmdline.Invocation) *cobra.Command {
	var t Trial
	c := &cobra.Command{
		Use: "test CASES.yaml", Short: "Test a policy against a list of cases; nothing runs", Args: cobra.ExactArgs(1),
		Long: "Test reads a list of cases, each with a command or an operation and the decision that is expected. It exits with 6 when one " +
			"differs.\n\n" +
			"  - command: cat notes.txt\n    expect: allow\n  - name: secrets stay\n    operation: {type: createFile, path: .git/config, content: " +
			"x}\n    expect: deny",
	}
	t.flags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := t.Request()
		if err != nil {
			return err
		}
		cases, err := expectations(args[0])
		if err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if q.Space, err = i.Named(cmd.Context(), api, string(q.Space)); err != nil {
			return err
		}
		results, failed := make([]tested, len(cases)), 0
		for n, one := range cases {
			if q.Operation, err = one.operation(); err != nil {
				return cmdline.Usage("case %d of %s: %v", n+1, term.OneLine(args[0], 80), err)
			}
			e, err := api.Explain(cmd.Context(), q)
			if err != nil {
				return err
			}
			got := e.Decision.Outcome.String()
			results[n] = tested{cmdline.First(one.Name, one.Command, fmt.Sprint(one.Operation["type"], " ", one.Operation["path"])), one.Expect, got,
				e.Decision.Reason, got == one.Expect}
			if !results[n].OK {
				failed++
			}
		}
		if err := i.Show(results, func(p *term.Printer) {
			rows := make([][]term.Cell, len(results))
			for n, r := range results {
				mark := term.Cell{Text: "✓", Colour: term.Green}
				if !r.OK {
					mark = term.Cell{Text: "✗", Colour: term.Red}
				}
				rows[n] = []term.Cell{mark, term.Text(r.Expect), term.Text(r.Got), {Text: p.Cut(r.Name, 60), Colour: ""}, term.Text(r.Reason)}
			}
			p.Table("There are no cases.", []string{"", "expected", "got", "case", "why"}, rows)
			p.Line("\n%d of %d as expected", len(results)-failed, len(results))
		}); err != nil {
			return err
		}
		if failed > 0 {
			return &cmdline.Ended{Code: cmdline.ExitRefused}
		}
		return nil
	}
	return c
}

// maxCases is the most cases of one file.
const maxCases = 10_000

func expectations(name string) ([]expectation, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, cmdline.Unreadable(err, name)
	}
	defer f.Close()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	var cases []expectation
	if err := decoder.Decode(&cases); err != nil {
		return nil, cmdline.Usage("%s is not a list of cases: %v", term.OneLine(name, 80), err)
	}
	if len(cases) > maxCases {
		return nil, cmdline.Usage("%s has %d cases; at most %d", term.OneLine(name, 80), len(cases), maxCases)
	}
	return cases, nil
}

// operation returns the operation that a case is about.
func (e expectation) operation() (json.RawMessage, error) {
	var o policy.Outcome
	if err := o.UnmarshalText([]byte(e.Expect)); err != nil || o.String() != e.Expect {
		return nil, fmt.Errorf("expect is %q; it is allow, deny or require_approval", e.Expect)
	}
	switch {
	case e.Command != "" && e.Operation == nil:
		return json.Marshal(map[string]string{"type": "shell", "command": e.Command})
	case e.Command == "" && e.Operation != nil:
		return json.Marshal(e.Operation)
	}
	return nil, fmt.Errorf("it needs a command or an operation, and not both")
}

func policyValidate(i *cmdline.Invocation) *cobra.Command {
	c := &cobra.Command{Use: "validate FILE", Short: "Check the short form (.yaml) or Cedar (.cedar) of a policy", Args: cobra.ExactArgs(1)}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := (&Trial{Rules: args[0]}).Request()
		if err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		b, warnings, err := api.ValidatePolicy(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.Show(b, func(p *term.Printer) {
			p.Line("%s %s is a policy: %s", p.Paint(term.Green, "✓"), term.Plain(args[0]), b.Hash)
			WriteWarnings(p, warnings)
		})
	}
	return c
}

// KillSwitch stops every effect. Reading goes on, and so do changes that are only recorded.
func KillSwitch(i *cmdline.Invocation) *cobra.Command {
	set := func(on bool) func(cmd *cobra.Command, args []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			reason, err := cmd.Flags().GetString("reason")
			if err != nil {
				return err
			}
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			k, err := api.SetKillSwitch(cmd.Context(), on, reason)
			if err != nil {
				return err
			}
			return i.Show(k, func(p *term.Printer) { writeKillSwitch(p, i, k) })
		}
	}
	onCommand := &cobra.Command{Use: "on", Short: "Stop every effect at once; reading and recording go on", Args: cobra.NoArgs,
		RunE: set(true)}
	offCommand := &cobra.Command{Use: "off", Short: "Permit effects again", Args: cobra.NoArgs, RunE: set(false)}
	for _, c := range []*cobra.Command{onCommand, offCommand} {
		c.Flags().String("reason", "", "why; it stands in the log")
	}
	status := &cobra.Command{
		Use: "status", Short: "Show whether the kill switch is on", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			k, err := api.KillSwitch(cmd.Context())
			if err != nil {
				return err
			}
			return i.Show(k, func(p *term.Printer) { writeKillSwitch(p, i, k) })
		},
	}
	c := cmdline.Group("kill-switch", "Stop every effect at once, permit them again, or show the state", onCommand, offCommand, status)
	c.RunE = status.RunE
	return c
}

func writeKillSwitch(p *term.Printer, i *cmdline.Invocation, k policy.KillSwitch) {
	if !k.On {
		p.Line("the kill switch is %s: effects are decided by policy", p.Paint(term.Green, "off"))
		return
	}
	p.Line("the kill switch is %s: only reading, and what is only recorded, is permitted; lift it with: agentbox kill-switch off",
		p.Paint(term.Red, "on"))
	p.Fields("since", term.Ago(i.Clock.Now(), k.At), "by", string(k.By), "reason", k.Reason)
}
