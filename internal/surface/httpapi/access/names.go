package access

import (
	"context"
	"encoding/json"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/httpapi/wire"
)

// Resolve returns the identifier of the resource that a parameter of a request names; see wire.Resolve. A name that nothing has stays, and
// the operation says that it is not found.
func (a *Access) Resolve(ctx context.Context, c wire.Call, parameter, value string) (string, error) {
	if parameter != "space_id" || value == "" || space.IsID(value) {
		return value, nil
	}
	found, err := a.spaces.Catalog.Named(ctx, c.Caller.Workspace, value)
	if fault.KindOf(err) == fault.NotFound {
		return value, nil
	}
	return string(found), err
}

// SpaceNamed returns the identifier of the space that a field of a body names.
func (a *Access) SpaceNamed(ctx context.Context, c wire.Call, named id.Space) (id.Space, error) {
	found, err := a.Resolve(ctx, c, "space_id", string(named))
	return id.Space(found), err
}

// Resource is a resource of a label, by its identifier where it is a space that is called by its name.
func (a *Access) Resource(ctx context.Context, c wire.Call, typ, named string) (label.Resource, error) {
	if typ != label.OfSpace {
		return label.Resource{Type: typ, ID: named}, nil
	}
	found, err := a.Resolve(ctx, c, "space_id", named)
	return label.Resource{Type: typ, ID: found}, err
}

// OrderNamed returns the input of a run with the identifier of its space in place of the space's name, so that it means the same space
// for as long as the run waits. Any other input stays as it is.
func (a *Access) OrderNamed(ctx context.Context, c wire.Call, input json.RawMessage) (json.RawMessage, error) {
	order, ok := errand.ReadOrder(input)
	if !ok {
		return input, nil
	}
	in, err := a.SpaceNamed(ctx, c, order.Space)
	if err != nil || in == order.Space {
		return input, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(input, &fields); err != nil {
		return input, fault.Wrap(err, fault.Invalid, "operation_invalid", "the operations cannot be read")
	}
	if fields["space_id"], err = json.Marshal(in); err != nil {
		return input, err
	}
	return json.Marshal(fields)
}
