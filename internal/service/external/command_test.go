package external

import (
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
)

func agent(a blueprint.Adapter) blueprint.Blueprint {
	a.Kind = blueprint.ExternalCLI
	return blueprint.Blueprint{Adapter: a, Models: map[string]string{blueprint.DefaultTask: "m1"}}.Effective()
}

// TestCommands holds how a program gets its task and its address, and that no task becomes a part of the command.
func TestCommands(t *testing.T) {
	const task = "-x '; rm -rf / $(id)"
	for name, c := range map[string]struct {
		adapter blueprint.Adapter
		want    string // the command
		url     string
	}{
		"claude": {blueprint.Adapter{Program: claude}, `--dangerously-skip-permissions "$AGENTBOX_TASK"`, "http://127.0.0.1:4000"},
		"codex":  {blueprint.Adapter{Program: codex}, `base_url="http://127.0.0.1:4000/v1"`, "http://127.0.0.1:4000/v1"},
		"opencode from its input": {blueprint.Adapter{Program: opencode, EnvInjection: byStdin},
			`printf %s "$AGENTBOX_TASK" | opencode run --title agentbox --format json --auto`, "http://127.0.0.1:4000/v1"},
		"a command of one's own": {blueprint.Adapter{Program: custom, Wire: blueprint.WireChat, Command: []string{"a b", "it's",
			"--do={task}!", "{model}", "{base_url}"}}, `'a b' 'it'\''s' --do="$AGENTBOX_TASK"'!' m1 http://127.0.0.1:4000/v1`,
			"http://127.0.0.1:4000/v1"},
		"a file": {blueprint.Adapter{Program: custom, Wire: blueprint.WireMessages, Command: []string{"x"}, EnvInjection: byFile},
			`printf %s "$AGENTBOX_TASK" > /tmp/agentbox-task.md && x`, "http://127.0.0.1:4000"},
		"the environment": {blueprint.Adapter{Program: custom, Wire: blueprint.WireChat, Command: []string{"x"}, EnvInjection: byEnv}, `x`,
			"http://127.0.0.1:4000/v1"},
	} {
		op, err := commandOf(agent(c.adapter), task, 4000)
		if err != nil || !strings.Contains(op.Command, c.want) || strings.Contains(op.Command, "rm -rf") || op.Env[varTask] != " "+task ||
			op.Env[varURL] != c.url || op.TimeoutMS == nil || *op.TimeoutMS != blueprint.DefaultSeconds*1000 {
			t.Errorf("%s: %s %v, %v", name, op.Command, op.Env, err)
		}
	}
	for name, a := range map[string]blueprint.Adapter{
		"an unknown program":       {Program: "other"},
		"claude and a file":        {Program: claude, EnvInjection: byFile},
		"an unknown injection":     {Program: custom, Command: []string{"x"}, EnvInjection: "mail"},
		"a command that is longer": {Program: custom, Command: []string{strings.Repeat("x", 4097)}},
	} {
		if err := Check(agent(a), "t"); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for task, ok := range map[string]bool{strings.Repeat("x", MaxTask): true, strings.Repeat("x", MaxTask+1): false, "a\x00b": false} {
		if err := Check(agent(blueprint.Adapter{Program: claude}), task); (err == nil) != ok {
			t.Errorf("a task of %d bytes: %v", len(task), err)
		}
	}
	long := agent(blueprint.Adapter{Program: claude})
	long.Limits.Seconds = 3601
	if op, err := commandOf(long, "t", 1); err != nil || op.TimeoutMS != nil {
		t.Errorf("more than an hour: %v, %v", op.TimeoutMS, err)
	}
}

// TestReports reads the last words of each program, and whether it says that it failed.
func TestReports(t *testing.T) {
	for name, c := range map[string]struct {
		program, stdout, report string
		failed                  bool
	}{
		"opencode": {opencode, "{\"type\":\"step_start\"}\n{\"type\":\"text\",\"part\":{\"text\":\"done\"}}\nnoise\n", "done", false},
		"opencode that failed": {opencode, `{"type":"text","part":{"text":"I try"}}` + "\n" + `{"type":"error","error":{"name":"APIError"}}`,
			`{"name":"APIError"}`, true},
		"codex":              {codex, `{"type":"item.completed","item":{"type":"agent_message","text":"done"}}`, "done", false},
		"codex that failed":  {codex, `{"type":"turn.failed","error":{"message":"no"}}`, `{"message":"no"}`, true},
		"claude":             {claude, `{"type":"result","result":"done","is_error":false}`, "done", false},
		"claude that failed": {claude, `{"type":"result","result":"no","is_error":true}`, "no", true},
		"another one":        {custom, "one\ntwo\n", "one\ntwo", false},
		"a long one":         {custom, "ä" + strings.Repeat("x", maxReport-1), strings.Repeat("x", maxReport-1), false},
	} {
		if report, failed := reportOf(c.program, c.stdout); report != c.report || failed != c.failed {
			t.Errorf("%s: %.100q, %t", name, report, failed)
		}
	}
}
