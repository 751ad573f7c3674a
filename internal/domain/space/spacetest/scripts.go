package spacetest

import (
	"testing"
)

// script is a case: a text for bash in a new space, and its outcome.
func script(name, text, stdout string, code int) testCase {
	return testCase{name, "", func(t *testing.T, h Host) {
		spec := h.Spec(t)
		s := h.Create(t, spec)
		r := h.Exec(t, s, Command{Space: spec.ID, Argv: []string{"/bin/bash", "-c", text}, MS: 60_000})
		if r.Stdout != stdout || r.Code != code {
			t.Errorf("got %q and exit %d (stderr %q), want %q and exit %d", r.Stdout, r.Code, r.Stderr, stdout, code)
		}
	}}
}

// shellCases are about the language in which commands are written.
var shellCases = []testCase{
	script("a pipe", `printf 'b\na\nb\n' | sort | uniq -c | tr -s ' '`, " 1 a\n 2 b\n", 0),
	script("a pipe's exit code is its last command's", `false | true; echo $?; true | false; echo $?`, "0\n1\n", 0),
	script("pipefail", `set -o pipefail; false | true; echo $?`, "1\n", 0),
	script("the codes of a pipe", `true | (exit 3) | (exit 4); echo "${PIPESTATUS[@]}"`, "0 3 4\n", 0),
	script("a reader that leaves", `yes | head -n 2; echo "${PIPESTATUS[0]}"`, "y\ny\n141\n", 0),
	script("a large pipe", `seq 20000 | awk '{s+=$1} END {printf "%d\n", s}'`, "200010000\n", 0),
	script("set -e ends", `set -e; echo a; false; echo b`, "a\n", 1),
	script("set -e spares conditions", `set -e; if false; then :; fi; false || echo or; ! true; echo end`, "or\nend\n", 0),
	script("set -u", `set -u; echo "${x-none}"; echo $x; echo never`, "none\n", 127),
	script("and and or", `true && echo 1; false && echo 2; false || echo 3; true || echo 4`, "1\n3\n", 0),
	script("a subshell changes nothing outside", `x=1; (x=2; cd /; echo $x); echo $x; basename "$PWD"`, "2\n1\nworkspace\n", 0),
	script("a group changes", `x=1; { x=2; }; echo $x`, "2\n", 0),
	script("a function", `f() { local x=in; echo "$x $1 $#"; return 5; }; x=out; f a b; echo "$? $x"`, "in a 2\n5 out\n", 0),
	script("recursion", `f() { if [ "$1" -le 1 ]; then echo 1; else echo $(( $1 * $(f $(( $1 - 1 ))) )); fi; }; f 10`, "3628800\n", 0),
	script("a loop over words", `for x in a "b c" d; do echo "<$x>"; done`, "<a>\n<b c>\n<d>\n", 0),
	script("a counting loop", `for ((i=0; i<3; i++)); do echo $i; done`, "0\n1\n2\n", 0),
	script("while with read", `printf 'a 1\nb 2\n' | while read -r k v; do echo "$v=$k"; done`, "1=a\n2=b\n", 0),
	script("until", `i=0; until [ $i -ge 2 ]; do echo $i; i=$((i+1)); done`, "0\n1\n", 0),
	script("break and continue", `for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done`, "1\n3\n", 0),
	script("case", `for x in a.txt b.c z; do case $x in *.txt) echo text;; *.c|*.h) echo code;; *) echo other;; esac; done`,
		"text\ncode\nother\n", 0),
	script("arithmetic", `echo $((7/2)) $((7%3)) $((2**10)) $((1<<4|3)) $((5>3?1:0)) $((0x1f)) $((-7/2))`, "3 1 1024 19 1 31 -3\n", 0),
	script("parameters with defaults", `unset x; echo "${x:-d}" "${x:=e}" "$x" "${x:+f}" "${#x}"`, "d e e f 1\n", 0),
	script("parameters cut", `p=/a/b/c.tar.gz; echo "${p##*/}" "${p%/*}" "${p%%.*}" "${p#*.}"`, "c.tar.gz /a/b /a/b/c tar.gz\n", 0),
	script("parameters replaced", `s=banana; echo "${s/an/X}" "${s//an/X}" "${s:1:3}" "${s^}" "${s^^}"`, "bXana bXXa ana Banana BANANA\n", 0),
	script("arrays", `a=(x "y z"); a+=(w); echo "${#a[@]} ${a[1]} ${a[-1]}"; for e in "${a[@]}"; do echo "$e"; done`, "3 y z w\nx\ny z\nw\n",
		0),
	script("associative arrays", `declare -A m=([a]=1 [b]=2); m[c]=3; echo "${m[b]} ${#m[@]}"`, "2 3\n", 0),
	script("braces", `echo {1..4} {a,b}c x{01..03}`, "1 2 3 4 ac bc x01 x02 x03\n", 0),
	script("globs are sorted", `mkdir d; cd d; touch b a c.txt .hidden; echo *; echo *.txt; echo ?; echo no*`, "a b c.txt\nc.txt\na b\nno*\n",
		0),
	script("quotes", `x='a  b'; echo $x; echo "$x"; echo '$x'; echo "\"\$x\""; echo $'tab\there'`, "a b\na  b\n$x\n\"$x\"\ntab\there\n", 0),
	script("command substitution", "x=$(printf 'a\\n\\n'); echo \"<$x>\"; echo `echo old`", "<a>\nold\n", 0),
	script("a here-document", "x=5; cat <<E\nx is $x $((x+1))\nE\ncat <<'E'\nx is $x\nE", "x is 5 6\nx is $x\n", 0),
	script("a here-document without tabs", "cat <<-E\n\ta\n\t\tb\n\tE", "a\nb\n", 0),
	script("a here-string", `tr a-z A-Z <<<"low $((1+1))"`, "LOW 2\n", 0),
	script("process substitution", `diff <(printf 'a\nb\n') <(printf 'a\nc\n'); echo $?`, "2c2\n< b\n---\n> c\n1\n", 0),
	script("tests", `[ -d . ] && [[ abc == a*c && 10 -gt 9 ]] && [ ! -e none ] && echo yes; [[ foo123 =~ ([0-9]+) ]] && echo `+
		`"${BASH_REMATCH[1]}"`, "yes\n123\n", 0),
	script("eval and a variable as a command", `c='echo hi'; $c; eval "$c; $c"`, "hi\nhi\nhi\n", 0),
	script("a trap at the end", `trap 'echo bye' EXIT; echo hi; exit 3`, "hi\nbye\n", 3),
	script("source", `echo 'y=7; g() { echo "g $1"; }' >lib.sh; . ./lib.sh; g $y`, "g 7\n", 0),
	script("a script with arguments", "printf '#!/bin/bash\\necho \"$# $1 $0\"\\nexit 4\\n' >s; chmod +x s; ./s 'a b' c; echo $?",
		"2 a b ./s\n4\n", 0),
	script("modes of what is made",
		`umask 077; echo x >f; mkdir d; umask 022; echo x >g; mkdir e; mkdir -m 700 h; chmod g+w g; stat -c '%a %n' d e f g h; umask 027; umask`,
		"700 d\n755 e\n600 f\n664 g\n700 h\n0027\n", 0),
	script("modes of what Python makes", `python3 - <<'E'
import os, stat, tempfile
def mode(name, shown): print(oct(stat.S_IMODE(os.stat(name).st_mode))[2:], shown)
os.close(os.open("a", os.O_CREAT | os.O_WRONLY, 0o600)); mode("a", "a")
os.close(os.open("b", os.O_CREAT | os.O_WRONLY)); mode("b", "b")
os.mkdir("c", 0o700); mode("c", "c")
os.close(os.open("a", os.O_CREAT | os.O_WRONLY, 0o644)); mode("a", "a again")
for path in ("no/such", "a\0"):
    try: os.open(path, os.O_CREAT | os.O_WRONLY, 0o400)
    except (OSError, ValueError): pass
open("d", "w").close(); mode("d", "d")
print(oct(os.umask(0o027)), oct(os.umask(0o027)))
open("e", "w").close(); mode("e", "e")
h, name = tempfile.mkstemp(); os.close(h); mode(name, "mkstemp")
os.makedirs("g/h"); mode("g", "g")
with open("i", "w") as f: os.fchmod(f.fileno(), 0o444)
mode("i", "i")
os.chmod("g", 0o700); mode("g", "g again")
os.system("umask >k; touch j"); print(open("k").read(), end=""); mode("j", "j")
E`, "600 a\n755 b\n700 c\n600 a again\n644 d\n0o22 0o27\n640 e\n600 mkstemp\n750 g\n444 i\n700 g again\n0027\n640 j\n", 0),
	script("a script that may not be executed", `echo 'echo x' >s; ./s 2>/dev/null; echo $?; bash s`, "126\nx\n", 0),
	script("a command that is not there", `no-such-command 2>/dev/null; echo $?`, "127\n", 0),
	script("a text that is not a shell", `if then`, "", 2),
	script("getopts", `while getopts ab:c o -a -b x -c; do echo "$o ${OPTARG-}"; done`, "a \nb x\nc \n", 0),
	script("printf", `printf '%s-%5d|%-4s|%04.1f|%x\n' a 42 b 3.14159 255; printf '%s\n' 1 2`, "a-   42|b   |03.1|ff\n1\n2\n", 0),
	script("arguments of a variable", `set -- a 'b c'; echo "$#" "$2"; shift; echo "$1" "$*"`, "2 b c\nb c b c\n", 0),
	script("variables for one command", `A=1 bash -c 'echo $A'; echo "${A-unset}"; env -i B=2 /bin/bash -c 'echo $B'`, "1\nunset\n2\n", 0),
	script("a nested shell", `bash -c 'echo "$1"; sh -c "exit 9"; echo $?' x one`, "one\n9\n", 0),
}

// streamCases are about where output goes and input comes from.
var streamCases = []testCase{
	script("to a file and from it", `echo one >f; echo two >>f; cat <f`, "one\ntwo\n", 0),
	script("errors to output", `{ echo out; echo err >&2; } 2>&1 | sort`, "err\nout\n", 0),
	script("errors to a file", `ls none 2>err; wc -l <err | tr -d ' '`, "1\n", 0),
	script("both to a file", `{ echo a; echo b >&2; } &>f; sort f`, "a\nb\n", 0),
	script("swapped", `{ echo a; echo b >&2; } 3>&1 1>&2 2>&3 2>/dev/null | cat`, "", 0),
	script("further descriptors", `exec 3>f; echo a >&3; echo b >&3; exec 3>&-; exec 4<f; read -r x <&4; read -r y <&4; echo "$x $y"`, "a b\n",
		0),
	script("no overwriting", `set -C; echo a >f; echo b >f || echo refused; echo c >|f; cat f`, "refused\nc\n", 0),
	script("nothing to nowhere", `echo lost >/dev/null; cat /dev/null; head -c 3 /dev/zero | od -An -tx1`, " 00 00 00\n", 0),
	script("tee", `echo x | tee a b | cat - a b`, "x\nx\nx\n", 0),
	script("xargs", `printf 'a b\nc\n' | xargs -n 1 echo i; printf 'x y\0z\0' | xargs -0 -I{} echo '<{}>'`, "i a\ni b\ni c\n<x y>\n<z>\n", 0),
	script("a closed output", `echo x >&- 2>/dev/null; echo $?`, "1\n", 0),
	script("bytes survive", `printf '\000\001\377' >f; od -An -tx1 f; cat f | od -An -tx1`, " 00 01 ff\n 00 01 ff\n", 0),
	script("reading and writing one file", `printf 'b\na\n' >f; sort f -o f; cat f`, "a\nb\n", 0),
	script("input of a loop", `printf '1\n2\n' >f; while read -r x; do echo "l$x"; done <f; echo "${x-}"`, "l1\nl2\n\n", 0),
}

// fileCases are about files as commands see them.
var fileCases = []testCase{
	script("folders", `mkdir -p a/b/c; ls -R a | tr '\n' ' '; rmdir a/b/c; rmdir a 2>/dev/null || echo full`, "a: b  a/b: c  a/b/c: full\n",
		0),
	script("copies", `mkdir d; echo x >d/f; cp -r d e; echo y >e/f; cat d/f e/f`, "x\ny\n", 0),
	script("moves", `echo x >a; mkdir d; mv a d/b; cat d/b; [ -e a ] || echo gone; mv d e; cat e/b`, "x\ngone\nx\n", 0),
	script("a folder moved into itself", `mkdir d; mv d d/e 2>/dev/null; echo $?`, "1\n", 0),
	script("removes", `mkdir -p d/e; touch d/f; rm d/f; rm d 2>/dev/null || echo folder; rm -r d; ls | wc -l | tr -d ' '`, "folder\n0\n", 0),
	script("a symbolic link", `echo x >f; ln -s f l; cat l; readlink l; rm f; cat l 2>/dev/null || echo dangling`, "x\nf\ndangling\n", 0),
	script("a link to a folder", `mkdir d; echo x >d/f; ln -s d l; cat l/f; (cd l; pwd -P | xargs basename)`, "x\nd\n", 0),
	script("links in a circle", `ln -s a b; ln -s b a; cat a 2>/dev/null; echo $?`, "1\n", 0),
	script("a hard link", `echo x >a; ln a b; echo y >>b; cat a; stat -c %h a; rm a; cat b`, "x\ny\n2\nx\ny\n", 0),
	script("permissions", `echo x >f; chmod 640 f; stat -c %a f; chmod u+x,o=r f; stat -c %a f`, "640\n744\n", 0),
	script("a file without permission", `echo x >f; chmod 000 f; cat f 2>/dev/null || echo no; chmod 600 f; cat f`, "no\nx\n", 0),
	script("a file that is written while it is removed", `exec 3>f; rm f; echo x >&3; ls | wc -l | tr -d ' '`, "0\n", 0),
	script("sizes", `head -c 1000 /dev/zero >f; truncate -s 10 f; stat -c %s f; truncate -s 100000 f; stat -c %s f; tail -c 1 f | od -An -tx1`,
		"10\n100000\n 00\n", 0),
	script("times", `touch -d '2020-01-02 03:04:05 UTC' f; date -u -r f +%Y-%m-%dT%H:%M:%S; touch g; [ g -nt f ] && echo newer`,
		"2020-01-02T03:04:05\nnewer\n", 0),
	script("find", `mkdir -p a/b; touch a/x.py a/b/y.py a/z; find a -name '*.py' | sort; find a -type d | sort | tr '\n' ' '`,
		"a/b/y.py\na/x.py\na a/b ", 0),
	script("grep", `printf 'one\ntwo\nthree\n' >f; grep -n t f; grep -c o f; grep -v o f; grep -q four f; echo $?`,
		"2:two\n3:three\n2\nthree\n1\n", 0),
	script("sed", `printf 'a b\nc d\n' >f; sed -n '2p' f; sed 's/\([a-z]\) \([a-z]\)/\2 \1/' f; sed -i 's/a/X/' f; head -n 1 f`,
		"c d\nb a\nd c\nX b\n", 0),
	script("awk", `printf 'a,1\nb,2\na,3\n' | awk -F, '{s[$1]+=$2} END {for (k in s) print k, s[k]}' | sort`, "a 4\nb 2\n", 0),
	script("cut and paste", `printf 'a:b:c\nd:e:f\n' | cut -d: -f1,3; printf '1\n2\n' | paste -sd+`, "a:c\nd:f\n1+2\n", 0),
	script("sorting", `printf '10 b\n9 a\n10 a\n' | sort -k1,1n -k2; printf 'b\na\nb\n' | sort -ru`, "9 a\n10 a\n10 b\nb\na\n", 0),
	script("sums", `printf abc | sha256sum | cut -c1-16; printf abc | md5sum | cut -c1-8; printf abc | base64; printf YWJj | base64 -d`,
		"ba7816bf8f01cfea\n90015098\nYWJj\nabc", 0),
	script("archives", `mkdir d; echo x >d/a; echo y >d/b; tar czf t.tgz d; rm -r d; tar xzf t.tgz; cat d/a d/b; tar tzf t.tgz | sort | tr `+
		`'\n' ' '`, "x\ny\nd/ d/a d/b ", 0),
	script("compression", `seq 1000 >f; gzip -k f; gunzip -c f.gz | cmp - f && echo same; rm f; gunzip f.gz; wc -l <f | tr -d ' '`,
		"same\n1000\n", 0),
	script("json", `echo '{"a":[1,{"b":"x"}],"n":null}' | jq -c '.a[1].b, (.a|length), .n'`, "\"x\"\n2\nnull\n", 0),
	script("differences", `printf 'a\nb\n' >x; printf 'a\nc\n' >y; diff -q x y; cmp -s x y; echo $?; diff x x && echo same`,
		"Files x and y differ\n1\nsame\n", 0),
	script("heads and tails", `seq 10 >f; head -n 2 f; tail -n 1 f; tail -n +9 f; head -n -8 f; wc -l -c f | awk '{print $1, $2}'`,
		"1\n2\n10\n9\n10\n1\n2\n10 21\n", 0),
	script("names with everything in them",
		`touch -- 'a b' $'n\nl' '-x' 'ü' '*'; ls | wc -l | tr -d ' '; for f in *; do [ -e "$f" ] && echo yes; done | sort -u; rm -- -x`,
		"6\nyes\n", 0),
	script("a name that is too long",
		`touch "$(printf 'x%.0s' {1..255})" && echo fits; touch "$(printf 'x%.0s' {1..256})" 2>/dev/null || echo refused`, "fits\nrefused\n", 0),
	script("paths that leave", `cat ../../../../../../workspace/none 2>/dev/null || echo none; echo x >f; cat /../workspace/f`, "none\nx\n",
		0),
	script("what is not there", `cat none 2>&1; cd none 2>/dev/null || echo no; cat / 2>/dev/null; echo $?`,
		"cat: none: No such file or directory\nno\n1\n", 0),
	script("temporary files",
		`f=$(mktemp); echo x >"$f"; cat "$f"; case $f in /tmp/*) echo tmp;; esac; d=$(mktemp -d); [ -d "$d" ] && echo folder`, "x\ntmp\nfolder\n",
		0),
	script("the system's files are not to be written",
		`for f in /etc/passwd /bin/cat /usr/new /new; do { echo x >$f; } 2>/dev/null && echo "$f"; done; rm /etc/passwd 2>/dev/null || echo `+
			`refused`, "refused\n", 0),
}
