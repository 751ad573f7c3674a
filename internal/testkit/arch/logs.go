package arch

import (
	"fmt"
	"go/ast"
	exact "go/constant"
	"go/types"
	"slices"
	"strings"
)

// LogLine is a line that the module can write to its own log.
type LogLine struct {
	Code    string // stable, snake_case
	Level   string // debug, info, warn or error
	Message string
	Package string // relative to the module
}

// levels are the methods of a logger that write a line at a level of their own, and the index of their message.
var levels = map[string]string{
	"Debug": "debug", "Info": "info", "Warn": "warn", "Error": "error",
	"DebugContext": "debug", "InfoContext": "info", "WarnContext": "warn", "ErrorContext": "error",
}

// Logs returns every line that the module writes with slog, in the order of their codes, and reports lines that have no code as a literal
// text, and codes that stand for two messages. Exempt are patterns of packages whose lines have their codes from a table of their own.
func Logs(m *Module, exempt []string) ([]LogLine, []Finding) {
	var lines []LogLine
	var found []Finding
	for _, p := range m.Packages {
		rel := m.Rel(p.PkgPath)
		if matchAny(exempt, rel) {
			continue
		}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				level, args, ok := logged(p.TypesInfo, call)
				if !ok {
					return true
				}
				line := LogLine{Level: level, Package: rel}
				if len(args) > 0 {
					line.Message = literal(p.TypesInfo, args[0])
					line.Code = code(p.TypesInfo, args[1:])
				}
				switch same := slices.IndexFunc(lines, func(l LogLine) bool { return l.Code == line.Code }); {
				case line.Code == "" || line.Message == "":
					found = append(found, Finding{"logs", m.at(call.Pos()),
						`a line of the log has a message and, first of all, a "code" with a stable word, both as literal texts`})
				case strings.Trim(line.Code, "abcdefghijklmnopqrstuvwxyz_") != "":
					found = append(found, Finding{"logs", m.at(call.Pos()), fmt.Sprintf("the code %q is not snake_case", line.Code)})
				case same >= 0 && (lines[same].Message != line.Message || lines[same].Package != rel):
					found = append(found, Finding{"logs", m.at(call.Pos()), fmt.Sprintf("the code %s stands for another line as well", line.Code)})
				case same < 0:
					lines = append(lines, line)
				}
				return true
			})
		}
	}
	slices.SortFunc(lines, func(a, b LogLine) int { return strings.Compare(a.Code, b.Code) })
	return lines, found
}

// logged reports whether a call writes a line of the log, at which level, and its arguments from the message on.
func logged(info *types.Info, call *ast.CallExpr) (level string, args []ast.Expr, ok bool) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", nil, false
	}
	method, ok := info.Uses[selector.Sel].(*types.Func)
	if !ok || method.Pkg() == nil || method.Pkg().Path() != "log/slog" {
		return "", nil, false
	}
	signature := method.Type().(*types.Signature)
	if receiver := signature.Recv(); receiver != nil && receiver.Type().String() != "*log/slog.Logger" {
		return "", nil, false
	}
	name := method.Name()
	switch level := levels[name]; {
	case name == "Log" || name == "LogAttrs":
		return strings.ToLower(strings.TrimPrefix(types.ExprString(call.Args[1]), "slog.Level")), call.Args[2:], true
	case level != "" && strings.HasSuffix(name, "Context"):
		return level, call.Args[1:], true
	case level != "":
		return level, call.Args, true
	}
	return "", nil, false
}

// code returns the text of the first attribute if it is called code: "code", "text" or slog.String("code", "text").
func code(info *types.Info, attributes []ast.Expr) string {
	if len(attributes) == 0 {
		return ""
	}
	if call, ok := attributes[0].(*ast.CallExpr); ok && types.ExprString(call.Fun) == "slog.String" {
		attributes = call.Args
	}
	if len(attributes) < 2 || literal(info, attributes[0]) != "code" {
		return ""
	}
	return literal(info, attributes[1])
}

// literal returns the value of a text that is constant.
func literal(info *types.Info, e ast.Expr) string {
	value := info.Types[e].Value
	if value == nil || value.Kind() != exact.String {
		return ""
	}
	return exact.StringVal(value)
}
