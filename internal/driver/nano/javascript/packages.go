package javascript

import (
	"encoding/json"
	"errors"
	"path"
	"strings"

	"agentbox/internal/userland/vfs"
)

// manifest is a package.json.
type manifest struct {
	Type    string          `json:"type"`
	Main    string          `json:"main"`
	Module  string          `json:"module"`
	Exports json.RawMessage `json:"exports"`
}

func (ms modules) manifest(folder string) (m manifest, ok bool) {
	text, err := ms.read(path.Join(folder, "package.json"))
	if err != nil {
		return m, false
	}
	return m, json.Unmarshal([]byte(text), &m) == nil
}

// packageType returns the type of the package in which a file lies.
func (ms modules) packageType(file string) string {
	if !path.IsAbs(file) {
		return ""
	}
	for folder := path.Dir(file); ; folder = path.Dir(folder) {
		if m, ok := ms.manifest(folder); ok {
			return m.Type
		}
		if folder == "/" || path.Base(folder) == "node_modules" {
			return ""
		}
	}
}

// inPackages looks for a package in the folders node_modules from a folder up.
func (ms modules) inPackages(folder, specifier string, isImport bool) (string, bool) {
	name := packageName(specifier)
	inner := "." + strings.TrimPrefix(specifier, name)
	for {
		home := path.Join(folder, "node_modules", name)
		if ms.kind(home) == vfs.Directory {
			m, ok := ms.manifest(home)
			if ok && len(m.Exports) > 0 {
				if target, ok := exported(m.Exports, inner, isImport); ok {
					return ms.find(path.Join(home, target))
				}
			}
			if inner == "." && isImport && m.Module != "" {
				if found, ok := ms.find(path.Join(home, m.Module)); ok {
					return found, true
				}
			}
			if found, ok := ms.find(path.Join(home, inner)); ok {
				return found, true
			}
		}
		if folder == "/" {
			return "", false
		}
		folder = path.Dir(folder)
	}
}

// exported finds the file that a package exports under a path.
func exported(exports json.RawMessage, inner string, isImport bool) (string, bool) {
	var text string
	if json.Unmarshal(exports, &text) == nil {
		return text, inner == "."
	}
	var list []json.RawMessage
	if json.Unmarshal(exports, &list) == nil {
		for _, e := range list {
			if found, ok := exported(e, inner, isImport); ok {
				return found, true
			}
		}
		return "", false
	}
	keys, values, err := ordered(exports)
	if err != nil || len(keys) == 0 {
		return "", false
	}
	if !strings.HasPrefix(keys[0], ".") {
		for i, k := range keys {
			if k == "default" || k == "node" || k == "import" && isImport || k == "require" && !isImport {
				if found, ok := exported(values[i], inner, isImport); ok {
					return found, true
				}
			}
		}
		return "", false
	}
	for i, k := range keys {
		if k == inner {
			return exported(values[i], ".", isImport)
		}
	}
	for i, k := range keys {
		before, after, ok := strings.Cut(k, "*")
		if ok && len(inner) >= len(before)+len(after) && strings.HasPrefix(inner, before) && strings.HasSuffix(inner, after) {
			if target, ok := exported(values[i], ".", isImport); ok {
				return strings.ReplaceAll(target, "*", inner[len(before):len(inner)-len(after)]), true
			}
		}
	}
	return "", false
}

// ordered returns the members of an object in the order in which they are written, which decides.
func ordered(raw json.RawMessage) (keys []string, values []json.RawMessage, err error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.Join(err, errors.New("no object"))
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, nil, err
		}
		keys, values = append(keys, t.(string)), append(values, v)
	}
	return keys, values, nil
}
