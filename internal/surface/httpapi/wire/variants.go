package wire

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Variant is one of several forms of an object. The value of one field distinguishes them.
type Variant struct {
	Value    string   // of that field
	Doc      string   // the purpose of the form
	Required []string // the fields that it always has, besides the distinguishing one
	Optional []string // those that it may have
}

// Frame is one of the messages of an event stream.
type Frame struct {
	Event string // its name; message is the name of one that bears none
	Doc   string
	Data  any  // a value of the type of its data
	Empty bool // it may come without data
	Drop  bool // its data may have been redacted
}

// Discriminate documents an object as one of several forms. It affects only the document: the Go type and its reader decide which forms are
// accepted and sent.
func (d *document) Discriminate(schema, field string, forms []Variant) {
	if d.forms == nil {
		d.forms = map[string]kinds{}
	}
	d.forms[schema] = kinds{field, forms}
}

// Example documents a body that the operation takes.
func (d *document) Example(operation string, body json.RawMessage) {
	d.later(func() { d.example(operation, body) })
}

func (d *document) example(operation string, body json.RawMessage) {
	for _, item := range d.api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
			if op != nil && op.OperationID == operation && op.RequestBody != nil {
				op.RequestBody.Content["application/json"].Example = body
				return
			}
		}
	}
	panic("httpapi: no operation " + operation + " takes a body of which there could be an example")
}

// kinds are the forms of an object.
type kinds struct {
	field string
	forms []Variant
}

const inSchemas = "#/components/schemas/"

// schemasShown returns the schemas of the document. Objects with several forms are replaced by their forms.
func (d *document) schemasShown() huma.Registry {
	shown := maps.Clone(d.schemas().Map())
	for name, schema := range shown {
		if once := slices.Compact(slices.Sorted(slices.Values(schema.Required))); len(once) < len(schema.Required) {
			// fields that embedded types share
			copied := *schema
			copied.Required = once
			shown[name] = &copied
		}
	}
	for name, f := range d.forms {
		flat := shown[name]
		one := &huma.Schema{Description: flat.Description, Discriminator: &huma.Discriminator{PropertyName: f.field,
			Mapping: map[string]string{}}}
		for _, form := range f.forms {
			own := name + strings.ToUpper(form.Value[:1]) + form.Value[1:]
			properties := map[string]*huma.Schema{f.field: {Type: huma.TypeString, Enum: []any{form.Value}}}
			for _, field := range slices.Concat(form.Required, form.Optional) {
				if flat.Properties[field] == nil {
					panic("httpapi: " + name + " has no field " + field)
				}
				properties[field] = flat.Properties[field]
			}
			shown[own] = &huma.Schema{
				Type: huma.TypeObject, Description: form.Doc, Properties: properties, Required: append([]string{f.field}, form.Required...),
				AdditionalProperties: false,
			}
			one.OneOf = append(one.OneOf, &huma.Schema{Ref: inSchemas + own})
			one.Discriminator.Mapping[form.Value] = inSchemas + own
		}
		shown[name] = one
	}
	return overlay{d.schemas(), shown}
}

// overlay is a registry that writes other schemas.
type overlay struct {
	huma.Registry
	shown map[string]*huma.Schema
}

// MarshalJSON implements json.Marshaler.
func (o overlay) MarshalJSON() ([]byte, error) { return json.Marshal(o.shown) }

// framesOf documents the messages of an event stream: the schema of a list of them, distinguished by the name of the event.
func framesOf(schemas huma.Registry, operation string, frames []Frame) *huma.Schema {
	base := ""
	for word := range strings.SplitSeq(operation, "-") {
		base += strings.ToUpper(word[:1]) + word[1:]
	}
	one := &huma.Schema{Discriminator: &huma.Discriminator{PropertyName: "event", Mapping: map[string]string{}}}
	for _, f := range frames {
		name := base + strings.ToUpper(f.Event[:1]) + f.Event[1:]
		data := schemas.Schema(reflect.TypeOf(f.Data), true, "")
		if f.Drop {
			data = &huma.Schema{AnyOf: []*huma.Schema{data, schemas.Schema(reflect.TypeFor[Dropped](), true, "")}}
		}
		frame := &huma.Schema{
			Type: huma.TypeObject, Description: f.Doc, Required: []string{"event", "id"}, AdditionalProperties: false,
			Properties: map[string]*huma.Schema{
				"event": {Type: huma.TypeString, Enum: []any{f.Event}},
				"id":    {Type: huma.TypeInteger, Format: "int64", Description: "The place in the stream; what is sent back as Last-Event-ID"},
				"data":  data,
			},
		}
		if !f.Empty {
			frame.Required = append(frame.Required, "data")
		}
		schemas.Map()[name] = frame
		one.OneOf = append(one.OneOf, &huma.Schema{Ref: inSchemas + name})
		one.Discriminator.Mapping[f.Event] = inSchemas + name
	}
	schemas.Map()[base+"Frame"] = one
	return &huma.Schema{
		Type: huma.TypeArray, Items: &huma.Schema{Ref: inSchemas + base + "Frame"},
		Description: "The messages of the event stream, in order. `event` is the name of the message, which is message where it bears none; " +
			"`data` is the JSON of its data.",
	}
}

// Dropped replaces redacted data.
type Dropped struct {
	Redacted bool `json:"redacted" enum:"true" doc:"The data were redacted"`
}

// refusals are the error statuses of operations, with the codes that any operation may have. errors.json lists all codes.
var refusals = map[int]string{
	http.StatusBadRequest: "The request is not accepted: invalid_json, unknown_field, missing_field, invalid_field, " +
		"invalid_parameter, ...",
	http.StatusUnauthorized: "The credential opens nothing: unauthenticated, or a code of engines' tokens",
	http.StatusForbidden:    "The caller may not: role_too_low, no_policy_allows, capability_scope_*, ...",
	http.StatusNotFound:     "It is not there, or not yours: a code that ends in _not_found",
	http.StatusConflict: "It clashes with the present state: version_conflict, idempotency_conflict, ...; or a person has to " +
		"decide: approval_required",
	http.StatusRequestEntityTooLarge: "The body is too large: body_too_large, ...",
	http.StatusUnsupportedMediaType:  "The body is of another media type: unsupported_media_type",
	http.StatusTooManyRequests:       "A limit is used up: rate_limited, quota_exceeded, ...",
	http.StatusServiceUnavailable:    "It cannot be had now: starting, busy, log_unavailable, ...",
}

// refusalsShown returns the error responses of the document.
func refusalsShown(schemas huma.Registry) map[string]*huma.Response {
	shown := map[string]*huma.Response{}
	for status, says := range refusals {
		shown[refusal(status)] = &huma.Response{
			Description: says, Content: map[string]*huma.MediaType{problemType: {Schema: schemas.Schema(reflect.TypeFor[Problem](), true, "")}},
		}
	}
	return shown
}

// refusal returns the name of an error response.
func refusal(status int) string { return "Problem" + strconv.Itoa(status) }

// refuses adds the error statuses of an operation to its responses.
func (op Operation) refuses(responses map[string]*huma.Response) {
	add := func(statuses ...int) {
		for _, status := range statuses {
			if responses[strconv.Itoa(status)] == nil {
				responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + refusal(status)}
			}
		}
	}
	add(http.StatusBadRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	if !op.Public {
		add(http.StatusUnauthorized, http.StatusForbidden)
	}
	if strings.Contains(op.Path, "{") {
		add(http.StatusNotFound)
	}
	if op.Method != http.MethodGet {
		add(http.StatusConflict)
	}
	if op.Method == http.MethodPost || op.Method == http.MethodPut || op.Method == http.MethodPatch {
		add(http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
}
