package endpoint

import (
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
)

// Redeem spends the permit of a request. The permit must be for exactly this request, to this entry's address.
func Redeem(permit policy.Permit, to model.Target, r model.Request) error {
	a, err := permit.Redeem(policy.ModelCall)
	if err != nil {
		return err
	}
	hash, err := r.Hash()
	if err != nil {
		return err
	}
	if a.Content != hash || a.Subject != to.Entry.Name || a.Target != to.Entry.Target() || a.Tool != to.Entry.Model {
		return policy.ErrPermitMismatch
	}
	return nil
}
