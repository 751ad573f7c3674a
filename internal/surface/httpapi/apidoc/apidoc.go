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

// field is a row of a table: a parameter, or a field of a body or type.
type field struct {
	Name, In, Doc string
	Type          typ
	Required      bool
}

// typ is how a type is written, and the type of the document to which it links.
type typ struct{ Text, Link string }

// answer is one way an operation can end well.
type answer struct {
	Status string
	Type   typ
}

type section struct {
	Method, Path, ID, Summary, Doc string
	Open                           bool // needs no key
	Params, Body                   []field
	Answers                        []answer
}

type group struct {
	Name string
	Ops  []section
}

// named is a type of the document with its fields.
type named struct {
	Name   string
	Fields []field
}

// Page renders the page of an API, its operations grouped by tags.
func Page(open *huma.OpenAPI, tags []string) []byte {
	var groups []group
	for _, tag := range tags {
		if g := (group{tag, sections(open, tag)}); len(g.Ops) > 0 {
			groups = append(groups, g)
		}
	}
	schemas := open.Components.Schemas.Map()
	var types []named
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		types = append(types, named{name, fieldsOf(schemas[name])})
	}
	var out bytes.Buffer
	t := template.Must(template.New("docs").Parse(page))
	if err := t.Execute(&out, map[string]any{"Groups": groups, "Types": types, "Style": template.CSS(style),
		"Version": open.Info.Version}); err != nil {
		panic(fmt.Sprintf("apidoc: render the page: %v", err)) // the template is the program's own
	}
	return out.Bytes()
}

// Policy is the Content-Security-Policy that lets the page be shown.
func Policy() string {
	hash := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
}

// sections are the operations of a tag, by path and method.
func sections(open *huma.OpenAPI, tag string) []section {
	var found []section
	for path, item := range open.Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch,
			"DELETE": item.Delete} {
			if op != nil && slices.Contains(op.Tags, tag) {
				found = append(found, sectionOf(open, path, method, op))
			}
		}
	}
	slices.SortFunc(found, func(a, b section) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return found
}

func sectionOf(open *huma.OpenAPI, path, method string, op *huma.Operation) section {
	s := section{Method: method, Path: path, ID: op.OperationID, Summary: op.Summary, Doc: op.Description, Open: len(op.Security) == 0}
	for _, p := range op.Parameters {
		s.Params = append(s.Params, field{p.Name, p.In, p.Description, typeOf(p.Schema), p.Required})
	}
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content {
			s.Body = fieldsOf(resolve(open, media.Schema))
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		a := answer{Status: status}
		for name, media := range op.Responses[status].Content {
			if a.Type = typeOf(media.Schema); a.Type.Link == "" {
				a.Type.Text = name
			}
		}
		if status != "default" {
			s.Answers = append(s.Answers, a)
		}
	}
	return s
}

func fieldsOf(s *huma.Schema) []field {
	var fields []field
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		f := s.Properties[name]
		fields = append(fields, field{Name: name, Doc: f.Description, Type: typeOf(f), Required: slices.Contains(s.Required, name)})
	}
	return fields
}

func resolve(open *huma.OpenAPI, s *huma.Schema) *huma.Schema {
	switch {
	case s == nil:
		return &huma.Schema{}
	case s.Ref != "":
		return open.Components.Schemas.SchemaFromRef(s.Ref)
	}
	return s
}

func typeOf(s *huma.Schema) typ {
	switch {
	case s == nil || s.Ref == "" && s.Type == "":
		return typ{Text: "any"}
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return typ{name, name}
	case s.Type == huma.TypeArray:
		of := typeOf(s.Items)
		return typ{"list of " + of.Text, of.Link}
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = fmt.Sprint(v)
		}
		return typ{Text: strings.Join(words, " | ")}
	case s.Format != "" && s.Type == huma.TypeString:
		return typ{Text: s.Format}
	}
	return typ{Text: s.Type}
}
