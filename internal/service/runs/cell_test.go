package runs_test

import (
	"maps"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runs"
)

func TestACellIsACommand(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", run.MaxCommandRunes)
	fits := strings.Repeat("é", run.MaxCommandRunes-len("python3 --context=c -c ''"))
	ms := int64(5000)
	for name, c := range map[string]struct {
		cell    runs.Cell
		command string
		env     map[string]string
		code    string
	}{
		"Python": {runs.Cell{Context: "c", Language: "python", Code: "x = 'a'\nx"}, "python3 --context=c -c 'x = '\\''a'\\''\nx'", nil,
			""},
		"JavaScript": {runs.Cell{Context: "c", Language: "javascript", Code: "1", Env: map[string]string{"A": "b"}},
			"node --context=c -e '1'", map[string]string{"A": "b"}, ""},
		"a file":            {runs.Cell{Context: "c", Language: "python", File: "-a b.py"}, "python3 --context=c '/workspace/-a b.py'", nil, ""},
		"just short enough": {runs.Cell{Context: "c", Language: "python", Code: fits}, "python3 --context=c -c '" + fits + "'", nil, ""},
		"longer": {runs.Cell{Context: "c", Language: "python", Code: fits + "y"}, `python3 --context=c -c "$AGENTBOX_CELL"`,
			map[string]string{"AGENTBOX_CELL": fits + "y"}, ""},
		"long": {runs.Cell{Context: "c", Language: "javascript", Code: long}, `node --context=c -e "$AGENTBOX_CELL"`,
			map[string]string{"AGENTBOX_CELL": long}, ""},
		"the longest": {
			runs.Cell{Context: "c", Language: "python", Code: strings.Repeat("x", runs.MaxCellBytes)}, `python3 --context=c -c "$AGENTBOX_CELL"`,
			map[string]string{"AGENTBOX_CELL": strings.Repeat("x", runs.MaxCellBytes)}, "",
		},
		"longer than that": {runs.Cell{Context: "c", Language: "python", Code: strings.Repeat("x", runs.MaxCellBytes+1)}, "", nil,
			"cell_invalid"},
		"nothing": {runs.Cell{Context: "c", Language: "python", Code: " \n"}, "", nil, "cell_invalid"},
		"both":    {runs.Cell{Context: "c", Language: "python", Code: "1", File: "f"}, "", nil, "cell_invalid"},
		"no text": {runs.Cell{Context: "c", Language: "python", Code: "a\x00"}, "", nil, "cell_invalid"},
		"its own variable": {runs.Cell{Context: "c", Language: "python", Code: "1", Env: map[string]string{"AGENTBOX_CELL": "2"}}, "", nil,
			"cell_invalid"},
		"another language": {runs.Cell{Context: "c", Language: "ruby", Code: "1"}, "", nil, "context_language_unknown"},
		"another name":     {runs.Cell{Context: "$(id)", Language: "python", Code: "1"}, "", nil, "context_name_invalid"},
		"a path outside":   {runs.Cell{Context: "c", Language: "python", File: "../f"}, "", nil, "invalid_path"},
	} {
		c.cell.Timeout = &ms
		op, err := c.cell.Operation()
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
		if err == nil && (op.Type != run.OpShell || op.Command != c.command || !maps.Equal(op.Env, c.env) || *op.TimeoutMS != ms) {
			t.Errorf("%s: got %+v, want %q, %v", name, op, c.command, c.env)
		}
	}
}
