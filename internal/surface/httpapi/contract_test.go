package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract holds answers against the committed API document, with a reader of JSON Schema that is not the program's own.
type contract struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
	patterns []pathPattern
}

// pathPattern is an operation of the document.
type pathPattern struct {
	method, path string
	form         *regexp.Regexp
	answers      map[string]answerDoc
}

type answerDoc struct {
	Ref     string                     `json:"$ref"`
	Content map[string]json.RawMessage `json:"content"`
}

var readContract = sync.OnceValues(func() (*contract, error) {
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		return nil, err
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := &contract{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]answerDoc `json:"responses"`
		} `json:"paths"`
	}
	if err := errors.Join(c.compiler.AddResource("openapi.json", whole), json.Unmarshal(raw, &document)); err != nil {
		return nil, err
	}
	for path, methods := range document.Paths {
		form := strings.ReplaceAll(regexp.QuoteMeta(path), `\{path\}`, `.+`)
		form = regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(form, `[^/]+`)
		for method, op := range methods {
			c.patterns = append(c.patterns, pathPattern{strings.ToUpper(method), path, regexp.MustCompile("^" + form + "$"), op.Responses})
		}
	}
	return c, nil
})

// operation finds the operation of a request: of those whose path matches, that with the fewest parameters.
func (c *contract) operation(method, path string) (found pathPattern, ok bool) {
	for _, p := range c.patterns {
		if p.method == method && p.form.MatchString(path) && (!ok || strings.Count(p.path, "{") < strings.Count(found.path, "{")) {
			found, ok = p, true
		}
	}
	return found, ok
}

// schema compiles a schema of the document, by its JSON pointer.
func (c *contract) schema(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiled[pointer] == nil {
		s, err := c.compiler.Compile("openapi.json#" + pointer)
		if err != nil {
			return nil, err
		}
		c.compiled[pointer] = s
	}
	return c.compiled[pointer], nil
}

// holds checks an answer against what the document says that its operation answers.
func holds(t *testing.T, method, path string, resp *http.Response, raw []byte) {
	t.Helper()
	if method == http.MethodHead {
		method = http.MethodGet
	}
	c, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && len(raw) > 0 {
		t.Errorf("%s %s: an answer of no media type: %v", method, path, err)
		return
	}
	path, _, _ = strings.Cut(path, "?")
	op, known := c.operation(method, path)
	if !known {
		if resp.StatusCode < 400 && !strings.HasSuffix(path, "openapi.json") && path != "/v1/docs" {
			t.Errorf("%s %s: %d of an operation that the document does not have", method, path, resp.StatusCode)
		}
		return
	}
	status := strconv.Itoa(resp.StatusCode)
	if _, said := op.answers[status]; !said {
		if status = "default"; resp.StatusCode < 400 {
			if resp.StatusCode != http.StatusPartialContent && resp.StatusCode != http.StatusNotModified {
				t.Errorf("%s %s answers %d, which the document does not say", method, op.path, resp.StatusCode)
			}
			return
		}
	}
	if len(raw) == 0 {
		return
	}
	answer, at := op.answers[status], "/paths/"+escaped(op.path)+"/"+strings.ToLower(method)+"/responses/"+status
	if name, isRef := strings.CutPrefix(answer.Ref, "#/components/responses/"); isRef {
		at = "/components/responses/" + name
		answer.Content = map[string]json.RawMessage{"application/problem+json": nil}
	}
	if _, said := answer.Content[media]; !said {
		t.Errorf("%s %s answers %d with %s, which the document does not say", method, op.path, resp.StatusCode, media)
		return
	}
	var value any
	switch {
	case media == "text/event-stream":
		value = framesOf(t, raw)
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(raw)); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return
		}
	default:
		return
	}
	schema, err := c.schema(at + "/content/" + escaped(media) + "/schema")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s %s answers %d otherwise than the document says: %v\n%.2000s", method, op.path, resp.StatusCode, err, raw)
	}
}

// escaped writes a name as a part of a JSON pointer in a URL.
func escaped(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "+", "%2B").Replace(name)
}

// framesOf reads an event stream as the document describes it: a list of messages with their event, id and data.
func framesOf(t *testing.T, raw []byte) []any {
	t.Helper()
	frames := []any{}
	for text := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		frame := map[string]any{"event": "message"}
		data := ""
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				frame["id"] = json.Number(value)
			case "event":
				frame["event"] = value
			case "data":
				data += value
			}
		}
		if data != "" {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
			if err != nil {
				t.Errorf("a message of the stream holds no JSON: %v", err)
			}
			frame["data"] = value
		}
		if frame["id"] != nil {
			frames = append(frames, frame)
		}
	}
	return frames
}

// send sends a request and returns the answer and its body.
func (d *daemon) send(t *testing.T, r *http.Request) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, raw
}
