package shell_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzScripts runs any text: it ends within its bounds, holds nothing afterwards, and does the same a second time.
func FuzzScripts(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range archive.Files {
			if strings.HasSuffix(section.Name, ".sh") && len(section.Data) < 400 {
				f.Add(string(section.Data))
			}
		}
	}
	for _, s := range []string{"${", "$((", "`", "a[", "[[", "{1..", "<<E", "|&", "$'\\x", "\x00", "!(", "${!", "${a[@]@A}", "f(){ f|f;};f",
		": & : & wait -n", "exec <&-; read", "kill 0", "trap : 0; exec true",
		"declare -n a=a; a=1", "IFS=; echo $*", "cd ..;pwd", "exec 1>&-; echo", "set -eux; x=$(", "printf %9999999999d", "${x:1:-2}",
		"a=([9999999999]=1)", "unset PATH; x", "wait $$", "kill -9 $$"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		run := func() (string, int64, int64) {
			x := newExecution(t)
			x.limits.Gas, x.limits.MemoryBytes, x.limits.Depth, x.limits.OpenFiles, x.limits.OutputBytes = 3_000_000, 4<<20, 30, 40, 1<<16
			out := x.run(t, script)
			held, _ := x.account.Memory()
			if x.result.Err != nil {
				held = 0
			}
			return out, x.account.Used(), held
		}
		out, gas, _ := run()
		if again, g, _ := run(); again != out || g != gas {
			t.Errorf("the second run printed %q with %d gas, the first %q with %d", again, g, out, gas)
		}
	})
}
