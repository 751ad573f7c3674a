// Package bundles reads policies, pins them and finds them again.
package bundles

import (
	"context"
	"errors"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/rules"
)

// pin names a bundle of a workspace.
type pin struct {
	ws   id.Workspace
	hash event.Digest
}

// ErrNotFound means that no such bundle was pinned in the workspace.
var ErrNotFound = fault.New(fault.NotFound, policy.ReasonPolicyUnavailable,
	"the policy bundle is not known in this workspace; nothing is permitted under it")

// Parts are the dependencies of the service.
type Parts struct {
	Log       journal.Journal
	Docs      projection.Reader
	Evaluator policy.Evaluator
	Clock     event.Clock
	Living    Living
	Declared  Declared
}

// Living tells which workspaces are active.
type Living interface {
	// Living refuses an archived workspace. It returns the document versions that the log must expect, so that a record and an archiving are
	// ordered.
	Living(ctx context.Context, ws id.Workspace) ([]event.DocumentVersion, error)
}

// Declared are the action types that workspaces declared.
type Declared interface {
	// Find returns the document of a type and its version, both zero where it was never declared.
	Find(ctx context.Context, ws id.Workspace, name string) (policy.ActionType, uint64, error)
}

// Service implements policy.Library. Make it with New; any goroutine may call its methods.
type Service struct {
	Parts
	standard policy.Bundle

	mu      sync.RWMutex
	bundles map[pin]policy.Bundle // verified; a cache
}

var _ policy.Library = (*Service)(nil)

// maxBundles is how many bundles are cached.
const maxBundles = 256

// New returns a service of the given parts.
func New(parts Parts) (*Service, error) {
	standard, err := rules.Resolve(rules.Standard, nil)
	if err != nil {
		return nil, err
	}
	return &Service{Parts: parts, standard: standard, bundles: map[pin]policy.Bundle{}}, nil
}

// Warm prepares the first decision: it compiles the standard policy, which must be read before it can judge anything.
func (s *Service) Warm() error { return s.Evaluator.Validate(s.standard) }

// Standard returns the bundle of the preset standard, under which actions are judged that belong to no space.
func (s *Service) Standard() policy.Bundle { return s.standard }

// Presets returns the bundles of the presets, from the strictest to the freest.
func (s *Service) Presets() ([]policy.Bundle, error) {
	var bundles []policy.Bundle
	for _, name := range rules.Names() {
		b, err := rules.Resolve(name, nil)
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, b)
	}
	return bundles, nil
}

// Warnings returns the parts of a policy without an effect where a reader may expect one.
func (s *Service) Warnings(ctx context.Context, ws id.Workspace, b policy.Bundle) ([]string, error) {
	said := rules.Warnings(b)
	for _, name := range rules.Named(b) {
		if _, builtIn := policy.KindOf(name); builtIn {
			continue
		}
		doc, _, err := s.Declared.Find(ctx, ws, name)
		if err != nil {
			return nil, err
		}
		if !doc.Living() {
			said = append(said, "the policy names the action "+policy.Brief(name)+", which nobody has declared in this workspace")
		}
	}
	return said, nil
}

// EnvironmentWarnings returns the variables of a space's own environment that change the meaning of every command in it.
func (s *Service) EnvironmentWarnings(env map[string]string) []string {
	return rules.EnvironmentWarnings(env)
}

// Resolve returns the bundle of a preset with overrides, checked but not recorded. An empty preset means standard.
func (s *Service) Resolve(preset string, overrides []byte) (policy.Bundle, error) {
	if preset == "" {
		preset = rules.Standard
	}
	if preset == rules.Standard && len(overrides) == 0 {
		return s.standard, s.Warm()
	}
	b, err := rules.Resolve(preset, overrides)
	if err != nil {
		return policy.Bundle{}, err
	}
	return b, s.Evaluator.Validate(b)
}

// Adjust returns the bundle of a preset with an adjustment, checked but not recorded, and the overrides by which Resolve makes the same
// one.
func (s *Service) Adjust(preset string, a policy.Adjustment) (policy.Bundle, []byte, error) {
	overrides, err := rules.Overrides(preset, a)
	if err != nil {
		return policy.Bundle{}, nil, err
	}
	b, err := s.Resolve(preset, overrides)
	return b, overrides, err
}

// ReadPolicy returns the bundle of a policy text, checked but not recorded: of the short form, or of Cedar where name and limits are given.
func (s *Service) ReadPolicy(text []byte, cedar bool) (policy.Bundle, error) {
	if !cedar {
		b, err := rules.FromYAML(text)
		if err != nil {
			return policy.Bundle{}, err
		}
		return b, s.Evaluator.Validate(b)
	}
	b, err := policy.NewBundle("custom", string(text), s.standard.Limits)
	if err != nil {
		return policy.Bundle{}, err
	}
	return b, s.Evaluator.Validate(b)
}

// Pin implements policy.Library.
func (s *Service) Pin(ctx context.Context, origin event.Origin, ws id.Workspace, preset string, overrides []byte) (policy.Bundle, error) {
	b, err := s.Resolve(preset, overrides)
	if err != nil {
		return policy.Bundle{}, err
	}
	return b, s.PinBundle(ctx, origin, ws, b)
}

// PinBundle records a bundle, so that its hash will always find it. A bundle that is pinned already stays as it is.
func (s *Service) PinBundle(ctx context.Context, origin event.Origin, ws id.Workspace, b policy.Bundle) error {
	if err := b.Verify(); err != nil {
		return err
	}
	if err := s.Evaluator.Validate(b); err != nil {
		return err
	}
	return journal.Again(func() error { return s.pin(ctx, origin, ws, b) })
}

func (s *Service) pin(ctx context.Context, origin event.Origin, ws id.Workspace, b policy.Bundle) error {
	if _, err := s.Bundle(ctx, ws, b.Hash); !errors.Is(err, ErrNotFound) {
		return err // somebody else may have pinned it a moment ago; the same hash is the same bundle
	}
	alive, err := s.Living.Living(ctx, ws)
	if err != nil {
		return err
	}
	draft := event.New(policy.BundlePinnedType, origin, ws, "", policy.BundlePinned{Bundle: b}).About(policy.BundleEntity, b.Hash.String())
	draft.OccurredAt = s.Clock.Now().UTC()
	_, err = s.Log.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft},
		Documents: append(alive, event.DocumentVersion{Projection: policy.BundleProjection, Key: b.Hash.String()}),
	})
	return err
}

// Bundle implements policy.Library.
func (s *Service) Bundle(ctx context.Context, ws id.Workspace, hash event.Digest) (policy.Bundle, error) {
	key := pin{ws, hash}
	s.mu.RLock()
	b, ok := s.bundles[key]
	s.mu.RUnlock()
	if ok {
		return b, nil
	}
	b, _, err := projection.Load[policy.Bundle](ctx, s.Docs, ws, policy.BundleProjection, hash.String())
	if errors.Is(err, projection.ErrNotFound) {
		return policy.Bundle{}, ErrNotFound
	}
	if err != nil {
		return policy.Bundle{}, err
	}
	if b.Hash != hash {
		return policy.Bundle{}, ErrNotFound
	}
	if err := b.Verify(); err != nil {
		return policy.Bundle{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bundles) >= maxBundles {
		clear(s.bundles)
	}
	s.bundles[key] = b
	return b, nil
}
