// Package apidoc draws the page of an API from its document: one self-contained page that runs no script and loads nothing.
package apidoc

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed page.html
var page string

//go:embed page.css
var style string

// Page renders the page of an API, its operations grouped by tags, and says which Content-Security-Policy lets it be shown.
func Page(open *huma.OpenAPI, tags []string) (html []byte, csp string) {
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
	for _, tag := range tags {
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
						for _, name := range slices.Sorted(maps.Keys(fields.Properties)) {
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
	t := template.Must(template.New("docs").Parse(page))
	if err := t.Execute(&out, map[string]any{"Groups": groups, "Style": template.CSS(style), "Version": open.Info.Version}); err != nil {
		panic(fmt.Sprintf("apidoc: render the page: %v", err)) // the template is the program's own
	}
	hash := sha256.Sum256([]byte(style))
	return out.Bytes(), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
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
