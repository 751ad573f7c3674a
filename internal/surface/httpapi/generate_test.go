package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/surface/httpapi"
	"agentbox/internal/surface/httpapi/wire"
)

// testConfig is a server's configuration with real time and one key that nobody knows.
func testConfig() wire.Config {
	return wire.Config{
		Authenticate: func(context.Context, string) (principal.Caller, error) {
			return principal.Caller{}, fault.New(fault.Denied, "key_unknown", "there is no such key")
		},
		Clock: realClock{}, IDs: id.NewSource(time.Now, rand.Reader), Log: slog.New(slog.DiscardHandler),
	}
}

// realClock tells the real time; the deadlines of a server are those of real connections.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

var update = flag.Bool("update", false, "write the generated files under api/ anew")

const root = "../../.."

// TestOpenAPIIsTheCommittedOne keeps api/openapi.json what the operations are; `make generate` rewrites it.
func TestOpenAPIIsTheCommittedOne(t *testing.T) {
	s := httpapi.New(wire.Config{}, httpapi.Services{}, "")
	same(t, "openapi.json", s.OpenAPI())
	if again := httpapi.New(wire.Config{}, httpapi.Services{}, "").OpenAPI(); !bytes.Equal(again, s.OpenAPI()) {
		t.Error("two servers of the same operations write different documents")
	}
}

// TestErrorsAreTheCommittedOnes keeps api/errors.json the list of every fault code that the code base makes, with its HTTP status.
func TestErrorsAreTheCommittedOnes(t *testing.T) {
	type entry struct {
		Code   string `json:"error"`
		Kind   string `json:"kind"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}
	seen := map[string]bool{}
	var found []entry
	for _, f := range faults(t) {
		key := f.code + " " + f.kind.String()
		if !seen[key] {
			seen[key] = true
			found = append(found, entry{f.code, f.kind.String(), wire.StatusOf(f.kind, f.code), f.msg})
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Kind, b.Kind)) })
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(found); err != nil {
		t.Fatal(err)
	}
	same(t, "errors.json", out.Bytes())
}

func same(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join(root, "api", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run make generate", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("api/%s is not what the code says; run make generate and read the difference", name)
	}
}

type found struct {
	kind      fault.Kind
	code, msg string
}

// faults finds every fault.New and fault.Wrap with a literal code, and every fault.New with a constant of the package policy as its code.
func faults(t *testing.T) []found {
	t.Helper()
	kinds := map[string]fault.Kind{}
	for k := fault.Internal; k <= fault.Unavailable; k++ {
		kinds[k.String()] = k
	}
	files := token.NewFileSet()
	consts := map[string]string{}
	var parsed []*ast.File
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) {
						if text, ok := literal(v.Values[i], nil); ok {
							consts[f.Name.Name+"."+name.Name] = text
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []found
	for _, f := range parsed {
		lookup := func(name string) (string, bool) {
			if !strings.Contains(name, ".") {
				name = f.Name.Name + "." + name
			}
			text, ok := consts[name]
			return text, ok
		}
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			args := c.Args
			switch name(c.Fun) {
			case "fault.New":
			case "fault.Wrap":
				args = args[1:]
			default:
				return true
			}
			kind, known := kinds[snake(strings.TrimPrefix(name(args[0]), "fault."))]
			code, literalCode := literal(args[1], lookup)
			if known && literalCode {
				msg, _ := literal(args[2], lookup)
				all = append(all, found{kind, code, msg})
			}
			return true
		})
	}
	if len(all) < 30 {
		t.Fatalf("found %d faults; the search is broken", len(all))
	}
	return all
}

func literal(e ast.Expr, lookup func(string) (string, bool)) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, okA := literal(e.X, lookup)
		b, okB := literal(e.Y, lookup)
		return a + b, okA && okB
	case *ast.Ident, *ast.SelectorExpr:
		if lookup != nil {
			return lookup(name(e))
		}
	}
	return "", false
}

func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return name(e.X) + "." + e.Sel.Name
	}
	return ""
}

func snake(word string) string {
	var out strings.Builder
	for i, c := range word {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				out.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		out.WriteRune(c)
	}
	return out.String()
}

// TestTheDocsLoadNothing keeps the docs one self-contained page.
func TestTheDocsLoadNothing(t *testing.T) {
	resp := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://localhost/v1/docs", nil)
	httpapi.New(testConfig(), httpapi.Services{}, "").ServeHTTP(resp, r)
	page := resp.Body.String()
	for _, word := range []string{"http://", "https://", "src=", "<script", "<link", "@import", "url("} {
		if strings.Contains(page, word) {
			t.Errorf("the page holds %q", word)
		}
	}
	for _, op := range []string{"/v1/spaces/{space_id}/runs", "policy_overrides", "Last-Event-ID", "If-None-Match"} {
		if !strings.Contains(page, op) {
			t.Errorf("the page does not tell about %q", op)
		}
	}
}

// TestEveryOperationRefusesAStranger asks every documented operation without a key.
func TestEveryOperationRefusesAStranger(t *testing.T) {
	config := testConfig()
	config.Rates = wire.DefaultRates()
	config.Rates.Failures = 1000
	s := httpapi.New(config, httpapi.Services{}, "")
	var document struct {
		Paths map[string]map[string]struct {
			Security []map[string][]string `json:"security"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(s.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for path, methods := range document.Paths {
		for method, op := range methods {
			if len(op.Security) == 0 {
				if path != "/healthz" && path != "/readyz" && path != "/v1/auth/bootstrap-owner" && path != "/v1/auth/login" &&
					path != "/v1/auth/refresh" {
					t.Errorf("%s %s needs no key", method, path)
				}
				continue
			}
			for _, key := range []string{"", "Bearer wrong", "Basic good"} {
				resp := httptest.NewRecorder()
				r := httptest.NewRequest(strings.ToUpper(method), "http://localhost"+strings.NewReplacer("{", "", "}", "").Replace(path),
					strings.NewReader(`{}`))
				r.Header.Set("Authorization", key)
				s.ServeHTTP(resp, r)
				if got := resp.Body.String(); resp.Code != 401 || !strings.Contains(got, `"error":"unauthenticated"`) {
					t.Errorf("%s %s with %q: %d %s", method, path, key, resp.Code, got)
				}
				asked++
			}
		}
	}
	if asked < 60 {
		t.Errorf("asked %d times; the document is too small", asked)
	}
}
