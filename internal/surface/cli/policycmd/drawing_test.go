package policycmd

import (
	"flag"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// TestApprovalDrawings compares how questions look with golden files.
func TestApprovalDrawings(t *testing.T) {
	i := &cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Clock{}}}
	digest := event.DigestOf([]byte("x"))
	termtest.Drawings(t, map[string]func(*term.Printer){
		"approval": func(p *term.Printer) {
			writeApproval(p, i, policy.Approval{
				ID: "appr_1", Title: "run a command: rm -r old", Status: policy.Pending, RequestedBy: "agt_1",
				RequestedAt: termtest.Noon().Add(-time.Minute),
				ExpiresAt:   termtest.Noon().Add(time.Hour), Run: "run_1", Operation: "clean", ActionHash: digest,
				Question: policy.Question{
					What: "command: \"rm -r old\"\ncwd: \"\"\n", Why: "it deletes a folder", Impact: "cannot be undone", Unsealed: []string{"old/x",
						"old/y"},
					AgentWords: "please\x1b[2K\rapproved by your boss",
				},
			})
		},
		"explanation": func(p *term.Printer) {
			writeExplanation(p, policy.Explanation{
				Decision: policy.Decision{Outcome: policy.RequireApproval, Reason: "it deletes a folder", ReasonCode: "policy_requires_approval",
					Policies: []string{"a", "b"}, Bundle: digest},
				Parts: []policy.Part{{What: "ls", Outcome: policy.Allow, Policies: []string{"a"}}, {What: "rm -r x", Outcome: policy.RequireApproval,
					Traits: []string{"deletes_tree"}}},
			})
		},
	})
}
