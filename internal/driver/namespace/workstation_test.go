//go:build linux

package namespace

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
)

// workstation makes a space with the root of `make rootfs` and a daemon's usual limits.
func workstation(t *testing.T) (spacetest.Host, space.Spec, space.Instance) {
	t.Helper()
	out, err := exec.Command("../../../scripts/rootfs", "--print").Output()
	dir := strings.TrimSpace(string(out))
	if _, missing := os.Stat(filepath.Join(dir, rootMark)); err != nil || missing != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the root of the spaces is missing: run make rootfs; %v, %v", err, missing)
		}
		t.Skip("the root of the spaces is missing: run make rootfs")
	}
	t.Setenv("AGENTBOX_TEST_ROOT", dir)
	h := host(t)
	spec := h.Spec(t)
	spec.Limits = space.DefaultLimits()
	return h, spec, h.Create(t, spec)
}

// listed returns what docs/RUNTIMES.md promises: programs, and modules of Python.
func listed(t *testing.T) (programs, modules []string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/RUNTIMES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "\n- Small root")
	list, _, ended := strings.Cut(list, "\n\n")
	commands, libraries, both := strings.Cut(list, "Python modules")
	if !found || !ended || !both {
		t.Fatal("docs/RUNTIMES.md has no lists of what a space has")
	}
	word := regexp.MustCompile("`([^`]+)`")
	for _, m := range word.FindAllStringSubmatch(commands, -1) {
		programs = append(programs, m[1])
	}
	for _, m := range word.FindAllStringSubmatch(libraries, -1) {
		modules = append(modules, m[1])
	}
	return programs, modules
}

// A space has the programs and the modules that the documentation lists.
func TestWorkstation(t *testing.T) {
	h, spec, s := workstation(t)
	programs, modules := listed(t)
	if len(programs) < 35 || len(modules) < 20 {
		t.Fatalf("got %d programs and %d modules", len(programs), len(modules))
	}
	r := h.Exec(t, s, spacetest.Shell(spec.ID, "for p in "+strings.Join(programs, " ")+"; do command -v $p >/dev/null || echo no $p; done"))
	if r.Code != 0 || r.Stdout != "" {
		t.Errorf("programs: got %+v", r)
	}
	r = h.Exec(t, s, spacetest.Shell(spec.ID, "python3 -c 'import "+strings.Join(modules, ", ")+"'"))
	if r.Code != 0 {
		t.Errorf("modules: got %+v", r)
	}
}

// The usual work of agents at a workstation works within the limits of a space, as its user, without a network.
func TestWork(t *testing.T) {
	h, spec, s := workstation(t)
	for name, c := range map[string]struct{ script, want string }{
		"a chart": {`python3 -c '
import pandas, matplotlib.pyplot as plt
pandas.DataFrame({"x": range(9), "y": [n * n for n in range(9)]}).plot(x="x", y="y")
plt.savefig("chart.png")
print("drawn")' 2>&1`, "drawn\n"},
		"a chart without a home": {`HOME=/nowhere python3 -c '
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.savefig("bare.png"); print("drawn")' 2>/dev/null`, "drawn\n"},
		"numbers": {`python3 -c '
import numpy, scipy.linalg, sklearn.linear_model
a = numpy.arange(250000.0).reshape(500, 500) % 7 + numpy.eye(500)
print(numpy.allclose(a @ scipy.linalg.inv(a), numpy.eye(500)), sklearn.linear_model.LinearRegression().fit([[1], [2]], [2, 4]).coef_.round(3))'`, "True [2.]\n"},
		"a repository": {`mkdir r && cd r && git init -q && echo a >f && git add f &&
git -c user.name=a -c user.email=a@b.c commit -qm one && echo b >>f && git diff --stat && git log --format=%s`,
			" f | 1 +\n 1 file changed, 1 insertion(+)\none\n"},
		"a program in C": {`printf '#include <stdio.h>\nint main(void) { puts("compiled"); }' >c.c && make -s c && ./c`, "compiled\n"},
		"a database":     {`sqlite3 t.db 'create table t(n); insert into t values (7); select n*6 from t'`, "42\n"},
		"tests":          {`printf 'def test_one(): assert 1\n' >test_a.py && pytest -q 2>&1 | tail -n 1 | cut -d ' ' -f 1,2`, "1 passed\n"},
		"an environment": {`python3 -m venv --without-pip v && v/bin/python -c 'print("inside")'`, "inside\n"},
		"a search":       {`mkdir d && echo needle >d/hay && rg -l needle d && fd hay d`, "d/hay\nd/hay\n"},
		"a wheel of ours": {`mkdir w && cd w && printf 'from setuptools import setup\nsetup(name="ours", version="1", py_modules=["ours"])' ` +
			`>setup.py && echo 'x = 6' >ours.py && python3 setup.py -q bdist_wheel 2>/dev/null && pip install -q dist/*.whl && cd / && python3 -c ` +
			`'import ours; print(ours.x * 7)'`, "42\n"},
		"pip, no network": {`timeout 10 pip install flask 2>&1 | grep -ciE 'could not find|no matching'`, "2\n"},
		"uv, no network":  {`timeout 10 uv pip install --target u flask 2>&1 | grep -c 'network'`, "1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := h.Exec(t, s, spacetest.Shell(spec.ID, c.script)); r.Stdout != c.want || r.Limit != "" {
				t.Errorf("got %+v, want %q", r, c.want)
			}
		})
	}
	for _, name := range []string{"chart.png", "bare.png"} {
		drawn, err := os.ReadFile(filepath.Join(spec.Dir, name))
		if err == nil {
			_, err = png.Decode(bytes.NewReader(drawn))
		}
		if err != nil {
			t.Error(fmt.Errorf("%s is not a picture: %w", name, err))
		}
	}
}
