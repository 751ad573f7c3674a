package e2b

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePublishedVersionsAreTheTriedOnes compares docs/E2B.md with the packages that scripts/e2b installs.
func TestThePublishedVersionsAreTheTriedOnes(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	script, err := os.ReadFile(filepath.Join(root, "scripts", "e2b"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs", "E2B.md"))
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^` ]+)` (\\d+\\.\\d+\\.\\d+)").FindAllStringSubmatch(string(doc), -1) {
		published[m[1]+" "+m[2]] = true
	}
	tried := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:python_new|python_pinned|node)='([^']+)'`).FindAllStringSubmatch(string(script), -1) {
		for _, pin := range strings.Fields(m[1]) {
			at := strings.LastIndexAny(pin, "@=")
			tried[strings.TrimRight(pin[:at], "=")+" "+pin[at+1:]] = true
		}
	}
	if len(tried) < 9 {
		t.Fatalf("the script pins %v", tried)
	}
	for pin := range tried {
		name, version, _ := strings.Cut(pin, " ")
		if base, _, extra := strings.Cut(name, "["); extra && published[base+" "+version] {
			continue
		}
		if !published[pin] {
			t.Errorf("docs/E2B.md does not publish %s", pin)
		}
	}
	for pin := range published {
		base, version, _ := strings.Cut(pin, " ")
		extra := false
		for other := range tried {
			extra = extra || strings.HasPrefix(other, base+"[") && strings.HasSuffix(other, " "+version)
		}
		if !tried[pin] && !extra {
			t.Errorf("docs/E2B.md publishes %s, which scripts/e2b does not try", pin)
		}
	}
}
