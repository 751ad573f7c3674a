package access

import (
	"context"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/domain/label"
	"agentbox/internal/service/labels"
	"agentbox/internal/surface/httpapi/wire"
)

// Labelled refuses a request if the labels of the named things withhold them from the caller.
func (a *Access) Labelled(ctx context.Context, c wire.Call, about map[string]string) error {
	sight, err := a.Sight(ctx, c)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(about)) {
		if about[name] == "" {
			continue
		}
		if err := sight.Sees(ctx, label.Resource{Type: strings.TrimSuffix(name, "_id"), ID: about[name]}); err != nil {
			return err
		}
	}
	return nil
}

// Sight returns the present sight of a caller.
func (a *Access) Sight(ctx context.Context, c wire.Call) (*labels.Sight, error) {
	return a.labels.Sight(ctx, c.Caller.Workspace, c.Caller.Principal)
}

// Hidden reports whether a label keeps something from a caller.
func (a *Access) Hidden(ctx context.Context, c wire.Call, r label.Resource) (bool, error) {
	sight, err := a.Sight(ctx, c)
	if err != nil {
		return true, err
	}
	shows, err := sight.Shows(ctx, r)
	return !shows, err
}

// Visible leaves out of a page what labels keep from a caller. A page may so have fewer entries than were asked for; where the list goes on
// stays as it is.
func Visible[T any](ctx context.Context, a *Access, c wire.Call, page []T, resource func(T) label.Resource) ([]T, error) {
	sight, err := a.Sight(ctx, c)
	if err != nil {
		return nil, err
	}
	return labels.Visible(ctx, sight, page, resource)
}
