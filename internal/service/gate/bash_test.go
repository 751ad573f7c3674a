package gate_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/policy"
	"agentbox/internal/testkit/wall"
)

// hidden are command lines that try to run sudo without looking like it. Not all of them succeed in every shell; bash itself says which do.
var hidden = []string{
	"sudo", `\sudo`, `su""do`, `"sudo"`, `$'sudo'`, `$'\163udo'`, "{sudo,}", "{,sudo}", "s{u,}do", "su\\\ndo", "X=1 sudo", "x=sudo; $x",
	`x=sudo; "$x"`, "x=su; ${x}do", "${x:-sudo}",
	"$(echo sudo)", "`echo sudo`", "eval sudo", "eval -- sudo", "eval 'su''do'", "command sudo", "command -p sudo", "builtin command sudo",
	"exec sudo", "exec -a x sudo", "exec -cl sudo",
	"env sudo", "env -- sudo", "env -i $PWD/../bin/sudo", "env A=b sudo", "env -S 'sudo x'", "env -S'sudo x'", "env -vS 'sudo x'",
	"env --split-string='sudo x'", "env -u A sudo", "env -C . sudo",
	"nice sudo", "nice -n 1 sudo", "nice -1 sudo", "nice --adjustment=1 sudo", "nohup sudo", "timeout 5 sudo", "timeout -k 1 5 sudo",
	"timeout --sig KILL 5 sudo", "stdbuf -oL sudo",
	"stdbuf --output L sudo", "setsid -w sudo", "time sudo", "time -p sudo", "ionice -c 3 sudo", "flock lock sudo", "flock lock -c sudo",
	"flock -w 1 lock sudo", "echo | xargs sudo",
	"echo x | xargs -n 1 sudo", "echo sudo | xargs -I X X", "echo sudo | xargs -I{} {}", "echo sudo | xargs --replace=ls ls",
	"echo sudo | xargs -ils ls", "echo sudo | xargs -I ls ls",
	"echo x | xargs -I{} sh -c 'sudo {}'", "echo sudo | sh", "echo sudo | bash -s", "sh -c sudo", "bash -c sudo", "bash -ec sudo",
	"bash -o errexit -c sudo", "bash -c -- sudo",
	"bash -c '$0' sudo", "bash -c '\"$@\"' x sudo", "bash <<< sudo", "bash <<E\nsudo\nE", "bash <<'E'\nsudo\nE", "sh <<-E\n\tsudo\n\tE",
	"x=sudo bash -c '$x'", "BASH_ENV=<(echo sudo) bash -c :",
	"find . -maxdepth 0 -exec sudo \\;", "find . -maxdepth 0 -exec sudo {} +", "find . -maxdepth 0 -execdir $PWD/../bin/sudo \\;",
	"find . -maxdepth 0 -exec sh -c sudo \\;",
	"trap sudo EXIT", "trap -- sudo EXIT", "trap 'sudo' EXIT; :", "f() { sudo; }; f", "function f { sudo; }; f", "ls() { sudo; }; ls",
	"alias ls=sudo; shopt -s expand_aliases\nls",
	"shopt -s expand_aliases; alias q=sudo\nq", "if sudo; then :; fi", "while sudo; do break; done", "until sudo; do :; done", "! sudo",
	"(sudo)", "{ sudo; }", "sudo &\nwait", "sudo | cat",
	"cat <(sudo)", "echo > >(sudo)", "echo $(sudo)", "echo `sudo`", "echo $((1 + $(sudo; echo 1)))", "[[ -n $(sudo) ]]",
	"case $(sudo) in esac", "for x in $(sudo); do :; done",
	"for ((i = $(sudo; echo 0); i < 0; i++)); do :; done", "x[$(sudo; echo 0)]=1", "x=($(sudo))", "declare x=$(sudo)", "export x=`sudo`",
	"echo ${x:-$(sudo)}", "echo ${y/$(sudo)/}",
	"cat <<E\n$(sudo)\nE", "cat <<< $(sudo)", "coproc sudo; wait", "select x in $(sudo); do break; done <<< ''", "((x = $(sudo; echo 1)))",
	"let 'x = $(sudo; echo 1)'",
	`x='a[$(sudo)]'; echo $((x))`, `x='a[$(sudo)]'; ((x))`, `x='a[$(sudo)]'; [[ $x -eq 0 ]]`, `x='a[$(sudo)]'; declare -i y=x`,
	`test -v 'a[$(sudo)]'`, `printf -v 'a[$(sudo)]' x`,
	`unset 'a[$(sudo)]'`, `read 'a[$(sudo)]' <<< x`, `x='$(sudo)'; echo "${x@P}"`, `PS4='$(sudo)'; set -x; :`, "mapfile -C sudo -c 1 <<< x",
	"hash -p $PWD/../bin/sudo ls; ls",
	"PATH=$PWD/../shadow; ls", "PATH=$PWD/../shadow ls", "export PATH=$PWD/../shadow; ls", "declare -n p=PATH; p=$PWD/../shadow; ls",
	"read PATH <<< $PWD/../shadow; ls",
	"printf -v PATH %s $PWD/../shadow; ls", "printf -vPATH %s $PWD/../shadow; ls", "for PATH in $PWD/../shadow; do ls; done",
	": ${PATH::=x}; : ${PATH:=x}; sudo", "env PATH=$PWD/../shadow ls",
	". <(echo sudo)", "source /dev/stdin <<< sudo", "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=sudo .",
	"tar --to-comm=sudo -xf a.tar", "tar -cf x.tar -I sudo .", "tar cIf sudo x.tar .",
	"sort --compress-program=sudo -S 1 /dev/null", "split --filter=sudo /etc/hostname", "split --filt=sudo /etc/hostname",
	"enable -n echo; sudo", "exec 3< <(sudo); cat <&3", "true && sudo || :", "false || sudo",
	"x() { sudo; }; y() { x; }; y", "bash -c 'bash -c \"sudo\"'", "sh -c 'sh -c \"sh -c sudo\"'", "command -v ls; command sudo",
	"! ! sudo", "! ! ! sudo", "((sudo) || (ls))", "((ls; sudo) | cat)", "echo $((sudo; ls) | cat)", "(((sudo) && ls) || ls)",
	`n='[$(sudo)]'; echo $(( x$n = 1 ))`, `n='[$(sudo)]'; (( x$n = 1 ))`, "echo $(( x$(sudo) = 1 ))", "x=a; echo $(( x$(ls >&2; sudo)++ ))",
	"sudo() { :; }; command sudo", "if false; then sudo() { :; }; fi; sudo",
}

// TestThreat10BashDecidesWhatRuns runs the command lines in bash with a sudo that leaves a mark. A line that leaves one must never be
// allowed.
func TestThreat10BashDecidesWhatRuns(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatalf("this test needs bash: %v", err)
	}
	h := build(t, nil)
	ran := 0
	for _, line := range hidden {
		if !marked(t, bash, line) {
			continue
		}
		ran++
		for _, preset := range []string{"restrictive", "standard", "permissive"} {
			if r := h.judge(h.shell(preset, line)); r.Decision.Outcome == policy.Allow {
				t.Errorf("%s allows %q, and bash ran sudo", preset, line)
			}
		}
	}
	if ran < len(hidden)/2 {
		t.Errorf("only %d of %d command lines ran sudo; the test has lost its teeth", ran, len(hidden))
	}
	t.Logf("bash ran sudo in %d of %d", ran, len(hidden))
}

// marked runs a command line in a folder of its own and reports whether sudo was called.
func marked(t *testing.T, bash, line string) bool {
	t.Helper()
	top := t.TempDir()
	mark := filepath.Join(top, "mark")
	stub := []byte("#!" + bash + "\n: > '" + mark + "'\n")
	for _, name := range []string{"bin/sudo", "shadow/ls"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), stub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(top, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wall.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "-c", line)
	cmd.Dir, cmd.Stdin = work, strings.NewReader("")
	cmd.Env = []string{"PATH=" + filepath.Join(top, "bin") + ":/usr/bin:/bin", "HOME=" + work}
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // most of them fail in one way or another; only the mark counts
	_, err := os.Stat(mark)
	return err == nil
}
