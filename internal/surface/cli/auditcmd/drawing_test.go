package auditcmd

import (
	"flag"
	"testing"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// TestProofDrawings compares how proofs look with golden files.
func TestProofDrawings(t *testing.T) {
	termtest.Drawings(t, map[string]func(*term.Printer){
		"proof": func(p *term.Printer) {
			WriteProof(p, cmdline.Proof{Workspace: "ws_dev", Valid: true, Checked: 38, Streams: 2, Documents: 8})
			WriteProof(p, cmdline.Proof{Workspace: "ws_dev", Valid: true, Checked: 38, Streams: 2, Documents: 8,
				Checkpoints: []cmdline.Held{{By: "this data directory",
					Size: 36, OK: true}}})
			WriteProof(p, cmdline.Proof{Workspace: "ws_dev", Checked: 38, Streams: 2, Sealed: 38,
				Unchecked: []string{"the data of 38 events cannot be opened"}})
			WriteProof(p, cmdline.Proof{
				Workspace: "ws_dev", Checkpoints: []cmdline.Held{{By: "/media/st\x1bick", Size: 40}},
				Flaws: []cmdline.Flaw{{Kind: "truncated", Seq: 39, Detail: "events 39 to 40 are missing"}},
			})
			writeChecked(p, cmdline.Checked{Kind: "event", Origin: "agentbox/0/ws_dev", Size: 38, Events: 1, Seq: 3, Event: "0190",
				Type:     "run.created",
				Occurred: "2026-01-02T03:04:05Z", HasData: true})
			writeChecked(p, cmdline.Checked{Kind: "consistency", Origin: "agentbox/0/ws_dev", Size: 38, Old: 3, OldRoot: "AAAA"})
			writeChecked(p, cmdline.Checked{Kind: "export", Origin: "agentbox/0/ws_dev", Size: 38, Events: 38, Complete: true})
			WriteProof(p, cmdline.Proof{Workspace: "ws_dev", Flaws: []cmdline.Flaw{{Kind: "event_hash_mismatch", Seq: 3, Stream: "room_1", Place: 2,
				Event:  "0190",
				Detail: "the event was changed"}}})
		},
	})
}
