package cli

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
)

// policies are the commands that look at policy without doing anything.
func policies(i *invocation) *cobra.Command {
	c := group("policy", "Show, explain and test policies", policyPresets(i), policyShow(i), policyExplain(i), policyTest(i),
		policyValidate(i), policyEvaluate(i), policyActions(i))
	c.Aliases = []string{"policies"}
	return c
}

func policyPresets(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "presets", Short: "List the policies that come with the program", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := api.Presets(cmd.Context())
			if err != nil {
				return err
			}
			return i.list("presets", found, "", func(p *printer) {
				rows := make([][]cell, len(found))
				for n, b := range found {
					rows[n] = []cell{
						text(b.Name), {bytesize(b.Limits.FileBytes), ""}, {trimmed(float64(b.Limits.CommandMS)/1000) + " s", ""},
						text(b.Hash.String()), text(strings.Join(walls(b.Limits), " ")), text(strings.Join(b.Limits.Blocked, " ")),
					}
				}
				p.table("There are no presets.", []string{"preset", "a file", "a command", "bundle", "withheld (wall)", "refused (guard)"}, rows)
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

// pathRules shows what protects paths, and how strongly.
func (p *printer) pathRules(rules []policy.PathRule) {
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
	p.line("")
	for _, l := range lines {
		p.line("%s: %s", l.kind, p.paint(faint, l.says))
		p.line("  %s", plain(strings.Join(patterns[l], " ")))
	}
}

// trial is what a policy is asked about.
type trial struct {
	preset, space string
	rules         string // file with policy in its short form, or Cedar
}

func (t *trial) flags(c *cobra.Command) {
	c.Flags().StringVar(&t.preset, "policy", "", "preset: restrictive, standard or permissive (default standard)")
	c.Flags().StringVar(&t.space, "space", "", "the policy of this space")
	c.Flags().StringVar(&t.rules, "file", "", "policy of a file: the short form (.yaml) or Cedar (.cedar)")
}

// request reads the policy that was named.
func (t *trial) request() (client.Trial, error) {
	q := client.Trial{Policy: t.preset, Space: id.Space(t.space)}
	if t.rules == "" {
		return q, nil
	}
	if t.preset != "" || t.space != "" {
		return q, usage("name one policy: --policy, --space or --file")
	}
	raw, err := os.ReadFile(t.rules)
	if err != nil {
		return q, unreadable(err, t.rules)
	}
	if strings.HasSuffix(t.rules, ".cedar") {
		q.Cedar = string(raw)
	} else {
		q.YAML = string(raw)
	}
	return q, nil
}

func policyExplain(i *invocation) *cobra.Command {
	var (
		t         trial
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
		q, err := t.request()
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
				return usage("--operation is not JSON")
			}
		case action == "" && operation == "" && len(args) == 1:
			if q.Operation, err = json.Marshal(map[string]string{"type": "shell", "command": args[0]}); err != nil {
				return err
			}
		default:
			return usage("name a command, an operation with --operation, or an action with --action")
		}
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		if q.Space, err = i.named(cmd.Context(), api, string(q.Space)); err != nil {
			return err
		}
		e, err := api.Explain(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.show(e, func(p *printer) { p.explanation(e) })
	}
	return c
}

// colours of the outcomes.
func colourOf(o policy.Outcome) string {
	return map[policy.Outcome]string{policy.Allow: green, policy.RequireApproval: yellow, policy.Deny: red}[o]
}

func (p *printer) explanation(e policy.Explanation) {
	d := e.Decision
	p.line("%s  %s", p.paint(colourOf(d.Outcome), d.Outcome.String()), plain(d.Reason))
	if d.Suggestion != "" {
		p.line("%s %s", p.paint(yellow, "→"), plain(here(d.Suggestion)))
	}
	p.fields("reason code", d.ReasonCode, "policies", strings.Join(d.Policies, ", "), "not sealed", strings.Join(d.Unsealed, "; "), "bundle",
		d.Bundle.String())
	rows := make([][]cell, len(e.Parts))
	for n, part := range e.Parts {
		rows[n] = []cell{
			{part.Outcome.String(), colourOf(part.Outcome)}, {p.cut(part.What, 48), ""}, text(strings.Join(part.Policies, ", ")),
			text(first(part.Reason, strings.Join(part.Traits, ", "))),
		}
	}
	if len(rows) > 0 {
		p.line("")
		p.table("", []string{"decision", "part", "policies", "why"}, rows)
	}
	p.pathRules(e.PathRules)
	p.warnings(e.Warnings)
}

// warnings writes what has no effect, or more than a reader may expect.
func (p *printer) warnings(list []string) {
	for _, one := range list {
		p.line("%s %s", p.paint(yellow, "warning:"), plain(one))
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

func policyTest(i *invocation) *cobra.Command {
	var t trial
	c := &cobra.Command{
		Use: "test CASES.yaml", Short: "Test a policy against a list of cases; nothing runs", Args: cobra.ExactArgs(1),
		Long: "Test reads a list of cases, each with a command or an operation and the decision that is expected. It exits with 6 when one " +
			"differs.\n\n" +
			"  - command: cat notes.txt\n    expect: allow\n  - name: secrets stay\n    operation: {type: createFile, path: .git/config, content: " +
			"x}\n    expect: deny",
	}
	t.flags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := t.request()
		if err != nil {
			return err
		}
		cases, err := expectations(args[0])
		if err != nil {
			return err
		}
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		if q.Space, err = i.named(cmd.Context(), api, string(q.Space)); err != nil {
			return err
		}
		results, failed := make([]tested, len(cases)), 0
		for n, one := range cases {
			if q.Operation, err = one.operation(); err != nil {
				return usage("case %d of %s: %v", n+1, oneLine(args[0], 80), err)
			}
			e, err := api.Explain(cmd.Context(), q)
			if err != nil {
				return err
			}
			got := e.Decision.Outcome.String()
			results[n] = tested{first(one.Name, one.Command, fmt.Sprint(one.Operation["type"], " ", one.Operation["path"])), one.Expect, got,
				e.Decision.Reason, got == one.Expect}
			if !results[n].OK {
				failed++
			}
		}
		if err := i.show(results, func(p *printer) {
			rows := make([][]cell, len(results))
			for n, r := range results {
				mark := cell{"✓", green}
				if !r.OK {
					mark = cell{"✗", red}
				}
				rows[n] = []cell{mark, text(r.Expect), text(r.Got), {p.cut(r.Name, 60), ""}, text(r.Reason)}
			}
			p.table("There are no cases.", []string{"", "expected", "got", "case", "why"}, rows)
			p.line("\n%d of %d as expected", len(results)-failed, len(results))
		}); err != nil {
			return err
		}
		if failed > 0 {
			return &ended{ExitRefused}
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
		return nil, unreadable(err, name)
	}
	defer f.Close()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	var cases []expectation
	if err := decoder.Decode(&cases); err != nil {
		return nil, usage("%s is not a list of cases: %v", oneLine(name, 80), err)
	}
	if len(cases) > maxCases {
		return nil, usage("%s has %d cases; at most %d", oneLine(name, 80), len(cases), maxCases)
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

func policyValidate(i *invocation) *cobra.Command {
	c := &cobra.Command{Use: "validate FILE", Short: "Check the short form (.yaml) or Cedar (.cedar) of a policy", Args: cobra.ExactArgs(1)}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := (&trial{rules: args[0]}).request()
		if err != nil {
			return err
		}
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		b, warnings, err := api.ValidatePolicy(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.show(b, func(p *printer) {
			p.line("%s %s is a policy: %s", p.paint(green, "✓"), plain(args[0]), b.Hash)
			p.warnings(warnings)
		})
	}
	return c
}

// killSwitch stops every effect; reading goes on, and what is only recorded.
func killSwitch(i *invocation) *cobra.Command {
	set := func(on bool) func(cmd *cobra.Command, args []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			reason, err := cmd.Flags().GetString("reason")
			if err != nil {
				return err
			}
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			k, err := api.SetKillSwitch(cmd.Context(), on, reason)
			if err != nil {
				return err
			}
			return i.show(k, func(p *printer) { p.killSwitch(i, k) })
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
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			k, err := api.KillSwitch(cmd.Context())
			if err != nil {
				return err
			}
			return i.show(k, func(p *printer) { p.killSwitch(i, k) })
		},
	}
	c := group("kill-switch", "Stop every effect at once, permit them again, or show the state", onCommand, offCommand, status)
	c.RunE = status.RunE
	return c
}

func (p *printer) killSwitch(i *invocation, k policy.KillSwitch) {
	if !k.On {
		p.line("the kill switch is %s: effects are decided by policy", p.paint(green, "off"))
		return
	}
	p.line("the kill switch is %s: only reading, and what is only recorded, is permitted; lift it with: agentbox kill-switch off",
		p.paint(red, "on"))
	p.fields("since", ago(i.Clock.Now(), k.At), "by", string(k.By), "reason", k.Reason)
}
