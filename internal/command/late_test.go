package command_test

import (
	"slices"
	"testing"

	"agentbox/internal/command"
	"agentbox/internal/domain/policy"
)

// TestProgramsThatAreOnlyKnownWhenTheyRun holds which programs of sed and awk a person has to look at: those that run something, and those
// that may be anything.
func TestProgramsThatAreOnlyKnownWhenTheyRun(t *testing.T) {
	for line, doubted := range map[string]bool{
		`p="1e rm -r victim"; sed "$p" f`: true, `p='1e chmod 777 f'; sed "$p" f`: true, `sed "$p" f`: true, `sed $p f`: true,
		`sed -e "$y" f`: true, `sed -e"$y" f`: true, `sed --expression="$y" f`: true, `sed --expression "$y" f`: true, `sed "1$y" f`: true,
		`sed -n -e p -e "$y" f`: true, `sed "$(cat p)" f`: true, `y=e; sed "1$y id" f`: true, `y=1e; x="$y id"; sed "$x" f`: true,
		`echo "$y" | sed -f - f`: true, `echo 1e id | sed -f - f`: true, `sed -f /dev/stdin f < <(a)`: true, `sed -f "$x" f`: true,
		`sed -f - f <<< '1e id'`: true, `sed -f - f <<< "$y"`: true, "sed -f - f <<E\n$y\nE": true,
		`sed "s/a/$b/" f`: true, `b=x/e; sed "s/a/$b" f`: true, `p=p; p+='1e id'; sed -n "$p" f`: true, `read p; sed "$p" f`: true,
		`printf -v p %s '1e id'; sed "$p" f`: true, `(p=p); sed "$p" f`: true, `sed "$p" f; p=p`: true, `a || p=p; sed "$p" f`: true,
		`p=p & sed "$p" f`: true, `p=p sed "$p" f`: true, `if a; then p=p; fi; sed "$p" f`: true, `p='#'; unset p; sed "${p}e id" f`: true,
		`p=p; bash -c 'sed "$p" f'`: true, `for p in *; do sed "$p" f; done`: true, `for p; do sed "$p" f; done`: true,
		`for p in p '1e id'; do sed "$p" f; done`: true, `for p in {p,1e}; do sed "$p" f; done`: true, `q=$r; p=p; p="$q"; sed "$p" f`: true,
		`f() { sed "$1" g; }; f '1e id'`: true, `xargs sed`: true, `xargs -I{} sed {} f`: true, `find . -exec sed {} f \;`: true,
		`sed p "$y"`: true, `y=-e1eid; sed p "$y"`: true, `echo '-e1eid' | xargs sed p f`: true,
		`echo '-e1eid' | while read -r y; do sed p "$y" f; done`: true, `set -- -e1eid; sed p "$1" f`: true,
		`y='f -e1eid'; sed p $y`: true, `declare -l p; p='1E id'; sed "$p" f`: true,

		`p='BEGIN{system("id -un")}'; awk "$p" f`: true, `awk "$p" f`: true, `awk -F: "$p" f`: true, `awk -e "$p" f`: true,
		`gawk --source="$p" f`: true, `awk -v a=b "$p" f`: true, `awk -- "$p" f`: true, `awk -F"$x" a "$p"`: true, `xargs awk`: true,
		`awk "{print \$$n}" f`: true, `a='| "sh"'; awk "{print $a}" f`: true, `gawk -E "$p"`: true, `awk -f - f`: true,

		`p=s/a/b/; sed "$p" f`: false, `v=1.2; sed -i "s/x/$v/g" f`: false, `a && v=1 && sed "s/x/$v/" f`: false,
		`cd x && v=1 && a && sed "s/x/$v/" f`: false, `for i in 1 2; do sed -n "${i}p" f; done`: false,
		`for i in {1..3}; do sed -n "${i}p" f; done`: false, `for ((i=1; i<3; i++)); do sed -n "${i}p" f; done`: false,
		`n=$(wc -l < f); sed -n "${n}p" f`: false, `sed -n "$((1+2))p" f`: false, `i=0; while a; do i=$((i+1)); sed -n "${i}p" f; done`: false,
		`for f in *.txt; do sed -i s/a/b/ "$f"; done`: false, `grep -rl a . | xargs sed -i s/a/b/`: false,
		`find . -name '*.py' -exec sed -i s/a/b/ {} +`: false, `while read -r f; do sed -n 1p "$f"; done < list`: false,
		`sed -f x.sed f`: false, "sed -f - f <<'E'\ns/a/b/\nE": false, `f=x.txt; sed s/a/b/ "$f"`: false, `echo -n x | sed s/a/b/`: false,
		`sed -n 1p "$(ls | head -n 1)"`: false, `f() { sed -n 1p "$1"; }; f x`: false, `git ls-files --modified | xargs sed -i s/a/b/`: false,
		`f() { v=1; sed "s/a/$v/" g; }; f`: false, `if a; then v=1; sed "s/a/$v/" g; fi`: false,
		`p='{print $1}'; awk "$p" f`: false, `awk -v n="$n" '{print n}' f`: false, `awk -F"$x" '{print $1}' f`: false,
		`awk '{print $1}' "$f"`: false, `n=2; awk "{print \$$n}" f`: false, `awk -f "x.awk"`: true, // as it was

		`tar cf x "$y"`: true, `y=--to-command=id; tar xf x "$y"`: true, `tar -cf x "$y"`: true, `tar cf "$x" "$y"`: true, `tar "$y" x`: true,
		`y=--checkpoint-action=exec=id; tar cf x --checkpoint "$y"`: true, `y=-Ia; tar -c -f x "$y"`: true, `tar cf x -- a "$y"`: false,
		`tar cf x "-$y"`: true, `tar --file=x -c "$y"`: true, `tar -c --exclude "$x" -f "$y" "$z"`: true, `read -r y; tar cf x "$y"`: true,
		`echo --to-command=id | while read -r y; do tar xf x "$y"; done`: true, `set -- --to-command=id; tar xf x "$1"`: true,
		`sort "$y"`: true, `y=--compress-program=id; sort "$y" f`: true, `split f "$y"`: true, `rg "$y" src`: true, `zip x "$y"`: true,
		`tar cf x "$(cat f)"`: true, `while read -r y; do tar rf x "$y"; done < list`: true, `tar cf x "--to-$y"`: true,
		`xargs -I{} tar xf x {}`: true, `tar cfI "$x" "$y" z`: true, `tar cfb x 20 "$y"`: true,

		`tar cf "$x" src`: false, `tar -cf "$x" src`: false, `tar -c -f "$x" -C "$y" .`: false, `tar --directory "$y" -cf x .`: false,
		`tar cfb "$x" "$y" z`: false, `tar cf x -- "$y"`: false, `tar cf x "./$y"`: false, `tar -f"$x" -c src`: false,
		`tar --file="$x" -c src`: false, `y=src; tar cf x "$y"`: false, `for f in *.txt; do sort "$f"; done`: false,
		`y=-v; tar cf x "$y" src`: false, `sort -- "$y"`: false, `sort -k "$n" f`: false, `rg -e "$y" src`: false,
		`y=x; tar cf "-$y" f`: false, `find . -type f -exec tar rf x {} \;`: false, `find . -name '*.txt' -exec sort {} +`: false,
		`cat "$y"`: false, `cp "$x" "$y"`: false, `diff "$x" "$y"`: false,
	} {
		r, err := command.ReadScript(line, command.Bash, "")
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		got := len(r.Doubts) > 0 && slices.ContainsFunc(r.Commands, func(c command.Command) bool { return c.Has(policy.TraitUnresolved) })
		if got != doubted {
			t.Errorf("%s: got %t, want %t: %s", line, got, doubted, show(r))
		}
	}
}
