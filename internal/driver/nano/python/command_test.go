package python_test

import (
	"strings"
	"testing"

	"agentbox/internal/userland/program"
)

func TestCommandLines(t *testing.T) {
	const try = "usage: python3 [option] ... [-c cmd | -m mod | file | -] [arg] ...\nTry `python3 -h' for more information.\n"
	files := map[string]string{"a.py": "import sys\nprint(sys.argv, __name__)\n", "lib/m.py": "print('m')"}
	for _, c := range []struct {
		args           []string
		env            []string
		stdin          string
		stdout, stderr string
		exit           int
	}{
		{args: []string{"-V"}, stdout: "Python 3.13.5\n"},
		{args: []string{"--version"}, stdout: "Python 3.13.5\n"},
		{args: []string{"-VV"}, stdout: "Python 3.13.5 (main, Jun 11 2025, 00:00:00) [Clang 19.1.7]\n"},
		{args: []string{"-z"}, stderr: "Unknown option: -z\n" + try, exit: 2},
		{args: []string{"--zz"}, stderr: "unknown option --zz\n" + try, exit: 2},
		{args: []string{"-c"}, stderr: "Argument expected for the -c option\n" + try, exit: 2},
		{args: []string{"-m"}, stderr: "Argument expected for the -m option\n" + try, exit: 2},
		{args: []string{"-i"}, stderr: "python3: a nano space has no terminal: the option -i is not available\n", exit: 2},
		{args: []string{"a.py", "-V", "--", "x"}, stdout: "['a.py', '-V', '--', 'x'] __main__\n"},
		{args: []string{"--", "a.py"}, stdout: "['a.py'] __main__\n"},
		{args: []string{"-IEsSBbdqPuv", "a.py"}, stdout: "['a.py'] __main__\n"},
		{args: []string{"-cprint(1)"}, stdout: "1\n"},
		{args: []string{"-uc", "print(1)", "-x"}, stdout: "1\n"},
		{args: []string{"-Wignore", "-X", "dev", "-c", "import sys, warnings; warnings.warn('x'); print(sys._xoptions)"},
			stdout: "{'dev': True}\n"},
		{args: []string{"-", "q"}, stdin: "import sys; print(sys.argv)", stdout: "['-', 'q']\n"},
		{args: nil, stdin: "import sys; print(sys.argv)", stdout: "['']\n"},
		{args: []string{"-m", "m"}, env: []string{"PYTHONPATH=/proj/lib"}, stdout: "m\n"},
		{args: []string{"-Em", "m"}, env: []string{"PYTHONPATH=/proj/lib"}, stderr: "/usr/bin/python3: No module named m\n", exit: 1},
		{args: []string{"-c", "assert 0"}, env: []string{"PYTHONOPTIMIZE=1"}},
		{args: []string{"-c", "import os; print(os.environ['A'], os.environb[b'B'], os.getcwd())"}, env: []string{"A=ä", "B=\xff", "A=b"},
			stdout: "b b'\\xff' /proj\n"},
		{args: []string{"-c", "import sys; print(ascii(sys.argv[1]))", "\xffé\n\"\\"}, stdout: "'\\udcff\\xe9\\n\"\\\\'\n"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			w := &world{files: files, env: c.env, stdin: c.stdin}
			w.python(t, c.args...)
			if w.stdout.String() != c.stdout || w.stderr.String() != c.stderr || w.status.Exit() != c.exit {
				t.Errorf("%d, stdout %q, stderr %q; want %d, %q, %q", w.status.Exit(), w.stdout.String(), w.stderr.String(), c.exit, c.stdout, c.stderr)
			}
		})
	}
	w := &world{}
	if w.python(t, "-h"); !strings.HasPrefix(w.stdout.String(), "usage: python3 [option]") || w.status.Code != 0 {
		t.Errorf("help: %d, %q", w.status.Code, w.stdout.String())
	}
	w = &world{}
	if w.python(t, "-i"); len(w.lacks) != 1 || w.lacks[0] != (program.Lack{Kind: program.LackOption, Name: "python3", Detail: "-i"}) {
		t.Errorf("-i: %+v", w.lacks)
	}
	w = &world{}
	if w.python(t, "-m", "pip", "install", "x"); len(w.lacks) != 1 || w.lacks[0].Detail != "module pip" || w.status.Code != 1 {
		t.Errorf("-m pip: %d, %+v", w.status.Code, w.lacks)
	}
}
