package models

import (
	"context"
	"fmt"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// codeFile is the code of a file of models that cannot be used.
const codeFile = "models_file_invalid"

// CheckFile refuses a file of models that cannot be used with any catalogue. The error names the line.
func CheckFile(text []byte) error {
	_, err := usable(text)
	return err
}

// usable reads a file of models that can be used with some catalogue. A text of nil stands for no file.
func usable(text []byte) (File, error) {
	f, err := ReadFile(text)
	if err != nil {
		return File{}, err
	}
	if text != nil && f.Models == nil && f.Routes == nil && f.Budgets == nil { // somebody may be writing it
		return File{}, fault.New(fault.Invalid, codeFile, "the file is empty; write models: [] to have no models, or remove the file")
	}
	return f, f.check()
}

// wrong is the error of an item of the file.
func (f File) wrong(list string, i int, err error) error {
	where := list
	if i < len(f.lines[list]) {
		where = fmt.Sprintf("line %d", f.lines[list][i])
	}
	return fault.New(fault.Invalid, fault.CodeOf(err), "%s: %s", where, sentence(err))
}

// check refuses entries and budgets that cannot work.
func (f File) check() error {
	names := map[string]bool{}
	for i, e := range f.Models {
		if names[e.Name] {
			return f.wrong("models", i, fault.New(fault.Invalid, codeFile, "two models of the file are named %.64q", e.Name))
		}
		names[e.Name] = true
		if err := e.Complete().Check(); err != nil {
			return f.wrong("models", i, fault.New(fault.Invalid, codeFile, "the model %.64q of the file: %s", e.Name, sentence(err)))
		}
	}
	return f.first("budgets", len(f.Budgets), func(n int) error { return model.CheckBudgets(f.Budgets[:n]) })
}

// first names the line of the first item that a check of the first n refuses.
func (f File) first(list string, most int, check func(n int) error) error {
	for n := range most {
		if err := check(n + 1); err != nil {
			return f.wrong(list, n, err)
		}
	}
	return nil
}

// fits refuses a file that the catalogue cannot take as a whole, and returns the names of the models that are there with it. Nothing is
// changed before.
func (f File) fits(held []model.Held) (known map[string]bool, err error) {
	known = map[string]bool{}
	for _, e := range f.Models {
		known[e.Name] = true
	}
	living := len(known)
	for _, h := range held {
		if known[h.Name] {
			continue
		}
		living++
		known[h.Name] = h.Source != model.FromFile || h.Before != nil // else it goes
	}
	if living > model.MaxEntries {
		return nil, fault.New(fault.Exhausted, "models_full", "a catalogue has at most %d models; remove some first", model.MaxEntries)
	}
	return known, f.first("routes", len(f.Routes), func(n int) error {
		return model.CheckRoutes(f.Routes[:n], func(name string) bool { return known[name] })
	})
}

// Load puts the entries of the file into the catalogue. Entries of the API stay; entries of an earlier file go, and what the API had set in
// their place is back. The same holds for routes and budgets. A file that cannot be used as a whole changes nothing.
func (s *Service) Load(ctx context.Context, origin event.Origin, ws id.Workspace, text []byte) error {
	f, err := usable(text)
	if err != nil {
		return err
	}
	held, err := s.List(ctx, ws, "", model.MaxEntries)
	if err != nil {
		return err
	}
	known, err := f.fits(held)
	if err != nil {
		return err
	}
	now, err := s.Settings(ctx, ws)
	if err != nil {
		return err
	}
	if text != nil && f.Budgets == nil && now.BudgetsSource == model.FromFile && len(now.Budgets) > 0 { // it may be cut
		return fault.New(fault.Invalid, codeFile, "the file has no budgets any more; write budgets: [] to have none")
	}
	for _, e := range f.Models {
		if _, err := s.put(ctx, origin, ws, e, model.FromFile); err != nil {
			return err
		}
	}
	if f.Routes != nil || now.RoutesSource == model.FromFile {
		fits := slices.DeleteFunc(slices.Clone(now.RoutesBefore), func(r model.Route) bool { // a model may have been removed since
			return slices.ContainsFunc(r.Models, func(name string) bool { return !known[name] })
		})
		routes, source := orBefore(f.Routes, fits)
		if err := s.setRoutes(ctx, origin, ws, routes, source, true); err != nil {
			return err
		}
	}
	if f.Budgets != nil || now.BudgetsSource == model.FromFile {
		budgets, source := orBefore(f.Budgets, now.BudgetsBefore)
		if err := s.setBudgets(ctx, origin, ws, budgets, source, true); err != nil {
			return err
		}
	}
	for _, h := range held {
		if h.Source == model.FromFile && !slices.ContainsFunc(f.Models, func(e model.Entry) bool { return e.Name == h.Name }) {
			if err := s.remove(ctx, origin, ws, h.Name, "the file does not name it any more", model.FromFile); err != nil {
				return err
			}
		}
	}
	return nil
}

// orBefore returns a setting of the file with its source. Without one it is what the API had set before; with nothing at all the source is
// "", and the API may set it.
func orBefore[T any](inFile, before []T) ([]T, string) {
	switch {
	case inFile != nil:
		return inFile, model.FromFile
	case len(before) > 0:
		return before, model.FromAPI
	}
	return nil, ""
}
