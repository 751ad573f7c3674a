package wire

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/httpapi/strictjson"
)

// route is the outer handler's knowledge of an operation before it runs.
type route struct {
	pattern   string // of the mux
	public    bool   // needs no key
	rate      RateClass
	repeat    Repeat
	needs     Needs
	engines   bool // open to the tokens of engines
	json      bool // the body, if any, is JSON
	needsBody bool
	shape     reflect.Type // of the JSON body
	maxBody   int64
	home      Home
	any       bool             // it takes every method, query and path
	waits     bool             // its context ends with the connection
	early     http.HandlerFunc // answers what takes nothing, before the operations are described; nil for one that takes something
	answer    http.HandlerFunc // set when the operations are described
}

// Operation is a row of the table of operations: its text in the API document, and its guards.
type Operation struct {
	ID, Method, Path string // the path as documented; {path} behind /files/ matches slashes too
	Tag              string
	Summary          string
	Detail           string
	Status           int // of success; 0 means 200
	Public           bool
	Rate             RateClass // "" means RateGeneral
	MaxBody          int64     // bytes of a JSON body; 0 means 1 MiB
	Needs            Needs     // the requirements on its caller
	Engines          bool      // it is open to engines, by their own tokens
	Repeat           Repeat    // how a repeated Idempotency-Key is met; every POST says it
	Home             Home      // which of several daemons answers it
	// it may take long: its context ends when the client closes its end, and Call.Lasting does not. A Stream is always so.
	Waits   bool
	Any     bool         // a Stream that takes every method and query; Method is the one that is documented
	Media   string       // of an answer that is not JSON
	Frames  []Frame      // of an event stream: its messages
	Answers map[int]any  // values of the types of further answers
	Reads   reflect.Type // the shape of the JSON body of a Stream operation, which finds it in Call.Body
}

func (op Operation) document(schemas huma.Registry) huma.Operation {
	d := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: op.Path, Tags: []string{op.Tag}, Summary: op.Summary, Description: op.Detail,
		DefaultStatus: op.Status, MaxBodyBytes: -1, BodyReadTimeout: -1, Security: []map[string][]string{{"key": {}}},
		Responses: map[string]*huma.Response{"default": {
			Description: "A problem document; `error` says which",
			Content:     map[string]*huma.MediaType{problemType: {Schema: schemas.Schema(reflect.TypeFor[Problem](), true, "")}},
		}},
	}
	if op.Needs.said() {
		d.Extensions = map[string]any{"x-needs": op.Needs}
	}
	if op.Engines {
		d.Security = append(d.Security, map[string][]string{"engine": {}, "engine_token": {}})
	}
	if op.Public {
		d.Security = []map[string][]string{}
	}
	if op.Media != "" {
		d.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{op.Media: {Schema: op.content(schemas)}}}
	}
	if len(op.Frames) > 0 {
		d.Responses["204"] = &huma.Response{Description: "Nothing more will come: the stream is complete behind the place that was asked for"}
	}
	for status, v := range op.Answers {
		d.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeOf(v), true, "")}},
		}
	}
	op.refuses(d.Responses)
	return d
}

// content is the schema of an answer that is not JSON.
func (op Operation) content(schemas huma.Registry) *huma.Schema {
	switch {
	case len(op.Frames) > 0:
		return framesOf(schemas, op.ID, op.Frames)
	case strings.HasPrefix(op.Media, "text/"):
		return &huma.Schema{Type: huma.TypeString}
	}
	return &huma.Schema{Type: huma.TypeString, Format: "binary"}
}

// adapter puts huma's operations into the server's routes.
type adapter struct{ s *Server }

func (a adapter) Handle(op *huma.Operation, handler func(huma.Context)) {
	a.s.routes[pattern(op.Method, op.Path)].answer = func(w http.ResponseWriter, r *http.Request) {
		handler(request{humago.NewContext(op, r, w)})
	}
}

func (a adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.s.ServeHTTP(w, r) }

// humaContext is named so because an embedded Context would hide the method of that name.
type humaContext huma.Context

// request is huma's view of a request. It answers with the API's own statuses: see ownStatus.
type request struct{ humaContext }

// SetStatus sends the status.
func (c request) SetStatus(status int) {
	c.humaContext.SetStatus(ownStatus(status))
}

func pattern(method, path string) string {
	for _, folder := range []string{"/files/", "/proxy/"} {
		path = strings.Replace(path, folder+"{path}", folder+"{path...}", 1)
	}
	if method == "" {
		return path
	}
	return method + " " + path
}

func (s *Server) admitRoute(op Operation, input reflect.Type) *route {
	method := op.Method
	if op.Any {
		method = ""
	}
	rt := &route{pattern: pattern(method, op.Path), any: op.Any, public: op.Public, rate: op.Rate, repeat: op.Repeat, needs: op.Needs,
		engines: op.Engines, maxBody: op.MaxBody, home: op.Home, waits: op.Waits || input == nil}
	if rt.rate == "" {
		rt.rate = RateGeneral
	}
	if rt.maxBody == 0 {
		rt.maxBody = maxBody
	}
	if op.Reads != nil {
		rt.json, rt.needsBody, rt.shape = true, true, op.Reads
	}
	if input != nil {
		rt.json = op.Method == http.MethodPost || op.Method == http.MethodPut || op.Method == http.MethodPatch
		rt.shape = reflect.TypeFor[struct{}]()
		if body, ok := input.FieldByName("Body"); ok {
			rt.shape = body.Type
			rt.needsBody = body.Type.Kind() != reflect.Pointer
		}
	}
	if op.Method == http.MethodPost && op.Repeat == "" {
		panic("httpapi: " + op.ID + " does not say how a repeat is met")
	}
	s.routes[rt.pattern] = rt
	s.mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) {
		if rt.early != nil && r.URL.RawQuery == "" && r.ContentLength == 0 { // else it is for huma to refuse it
			rt.early(w, r)
			return
		}
		s.Describe()
		rt.answer(w, r)
	})
	return rt
}

// Handle adds an operation whose request and answer are described by types: fields with path, query and header tags, and Body. Its context
// does not end with the connection, so that the handler finishes and records its work. Only the context of an operation that waits does.
func Handle[I, O any](s *Server, op Operation, do func(ctx context.Context, c Call, in *I) (*O, error)) {
	s.admitRoute(op, reflect.TypeFor[I]())
	s.later(func() {
		huma.Register(s.api, op.document(s.schemas()), func(ctx context.Context, in *I) (*O, error) {
			c := callOf(ctx)
			out, err := do(ctx, c, in)
			if err != nil {
				p := ProblemOf(err, c.Request)
				s.Note(c, p, err)
				return nil, p
			}
			return out, nil
		})
	})
}

// HandleOnce is Handle for an operation of RepeatRecalled. For a repeat it only calls recall, which finds what the first request made.
// For any other request it calls do. Show makes the answer of either.
func HandleOnce[I, D, O any](
	s *Server, op Operation, recall func(ctx context.Context, c Call) (D, error),
	do func(ctx context.Context, c Call, in *I) (D, error), show func(D) *O,
) {
	if op.Repeat != RepeatRecalled {
		panic("httpapi: " + op.ID + " recalls a repeat that the server does not look up")
	}
	Handle(s, op, func(ctx context.Context, c Call, in *I) (*O, error) {
		made, err := Once(c, func() (D, error) { return recall(ctx, c) }, func() (D, error) { return do(ctx, c, in) })
		if err != nil {
			return nil, err
		}
		return show(made), nil
	})
}

// Tell adds an operation that takes nothing, neither parameters nor a body, and is answered without a description of the others. O
// documents its answer.
func Tell[O any](s *Server, op Operation, do func(ctx context.Context) (status int, body O)) {
	type answer struct {
		Status int
		Body   O
	}
	Handle(s, op, func(ctx context.Context, _ Call, _ *struct{}) (*answer, error) {
		status, body := do(ctx)
		return &answer{cmp.Or(status, http.StatusOK), body}, nil
	})
	rt := s.routes[pattern(op.Method, op.Path)]
	rt.early = func(w http.ResponseWriter, r *http.Request) {
		status, body := do(r.Context())
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(cmp.Or(status, http.StatusOK))
		_ = huma.DefaultJSONFormat.Marshal(w, body) // the caller has gone
	}
}

// Stream adds an operation that reads or writes the connection itself. The input type only documents its parameters and body.
func Stream[I any](s *Server, op Operation, do func(w http.ResponseWriter, r *http.Request, c Call) error) {
	rt := s.admitRoute(op, nil)
	s.later(func() {
		document := described[I](s, op.document(s.schemas()))
		rt.answer = func(w http.ResponseWriter, r *http.Request) {
			c := callOf(r.Context())
			var err error
			if !op.Any {
				err = knownParameters(document, r)
			}
			if err == nil {
				err = do(w, r, c)
			}
			if err != nil {
				s.refuse(w, r, c, err)
			}
		}
	})
}

// knownParameters refuses a query parameter that the operation does not have, or that was sent twice.
func knownParameters(op *huma.Operation, r *http.Request) error {
	sent, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.New(fault.Invalid, "invalid_parameter", "the query cannot be read")
	}
	for name, values := range sent {
		if !slices.Contains(queryNames(op), name) {
			return unknownParameter(op, name)
		}
		if len(values) > 1 {
			return fault.New(fault.Invalid, "invalid_parameter", "the parameter %.64q stands twice", name)
		}
	}
	return nil
}

// described adds an operation to the document by way of a throw-away API that shares the schemas.
func described[I any](s *Server, op huma.Operation) *huma.Operation {
	open := s.api.OpenAPI()
	shadow := huma.NewAPI(huma.Config{OpenAPI: &huma.OpenAPI{Components: open.Components}}, nowhere{})
	responses := maps.Clone(op.Responses)
	huma.Register(shadow, op, func(context.Context, *I) (*struct{}, error) { return nil, nil })
	item := shadow.OpenAPI().Paths[op.Path]
	for _, known := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
		if known != nil {
			known.Responses = responses
			open.AddOperation(known)
			return known
		}
	}
	panic("httpapi: an operation has another method than GET, PUT, POST, DELETE and PATCH")
}

// nowhere is a router for operations that are only described.
type nowhere struct{}

func (nowhere) Handle(*huma.Operation, func(huma.Context))   {}
func (nowhere) ServeHTTP(http.ResponseWriter, *http.Request) {}

// apiConfig is how huma is set up: JSON only, no links into answers, and nothing served by itself.
func (s *Server) apiConfig() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Agentbox", Version: apiVersion, License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
				Description: "Runs AI agents that do real work without having to be trusted. Errors are problem documents (RFC 9457) with a stable " +
					"`error`.",
			},
			Servers: []*huma.Server{{
				URL: "http://{host}:{port}", Description: "A daemon as `agentbox up` starts it; it says its address",
				Variables: map[string]*huma.ServerVariable{"host": {Default: "127.0.0.1"}, "port": {Default: "7433"}},
			}},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"key": {Type: "http", Scheme: "bearer",
						Description: "An API key, the bearer of a capability token, or the access token of a session"},
					"engine": {Type: "apiKey", In: "header", Name: engineHeader,
						Description: "The id of an engine; or the field engine_id of the body"},
					"engine_token": {Type: "apiKey", In: "header", Name: engineTokenHeader,
						Description: "Its token; or the field engine_token of the body"},
				},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{s.sayProblem},
	}
}

// schemaName is the name of a type in the document: that of the glossary, with the noun it belongs to where the type itself is not a
// noun of the domain. So space.Space is Space, and run.Operation RunOperation.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	noun, ok := strings.CutPrefix(t.PkgPath(), "agentbox/internal/domain/")
	if !ok || t.Name() == "" {
		return name
	}
	noun = strings.ToUpper(noun[:1]) + noun[1:]
	return noun + strings.TrimPrefix(name, noun)
}

// sayProblem turns what huma found wrong with a request into a problem document.
func (s *Server) sayProblem(ctx huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	c := callOf(ctx.Context())
	if model.Status != http.StatusUnprocessableEntity && model.Status != http.StatusBadRequest || len(model.Errors) == 0 {
		err := ofRouter(model)
		p := ProblemOf(err, c.Request)
		s.Note(c, p, err)
		return p, nil
	}
	return ProblemOf(wrongField(ctx.Operation(), model.Errors[0]), c.Request), nil
}

// ofRouter words a refusal that the router gives by a status alone, so that the body and the answer have the same status.
func ofRouter(model *huma.ErrorModel) error {
	switch ownStatus(model.Status) {
	case http.StatusBadRequest:
		return fault.New(fault.Invalid, "invalid_request", "the request is not accepted: %s", model.Detail)
	case http.StatusRequestTimeout:
		return fault.New(fault.Invalid, "request_timeout", "the body did not arrive in time")
	case http.StatusRequestEntityTooLarge:
		return fault.New(fault.Exhausted, "body_too_large", "the body is too large")
	case http.StatusUnsupportedMediaType:
		return errMediaType
	}
	return fault.New(fault.Internal, "internal_error", "unexpected answer of the router: %s", model.Detail)
}

// ownStatus is the API's status for a status of the router. A status without a code in the API is the daemon's fault.
func ownStatus(status int) int {
	switch status {
	case http.StatusUnprocessableEntity:
		return http.StatusBadRequest
	case http.StatusNotAcceptable:
		return http.StatusInternalServerError
	}
	return status
}

// wrongField says what is wrong with the value of one field or parameter.
func wrongField(op *huma.Operation, d *huma.ErrorDetail) error {
	where, name, _ := strings.Cut(d.Location, ".")
	says := plainNumber(d.Message)
	if values, ok := strings.CutPrefix(says, "expected value to be one of "); ok {
		says = "it must be one of " + strings.Trim(values, `"`)
		switch name {
		case "decision":
			return fault.New(fault.Invalid, "invalid_decision", "the decision is not accepted: %s", says)
		case "status":
			return fault.New(fault.Invalid, "invalid_status", "the status is not accepted: %s", says)
		}
	}
	switch {
	case where == "body" && strings.HasPrefix(d.Message, "expected required property "):
		missing, _, _ := strings.Cut(strings.TrimPrefix(d.Message, "expected required property "), " ")
		return fault.New(fault.Invalid, "missing_field", "the field %q is missing", join(name, missing))
	case where == "body" && name == "":
		return fault.New(fault.Invalid, strictjson.CodeType, "the body is not accepted: %s", says)
	case where == "body":
		return fault.New(fault.Invalid, strictjson.CodeType, "the field %q is not accepted: %s", name, says)
	case d.Message == "unknown query parameter":
		return unknownParameter(op, name)
	case where == "query" && name == "cursor":
		return fault.New(fault.Invalid, "invalid_cursor", "the cursor is not one of this list; leave it out to begin at its top")
	}
	return fault.New(fault.Invalid, "invalid_parameter", "the %s parameter %.64q is not accepted: %s", where, name, says)
}

// plainNumber writes the number at the end of a message without an exponent.
func plainNumber(message string) string {
	at := strings.LastIndexByte(message, ' ') + 1
	n, err := strconv.ParseFloat(message[at:], 64)
	if err != nil || !strings.ContainsRune(message[at:], 'e') {
		return message
	}
	return message[:at] + strconv.FormatFloat(n, 'f', -1, 64)
}

func unknownParameter(op *huma.Operation, name string) error {
	e := fault.New(fault.Invalid, "unknown_parameter", "there is no parameter %.64q", name)
	known := queryNames(op)
	if near := strictjson.Nearest(name, known); near != "" {
		return e.With("did you mean " + near + "?")
	}
	if len(known) > 0 {
		return e.With("the parameters are " + strings.Join(known, ", "))
	}
	return e
}

func queryNames(op *huma.Operation) []string {
	var names []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	return names
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}
