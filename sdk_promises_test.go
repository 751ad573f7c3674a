package agentbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shownBy is a test as docs/SDK.md names it: the file, and the beginning of the test's name.
var shownBy = regexp.MustCompile("`((?:[a-z-]+\\.test\\.ts|test_[a-z_]+\\.py)): ([^`]+)`")

// TestPromisesOfTheSDKs holds that each expectation and each journey of docs/SDK.md is shown by a test of both SDKs, which exists.
func TestPromisesOfTheSDKs(t *testing.T) {
	raw, err := os.ReadFile("docs/SDK.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "\n## What a developer may expect\n")
	section, _, ended := strings.Cut(rest, "\n## ")
	if !found || !ended {
		t.Fatal("docs/SDK.md has no section about what a developer may expect")
	}
	promised, journeys := 0, 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| journey ") || strings.HasPrefix(line, "| | ") {
			continue
		}
		if strings.HasPrefix(line, "| ✓ DX") {
			if promised++; !strings.HasPrefix(line, fmt.Sprintf("| ✓ DX%d |", promised)) {
				t.Errorf("DX%d is missing before %.20s", promised, line)
			}
		} else {
			journeys++
		}
		sdks := map[string]bool{}
		for _, shown := range shownBy.FindAllStringSubmatch(line, -1) {
			sdks[filepath.Ext(shown[1])] = true
			if why := missingTest(shown[1], shown[2]); why != "" {
				t.Errorf("%.60s: %s", line, why)
			}
		}
		if !sdks[".ts"] || !sdks[".py"] {
			t.Errorf("no test of both SDKs shows: %s", line)
		}
	}
	if promised != 10 || journeys < 4 {
		t.Errorf("got %d expectations and %d journeys, want 10 and at least the 4 of the requirements", promised, journeys)
	}
}

// missingTest says why there is no such test, "" where there is one.
func missingTest(file, name string) string {
	path, declared := filepath.Join("sdk/typescript/test", file), "test('"+name
	if strings.HasSuffix(file, ".py") {
		path, declared = filepath.Join("sdk/python/tests", file), "def "+name+"("
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if !strings.Contains(string(raw), declared) {
		return fmt.Sprintf("%s has no %s", path, declared)
	}
	return ""
}
