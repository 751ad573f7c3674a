package command_test

import (
	"strings"
	"testing"

	"agentbox/internal/command"
)

// words splits a text at its spaces; a dollar sign makes a word one that is only known when it runs.
func words(text string) (list []command.Word) {
	for field := range strings.FieldsSeq(text) {
		if strings.HasPrefix(field, "$") {
			list = append(list, command.Word{})
		} else {
			list = append(list, command.Word{Text: field, Known: true})
		}
	}
	return list
}

func text(list ...command.Word) string {
	texts := make([]string, len(list))
	for i, w := range list {
		if texts[i] = w.Text; !w.Known {
			texts[i] = "$"
		}
	}
	return strings.Join(texts, " ")
}

// TestBothFindTheSameCommand holds that what tiering finds in a wrapper is what the gate says that it runs.
func TestBothFindTheSameCommand(t *testing.T) {
	for line, want := range map[string]string{
		"env -i A=b -- x": "-- x", // NAME=value ends the options
		"env -i A=b x y":  "x y", "env -uC x": "x", "env -u N -C d x": "x", "env -a zero x": "x", "env --chdir d x": "x", "env --ch d x": "x",
		"env": "", "env A=b": "", "xargs -n1 -P 2 x y": "x y", "xargs --max-args 3 x": "x", "timeout -k 3 --signal KILL 5 x": "x",
		"timeout 5": "", "nice -n 5 x": "x", "nice -5 x": "x",
		"ionice -c 2 -n 7 x": "x", "ionice -P 5 x": "x", "nohup x": "x", "setsid -w x": "x",
		"stdbuf -oL -e 0 x": "x", "command -p x": "x", "command -v x": "", "command -V x": "", "builtin x": "x", "exec -a n x": "x",
		"busybox x -v": "x -v", "toybox x": "x", "flock -w 5 f x": "x", "flock f -c": "-c", "taskset 3 x": "x", "chrt -b 0 x": "x",
		"sudo -u me A=b x": "x", "doas -u me x": "x", "ssh host x": "", "watch x": "", "ls x": "",
	} {
		name, rest, _ := strings.Cut(line, " ")
		inner, _ := command.Inner(name, words(rest))
		got := text(inner...)
		r, err := command.ReadScript(line, command.Bash, "")
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		gate := ""
		if len(r.Commands) > 1 {
			gate = r.Commands[1].Line()
		}
		if got != want || gate != want {
			t.Errorf("%s: tiering finds %q and the gate %q, want %q", line, got, gate, want)
		}
	}
	for rest, want := range map[string]string{"$a x": "", "-u $a x": "", "-- $a": "", "A=b $a x": "", "x $a": "x $"} {
		if inner, _ := command.Inner("env", words(rest)); text(inner...) != want {
			t.Errorf("env %s: got %q, want %q", rest, text(inner...), want)
		}
	}
	if inner, line := command.Inner("flock", words("f -c a b")); inner != nil || line != "a b" {
		t.Errorf("flock with a line: got %v and %q", inner, line)
	}
	if !command.Holds("busybox") || command.Holds("env") {
		t.Error("busybox has its commands itself, and env has none")
	}
}

func TestWhatAShellIsToldToRun(t *testing.T) {
	for line, want := range map[string]string{
		"-c x a": "text x", "-ec x": "text x", "-euo pipefail -c x": "text x", "-o pipefail f": "file f", "--rcfile r f": "file f",
		"+e f a": "file f", "-- -f": "file -f", "": "reads", "-": "reads", "-s a": "reads", "/dev/stdin": "reads", "-x": "reads",
		"$a": "", "-c": "", "-c $a": "text $", "-O extglob -c x": "text x",
	} {
		run, file, reads := command.Shell(words(line))
		got := ""
		switch {
		case reads:
			got = "reads"
		case file != command.Word{}:
			got = "file " + text(file)
		case run != command.Word{} || line == "-c $a":
			got = "text " + text(run)
		}
		if got != want {
			t.Errorf("bash %s: got %q, want %q", line, got, want)
		}
	}
}

func TestWhatFindRuns(t *testing.T) {
	for line, want := range map[string]string{
		"-name x": "", "-exec a {} ;": "a {}", "-exec a {} + -okdir b c ; -print": "a {}, b c", "-exec a + b ;": "a + b", "-ok a": "a",
		"-exec": "", "-execdir a $b + -delete": "a $",
	} {
		var all []string
		for _, c := range command.Found(words(line)) {
			if len(c) > 0 {
				all = append(all, text(c...))
			}
		}
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("find %s: got %q, want %q", line, got, want)
		}
	}
}

func TestOptionsThatTakeTheNextArgument(t *testing.T) {
	for line, want := range map[string]string{
		"python3 -W x -u f": "f", "python3 -uX x f": "f", "python3 -Wx f": "f", "node -r m f": "f", "node --require m -C c f": "f",
		"node --require=m f": "f", "npm --prefix d -w x i": "i", "git -C d -c a=b push": "push", "curl -sSo f u": "u", "curl -of u": "u",
		"curl -z d u": "u", "apt-get -o a=b -y install": "install", "nothing -a f": "f", "node -- f": "f", "node $a f": "", "node": "",
	} {
		tool, rest, _ := strings.Cut(line, " ")
		if first, _ := command.OptionsOf(tool).Operand(words(rest)); first.Text != want {
			t.Errorf("%s: got %q, want %q", line, first.Text, want)
		}
	}
	o := command.OptionsOf("npm")
	for option, want := range map[string]bool{
		"--prefix": true, "--pre": true, "--prefix=x": false, "--": false, "-": false, "view": false, "-w": true, "": false,
	} {
		if o.Takes(option) != want {
			t.Errorf("npm %q takes the next: got %t, want %t", option, !want, want)
		}
	}
}

func TestNamesThatBothKnow(t *testing.T) {
	for name, want := range map[string]bool{"cd": true, ":": true, "[": true, "kill": true, "help": true, "ls": false, "": false} {
		if command.Builtin(name) != want {
			t.Errorf("%q is a builtin: got %t, want %t", name, !want, want)
		}
	}
	for line, want := range map[string]bool{
		"npm whoami": true, "cargo update": true, "bundle install": true, "npm run": false, "ls install": false,
	} {
		tool, verb, _ := strings.Cut(line, " ")
		if command.Fetches(tool, verb) != want {
			t.Errorf("%s fetches: got %t, want %t", line, !want, want)
		}
	}
}
