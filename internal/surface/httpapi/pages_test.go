package httpapi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryListRefusesAStrangeCursor asks every list of the API document that has a cursor for the page behind what is not an entry of
// it, which is refused, and then reads it to its end, one entry a page.
func TestEveryListRefusesAStrangeCursor(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct {
			ID         string `json:"operationId"`
			Parameters []struct {
				Name string `json:"name"`
			} `json:"parameters"`
		} `json:"paths"`
	}
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err == nil {
		err = json.Unmarshal(raw, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := populated(t)
	tried := 0
	for path, operations := range document.Paths {
		for _, p := range operations["get"].Parameters {
			if p.Name == "cursor" {
				tried++
				m.strangeCursors(t, parameter.ReplaceAllStringFunc(path, func(name string) string { return m.things[name[1:len(name)-1]] }))
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d lists were tried; the document is too small", tried)
	}
}

func (m *matrix) strangeCursors(t *testing.T, path string) {
	t.Helper()
	for _, strange := range []string{"zzz", "ses_01M7YNAYM0SMK245AEDNVB5CNW", "run_01m7ynaym0smk245aednvb5cnw", "%20", "-1",
		strings.Repeat("x", 300)} {
		if status, raw := m.ask(t, "", "GET", path+"?cursor="+strange, ""); status != 400 || code(raw) != "invalid_cursor" {
			t.Errorf("%s behind %.40q: %d %.200s, want 400 invalid_cursor", path, strange, status, raw)
		}
	}
	seen := map[string]bool{}
	for cursor := ""; ; {
		status, raw := m.ask(t, "", "GET", path+"?limit=1&cursor="+cursor, "")
		var page struct {
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(raw, &page); status != 200 || err != nil || seen[page.Next] {
			t.Fatalf("%s behind %q: %d %v %.300s", path, cursor, status, err, raw)
		}
		if cursor = page.Next; cursor == "" {
			return
		}
		seen[cursor] = true
	}
}
