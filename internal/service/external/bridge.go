package external

import (
	_ "embed"
	"fmt"
	"strings"
)

// The bridges are programs for node that put the questions of a coding agent to the daemon. They belong to the command that starts it.
var (
	//go:embed bridges/ask.js
	askJS string
	//go:embed bridges/hook.js
	hookJS string
	//go:embed bridges/rpc.js
	rpcJS string
	//go:embed bridges/opencode.js
	opencodeJS string
	//go:embed bridges/codex.js
	codexJS string
)

// hookSeconds is for how long claude waits for its hook: a little less than 2^31 milliseconds, beyond which timers of its runtime fail. The
// hook itself denies after 24 days, which is earlier.
const hookSeconds = 2_147_483

// script joins parts of bridges to one text for node -e, without comments and indentation.
func script(parts ...string) string {
	var lines []string
	for line := range strings.Lines(strings.Join(parts, "\n")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// bridge returns the words that start a program behind its bridge.
func bridge(js string, program ...string) []string {
	return append([]string{"node", "-e", quote(script(askJS, rpcJS, js))}, program...)
}

// hookSettings are the settings of claude by which it asks before every tool. A hook that breaks refuses: claude takes the exit code 2 for
// a refusal, and every other one for no answer.
func hookSettings() string {
	return fmt.Sprintf(`{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","timeout":%d,`+
		`"command":"node -e \"$%s\" || exit 2"}]}]}}`, hookSeconds, varHook)
}
