package shellcmd

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/codecmd"
)

// carried is the state that passes from one line of a session to the next: the working folder and the exported variables. Each line runs
// in its own bash, so the operation carries the state: in its folder, in its environment, and else in front of its command.
type carried struct {
	top    string            // folder of the space's files, as its commands see it; "" if nothing is read back
	folder string            // working folder, absolute
	first  map[string]string // the exported variables when the session began
	now    map[string]string // the exported variables
	code   int               // exit code of the last line, for $?
}

// unkept are variables that a shell makes anew each time, and the one that the daemon gives each step.
var unkept = []string{"PWD", "SHLVL", "_", run.TraceVariable}

// operation is the operation of a line, and the mark behind which its output says what it leaves.
func (s *carried) operation(line string, entropy io.Reader) (op run.Operation, m mark, err error) {
	op = run.Operation{Type: run.OpShell, Command: line}
	if s.top == "" {
		return op, mark{}, nil
	}
	nonce := make([]byte, 16)
	if _, err := io.ReadFull(entropy, nonce); err != nil {
		return op, mark{}, err
	}
	m = mark{nonce: hex.EncodeToString(nonce)}
	var before []string
	if inside, ok := s.inside(s.folder); ok {
		op.Cwd = inside
	} else if s.folder != "" {
		quoted, err := syntax.Quote(s.folder, syntax.LangBash)
		if err != nil {
			return op, m, err
		}
		before = append(before, "cd -- "+quoted+" || exit")
	}
	op.Env = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.now)) {
		if was, there := s.first[name]; (!there || was != s.now[name]) && !slices.Contains(unkept, name) {
			op.Env[name] = s.now[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.first)) {
		if _, there := s.now[name]; !there && !slices.Contains(unkept, name) {
			before = append(before, "unset -v "+name)
		}
	}
	if s.code != 0 {
		before = append(before, fmt.Sprintf("(exit %d)", s.code))
	}
	op.Command = strings.Join(append(before, line, m.telling()), "\n")
	return op, m, nil
}

// inside returns a folder as a path below the space's files, where it is there.
func (s *carried) inside(folder string) (string, bool) {
	if folder == s.top {
		return ".", true
	}
	inside, ok := strings.CutPrefix(folder, s.top+"/")
	return inside, ok && path.Clean(inside) == inside
}

// learn takes over the state that a line left. It names the parts that cannot be kept.
func (s *carried) learn(left leaving) (lost []string) {
	if s.top == "" {
		s.top, s.first = left.folder, left.exported
	}
	for _, name := range codecmd.Hidden {
		if value, set := s.now[name]; set && left.exported[name] == "" {
			left.exported[name] = value
		}
	}
	s.folder, s.now, s.code = left.folder, left.exported, left.code
	count, size := 0, 0
	for _, name := range slices.Sorted(maps.Keys(s.now)) {
		if was, there := s.first[name]; there && was == s.now[name] || slices.Contains(unkept, name) {
			continue
		}
		if count, size = count+1, size+len(name)+len(s.now[name]); count > run.MaxEnv || size > run.MaxEnvBytes {
			count, size = count-1, size-len(name)-len(s.now[name])
			lost = append(lost, name)
			delete(s.now, name)
		}
	}
	return lost
}

// leaving is the state that a line reports at its end.
type leaving struct {
	code     int
	folder   string
	exported map[string]string
}

// mark stands in front of the state that a line reports at its end. It is random, so files and programs from before the line cannot hold
// it. The zero mark belongs to a line that reports nothing.
//
// Programs of the line can read the mark and write it too. They gain nothing: a mark counts only if it stands once, as the
// last thing that the line prints, with the exit code that the daemon reports of the shell itself, and not by a shell that was killed.
type mark struct{ nonce string }

// separator begins and ends the report of a line.
const separator = "\x1e"

// telling is the command that prints the report. It ends with the exit code of the command before it.
func (m mark) telling() string {
	return `set -- "$?"; printf '\036` + m.nonce + ` %s\n' "$1"; printf 'here=%q\n' "$PWD"; export -p; printf '\036\n'; exit "$1"`
}

// split divides the bytes that a command printed: its own output, and the rest that may be the report. The rest begins at the mark, or at
// bytes that may become the mark.
func (m mark) split(printed []byte) (own, rest []byte) {
	if m.nonce == "" {
		return printed, nil
	}
	whole := []byte(separator + m.nonce + " ")
	if n := bytes.Index(printed, whole); n >= 0 {
		return printed[:n], printed[n:]
	}
	for n := max(0, len(printed)-len(whole)+1); n < len(printed); n++ {
		if bytes.HasPrefix(whole, printed[n:]) {
			return printed[:n], printed[n:]
		}
	}
	return printed, nil
}

// read reads the report behind the mark of a line that ended with that exit code. It finds none if another line could have written it.
func (m mark) read(rest []byte, code int) (left leaving, found bool) {
	said, ok := strings.CutPrefix(string(rest), separator+m.nonce+" ")
	if !ok || m.nonce == "" || strings.Contains(said, m.nonce) {
		return left, false
	}
	said, ok = strings.CutSuffix(said, "\n"+separator+"\n")
	status, said, _ := strings.Cut(said, "\n")
	if ok = ok && !strings.Contains(said, separator); !ok {
		return left, false
	}
	n, err := strconv.Atoi(status)
	if err != nil || n != code || code < 0 || code > 128 {
		return left, false
	}
	left = leaving{code: n, exported: map[string]string{}}
	if err := left.parse(said); err != nil {
		return left, false
	}
	return left, path.IsAbs(left.folder)
}

// parse reads a script of assignments and declarations without running anything.
func (l *leaving) parse(script string) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return err
	}
	for _, statement := range file.Stmts {
		var set []*syntax.Assign
		switch c := statement.Cmd.(type) {
		case *syntax.CallExpr:
			set = c.Assigns
			if len(c.Args) > 0 || len(set) != 1 || set[0].Name.Value != "here" {
				return fmt.Errorf("no assignment at %s", statement.Pos())
			}
		case *syntax.DeclClause:
			set = c.Args
		default:
			return fmt.Errorf("no declaration at %s", statement.Pos())
		}
		for _, a := range set {
			if a.Name == nil || a.Value == nil {
				continue // an option, or a variable without a value
			}
			value, err := literal(a.Value)
			if err != nil {
				return err
			}
			if _, declared := statement.Cmd.(*syntax.DeclClause); declared {
				l.exported[a.Name.Value] = value
			} else {
				l.folder = value
			}
		}
	}
	return nil
}

// literal is the text of a word in which nothing is expanded.
func literal(w *syntax.Word) (string, error) {
	plain := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case nil, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		default:
			plain = false
		}
		return plain
	})
	if !plain {
		return "", fmt.Errorf("an expansion at %s", w.Pos())
	}
	var b strings.Builder
	for _, part := range w.Parts {
		if text, bare := part.(*syntax.Lit); bare {
			b.WriteString(unescaped(text.Value))
			continue
		}
		text, err := expand.Literal(&expand.Config{Env: expand.FuncEnviron(func(string) string { return "" })},
			&syntax.Word{Parts: []syntax.WordPart{part}})
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// unescaped is a text without the backslashes that stand for nothing but what follows them.
func unescaped(text string) string {
	var b strings.Builder
	escaped := false
	for _, c := range text {
		if escaped = c == '\\' && !escaped; !escaped {
			b.WriteRune(c)
		}
	}
	return b.String()
}
