package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"agentbox/internal/surface/httpapi/apidoc"
)

// apiVersion is the version of the API, not of the daemon.
const apiVersion = "1.0"

// document is the API document: the operations that huma answers, and their types.
type document struct {
	begin     func() huma.API // makes it without operations
	described sync.Once
	owed      []func()         // what Describe does
	api       huma.API         // set by Describe
	forms     map[string]kinds // of the objects that have several
}

// later stores work that must be done before huma answers an operation, or the document is written. See Describe.
func (d *document) later(do func()) { d.owed = append(d.owed, do) }

// Describe registers the operations with huma, once. Reading their types takes longer than the rest of a start. So the first request that
// needs it does it, not the start of the daemon.
func (d *document) Describe() {
	d.described.Do(func() {
		d.api = d.begin()
		for _, do := range d.owed {
			do()
		}
		d.owed = nil
	})
}

func (d *document) schemas() huma.Registry { return d.api.OpenAPI().Components.Schemas }

// OpenAPI is the API document as served and as committed under api/: the same bytes for the same operations.
func (d *document) OpenAPI() []byte {
	d.Describe()
	open := *d.api.OpenAPI()
	components := *open.Components
	components.Schemas, components.Responses = d.schemasShown(), refusalsShown(d.schemas())
	open.Components = &components
	raw, err := json.Marshal(&open)
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

// Object documents a field as a JSON object, where its Go type only knows that it holds JSON.
func (d *document) Object(schema, field string) {
	d.later(func() {
		d.schemas().Map()[schema].Properties[field] = &huma.Schema{Type: "object", AdditionalProperties: true}
	})
}

// Finish adds the API document and its page, which describe every operation added before. Each is made at its first request, because that
// takes longer than all the rest of a server, and most daemons never get such a request.
func (s *Server) Finish() {
	s.later(func() {
		for _, unused := range []string{"ErrorModel", "ErrorDetail"} { // huma's own form of errors
			delete(s.schemas().Map(), unused)
		}
	})
	document := sync.OnceValue(s.OpenAPI)
	for _, op := range []Operation{
		{ID: "get-openapi", Method: http.MethodGet, Path: "/v1/openapi.json", Public: true},
		{ID: "get-openapi-root", Method: http.MethodGet, Path: "/openapi.json", Public: true},
	} {
		s.plain(op, "application/json", "", document)
	}
	page := sync.OnceValue(func() []byte {
		s.Describe()
		return apidoc.Page(s.api.OpenAPI(), s.Tags)
	})
	s.plain(Operation{ID: "get-docs", Method: http.MethodGet, Path: "/v1/docs", Public: true}, "text/html; charset=utf-8", apidoc.Policy(),
		page)
}

// plain serves bytes that never change and that the API document does not list.
func (s *Server) plain(op Operation, contentType, csp string, written func() []byte) {
	s.admitRoute(op, nil).answer = func(w http.ResponseWriter, r *http.Request) {
		body := written()
		if csp != "" {
			w.Header().Set("Content-Security-Policy", csp)
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // the reader has gone
	}
}
