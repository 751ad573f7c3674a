package app_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/event"
)

// TestAnAgentWritesSections reads and writes sections of a document, and is told when somebody has changed one in between.
func TestAnAgentWritesSections(t *testing.T) {
	p := startPlayed(t, "")
	const intro, linux, mac, uses = "# Notes\n\nIntro.\n\n", "## Linux\n\nUse apt.\n\n", "## Mac\n\nUse brew.\n\n", "# Uses\n\nMany.\n"
	put := func(path, content string) {
		p.d.ask("POST", "/v1/spaces/"+p.space+"/runs", jsonOf(t, map[string]any{"protocolVersion": "1.0", "operations": []any{
			map[string]any{"type": "createFile", "path": path, "content": content, "overwrite": true}}}), "")
	}
	put("notes.md", intro+linux+mac+uses)
	hash := func(text string) string { return event.DigestOf([]byte(text)).String() }
	write := func(path, heading, of, content string) string {
		fields := map[string]string{"path": path, "content": content}
		if heading != "" {
			fields["heading"], fields["sha256"] = heading, hash(of)
		}
		return jsonOf(t, fields)
	}
	const gone = "failed: the section is not what was read: somebody has changed it\ninstead: Read it again with md_read, and write what " +
		"follows from that."
	p.plays(
		one("md_read", `{"path":"notes.md"}`, "# Notes (line 1, 12 lines, 56 bytes)\n## Linux (line 5, 4 lines, 20 bytes)\n"+
			"## Mac (line 9, 4 lines, 19 bytes)\n# Uses (line 13, 3 lines, 14 bytes)\n", true),
		one("md_read", `{"path":"notes.md","heading":"Notes > Linux"}`, "sha256: "+hash(linux)+"\nsection: Notes > Linux\nlines: 5 to 8\n\n"+
			linux, true),
		one("md_write", write("notes.md", "Linux", linux, "## Linux\n\nUse dnf."), "written to notes.md\n", true),
		one("md_write", write("notes.md", "Linux", linux, "## Linux\n\nUse apk."), gone, false),
		one("md_write", write("notes.md", "", "", "# More\n\nAnd more."), "written to notes.md\n", true),
		one("md_write", write("notes.md", "", "", "# More\n\nTwice."), "failed: the document has a section with this heading\n"+
			"instead: Read it with md_read, and write it with the sha256 that it tells.", false),
		one("md_write", write("notes.md", "Mac", mac, ""), "written to notes.md\n", true),
		one("md_write", write("new.md", "", "", "# New\n"), "written to new.md\n", true),
		one("md_read", `{"path":"none.md"}`, "failed: there is no \"none.md\"\n", false),
		one("md_write", write("none.md", "A", "x", "# A\n"), "failed: there is no \"none.md\"", false),
		one("md_read", `{"path":"new.md","heading":"Old"}`,
			"failed: the document has no such section\ninstead: md_read without a heading lists the sections.", false),
	)
	for path, want := range map[string]string{
		"notes.md": intro + "## Linux\n\nUse dnf.\n\n" + uses + "\n# More\n\nAnd more.\n", "new.md": "# New\n",
	} {
		if got, status := p.d.send("GET", "/v1/spaces/"+p.space+"/files/"+path, "", ""); status != 200 || string(got) != want {
			t.Errorf("%s: %d %q, want %q", path, status, got, want)
		}
	}
	raw, _ := p.d.send("GET", "/v1/events?limit=200", "", "")
	if !strings.Contains(string(raw), `"file.edit"`) && !strings.Contains(string(raw), "editFile") {
		t.Error("no edit is in the log")
	}
}
