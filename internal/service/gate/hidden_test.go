package gate_test

import "testing"

// TestThreat10ProgramsDoNotHideCommands holds the standard preset to what it promises: what runs a command, deletes a folder or installs
// a package asks, however the program is told to.
func TestThreat10ProgramsDoNotHideCommands(t *testing.T) {
	h := build(t, nil)
	for _, command := range []string{
		"/lib64/ld-linux-x86-64.so.2 /bin/rm -r x", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 /bin/rm -r x", "/proc/self/exe -c 'rm -r x'",
		"tar cf x.tar d --remove-files", "tar --remove -cf x.tar d", "tar xf x.tar --recursive-unlink", "zip -rm x.zip d", "zip --move x.zip d",
		"sed '1e sudo ls' x", "sed 's/x/id/e' x", "sed -ne '1!{e' x", "sed --expr='1e rm -r x' y", "sed -e p -e '$e' x", "sed 's;a;b;ge' x",
		`awk 'BEGIN{system("rm -r x")}'`, `awk 'BEGIN{"id"|getline}'`, `awk 'BEGIN{c="sh";print "id"|c}'`, `gawk 'BEGIN{f="sys""tem";@f("id")}'`,
		"python3 --check-hash-based-pycs default -m pip install x", "python3 -m runpy pip install x",
		"python3 /usr/lib/python3/dist-packages/pip install x",
		"python -m pip --log list install y", "npm --prefix list install", "npm --loglevel ls install x", "npm --unheard-of ls install x",
		"bun --bun add y", "bun --silent install", "bun --cwd . add x", "bun --install=force x.ts", "bun -i x.ts", "bun repl",
		"node /usr/lib/node_modules/npm/bin/npm-cli.js install x",
		"bash /dev/stdin <<< 'rm -r x'", "bash /proc/self/fd/0 <<< 'rm -r x'", "wait -p 'a[$(rm -r y)]'", `x=$'a[\x24(rm -r y)]'; echo $((x))`,
		"mapfile -tC 'rm -r y #' -c 1 < x", "wait -n -p PATH", "BASH_CMDS[cat]=/usr/bin/rm; cat -r x", "BASH_ALIASES[ls]='rm -r x'",
		"set -k; ls PATH=.",
		"set -o keyword; ls PATH=.",
	} {
		if r := h.judge(h.shell("guarded", command)); r.Decision.Outcome == allow {
			t.Errorf("%q: got allow, want a question or a refusal", command)
		}
	}
	for _, command := range []string{
		"sed 'w .env' x", "sed -n '/x/w out.env' x", "sed 's/a/b/w k.pem' x", "cp -t.git x", "sort -o.env x", "mkdir -p .git/hooks", "cksum .env",
	} {
		if r := h.judge(h.shell("guarded", command)); r.Decision.Outcome != deny {
			t.Errorf("%q: got %s, want deny", command, r.Decision.Outcome)
		}
	}
}

// TestOrdinaryProgramsAreAllowed keeps the readers of programs from asking about what everybody writes.
func TestOrdinaryProgramsAreAllowed(t *testing.T) {
	h := build(t, nil)
	for _, command := range []string{
		"sed 's/a/e/g' x", "sed -i.bak -e 's|e|w|' -e '/e/d' x", "sed -n '1,5p;$p' x", "sed -E 's/(e)/\\1;e/;s/x/e/I' x",
		"sed '/w/!d;/e/{p;q}' x",
		"sed '1i e here' x", "sed ':a;N;$!ba;s/\\n/ /g' x", "sed -n '1!G;h;$p' x", `sed "s/a/b/" x`, "sed 'y/ew/we/' x", "sed '/^#/d' x",
		"awk '/error|warn/' x", "awk -F'|' '{print $2}' x", "awk '/@/ {print $1}' x", "awk '$1 == 1 || $2 == 2 {print}' x",
		"awk '/filesystem/' x",
		"npm --prefix app run build", "npm run build", "npm --silent test", "bun run report.ts", "bun report.ts", "bun -e 'add(1)'",
		"python3 -m pip list",
		"python3 -m cProfile report.py", "tar czf x.tgz d", "zip -r x.zip d", "set -euo pipefail; ls", "test -f x && cat x", "cp -r a b", "wait",
		"./run.sh", "/workspace/run.sh", "/tmp/run.sh", "/usr/bin/python3 x.py",
	} {
		if r := h.judge(h.shell("guarded", command)); r.Decision.Outcome != allow {
			t.Errorf("%q: got %s (%s), want allow", command, r.Decision.Outcome, r.Decision.Reason)
		}
	}
}
