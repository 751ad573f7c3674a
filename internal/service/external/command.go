package external

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
)

// The programs that the daemon knows.
const (
	opencode = "opencode"
	codex    = "codex"
	claude   = "claude"
	custom   = "custom"
)

// How a program gets its task.
const (
	byArgument = "argument"
	byStdin    = "stdin"
	byEnv      = "env"
	byFile     = "file"
)

// Variables of the environment of each program.
const (
	varTask  = "AGENTBOX_TASK"
	varModel = "AGENTBOX_MODEL"
	varURL   = "AGENTBOX_MODEL_URL" // with /v1 for the wires chat and responses, without for messages
	varFile  = "AGENTBOX_TASK_FILE"
	varAsk   = "AGENTBOX_PERMISSIONS_URL" // where it asks before it uses a tool, with permissions: ask
	varHook  = "AGENTBOX_HOOK"            // the program of the hook of claude
)

// noKey is the key for vendors' clients that require one. The daemon ignores it.
const noKey = "none"

// MaxTask is the largest size of a task in bytes, because the environment of a program carries it.
const MaxTask = 24 << 10

// ErrTask refuses a task of more than MaxTask bytes.
var ErrTask = fault.New(fault.Invalid, "task_too_long", "the task of an external agent has at most %d bytes", MaxTask).
	With("put the rest into a file of the space and name the file in the task")

// version rises when the start of a program changes in a way that its command does not show.
const version = "1"

// Hash returns the content hash of the commands with which the daemon starts external agents. A run records it.
func Hash() event.Digest {
	text := version
	for _, program := range []string{opencode, codex, claude} {
		for _, permissions := range []string{blueprint.PermissionsOff, blueprint.PermissionsAsk} {
			b := blueprint.Blueprint{Adapter: blueprint.Adapter{Kind: blueprint.ExternalCLI, Program: program, Permissions: permissions},
				Models: map[string]string{blueprint.DefaultTask: "m"}}.Effective()
			op, err := commandOf(b, "t", 1)
			text += "\n" + op.Command + "\n" + fmt.Sprint(op.Env, err)
		}
	}
	return event.DigestOf([]byte(text))
}

// Check returns an error if no program can be started for the blueprint and the task.
func Check(b blueprint.Blueprint, task string) error {
	_, err := commandOf(b.Effective(), task, 65535)
	return err
}

// commandOf returns the operation that starts the program of a blueprint. The program sends its model requests to the port of the space.
func commandOf(b blueprint.Blueprint, task string, port int) (run.Operation, error) {
	if len(task) > MaxTask {
		return run.Operation{}, ErrTask
	}
	if strings.ContainsRune(task, 0) {
		return run.Operation{}, fault.New(fault.Invalid, "invalid_field", "the task holds a NUL character")
	}
	if strings.HasPrefix(task, "-") {
		task = " " + task // else the program would read it as a flag
	}
	name := b.Model(blueprint.DefaultTask)
	host := fmt.Sprintf("http://127.0.0.1:%d", port)
	env := map[string]string{varTask: task, varModel: name}
	words, err := programOf(b, name, host, env)
	if err != nil {
		return run.Operation{}, err
	}
	asks := b.Adapter.Asks()
	if asks {
		env[varAsk] = host + PermissionsPath
	}
	bridged := asks && (b.Adapter.Program == opencode || b.Adapter.Program == codex) // it has its task from the environment
	line := strings.Join(words, " ")
	how := b.Adapter.EnvInjection
	const argument = `"$` + varTask + `"`
	switch how {
	case "", byArgument:
		if b.Adapter.Program != custom && !bridged {
			line += " " + argument
		}
	case byStdin:
		if !bridged {
			line = "printf %s " + argument + " | " + line
		}
	case byFile:
		env[varFile] = "/tmp/agentbox-task.md"
		line = "printf %s " + argument + " > " + env[varFile] + " && " + line
	case byEnv:
	default:
		return run.Operation{}, fault.New(fault.Invalid, "adapter_unsupported", "adapter.env_injection is argument, stdin, env or file")
	}
	if b.Adapter.Program != custom && (how == byEnv || how == byFile) {
		return run.Operation{}, fault.New(fault.Invalid, "adapter_unsupported",
			"%s reads its task as an argument or from its standard input; set adapter.env_injection to one of these", b.Adapter.Program)
	}
	op := run.Operation{Type: run.OpShell, ID: "agent", Command: line, Env: env, Tag: tagOf(b)}
	if ms := int64(b.Limits.Seconds) * 1000; !ownTime(b) {
		op.TimeoutMS = &ms
	}
	return op, op.Check()
}

// ownTime reports whether the session itself bounds the time of the program: it is longer than one command may take, or stands still while
// a person is asked.
func ownTime(b blueprint.Blueprint) bool {
	return b.Adapter.Asks() || int64(b.Limits.Seconds)*1000 > run.MaxTimeoutMS
}

func tagOf(b blueprint.Blueprint) string { return "agent " + b.Adapter.Program }

// programOf returns the words of the command, and adds its variables to env.
func programOf(b blueprint.Blueprint, name, host string, env map[string]string) ([]string, error) {
	switch b.Adapter.Program {
	case opencode:
		permission, words := "allow", []string{"opencode", "run", "--title", "agentbox", "--format", "json", "--auto"}
		if b.Adapter.Asks() {
			permission, words = "ask", bridge(opencodeJS, "opencode", "acp")
		}
		config, err := json.Marshal(map[string]any{
			"model": "agentbox/" + name, "small_model": "agentbox/" + name, "share": "disabled", "autoupdate": false, "permission": permission,
			"enabled_providers": []string{"agentbox"},
			"provider": map[string]any{"agentbox": map[string]any{"npm": "@ai-sdk/openai-compatible", "name": "Agentbox",
				"options": map[string]any{"baseURL": host + "/v1", "apiKey": noKey},
				"models": map[string]any{name: map[string]any{"name": name,
					"limit": map[string]any{"context": b.Context.Tokens, "output": outputTokens}}}}},
		})
		env["OPENCODE_CONFIG_CONTENT"], env["OPENCODE_DISABLE_MODELS_FETCH"], env["OPENCODE_DISABLE_AUTOUPDATE"] = string(config), "1", "1"
		env[varURL] = host + "/v1"
		return words, err
	case codex:
		env["AGENTBOX_MODEL_KEY"], env[varURL] = noKey, host+"/v1"
		provider := `model_providers.agentbox={name="Agentbox",base_url="` + host + `/v1",env_key="AGENTBOX_MODEL_KEY",wire_api="responses"}`
		quiet := []string{"-c", "model_provider=agentbox", "-c", quote(provider), "-c", "check_for_update_on_startup=false",
			"-c", "analytics.enabled=false", "-c", "feedback.enabled=false"}
		if b.Adapter.Asks() {
			words := append([]string{"codex", "--disable", "plugins", "--disable", "apps"}, quiet...)
			return bridge(codexJS, append(words, "app-server")...), nil
		}
		return append([]string{"codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--disable", "plugins", "--disable", "apps",
			"--dangerously-bypass-approvals-and-sandbox", "-m", quote(name)}, quiet...), nil
	case claude:
		env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_API_KEY"], env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = host, noKey, "1"
		env[varURL] = host
		words := []string{"claude", "-p", "--output-format", "stream-json", "--verbose", "--model", quote(name), "--no-session-persistence"}
		if b.Adapter.Asks() {
			env[varHook] = script(askJS, hookJS)
			return append(words, "--permission-mode", "default", "--settings", quote(hookSettings())), nil
		}
		return append(words, "--dangerously-skip-permissions"), nil
	case custom:
		env[varURL] = host
		if b.Adapter.Wire == blueprint.WireMessages {
			env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_API_KEY"] = host, noKey
		} else {
			env[varURL] += "/v1"
			env["OPENAI_BASE_URL"], env["OPENAI_API_KEY"] = env[varURL], noKey
		}
		words := make([]string, len(b.Adapter.Command))
		for i, word := range b.Adapter.Command {
			word = strings.NewReplacer("{model}", name, "{base_url}", env[varURL]).Replace(word)
			parts := strings.Split(word, "{task}")
			for j, part := range parts {
				parts[j] = quote(part)
			}
			words[i] = strings.Join(parts, `"$`+varTask+`"`)
		}
		return words, nil
	}
	return nil, fault.New(fault.Invalid, "adapter_unsupported", "adapter.program is opencode, codex, claude or custom")
}

// outputTokens is the largest answer in tokens, for the configuration of opencode. The entry of the model bounds the real one.
const outputTokens = 8192

// quote quotes a text as one word of a shell. Plain words stay as they are, so that policy and people read them easily.
func quote(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:=,+@") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
