package blueprint

import "encoding/json"

// Schema returns the JSON Schema (draft 2020-12) of a blueprint, for editors.
func Schema() ([]byte, error) {
	s := object(Fields())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Agentbox blueprint"
	return json.MarshalIndent(s, "", "  ")
}

type schema = map[string]any

func object(fields []Field) schema {
	properties, required := schema{}, []string{}
	for _, f := range fields {
		properties[f.Name] = f.schema()
		if f.Need {
			required = append(required, f.Name)
		}
	}
	s := schema{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func (f Field) schema() schema {
	s := schema{}
	switch f.Type {
	case Object:
		s = object(f.Fields)
	case Text:
		s = f.text(f.Max)
	case Money:
		s = schema{"oneOf": []schema{{"type": "string", "pattern": f.Pattern.String()}, {"type": "number", "minimum": 0}}}
	case Number:
		s = schema{"type": "integer", "minimum": f.Min, "maximum": f.Max}
	case Truth:
		s = schema{"type": "boolean"}
	case List:
		s = schema{"type": "array", "items": f.text(f.Each), "uniqueItems": !f.Repeats}
		bound(s, "maxItems", f.Max)
	case Table:
		s = schema{"type": "object", "additionalProperties": f.text(f.Each)}
		if f.Keys != nil {
			s["propertyNames"] = schema{"pattern": f.Keys.String()}
		}
		bound(s, "maxProperties", f.Max)
	}
	s["description"] = f.Doc
	return s
}

// text is the schema of one text. JSON Schema counts characters where a blueprint counts bytes, so it refuses a little less.
func (f Field) text(longest int) schema {
	s := schema{"type": "string"}
	if f.Enum != nil {
		s["enum"] = f.Enum
	}
	if f.Pattern != nil {
		s["pattern"] = f.Pattern.String()
	}
	bound(s, "maxLength", longest)
	return s
}

func bound(s schema, word string, limit int) {
	if limit > 0 {
		s[word] = limit
	}
}
