package nano

import (
	"strings"
	"testing"

	"agentbox/internal/driver/nano/hostiletest"
	"agentbox/internal/userland/bound"
)

// atOnce is how much gas may be charged in one step: a stop is looked at with each, and five millions are about five milliseconds.
const atOnce = 5_000_000

// long is a text of two million characters and of a million words.
const long = `x=$(yes 'a b' | head -c 2000000); y=${x//[$'\n' ]/c}; `

// charged are commands that work for long on one value, and the least that they have to cost: what the work takes at a nanosecond for a
// unit, or a good part of it.
var charged = []struct {
	script string
	least  int64
}{
	{`echo {1..300000} | wc -w`, 10_000_000},
	{`echo {a..z}{a..z}{a..z}{a..z} | wc -w`, 15_000_000},
	{`for i in {1..100000}; do :; done`, 30_000_000},
	{`x=$(head -c 10000000 /dev/zero | tr '\0' '\0\n'); echo ${#x}`, 10_000_000},
	{`printf %10000000d 1 | wc -c`, 2_000_000},
	{`i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $((3**3**i))`, 10_000_000},
	{`cat <<X | wc -c` + "\n" + strings.Repeat("0123456789", 100_000) + "\nX", 1_000_000},
	{`eval "$(yes 'x=1;' | head -c 1000000)"`, 50_000_000},
	{long + `echo ${#y}`, 20_000_000},
	{long + `set -- $x; echo $#`, 30_000_000},
	{long + `z=${y//a/bb}; echo ${#z}`, 25_000_000},
	{long + `[[ $y =~ (a|c|ac)*x ]]; echo $?`, 100_000_000},
	{long + `case $y in *a*a*x) ;; esac; echo "${y%%b*}" | wc -c`, 30_000_000},
	{long + `read z <<<"$y"; echo ${#z}`, 25_000_000},
	{long + `echo "$y" | sed 's/a/xx/g' | wc -c`, 30_000_000},
	{long + `echo "$y" | sed 's/\(a\|c\)*x//' | wc -c`, 100_000_000},
	{long + `echo "$y" | grep -cE '(a|c|ac)*x'`, 100_000_000},
	{long + `echo "$y" | grep -o a | wc -l`, 45_000_000},
	{long + `echo "$y" | awk '{ gsub(/a/, "xx"); print length($0) }'`, 30_000_000},
	{long + `echo "$y" | awk -F a '{ print NF; $2 = "x"; print length($0) }'`, 25_000_000},
	{`awk 'BEGIN { x = "a"; for (i = 0; i < 23; i++) x = x x; print length(x) }'`, 2_000_000},
	{`seq 200000 | sort -n | tail -n 1`, 20_000_000},
	{`seq 200000 | shuf | sort | sort -rn | head -n 1`, 100_000_000},
	{`seq 100000 | tac | tail -n 100000 | wc -l`, 2_000_000},
	{`head -c 10000000 /dev/zero | gzip | gzip -d | wc -c`, 50_000_000},
	{`head -c 10000000 /dev/zero | tr '\0' a | fold -w 100 | md5sum`, 20_000_000},
	{`head -c 10000000 /dev/urandom >f; tar czf t.tgz f; tar xzf t.tgz; zip -q z.zip f; sha256sum f`, 400_000_000},
	{`head -c 10000000 /dev/urandom | base64 | base64 -d | wc -c`, 10_000_000},
	{`diff <(seq 30000 | shuf) <(seq 30000) | wc -l`, 100_000_000},
	{`echo '2^100000' | bc | wc -c`, 800_000},
	{`jq -n '"x" * 20000000 | length'`, 5_000_000},
	{`jq -n '"ab" | until(length > 10000000; . + .) | length'`, 5_000_000},
	{`jq -n '"abc" * 1000000 | test("(a|b|c)*x")'`, 200_000_000},
	{`jq -n '"abc" * 20000 | gsub("b"; "x") | length'`, 100_000_000},
	{`jq -n '[range(2000)] as $a | ($a - $a | length), ($a | contains($a))'`, 30_000_000},
	{`jq -n '[range(100000)] | reverse | sort | length'`, 10_000_000},
	{`jq -n '[range(100000)] | tojson | fromjson | map(tostring) | join(",") | length'`, 60_000_000},
	{`jq -n '["abc" * 1000000, "x"] | tojson' | jq -r . | jq -c 'map(length)'`, 20_000_000},
	{`jq -n '[range(100000) | [.]] | . == map(.) | not | not'`, 20_000_000},
	{`jq -n '[range(100000)] | index([99998, 99999]), .[[99999]][0], rindex(0)'`, 3_000_000},
	{`jq -n '[range(100000) | tostring] | min, max, (unique | length), (group_by(length) | length)'`, 40_000_000},
	{`jq -n '[range(50000) | {key: tostring, value: 1}] | from_entries | keys | length'`, 20_000_000},
	{`jq -n '"aB" * 2000000 | ascii_downcase | ascii_upcase | @uri | length'`, 10_000_000},
	{`jq -n '"ab" * 100000 | indices("b") | length'`, 2_000_000},
	{`mkdir d; touch d/{1..5000}; echo d/* | wc -w; find d | wc -l; rm -r d`, 6_000_000},
}

// TestWhatTakesLongIsChargedOnTheWay runs commands that work for long on one value: they cost at least so much, and never much in one
// step, so that each bound of an execution ends them in time.
func TestWhatTakesLongIsChargedOnTheWay(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	for _, x := range charged {
		last, most := int64(0), int64(0)
		o, account, out := a.shell(limits(), memory{}, x.script, func(used int64) {
			most, last = max(most, used-last), used
		})
		if most = max(most, account.Used()-last); most > atOnce {
			t.Errorf("%.150s: %d gas at once, want at most %d", x.script, most, atOnce)
		}
		if used := account.Used(); used < x.least || used > 100*x.least {
			t.Errorf("%.150s: it costs %d gas, want at least %d", x.script, used, x.least)
		}
		if o.Limit != "" || o.Signal != "" || out == "" && !strings.Contains(x.script, "for i") && !strings.Contains(x.script, "eval") {
			t.Errorf("%.150s: got %+v, %.100q", x.script, o, out)
		}
	}
}

// TestWhatTakesLongEndsWithItsGas gives such commands a quarter of the gas that they take.
func TestWhatTakesLongEndsWithItsGas(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	for _, x := range charged {
		l := limits()
		l.Gas = x.least / 4
		if o, account, _ := a.shell(l, memory{}, x.script, nil); o.Limit != bound.Gas || account.Used() != l.Gas {
			t.Errorf("%.150s: got %+v with %d of %d gas", x.script, o, account.Used(), l.Gas)
		}
	}
}

// TestHostileScriptsAreLookedAtOnTheWay gives what is hostile some gas: it ends there, or before, and no step on the way there is a large
// one. The dearest are programs of awk of 200 KB, and numbers of bc of a hundred thousand digits, which are charged before and take a
// good part of that.
func TestHostileScriptsAreLookedAtOnTheWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a hundred scripts that take what they can: some seconds of a processor, which -short is not for")
	}
	a := newAlone(t)
	for _, x := range hostiletest.Shells {
		last, most := int64(0), int64(0)
		l := limits()
		l.Gas, l.MemoryBytes, l.FileBytes = 100_000_000, 96<<20, 16<<20
		o, account, _ := a.shell(l, memory{}, x.Text, func(used int64) { most, last = max(most, used-last), used })
		if most > 11_000_000 {
			t.Errorf("%s: %d gas at once, want at most %d", x.Name, most, 11_000_000)
		}
		if account.Used() > l.Gas || x.End == hostiletest.ByTime && o.Limit != bound.Gas && !o.TimedOut {
			t.Errorf("%s: got %+v with %d gas", x.Name, o, account.Used())
		}
	}
}
