package gate_test

import "testing"

// TestThreat10SecretFilesAreNotReachedByOptions holds the standard preset to its word: what names a file that it refuses is refused, or
// asks, wherever in a command line the name stands.
func TestThreat10SecretFilesAreNotReachedByOptions(t *testing.T) {
	h := build(t, nil)
	for _, command := range []string{
		// as the value of an option
		"grep -f .env x", "grep -f.env x", "grep --file=.env x", "grep --file .env x", "grep -nf .env x", "grep -e x .env", "grep -ex .env",
		"grep --regexp=x .env",
		"grep -m 5 x .env", "grep -r --include=.env . .", "grep -r --include='*.env' . .", "egrep x -- .env", "fgrep -f .env x",
		"xargs -a .env cat", "xargs -a.env cat", "xargs --arg-file=.env cat", "xargs --arg-file .env echo", "tar -T .env -cf x.tar",
		"tar -T.env -cf x.tar",
		"tar --files-from=.env -cf x.tar", "tar --files-from .env -cf x.tar", "tar cTf .env x.tar", "tar cf x.tar .env",
		"tar -X .env -cf x.tar .", "tar xf a.tar -C .git",
		"awk -f .env x", "awk -f.env x", "awk -fprog.awk .env", "awk '{print}' .env", "awk -F , '{print}' .env", "awk -v a=b '{print}' .env",
		"sed -f .env x", "sed -f.env x",
		"sed --file=.env x", "sed -ep .env", "sed --expression=p .env", "sed -n -e p -e q .env", "sed 'r .env' x", "sed 'w .env' x",
		"sed -n 's/a/b/w .env' x", "sed -s -n '$p' .env",
		"sort -o .env x", "sort -o.env x", "sort --output=.env x", "sort --output .env x", "sort --files0-from=.env", "wc --files0-from .env",
		"wc -l .env", "head -n 1 .env",
		"tee .env", "tee -a .env < x", "dd if=.env of=x", "dd of=.env", "ln -s .env x", "ln .env x", "cp .env x", "cp x .env", "cp -t .git x",
		"mv .env x",
		"jq --slurpfile a .env . x", "jq --rawfile a .env . x", "jq -f .env x", "jq . .env", "diff .env x", "diff --from-file=.env x",
		"date -f .env", "touch -r .env x", "file -f .env",
		"split .env", "csplit .env 1", "base64 .env", "xxd .env", "od -c .env", "strings .env", "truncate -s 0 .env", "truncate -r .env x",
		"shuf .env", "ptx .env", "basenc --base16 .env", "b2sum .env", "dircolors .env", "sha224sum .env", "sha384sum .env", "sum .env",
		"pr .env", "tsort .env",
		"sdiff .env x", "diff -y x .env", "fallocate -l 1 .env", "sort -R .env", "awk -i inplace 1 .env", "coproc cat .env",
		"comm .env x", "join .env x",
		"paste .env", "uniq .env x", "zip x.zip .env", "gzip .env", "unzip x.zip -d .git", "sha256sum .env", "cut -c 1 .env", "nl .env",
		"stdbuf -oL cat .env",
		"bash .env", "sh ./.env", "source .env", ". ./.env", "python3 .env", "node --env-file=.env x.js", "bun --env-file .env x.ts",
		"node -r ./.env x.js", "bash --rcfile .env -i",
		// through a variable, a substitution or a pipe
		"cat $(echo .env)", "cat `echo .env`", "x=.env; cat $x", `x=.env; cat "$x"`, "for f in a .env; do cat $f; done", "echo .env | xargs cat",
		"printf %s .env | xargs -n 1 head",
		"xargs cat <<< .env", "xargs cat <<E\na\n.env\nE", "ls -a | grep .env | xargs cat", "cat $PWD/.env", `cat "$HOME/.env"`, "cat ${x}.env",
		"cat ~+/.env", "cat < $(echo .env)",
		"bash -c 'cat \"$0\"' .env", "set -- .env; cat $1", "f() { cat $1; }; f .env", "read f <<< .env; cat $f",
		"while read f; do cat $f; done <<< .env", "arr=(x .env); cat ${arr[1]}",
		// by a search
		`find . -name .env -exec cat {} \;`, "find . -name .env -exec cat {} +", `find . -name '*.env' -exec cat {} \;`,
		`find . -iname .ENV -exec head {} \;`, "find . -path './.env' -exec cp {} x \\;",
		"find . -name .env | xargs cat", "find . -name .env -print0 | xargs -0 cat", "cat $(find . -name .env)", "find .env -exec cat {} \\;",
		"find . -wholename ./a/.env -exec cat {} +",
		"find . -name '.e*' -exec cat {} +", "find . -name x -o -name .env -exec cat {} +", "find . -name '*.pem' | xargs cat",
		"find . -samefile .env -exec cat {} \\;",
		// emptied or removed without being named
		"find . -exec truncate -s 0 {} \\;", "find . -delete", "find . -type f | xargs truncate -s 0", "truncate -s 0 *", "find . -exec rm {} +",
		"find . -exec shred {} \\;", "find . -exec unlink {} \\;",
	} {
		if r := h.judge(h.shell("guarded", command)); r.Decision.Outcome == allow {
			t.Errorf("%q: got allow, want a question or a refusal", command)
		}
	}
	for _, command := range []string{
		"grep -f .env x", "xargs -a .env cat", "cat $(echo .env)", "find . -name .env -exec cat {} \\;", "awk -f .env x",
		"sed --expression=p .env", "x=.env; cat $x",
		"tar -T .env -cf x.tar", "sort -o .env x", "bash .env", "for f in a .env; do cat $f; done",
	} {
		if r := h.judge(h.shell("guarded", command)); r.Decision.Outcome != deny {
			t.Errorf("%q: got %s, want deny", command, r.Decision.Outcome)
		}
	}
}

// ordinary are command lines that everybody writes; none of them may ask.
var ordinary = []string{
	"ls -la", "ls -a .", "ls -la .env", "stat .env", "test -f .env && echo yes", "[ -e .env ] || echo no", "[[ -f .env ]] && echo yes",
	"echo .env >> .gitignore", "printf '%s\\n' .env '*.pem' > .gitignore",
	"grep -n '\\.env' README.md", "grep -rn TODO src", "grep -r --exclude-dir=.git TODO .", "grep -r --exclude-dir .git TODO .",
	"grep -r --exclude='*.env' --exclude=.env TODO .", "grep -A 3 '.env' x",
	"grep -rl foo src | xargs sed -i 's/foo/bar/g'", "grep -c . x", "grep -v .env list | xargs wc -l",
	"grep -E 'a|b' x | sort | uniq -c | sort -rn | head -5", "grep -e .env -e .pem README.md",
	"find . -name '*.ts'", "find . -name .env", "find . -type f | wc -l", "find . -name '*.ts' | xargs wc -l",
	"find . -name '*.py' -exec grep -n foo {} +", "find . -type f -exec wc -l {} +",
	"find . -path ./.git -prune -o -type f -print | xargs wc -l", "find . -not -path './.git/*' -type f -exec grep -l foo {} +",
	"find . ! -name .env -type f | xargs wc -l", "find . -name '*.log' -mtime +7",
	"find . -name node_modules -prune -o -name '*.js' -exec cat {} +", "find src -name '*.ts' -print0 | xargs -0 grep -l foo",
	"find . -maxdepth 1 -type d", "find . -newer x -name '*.md'",
	"find . -not -name '*.env' -a -type f | xargs cat", `find . \( -name .git -o -name .env \) -prune -o -type f -exec cat {} +`,
	"for f in a b; do wc -l $f; done", `for f in *.csv; do echo "$f: $(wc -l < "$f")"; done`, `for f in src/*.ts; do cp "$f" out/; done`,
	`while read -r line; do echo "$line"; done < x`,
	"n=$(wc -l < x); echo $((n + 1))", "i=0; while ((i < 3)); do ((i++)); done", "for ((i = 0; i < 3; i++)); do echo $i; done",
	"sum=0; while read -r a b; do sum=$((sum + b)); done < x; echo $sum",
	"for i in $(seq 1 5); do echo $((i * 2)); done", "if [[ $(wc -l < x) -gt 5 ]]; then echo many; fi", "x=$(date +%s); echo $((x / 60))",
	"count=$(grep -c a x); [ $count -gt 1 ] && echo yes", "arr=(a b); echo ${arr[0]} ${#arr[@]}",
	`for i in "${!arr[@]}"; do echo ${arr[$i]}; done`, "declare -A m; m[a]=1; echo ${m[a]}", "echo ${x:0:3}", "y=$((2 ** 8)); echo $y",
	"cat x | while read -r f; do head -1 \"$f\"; done",
	"tar czf x.tgz --exclude=.git --exclude='*.env' .", "tar --exclude .git -czf x.tgz .", "tar xzf x.tgz -C out", "tar -tf x.tar",
	"tar -T list.txt -czf x.tgz", "zip -r x.zip . -x '.git/*' -x .env", "zip -r x.zip src",
	"diff -r -x .git a b", "diff -u a b", "du -sh --exclude=.git .", "ls --ignore=.git", "sort -t, -k2,2n -o out.csv in.csv", "sort -u x",
	"cut -d, -f1 x", "tr a-z A-Z < x", "head -n 5 x", "tail -f -n 1 x | head -1",
	"sed -i 's/a/b/' x", "sed -n '/a/,/b/p' x", "sed -e 's/.env//' x", "awk -F, '{s+=$2} END {print s}' x", "awk 'NR>1 {print $1}' x",
	"awk -v n=3 'NR==n' x", "jq -r '.a[]' x", "jq --arg e .env '.x == $e' y",
	"jq -n '{a: 1}'", "jq .env package.json", "xargs -n 1 echo < x", "cat x | xargs -I{} echo {}", "cat package.json", "cat a b > c",
	"mkdir -p out/a", "cp -r a b", "mv a b", "touch x", "tee out.txt < x", "tee -a log < x",
	"dd if=/dev/zero of=x bs=1k count=1", "ln -s a b", "python3 x.py", "python3 -m json.tool x", "python3 -c 'import os; print(os.environ)'",
	"node -p process.env", "bun run x.ts", "node x.js --flag=1",
	"npm run build", "npm test", "bash x.sh", "sh -c 'ls | wc -l'", "date +%F", "date -d yesterday", "seq 1 10 | paste -sd+", "base64 -d x",
	"sha256sum x", "gzip -k x", "unzip -l x.zip", "unzip x.zip -d out",
	"timeout 5 cat x", "truncate -s 0 x", "rm x", "split -l 100 x part-", "printenv", "env | sort", "which python3", "nl x", "uniq -c x",
	"comm -12 a b", "column -t -s, x", "file x", "cmp a b", "xxd x | head",
	"mkdir -p scratch && head -n 31 data/seattle-weather.csv > scratch/january.csv && bun run aggregate.ts data/seattle-weather.csv out",
	"python3 report.py out/summary.json report.md",
}

func TestOrdinaryCommandsStaySilent(t *testing.T) {
	h := build(t, nil)
	for _, preset := range []string{"standard", "permissive"} {
		for _, command := range ordinary {
			if r := h.judge(h.shell(preset, command)); r.Decision.Outcome != allow {
				t.Errorf("%s %q: got %s (%s), want allow", preset, command, r.Decision.Outcome, r.Decision.Reason)
			}
		}
	}
}

// A policy that names a few commands and no shell is not got around by arithmetic over data, which runs the commands that stand in it.
func TestThreat10ArithmeticOverDataIsAScript(t *testing.T) {
	h := build(t, nil)
	b := h.bundle("name: few\nfiles: {read: true}\nallow: {commands: [cat, echo, wc, date, seq, grep]}\n", false)
	for command, want := range map[string]bool{
		"x=$(cat f); echo $((x))": false, "echo $(( $(cat f) ))": false, "read x < f; echo $((x + 1))": false, "x=$(cat f); ((y = x))": false,
		"x=$(cat f); [[ $x -eq 0 ]]": false,
		"x=$(cat f); [[ x -gt 0 ]]":  false, "x=$(cat f); let y=x": false, "x=$(cat f); echo ${a[x]}": false, "x=$(cat f); echo ${y:x}": false,
		"x=$(cat f); a[x]=1": false, "x=$(cat f); declare -i y=x": false,
		"for x in $(cat f); do echo $((x)); done": false, "x=$(cat f); y=$x; echo $((y))": false, "echo $((X))": false,
		"mapfile a < f; echo $((a))": false, "x=`cat f`; for ((i = x; i < 3; i++)); do :; done": false,
		"f() { echo $(($1)); }; f 'a[$(rm x)]'": false, "x=$(echo 1; cat f); echo $((x))": false, "x=$(wc -l f); echo $((x))": false,
		"x=$(wc -l < f | cat); echo $((x))": false, "printf -v x %s $(cat f); echo $((x))": false,
		"n=$(wc -l < f); echo $((n + 1))": true, "n=$(grep -c a f); echo $((n))": true, "x=1; echo $((x))": true, "i=0; ((i++)); echo $i": true,
		"for i in $(seq 3); do echo $((i * 2)); done": true,
		"for i in 1 2; do echo $((i)); done":          true, "x=$(date +%s); echo $((x / 60))": true,
		"for ((i = 0; i < 3; i++)); do echo $i; done": true,
		"x=$((1 + 2)); echo $((x))":                   true, "echo $((RANDOM % 6)) $(($# + $?))": true,
		"x=$(cat f); echo $x": true, "x=$(cat f); [[ $x == a ]] && echo yes": true, "x=$(cat f); echo ${#x}": true,
	} {
		a := h.shell("guarded", command)
		a.Bundle = b.Hash
		r := h.judge(a)
		if got := r.Decision.Outcome == allow; got != want {
			t.Errorf("%q: got %s (%s)", command, r.Decision.Outcome, r.Decision.Reason)
		}
	}
}
