package nano

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
)

// TestPythonAmongTheOtherPrograms runs scripts in which the shell starts Python, and Python the shell's programs.
func TestPythonAmongTheOtherPrograms(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.MemoryBytes = 512 << 20
	s := h.Create(t, spec)
	for _, x := range []struct{ script, stdout, stderr string }{
		{`echo hello | python3 -c 'import sys; print(sys.stdin.read().upper(), end="")' | tr L x`, "HExxO\n", ""},
		{"python3 <<'X'\nprint(1)\nX", "1\n", ""},
		{`seq 1 3 | while read i; do python3 -c "print($i*$i)"; done`, "1\n4\n9\n", ""},
		{`python3 -c 'import sys; sys.exit(5)'; echo $?`, "5\n", ""},
		{`timeout 2 python3 -c 'import time; print("a", flush=True); time.sleep(100); print("b")'; echo $?`, "a\n124\n", ""},
		{`timeout 1 python3 -c 'while True: pass'; echo $?`, "124\n", ""},
		{`python3 -c 'import os; print(os.system("echo from the shell; exit 3") >> 8)'`, "from the shell\n3\n", ""},
		{`python3 -c 'import subprocess; print(subprocess.run("seq 3 | tail -1; echo $HOME", shell=True, capture_output=True, ` +
			`text=True).stdout)'`, "3\n/tmp/home\n\n", ""},
		{`python3 -c 'import subprocess; print(subprocess.check_output(["python3", "-c", "print(7)"]))'`, "b'7\\n'\n", ""},
		{`printf '#!/usr/bin/env python3\nimport sys; print(sys.argv)\n' >s.py; chmod +x s.py; ./s.py q`, "['./s.py', 'q']\n", ""},
		{`mkdir -p a; echo 'print(__file__)' >a/x.py; python3 a/x.py; (cd a; python3 x.py); python3 -m a.x`,
			"/workspace/a/x.py\n/workspace/a/x.py\n/workspace/a/x.py\n", ""},
		{`python3 -c 'import os; os.chmod("a/x.py", 0o751)'; stat -c %a a/x.py; chmod 600 a/x.py; python3 -c 'import os; ` +
			`print(oct(os.stat("a/x.py").st_mode))'`,
			"751\n0o100600\n", ""},
		{`python3 -c 'import sqlite3; c = sqlite3.connect("d"); c.execute("create table t(a)"); c.execute("insert into t values(4)"); c.commit()'
			python3 -c 'import sqlite3; print(sqlite3.connect("d").execute("select * from t").fetchall())'`, "[(4,)]\n", ""},
		{`A=1 python3 -c 'import os; print(os.environ["A"], os.getcwd())'`, "1 /workspace\n", ""},
		{`python3 -c 'print("out"); import sys; print("err", file=sys.stderr)' 2>&1 >/dev/null | cat`, "err\n", ""},
		{`for i in $(seq 3); do python3 -c 'import os; open("n", "a").write("x")'; done; cat n`, "xxx", ""},
		{`python3 -c 'import os; os.abort()'; echo $?`, "134\n", "Fatal Python error: the interpreter crashed: unreachable\n"},
	} {
		r := h.Exec(t, s, spacetest.Shell(spec.ID, x.script))
		if r.Stdout != x.stdout || !strings.HasPrefix(r.Stderr, x.stderr) || x.stderr == "" && r.Stderr != "" || r.Code != 0 {
			t.Errorf("%s:\n%q, stderr %q, code %d; want %q, %q", x.script, r.Stdout, r.Stderr, r.Code, x.stdout, x.stderr)
		}
	}
	r := h.Exec(t, s, spacetest.Shell(spec.ID, `python3 -c 'import numpy'`))
	if r.Code != 1 || !slices.ContainsFunc(r.Lacks, func(l space.Lack) bool { return strings.Contains(l.String(), "module numpy") }) {
		t.Errorf("what has no numpy: %+v", r)
	}
}
