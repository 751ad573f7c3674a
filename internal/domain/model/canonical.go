package model

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// Canonical returns the request as RFC 8785 canonical JSON. It refuses text that is not UTF-8, because JSON would fold it. It writes the
// bytes by hand, because every step of an agent hashes its whole conversation, and a test holds it to the library. The rare request with a
// temperature takes the library's way.
func (r Request) Canonical() ([]byte, error) {
	size := 1024
	for _, text := range r.texts() {
		if !utf8.ValidString(text) {
			return nil, policy.ErrNotText
		}
		size += len(text) + len(text)/16 + 64
	}
	if !r.isPlain() {
		return r.canonicalSlow()
	}
	return r.canonicalFast(make([]byte, 0, size))
}

// canonicalSlow is what Canonical means.
func (r Request) canonicalSlow() ([]byte, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "model_request_invalid", "the request to the model cannot be written as JSON")
	}
	return policy.Canonicalize(raw)
}

// isPlain reports whether canonicalFast writes the request as the library does: its numbers are small integers, its lists are there, and
// its names are UTF-8.
func (r Request) isPlain() bool {
	plain := r.Temperature == nil && r.MaxTokens>>52 == 0 && r.Messages != nil && utf8.ValidString(string(r.Effort))
	for _, t := range r.Tools {
		plain = plain && len(t.Schema) > 0
	}
	for _, m := range r.Messages {
		plain = plain && m.Parts != nil && utf8.ValidString(string(m.Role))
		for _, p := range m.Parts {
			plain = plain && utf8.ValidString(string(p.Type))
			if p.Image != nil {
				plain = plain && p.Image.isPlain()
			}
			if p.Reasoning != nil {
				plain = plain && utf8.ValidString(p.Reasoning.Dialect)
			}
			if p.Result != nil {
				for _, i := range p.Result.Images {
					plain = plain && i.isPlain()
				}
			}
		}
	}
	return plain
}

func (i Image) isPlain() bool { return i.Data != nil && utf8.ValidString(i.MediaType) }

// canonicalFast appends the fields in the order of their names.
func (r Request) canonicalFast(b []byte) ([]byte, error) {
	var err error
	b = append(b, '{')
	b = member(b, `"cache_key":`, r.CacheKey)
	b = member(b, `"effort":`, string(r.Effort))
	if r.MaxTokens != 0 {
		b = strconv.AppendInt(append(comma(b), `"max_tokens":`...), int64(r.MaxTokens), 10)
	}
	b = append(comma(b), `"messages":[`...)
	for _, m := range r.Messages {
		b = append(comma(b), `{"parts":[`...)
		for _, p := range m.Parts {
			b = append(p.canonical(append(comma(b), '{')), '}')
		}
		b = append(member(append(b, ']'), `"role":`, m.Role, true), '}')
	}
	b = append(b, ']')
	if len(r.Schema) > 0 {
		if b, err = schema(append(comma(b), `"schema":`...), r.Schema); err != nil {
			return nil, err
		}
	}
	if len(r.Tools) > 0 {
		b = append(comma(b), `"tools":[`...)
		for _, t := range r.Tools {
			b = member(append(comma(b), '{'), `"description":`, t.Description)
			b = append(member(b, `"name":`, t.Name, true), `,"schema":`...)
			if b, err = t.appendSchema(b); err != nil {
				return nil, err
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	return append(b, '}'), nil
}

func (p Part) canonical(b []byte) []byte {
	if p.Cache {
		b = append(b, `"cache":true`...)
	}
	if p.Image != nil {
		b = p.Image.canonical(append(comma(b), `"image":`...))
	}
	if p.Reasoning != nil {
		b = member(append(comma(b), `"reasoning":{`...), `"dialect":`, p.Reasoning.Dialect, true)
		b = append(member(member(b, `"opaque":`, p.Reasoning.Opaque), `"text":`, p.Reasoning.Text), '}')
	}
	b = member(b, `"text":`, p.Text)
	if c := p.Call; c != nil {
		b = member(append(comma(b), `"tool_call":{`...), `"arguments":`, c.Arguments, true)
		b = append(member(member(b, `"id":`, c.ID, true), `"name":`, c.Name, true), '}')
	}
	if t := p.Result; t != nil {
		b = append(comma(b), `"tool_result":{`...)
		if t.Failed {
			b = append(b, `"failed":true`...)
		}
		b = member(b, `"id":`, t.ID, true)
		if len(t.Images) > 0 {
			b = append(b, `,"images":[`...)
			for _, i := range t.Images {
				b = i.canonical(comma(b))
			}
			b = append(b, ']')
		}
		b = append(member(b, `"text":`, t.Text), '}')
	}
	return member(b, `"type":`, p.Type, true)
}

func (i Image) canonical(b []byte) []byte {
	b = base64.StdEncoding.AppendEncode(append(b, `{"data":"`...), i.Data)
	return append(member(append(b, '"'), `"media_type":`, i.MediaType, true), '}')
}

// schema appends the canonical form of a JSON Schema.
func schema(b []byte, raw json.RawMessage) ([]byte, error) {
	canonical, err := policy.Canonicalize(raw)
	return append(b, canonical...), err
}

// Prepared returns the tool with the canonical form of its schema, for a tool of many requests: the library needs longer for the schemas
// than all else in a request takes.
func (t Tool) Prepared() Tool {
	if canonical, err := policy.Canonicalize(t.Schema); err == nil {
		t.prepared = prepared{schema: string(t.Schema), canonical: string(canonical)}
	}
	return t
}

// prepared is a schema and its canonical form.
type prepared struct{ schema, canonical string }

// appendSchema appends the canonical form of the tool's schema.
func (t Tool) appendSchema(b []byte) ([]byte, error) {
	if t.prepared.canonical != "" && t.prepared.schema == string(t.Schema) { // else it has changed since
		return append(b, t.prepared.canonical...), nil
	}
	return schema(b, t.Schema)
}

// member appends a member of an object. An empty text is left out, unless `always` is given and true.
func member[T ~string](b []byte, name string, text T, always ...bool) []byte {
	if text == "" && len(always) == 0 {
		return b
	}
	return policy.AppendString(append(comma(b), name...), string(text))
}

// comma appends a comma behind a member or an element.
func comma(b []byte) []byte {
	if last := b[len(b)-1]; last == '{' || last == '[' {
		return b
	}
	return append(b, ',')
}
