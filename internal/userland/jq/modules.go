package jq

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// maxModules bounds how many modules a program of jq reads: one that imports itself would have no end.
const maxModules = 64

// jqModules are the modules that a program of jq imports. They are files of the space.
type jqModules struct {
	q       *querier
	folders []string // where they are searched for
	loaded  int
	bytes   int // of their text, which together with the program is bounded
}

// LoadModuleWithMeta implements what the library asks of a loader of modules.
func (m *jqModules) LoadModuleWithMeta(name string, meta map[string]any) (*gojq.Query, error) {
	file, text, err := m.load(name, ".jq", meta)
	if err != nil {
		return nil, err
	}
	if m.bytes += len(text); m.bytes > maxFilter {
		return nil, errors.New("the program and its modules have more than " + strconv.Itoa(maxFilter) + " bytes")
	}
	m.q.p.Charge(len(text)*200 + len(text)*len(text)/16)
	query, err := gojq.Parse(string(text))
	if err != nil {
		return nil, errors.New(file + ": " + err.Error())
	}
	studyKeys(m.q, string(text))
	m.q.name = "" // lookups in objects use more names than those of the program
	jqAdapted(query)
	own, err := gojq.Parse(jqOwn)
	if err != nil {
		return nil, err
	}
	inOrder(query)
	query.FuncDefs = append(own.FuncDefs, query.FuncDefs...)
	for _, i := range query.Imports {
		if i.Meta == nil {
			continue
		}
		for _, e := range i.Meta.KeyVals { // where a module searches is relative to where it lies
			if (e.Key == "search" || e.KeyString == "search") && e.Val != nil && !strings.HasPrefix(e.Val.Str, "/") && e.Val.Str != "" {
				e.Val.Str = path.Join(path.Dir(file), e.Val.Str)
			}
		}
	}
	return query, nil
}

// LoadJSONWithMeta implements what the library asks of a loader of data.
func (m *jqModules) LoadJSONWithMeta(name string, meta map[string]any) (any, error) {
	file, text, err := m.load(name, ".json", meta)
	if err != nil {
		return nil, err
	}
	all, err := allValues(m.q, text)
	if err != nil {
		return nil, errors.New(file + ": " + err.Error())
	}
	if all == nil {
		all = []any{}
	}
	return all, nil
}

// load reads the file of a module: NAME.jq in one of the folders, or NAME/NAME.jq.
func (m *jqModules) load(name, ending string, meta map[string]any) (file string, text []byte, err error) {
	if m.loaded++; m.loaded > maxModules {
		return "", nil, errors.New("the program imports more than " + strconv.Itoa(maxModules) + " modules")
	}
	folders := m.folders
	switch search := meta["search"].(type) {
	case string:
		folders = append([]string{search}, folders...)
	case []any:
		var more []string
		for _, s := range search {
			if s, ok := s.(string); ok {
				more = append(more, s)
			}
		}
		folders = append(more, folders...)
	}
	for _, folder := range folders {
		if rest, ok := strings.CutPrefix(folder, "~/"); ok {
			folder = path.Join(m.q.p.Getenv("HOME"), rest)
		}
		for _, file := range []string{path.Join(folder, name) + ending, path.Join(folder, name, path.Base(name)) + ending} {
			m.q.p.Charge(1000)
			if info, err := m.q.p.FS.Stat(m.q.p.At(), file, true); err != nil || info.IsDir() {
				continue
			}
			text, err := gnu.ReadWhole(m.q.p, file)
			if err != nil {
				return "", nil, errors.New(file + ": " + program.Message(err))
			}
			return file, text, nil
		}
	}
	return "", nil, errors.New("module not found: " + name + "\n")
}
