package runview

import (
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/run"
)

func TestWhereItStandsSaysHowLongAnEngineIsSilent(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	claimed := func(ago time.Duration) *run.Claim {
		return &run.Claim{Renewed: now.Add(-ago), Until: now.Add(-ago + run.ClaimTime)}
	}
	for want, r := range map[string]run.Run{
		"running":                               {Status: run.Running, Claim: claimed(20 * time.Second)},
		"running, engine silent for 1 min 20 s": {Status: run.Running, Claim: claimed(80 * time.Second)},
		"failed":                                {Status: run.Failed, Claim: claimed(80 * time.Second)},
		"queued":                                {Status: run.Queued},
	} {
		if got := WhereItStands(r, client.Waits{}, now).Text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for want, r := range map[string]run.Run{
		"awaiting_approval":                     {Status: run.Running, Claim: claimed(20 * time.Second)},
		"running, engine silent for 1 min 20 s": {Status: run.Running, Claim: claimed(80 * time.Second)},
	} {
		if got := WhereItStands(r, client.Waits{For: "approval"}, now).Text; got != want {
			t.Errorf("of a run that waits got %q, want %q", got, want)
		}
	}
}

// TestStandsIsASentence: behind "the run" the words about each status make a sentence.
func TestStandsIsASentence(t *testing.T) {
	for status, want := range map[run.Status]string{
		run.Queued: "is queued", run.Running: "is running", run.AwaitingApproval: "waits for a person", run.Succeeded: "succeeded",
		run.Failed: "failed", run.Cancelled: "was cancelled", "new": "is new",
	} {
		if got := Stands(status); got != want {
			t.Errorf("%s: got %q, want %q", status, got, want)
		}
	}
}
