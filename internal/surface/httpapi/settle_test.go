package httpapi_test

import (
	"context"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/identity"
)

// slow is a log that nobody reads until it is let go.
type slow struct {
	journal.Journal
	loose chan struct{}
}

func (s slow) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	<-s.loose
	return s.Journal.Read(ctx, q)
}

// TestEvidenceIsCollectedForWhoMightEndTheRun ends a run as an engine whose token is revoked before the evidence of the run is collected.
func TestEvidenceIsCollectedForWhoMightEndTheRun(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) { c.Engine = app.EngineExternal })
	owner, ws := event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace
	engine, err := d.app.Identity.RegisterEngine(t.Context(), owner, ws, "mill")
	if err != nil {
		t.Fatal(err)
	}
	scopes := identity.EngineScopes()
	scopes.Actions = append(scopes.Actions, policy.RunComplete, policy.EvidenceCollect)
	issued, err := d.app.Identity.IssueEngineToken(t.Context(), owner, ws, engine.ID, scopes, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	log := slow{d.app.Engines.Log, make(chan struct{})}
	d.app.Engines.Log = log
	made := id.Run(d.must(t, "POST", "/v1/runs", someRun, "run_id"))
	origin := event.Origin{Principal: engine.ID, Token: issued.Capability}
	_, token, err := d.app.Engines.Claim(t.Context(), origin, ws, engines.Wanted{})
	if err == nil {
		_, err = d.app.Engines.Complete(t.Context(), origin, engines.Hold{Workspace: ws, Run: made, Token: token}, "", nil)
	}
	if err == nil {
		_, err = d.app.Identity.RevokeEngineToken(t.Context(), owner, ws, engine.ID, issued.ID, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	close(log.loose)
	d.app.Engines.Evidence.Wait()
	if _, _, err := d.app.Engines.Evidence.Of(t.Context(), ws, made); err != nil {
		t.Error(err)
	}
	found, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: ws, From: d.seq + 1, Types: []string{policy.DeniedType}, Limit: 1})
	if err != nil || len(found) > 0 {
		t.Errorf("%v was refused, who did nothing after it had ended its run; %v", found, err)
	}
}
