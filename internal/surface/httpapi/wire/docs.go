package wire

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle string

// apiVersion is the version of the API, not of the daemon.
const apiVersion = "1.0"

// openDocument is the API document as served and as committed under api/: the same bytes for the same operations.
func (s *Server) openDocument() []byte {
	raw, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		panic(fmt.Sprintf("httpapi: write the API document: %v", err)) // it is made of the program's own types
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		panic(fmt.Sprintf("httpapi: write the API document: %v", err))
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// OpenAPI returns the API document.
func (s *Server) OpenAPI() []byte { return s.openDocument() }

// Finish adds the API document and its page, which tell about every operation that was added before.
func (s *Server) Finish() {
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} { // huma's own form of errors
		delete(s.schemas().Map(), unused)
	}
	document := s.openDocument()
	for _, op := range []Operation{
		{ID: "get-openapi", Method: http.MethodGet, Path: "/v1/openapi.json", Public: true},
		{ID: "get-openapi-root", Method: http.MethodGet, Path: "/openapi.json", Public: true},
	} {
		s.plain(op, "application/json", "", document)
	}
	style := sha256.Sum256([]byte(docsStyle))
	csp := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(style[:]) + "'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	s.plain(Operation{ID: "get-docs", Method: http.MethodGet, Path: "/v1/docs", Public: true}, "text/html; charset=utf-8", csp, s.docs())
}

// plain serves bytes that never change and that the API document does not list.
func (s *Server) plain(op Operation, contentType, csp string, body []byte) {
	s.admitRoute(op, nil)
	s.mux.HandleFunc(pattern(op.Method, op.Path), func(w http.ResponseWriter, r *http.Request) {
		if csp != "" {
			w.Header().Set("Content-Security-Policy", csp)
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // the reader has gone
	})
}

// docs renders the page of the API: one self-contained document that runs no script and loads nothing.
func (s *Server) docs() []byte {
	open := s.api.OpenAPI()
	type line struct{ Name, In, Type, Doc, Required string }
	type section struct {
		Method, Path, ID, Summary, Doc, Success string
		Open                                    bool
		Params, Body                            []line
	}
	type group struct {
		Name string
		Ops  []section
	}
	var groups []group
	for _, tag := range s.Tags {
		g := group{Name: tag}
		for path, item := range open.Paths {
			for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete} {
				if op == nil || !slices.Contains(op.Tags, tag) {
					continue
				}
				sec := section{Method: method, Path: path, ID: op.OperationID, Summary: op.Summary, Doc: op.Description, Open: len(op.Security) == 0}
				for _, p := range op.Parameters {
					sec.Params = append(sec.Params, line{p.Name, p.In, typeName(p.Schema), p.Description, required(p.Required)})
				}
				if op.RequestBody != nil {
					for _, media := range op.RequestBody.Content {
						fields := resolve(open, media.Schema)
						for _, name := range slices.Sorted(func(yield func(string) bool) {
							for name := range fields.Properties {
								if !yield(name) {
									return
								}
							}
						}) {
							f := fields.Properties[name]
							sec.Body = append(sec.Body, line{name, "body", typeName(f), f.Description, required(slices.Contains(fields.Required, name))})
						}
					}
				}
				var codes []string
				for code := range op.Responses {
					if code != "default" {
						codes = append(codes, code)
					}
				}
				slices.Sort(codes)
				sec.Success = strings.Join(codes, ", ")
				g.Ops = append(g.Ops, sec)
			}
		}
		slices.SortFunc(g.Ops, func(a, b section) int {
			return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
		})
		if len(g.Ops) > 0 {
			groups = append(groups, g)
		}
	}
	var out bytes.Buffer
	page := template.Must(template.New("docs").Parse(docsPage))
	if err := page.Execute(&out, map[string]any{"Groups": groups, "Style": template.CSS(docsStyle), "Version": apiVersion}); err != nil {
		panic(fmt.Sprintf("httpapi: render the docs: %v", err)) // the template is the program's own
	}
	return out.Bytes()
}

func resolve(open *huma.OpenAPI, s *huma.Schema) *huma.Schema {
	if s == nil {
		return &huma.Schema{}
	}
	if s.Ref != "" {
		return open.Components.Schemas.SchemaFromRef(s.Ref)
	}
	return s
}

func typeName(s *huma.Schema) string {
	switch {
	case s == nil:
		return "any"
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case s.Type == "array":
		return "list of " + typeName(s.Items)
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = fmt.Sprint(v)
		}
		return strings.Join(words, " | ")
	case s.Type == "":
		return "any"
	}
	return s.Type
}

func required(is bool) string {
	if is {
		return "required"
	}
	return ""
}
