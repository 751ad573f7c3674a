package gate

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/rules"
)

// pin names a bundle of a workspace.
type pin struct {
	ws   id.Workspace
	hash event.Digest
}

// ErrBundleNotFound means that no such bundle was pinned in the workspace.
var ErrBundleNotFound = fault.New(fault.NotFound, policy.ReasonPolicyUnavailable, "the policy bundle is not known in this workspace; nothing is permitted under it")

// Presets returns the bundles of the presets, from the strictest to the freest.
func (g *Gate) Presets() ([]policy.Bundle, error) {
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

// Warnings says what of a policy has no effect where a reader may expect one.
func (g *Gate) Warnings(ctx context.Context, ws id.Workspace, b policy.Bundle) ([]string, error) {
	said := rules.Warnings(b)
	for _, name := range rules.Named(b) {
		if _, builtIn := policy.KindOf(name); builtIn {
			continue
		}
		doc, _, err := g.actionType(ctx, ws, name)
		if err != nil {
			return nil, err
		}
		if !doc.Living() {
			said = append(said, "the policy names the action "+policy.Escape(cut(name))+", which nobody has declared in this workspace")
		}
	}
	return said, nil
}

// EnvironmentWarnings says which variables of a space's own environment change what every command in it means.
func (g *Gate) EnvironmentWarnings(env map[string]string) []string {
	return rules.EnvironmentWarnings(env)
}

// Resolve returns the bundle of a preset with overrides, checked but not recorded. An empty preset means standard.
func (g *Gate) Resolve(preset string, overrides []byte) (policy.Bundle, error) {
	if preset == "" {
		preset = rules.Standard
	}
	if preset == rules.Standard && len(overrides) == 0 {
		return g.standard, g.Warm()
	}
	b, err := rules.Resolve(preset, overrides)
	if err != nil {
		return policy.Bundle{}, err
	}
	return b, g.Evaluator.Validate(b)
}

// ReadPolicy returns the bundle of a policy text, checked but not recorded: of the short form, or of Cedar where name and limits are given.
func (g *Gate) ReadPolicy(text []byte, cedar bool) (policy.Bundle, error) {
	if !cedar {
		b, err := rules.FromYAML(text)
		if err != nil {
			return policy.Bundle{}, err
		}
		return b, g.Evaluator.Validate(b)
	}
	b, err := policy.NewBundle("custom", string(text), g.standard.Limits)
	if err != nil {
		return policy.Bundle{}, err
	}
	return b, g.Evaluator.Validate(b)
}

// Pin implements policy.Library.
func (g *Gate) Pin(ctx context.Context, origin event.Origin, ws id.Workspace, preset string, overrides []byte) (policy.Bundle, error) {
	b, err := g.Resolve(preset, overrides)
	if err != nil {
		return policy.Bundle{}, err
	}
	return b, g.PinBundle(ctx, origin, ws, b)
}

// PinBundle records a bundle, so that its hash will always find it. A bundle that is pinned already stays as it is.
func (g *Gate) PinBundle(ctx context.Context, origin event.Origin, ws id.Workspace, b policy.Bundle) error {
	if err := b.Verify(); err != nil {
		return err
	}
	if err := g.Evaluator.Validate(b); err != nil {
		return err
	}
	return conflicting(func() error { return g.pin(ctx, origin, ws, b) })
}

func (g *Gate) pin(ctx context.Context, origin event.Origin, ws id.Workspace, b policy.Bundle) error {
	if _, err := g.Bundle(ctx, ws, b.Hash); err == nil || !errors.Is(err, ErrBundleNotFound) {
		return err // somebody else may have pinned it a moment ago; the same hash is the same bundle
	}
	alive, err := g.living(ctx, ws)
	if err != nil {
		return err
	}
	draft := event.New(policy.BundlePinnedType, origin, ws, "", policy.BundlePinned{Bundle: b}).About(policy.BundleEntity, b.Hash.String())
	draft.OccurredAt = g.Clock.Now().UTC()
	_, err = g.Log.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft},
		Documents: append(alive, event.DocumentVersion{Projection: policy.BundleProjection, Key: b.Hash.String()}),
	})
	return err
}

// Bundle implements policy.Library.
func (g *Gate) Bundle(ctx context.Context, ws id.Workspace, hash event.Digest) (policy.Bundle, error) {
	key := pin{ws, hash}
	g.mu.RLock()
	b, ok := g.bundles[key]
	g.mu.RUnlock()
	if ok {
		return b, nil
	}
	b, _, err := projection.Load[policy.Bundle](ctx, g.Docs, ws, policy.BundleProjection, hash.String())
	if errors.Is(err, projection.ErrNotFound) {
		return policy.Bundle{}, ErrBundleNotFound
	}
	if err != nil {
		return policy.Bundle{}, err
	}
	if b.Hash != hash {
		return policy.Bundle{}, ErrBundleNotFound
	}
	if err := b.Verify(); err != nil {
		return policy.Bundle{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.bundles) >= maxBundles {
		clear(g.bundles)
	}
	g.bundles[key] = b
	return b, nil
}
