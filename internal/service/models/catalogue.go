package models

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// List returns the models of a workspace by name, after the given one.
func (s *Service) List(ctx context.Context, ws id.Workspace, after string, limit int) ([]model.Held, error) {
	return projection.List[model.Held](ctx, s.Docs, projection.Query{Workspace: ws, Name: model.Projection, After: after, Limit: limit,
		Index: projection.Index{Name: "living", Value: "true"}})
}

// Get returns the model of a name.
func (s *Service) Get(ctx context.Context, ws id.Workspace, name string) (model.Held, error) {
	held, _, err := load[model.Held](ctx, s.Docs, ws, model.Projection, name)
	if err == nil && !held.Living() {
		err = model.ErrNotFound
	}
	return held, err
}

// Settings returns the routes, the budgets and the names of the keys of a workspace.
func (s *Service) Settings(ctx context.Context, ws id.Workspace) (model.Settings, error) {
	found, _, err := load[model.Settings](ctx, s.Docs, ws, model.SettingsProjection, string(ws))
	return found, err
}

// Price returns the price of a model, and false if the file of prices does not have it.
func (s *Service) Price(e model.Entry) (model.Price, bool) { return s.Prices().Of(e) }

// Put adds a model or changes it. The present values again record nothing.
func (s *Service) Put(ctx context.Context, origin event.Origin, ws id.Workspace, e model.Entry) (model.Held, error) {
	return s.put(ctx, origin, ws, e, model.FromAPI)
}

func (s *Service) put(ctx context.Context, origin event.Origin, ws id.Workspace, e model.Entry, source string) (model.Held, error) {
	err := journal.Again(func() error {
		held, version, err := load[model.Held](ctx, s.Docs, ws, model.Projection, e.Name)
		if err != nil {
			return err
		}
		settings, settled, err := load[model.Settings](ctx, s.Docs, ws, model.SettingsProjection, string(ws))
		if err != nil {
			return err
		}
		typ, data, err := held.Put(e, source, settings.Living)
		if err == nil && typ == "" { // a change without an effect needs the same right
			return s.may(ctx, origin, ws, policy.ModelConfigure, e.Name)
		}
		if err != nil {
			return errors.Join(s.may(ctx, origin, ws, policy.ModelConfigure, e.Name), err)
		}
		return s.record(ctx, origin, ws, typ, model.Entity, e.Name, data, []event.DocumentVersion{
			{Projection: model.Projection, Key: e.Name, Version: version},
			{Projection: model.SettingsProjection, Key: string(ws), Version: settled},
		})
	})
	if err != nil {
		return model.Held{}, err
	}
	return s.Get(ctx, ws, e.Name)
}

// Remove removes a model from the catalogue.
func (s *Service) Remove(ctx context.Context, origin event.Origin, ws id.Workspace, name, reason string) error {
	return s.remove(ctx, origin, ws, name, reason, model.FromAPI)
}

func (s *Service) remove(ctx context.Context, origin event.Origin, ws id.Workspace, name, reason, source string) error {
	return journal.Again(func() error {
		held, version, err := load[model.Held](ctx, s.Docs, ws, model.Projection, name)
		if err != nil {
			return err
		}
		typ, data, err := held.Remove(source, reason)
		if err != nil {
			if refused := s.may(ctx, origin, ws, policy.ModelConfigure, name); refused != nil {
				return refused
			}
			return err
		}
		return s.record(ctx, origin, ws, typ, model.Entity, name, data,
			[]event.DocumentVersion{{Projection: model.Projection, Key: name, Version: version}})
	})
}

// SetRoutes replaces the routes of a workspace.
func (s *Service) SetRoutes(ctx context.Context, origin event.Origin, ws id.Workspace, routes []model.Route) error {
	return s.setRoutes(ctx, origin, ws, routes, model.FromAPI, false)
}

// setRoutes sets the routes for the API, or for the file (loads), which may also give them back to the API.
func (s *Service) setRoutes(ctx context.Context, origin event.Origin, ws id.Workspace, routes []model.Route, source string,
	loads bool) error {
	entries, err := s.List(ctx, ws, "", model.MaxEntries)
	if err != nil {
		return err
	}
	err = model.CheckRoutes(routes, func(name string) bool {
		return slices.ContainsFunc(entries, func(h model.Held) bool { return h.Name == name })
	})
	return s.set(ctx, origin, ws, err, func(now model.Settings) (string, any, bool, bool) {
		same := equal(now.Routes, routes) && now.RoutesSource == source
		return model.EventRoutesSet, model.RoutesSet{Routes: routes, Source: source}, same,
			now.RoutesSource == model.FromFile && !loads
	})
}

// SetBudgets replaces the budgets of a workspace.
func (s *Service) SetBudgets(ctx context.Context, origin event.Origin, ws id.Workspace, budgets []model.Budget) error {
	return s.setBudgets(ctx, origin, ws, budgets, model.FromAPI, false)
}

// setBudgets sets the budgets for the API, or for the file (loads), which may also give them back to the API.
func (s *Service) setBudgets(ctx context.Context, origin event.Origin, ws id.Workspace, budgets []model.Budget, source string,
	loads bool) error {
	return s.set(ctx, origin, ws, model.CheckBudgets(budgets), func(now model.Settings) (string, any, bool, bool) {
		same := equal(now.Budgets, budgets) && now.BudgetsSource == source
		return model.EventBudgetsSet, model.BudgetsSet{Budgets: budgets, Source: source}, same,
			now.BudgetsSource == model.FromFile && !loads
	})
}

// set changes the settings of a workspace. wrong is the error of an invalid change. A caller without the right gets the refusal first.
func (s *Service) set(ctx context.Context, origin event.Origin, ws id.Workspace, wrong error,
	change func(model.Settings) (typ string, data any, same, fromFile bool)) error {
	return journal.Again(func() error {
		now, version, err := load[model.Settings](ctx, s.Docs, ws, model.SettingsProjection, string(ws))
		if err != nil {
			return err
		}
		typ, data, same, fromFile := change(now)
		if fromFile && wrong == nil {
			wrong = model.ErrFromFile
		}
		if wrong != nil || same {
			if refused := s.may(ctx, origin, ws, policy.ModelConfigure, string(ws)); refused != nil {
				return refused
			}
			return wrong
		}
		return s.record(ctx, origin, ws, typ, model.SettingsEntity, string(ws), data,
			[]event.DocumentVersion{{Projection: model.SettingsProjection, Key: string(ws), Version: version}})
	})
}

// Configure replaces the routes and the budgets of a workspace.
func (s *Service) Configure(ctx context.Context, origin event.Origin, ws id.Workspace, routes []model.Route, budgets []model.Budget) error {
	if err := model.CheckBudgets(budgets); err != nil { // else the routes alone would be set
		return errors.Join(s.may(ctx, origin, ws, policy.ModelConfigure, string(ws)), err)
	}
	if err := s.SetRoutes(ctx, origin, ws, routes); err != nil {
		return err
	}
	if origin.Key != "" { // one key names one batch
		origin.Key += "#budgets"
	}
	return s.SetBudgets(ctx, origin, ws, budgets)
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// SetKey stores a key under a name. The event has the name and no part of the key.
func (s *Service) SetKey(ctx context.Context, origin event.Origin, ws id.Workspace, name string, key model.Secret) error {
	wrong := errors.Join(model.CheckKeyName(name), model.CheckSecret(key.Reveal()))
	settings, err := s.Settings(ctx, ws)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(settings.Keys, func(k model.KeyName) bool { return k.Name == name })
	if wrong == nil && !known && len(settings.Keys) >= model.MaxKeys {
		wrong = fault.New(fault.Exhausted, "model_keys_full", "a workspace has at most %d keys for models; remove one first", model.MaxKeys)
	}
	permit, err := s.key(ctx, origin, ws, name, "set", model.EventKeySet, wrong)
	if err != nil {
		return err
	}
	return s.Keys.Set(ctx, permit, ws, name, key)
}

// RemoveKey destroys a key.
func (s *Service) RemoveKey(ctx context.Context, origin event.Origin, ws id.Workspace, name string) error {
	settings, err := s.Settings(ctx, ws)
	if err != nil {
		return err
	}
	var wrong error
	if !slices.ContainsFunc(settings.Keys, func(k model.KeyName) bool { return k.Name == name }) {
		wrong = fault.New(fault.NotFound, model.ErrNoKey.Code, "no key has this name").With("see: agentbox model key ls")
	}
	permit, err := s.key(ctx, origin, ws, name, "remove", model.EventKeyRemoved, wrong)
	if err != nil {
		return err
	}
	return s.Keys.Remove(ctx, permit, ws, name)
}

// key takes a change of a key through the gate and records it.
func (s *Service) key(ctx context.Context, origin event.Origin, ws id.Workspace, name, method, typ string, wrong error) (policy.Permit,
	error) {
	a := policy.Action{Type: policy.ModelKey, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: name, Method: method}
	client := policy.Client{Gate: s.Gate, Append: s.Log.Append, Known: true}
	if wrong != nil {
		a.Subject = string(ws) // an invalid name stays out of the log
		_, err := client.Allow(ctx, origin, a)
		if err == nil {
			err = wrong
		}
		return policy.Permit{}, err
	}
	ruling, approval, err := client.Ask(ctx, origin, a)
	if err != nil {
		return policy.Permit{}, err
	}
	draft := event.New(typ, origin, ws, "", model.KeyChanged{Name: name}).About(model.SettingsEntity, string(ws))
	draft.OccurredAt = s.Clock.Now().UTC()
	permit, _, err := s.Gate.Begin(ctx, ruling, approval, event.Batch{Workspace: ws, Drafts: []event.Draft{draft}})
	return permit, err
}

// may returns the refusal of a caller without the right, where the request would record nothing.
func (s *Service) may(ctx context.Context, origin event.Origin, ws id.Workspace, action, name string) error {
	return policy.Change{Workspace: ws, Action: action, Key: name}.May(ctx, s.Gate, origin)
}

// record records a change of the catalogue.
func (s *Service) record(ctx context.Context, origin event.Origin, ws id.Workspace, typ, entity, key string, data any,
	expect []event.DocumentVersion) error {
	return policy.Change{Workspace: ws, Action: policy.ModelConfigure, Entity: entity, Key: key, Event: typ, Data: data,
		At: s.Clock.Now().UTC(), Expect: expect}.Record(ctx, s.Gate, origin)
}

// route returns the models that may answer a request, the best first, and the reason for the choice.
func (s *Service) route(ctx context.Context, a model.Ask) ([]model.Held, string, error) {
	entries, err := s.List(ctx, a.Workspace, "", model.MaxEntries)
	if err != nil {
		return nil, "", err
	}
	settings, err := s.Settings(ctx, a.Workspace)
	if err != nil {
		return nil, "", err
	}
	names, reason := model.Choose(settings.Routes, a.Class, a.Room)
	if a.Entry != "" {
		reason = "the request names it"
		if i := slices.Index(names, a.Entry); i >= 0 {
			names = names[i:] // the later models of the route are its fallbacks
		} else {
			names = []string{a.Entry}
		}
	}
	if len(names) == 0 {
		reason = "it says that it answers the class"
		for _, e := range entries {
			if a.Class != "" && slices.Contains(e.Classes, a.Class) {
				names = append(names, e.Name)
			}
		}
	}
	if len(names) == 0 && len(entries) == 1 {
		names, reason = []string{entries[0].Name}, "it is the only model"
	}
	var found []model.Held
	for _, name := range names {
		if i := slices.IndexFunc(entries, func(h model.Held) bool { return h.Name == name }); i >= 0 {
			found = append(found, entries[i])
		}
	}
	switch {
	case len(found) == 0 && a.Entry != "":
		return nil, "", fault.Wrap(model.ErrNotFound, fault.NotFound, model.ErrNotFound.Code,
			"there is no model %.64q; `agentbox model ls` lists them", a.Entry)
	case len(found) == 0:
		return nil, "", fault.Wrap(model.ErrNoRoute, fault.NotFound, model.ErrNoRoute.Code,
			"no model answers the task class %.64q: set a route, or name the class in a model", a.Class)
	}
	return found, reason, nil
}

// Usage returns the use of the scopes of a kind, in the order of their keys. If day is not "", it returns only those of that day.
func (s *Service) Usage(ctx context.Context, ws id.Workspace, scope, day, after string, limit int) ([]model.Used, error) {
	q := projection.Query{Workspace: ws, Name: model.UsageProjection, After: after, Limit: limit,
		Index: projection.Index{Name: "scope", Value: scope}}
	if day != "" {
		q.Index = projection.Index{Name: "day", Value: scope + "/" + day}
	}
	return projection.List[model.Used](ctx, s.Docs, q)
}

// UsageOf returns the use of one scope.
func (s *Service) UsageOf(ctx context.Context, ws id.Workspace, scope, of, day string) (model.Used, error) {
	used, _, err := load[model.Used](ctx, s.Docs, ws, model.UsageProjection, model.UsageKey(scope, of, day))
	used.Scope = scope
	return used, err
}
