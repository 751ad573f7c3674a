package meter

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares the text of metered modules with what lies in testdata/golden; -update writes it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.wat")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".metered.wat") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".wat"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Instrument(assemble(t, string(text)), Options{Detach: strings.Contains(file, "detach")})
			if err != nil {
				t.Fatal(err)
			}
			validate(t, out.Wasm)
			path := filepath.Join(t.TempDir(), "m.wasm")
			if err := os.WriteFile(path, out.Wasm, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := exec.Command(tool(t, "wasm2wat"), "--enable-tail-call", path).Output()
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".wat") + ".metered.wat"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}
