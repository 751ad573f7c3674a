package gate_test

import (
	"testing"

	"agentbox/internal/domain/policy"
)

// TestPackersInStandard holds that standard permits the programs that unpack beside those that pack, and refuses the same files to all.
func TestPackersInStandard(t *testing.T) {
	h := build(t, nil)
	for want, lines := range map[policy.Outcome][]string{
		policy.Allow: {
			"xz a", "unxz a.xz", "xzcat a.xz",
			"bzip2 a", "bunzip2 a.bz2", "bzcat a.bz2 | head -n 1", "zstd -19 a -o b.zst", "unzstd a.zst",
			"zstdcat a.zst", "zstd -dc < a.zst > a", "gunzip a.gz",
		},
		policy.Deny: {
			"xzcat .env", "unxz server.key",
			"bzcat server.pem", "bunzip2 .env", "zstdcat .env", "zstd a -o x.env", "zstd -D server.key a",
			"unzstd -o .git/config a.zst", "zstd --patch-from=server.key a", "zstd --filelist=.env",
			"zstd --filelist .env", "xzcat --files=.env", "unxz --files0 .env",
			"zstd --output-dir-flat=.git/hooks a", "zstd --patch-from server.key a", "zstd --output-dir-flat .git/hooks a",
		},
	} {
		for _, line := range lines {
			if d := h.judge(h.shell("guarded", line)).Decision; d.Outcome != want {
				t.Errorf("%q: got %s (%s), want %s", line, d.Outcome, d.Reason, want)
			}
		}
	}
}
