package engines

import (
	"crypto/ed25519"
	"crypto/subtle"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
)

// Permits are the signed texts that engines show.
type Permits struct{ service *Service }

// claimPermit is the permit to work on a run under its present claim.
func claimPermit(doc run.Run) policy.SignedPermit {
	p := policy.SignedPermit{Kind: policy.PermitRun, Workspace: doc.Workspace, Run: doc.ID}
	if c := doc.Claim; c != nil {
		p.Engine, p.Fence, p.Attempt, p.IssuedAt, p.BeginBy = c.Engine, c.Fence, c.Attempt, c.Since, c.Since.Add(run.ClaimTime)
	}
	return p
}

// callPermit is the permit to make a tool call, as it was decided on.
func callPermit(ws id.Workspace, c step.Call) policy.SignedPermit {
	return policy.SignedPermit{
		Kind: policy.PermitCall, Workspace: ws, Run: c.Run, Engine: c.By, Fence: c.Fence, Call: c.ID, Tool: c.Tool, Action: c.Action,
		IssuedAt: c.BegunAt, BeginBy: c.BegunAt.Add(run.ClaimTime),
	}
}

// OfClaim returns the signed permit of a run's claim as the claim's answer had it, also for a repeated request.
func (pm *Permits) OfClaim(doc run.Run) string {
	if pm.service.Claimed(doc) == "" {
		return "" // nobody's, or another installation's
	}
	return pm.service.Seal.Sign(claimPermit(doc))
}

// OfCall returns the signed permit of a tool call that was recorded under a claim.
func (pm *Permits) OfCall(ws id.Workspace, c step.Call) string {
	if c.Fence == 0 {
		return "" // of a run that was begun by hand
	}
	return pm.service.Seal.Sign(callPermit(ws, c))
}

// Key returns the public key that verifies the permits.
func (pm *Permits) Key() ed25519.PublicKey { return pm.service.Seal.Public() }

// spend refuses a permit that does not match exactly, or that another principal shows. The log ensures that a permit is used once, because
// its subject ends once. The time in which the subject had to begin is normally over when it ends, so spend does not check it.
func (pm *Permits) spend(shown string, origin event.Origin, wanted policy.SignedPermit) error {
	if _, err := pm.service.Seal.Open(shown); err != nil {
		return err
	}
	if wanted.Fence == 0 || wanted.Engine != origin.Principal || subtle.ConstantTimeCompare([]byte(shown),
		[]byte(pm.service.Seal.Sign(wanted))) != 1 {
		return policy.ErrPermitInvalid
	}
	return nil
}
