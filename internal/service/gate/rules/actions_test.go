package rules_test

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate/rules"
)

// TestActionsOfTheShortForm reads policies that give actions to agents and services: which can be given, and which rules they become.
func TestActionsOfTheShortForm(t *testing.T) {
	for _, a := range policy.Givable() {
		b, err := rules.FromYAML([]byte("allow: {actions: [" + a + ", " + a + "], delegated: [" + a + "]}"))
		if err != nil || strings.Count(b.Cedar, `@id("actions.`+a+`.allowed")`) != 1 || strings.Count(b.Cedar, `@id("actions.`+a+
			`.delegated")`) != 1 {
			t.Errorf("%s: %v\n%s", a, err, b.Cedar)
		}
	}
	if b, err := rules.FromYAML([]byte("deny: {actions: [file.delete]}")); err != nil || !strings.Contains(b.Cedar,
		`@id("actions.file.delete.refused")`) {
		t.Errorf("got %v\n%s", err, b.Cedar)
	}
	b, err := rules.FromYAML(
		[]byte("allow: {actions: [deploy.build, email.send]}\nask: {actions: [deploy.build, payment.execute]}\ndeny: {actions: [deploy.wipe]}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{"deploy.build.allowed", "email.send.allowed", "deploy.build.ask", "payment.execute.ask",
		"deploy.wipe.refused"} {
		if !strings.Contains(b.Cedar, `@id("actions.`+rule+`")`) {
			t.Errorf("there is no rule %s:\n%s", rule, b.Cedar)
		}
	}
	if got := rules.Named(b); !slices.Contains(got, "deploy.wipe") || !slices.Contains(got, "payment.execute") {
		t.Errorf("got the actions %v", got)
	}
	b, err = rules.FromYAML([]byte("allow: {actions: [agent.tool]}\nask: {actions: [agent.tool]}\ndeny: {actions: [agent.tool]}"))
	for _, rule := range []string{"allowed", "ask", "refused"} {
		if err != nil || !strings.Contains(b.Cedar, `@id("actions.agent.tool.`+rule+`")`) {
			t.Errorf("tools of coding agents, %s: %v\n%s", rule, err, b.Cedar)
		}
	}
	for text, want := range map[string]string{
		"allow: {actions: [space.create]}":     "line 1, column 19: space.create cannot be given to agents and services",
		"allow: {delegated: [space.policy]}":   "space.policy cannot be given to agents and services",
		"allow: {actions: [run.strat]}":        `"run.strat" is no action`,
		"ask: {actions: [run.start]}":          "line 1, column 17: run.start is not asked about by its type",
		"allow: {actions: [run.deploy]}":       `"run.deploy" is no action`,
		"allow: {delegated: [deploy.build]}":   "deploy.build cannot be given to agents and services",
		"deny: {delegated: [run.start]}":       "deny has no key \"delegated\"",
		"deny: {actions: [\"run.start\\\"\"]}": "is no action",
	} {
		if _, err := rules.FromYAML([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
