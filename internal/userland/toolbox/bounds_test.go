package toolbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/shelltest"
)

// small are limits at which runaway commands end soon.
func small() bound.Limits {
	l := shelltest.Limits
	l.Gas, l.MemoryBytes, l.OutputBytes = 30_000_000, 8<<20, 1<<20
	return l
}

// A command that never ends by itself ends at the bound of gas.
func TestEndlessCommandsEndAtTheBoundOfGas(t *testing.T) {
	for _, script := range []string{
		`awk 'BEGIN { while (1) ; }'`,
		`awk 'BEGIN { for (;;) x++ }'`,
		`awk 'BEGIN { for (;;) { s = "a"; gsub(/a*/, "b", s) } }'`,
		`echo | sed ':a; ba'`,
		`echo a | sed ':a; s/a/a/; ta'`,
		`jq -n 'def f: f; f'`,
		`jq -n '[range(1; infinite)] | length'`,
		`echo 'while (1) { i }' | bc > /dev/null`,
		`printf 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab' | grep -E '^(a|aa|aaa)*\1c$'`,
		`printf 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab' | grep -P '^(a+)+(?=c)$'`,
		`shuf -r -e x > /dev/null`,
		`factor 18446744030759878681`,
	} {
		r := shelltest.Execute(programs(), small(), script)
		stopped, ok := errors.AsType[*bound.Stopped](r.Stopped)
		if !ok || stopped.Limit != bound.Gas {
			t.Errorf("%s: ended with %d, %v, %q %q; want the bound of gas", script, r.Code, r.Stopped, cut(r.Out), cut(r.Err))
		}
	}
}

// The indentation of deep values is paid for by its bytes, and a stop ends it.
func TestTheIndentationOfDeepValuesIsCharged(t *testing.T) {
	l := small()
	l.Gas, l.MemoryBytes = 2_000_000_000, 64<<20
	var gas [2]int64
	for i, option := range []string{"-c", ""} {
		r := shelltest.Execute(programs(), l, "jq -n "+option+" 'reduce range(9000) as $i (0; [.])' > /dev/null; echo $?")
		if gas[i] = r.Gas; r.Stopped != nil || r.Out != "0\n" {
			t.Fatalf("%q ended with %q, %v, %q", option, r.Out, r.Stopped, cut(r.Err))
		}
	}
	const bytes = 2 * 9000 * 9000
	if gas[1]-gas[0] < bytes/8 {
		t.Errorf("compact: %d, indented: %d; %d bytes of indentation were not paid for", gas[0], gas[1], bytes)
	}
	l.Gas = gas[0] + bytes/16
	r := shelltest.Execute(programs(), l, "jq -n 'reduce range(9000) as $i (0; [.])' > /dev/null")
	if stopped, ok := errors.AsType[*bound.Stopped](r.Stopped); !ok || stopped.Limit != bound.Gas || r.Late > 100_000 {
		t.Errorf("it ended with %d, %v, late by %d", r.Code, r.Stopped, r.Late)
	}
}

// A width or a step of nothing is an error, or the least that fits; no command waits for ever for something to fit into it.
func TestWidthsOfNothingEnd(t *testing.T) {
	for _, script := range []string{
		`od -w0`, `od --width=0`, `od -w0 -t x1`, `od -N0`, `od -S0`, `xxd -c0`, `xxd -g0`, `xxd -l0`, `xxd -ps -c0`, `xxd -b -c0`,
		`xxd -i -c0`,
		`hexdump -n0`, `hexdump -e '0/1 "%02x"'`, `hexdump -e '1/0 "%02x"'`, `hexdump -e '0/0 "x"'`, `hexdump -e '"x"'`, `hexdump -e ''`,
		`fold -w0`, `fold -0`, `fold -bw0`, `fmt -w0`, `fmt -g0`, `fmt -0`, `pr -l0`, `pr -w0`, `pr -0`, `pr -l0 -2`, `pr -w0 -2`, `pr -n0`,
		`pr -e0`, `pr -i0`, `pr -o0`, `pr -W1 -a -3`, `pr -W0 -m - -`, `column -c0`, `column -x -c0`, `column -t -l0`, `split -b0`, `split -l0`,
		`split -n0`, `split -C0`, `split -a0`, `split -n l/0`, `csplit - 0`, `csplit - 1 '{*}'`, `csplit - /x/0 '{*}'`, `csplit -n0 - 1`,
		`csplit - '//' '{*}'`, `csplit - '/$/-1' '{*}'`, `csplit - '%^%' '{*}'`,
		`seq 1 0 2 | head -n3`, `seq 0 0 0 | head -n3`, `seq -w 1 0 2 | head -n3`, `seq -f %g 1 1e-30 2 | head -n3`, `head -n0`, `head -c0`,
		`tail -n0`, `tail -c0`, `tail -n+0`, `cut -c0`, `cut -f0`, `cut -b0-`, `expand -t0`, `unexpand -t0`, `expand -t /0`, `expand -t +0`,
		`expand -t 4,/0`, `unexpand -a -t /0`, `nl -l0`, `nl -w0`, `nl -i0`, `tabs -0`, `tabs 0`, `paste -d ''`, `base64 -w0`, `base32 -w0`,
		`dd bs=0`, `dd ibs=0`, `dd count=0`, `dd cbs=0 conv=block`, `dd cbs=0 conv=unblock`, `dd bs=1 seek=0 skip=0`, `ptx -w0`, `ptx -g0`,
		`shuf -n0`, `shuf -r -n0`, `tac -s ''`, `tac -r -s 'x*'`, `ls -w0`, `ls -x -w0`, `ls -C -T0`, `ls -w1 -T0`, `xargs -n0`, `xargs -L0`,
		`xargs -s0`, `xargs -P0 echo`, `numfmt --header=0`, `numfmt --padding=0`, `uniq -w0`, `uniq -f0`, `truncate -s /0 f`,
		`truncate -s %0 f`,
		`shred -n0 -s0 f`, `grep -m0 a`, `grep -o ''`, `grep -A0 a`, `jq --indent 0 .`, `jq -n '[range(0; 3; 0)] | length'`,
		`jq -n '[limit(3; range(0; 1; 0))] | length'`, `jq -n '"abc" | [splits("")] | length'`, `jq -n '[1] | _nwise(0)'`,
		`awk -v n=0 '{ print substr($0, n, n) }'`,
		`sed -n '0~0p'`, `sed -n '1~0p'`, `sed -n '2,~0p'`, `sed -l0 -n l`, `sed 's/x*/-/g'`, `strings -n0`, `sort -S0`, `sort --parallel=0`,
		`split -l1 -a1 --numeric-suffixes=0`, `diff -U0 - f`, `diff -y -W0 - f`, `sdiff -w0 - f`, `sdiff -w1 - f`, `diff -y -t --tabsize=0 - f`,
		`timeout 0 true`, `sleep 0`, `printf '%0s%.0s%*d' a b 0 1`, `printf ''`, `factor 0`, `bc <<<'scale=0; 1/3'`,
		`BC_LINE_LENGTH=0 bc <<<'2^300'`,
		`BC_LINE_LENGTH=1 bc <<<'2^300'`, `BC_LINE_LENGTH=2 bc <<<'2^300'`, `echo {1..3..0}`, `comm --output-delimiter=`, `join -t ''`,
		`tr -d ''`,
		`tr '' ''`, `rev`, `cmp -n0 - f`, `fallocate -l0 f`, `tar -b0 -cf x.tar f`, `stdbuf -o0 cat`, `tree -L0`, `du -B0`, `df -B0`,
		`ls -l --block-size=0`,
		`wc --files0-from=/dev/null`, `COLUMNS=0 ls`, `COLUMNS=0 column`, `TABSIZE=0 ls -C`,
	} {
		done := make(chan shelltest.Result, 1)
		go func() {
			done <- shelltest.Execute(programs(), small(), "echo abc > f; printf 'a b\\tc\\n\\nabcdef\\n' | "+script+" > /dev/null 2>&1")
		}()
		select {
		case r := <-done:
			if r.Stopped != nil {
				t.Errorf("%s: ended by %v", script, r.Stopped)
			}
		case <-time.After(2 * time.Minute):
			t.Errorf("%s: it goes on without a charge", script)
		}
	}
}

func cut(s string) string { return s[:min(len(s), 200)] }

// A command that holds too much memory is ended as the kernel would end it, and the script goes on.
func TestGreedyCommandsEndAtTheBoundOfMemory(t *testing.T) {
	l := small()
	l.Gas, l.MemoryBytes = 2_000_000_000, 2<<20
	for _, script := range []string{
		`awk 'BEGIN { s = "x"; for (;;) s = s s }'`,
		`awk 'BEGIN { for (;;) a[i++] = "value" }'`,
		`echo x | sed ':a; s/x/xx/g; ta'`,
		`echo x | sed ':a; G; H; ba'`,
		`yes | tac`,
		`yes | tr -d '\n' | grep x`,
		`yes | awk '{ a[NR] = $0 }'`,
		`shuf -i 1-100000000 | head -1`,
		`yes | jq -R -s .`,
		`awk 'BEGIN { s = "aaaaaaaa"; for (;;) gsub(/a/, "aa", s) }'`,
		`awk 'BEGIN { s = "aaaaaaaa"; for (;;) { gsub(/a/, "aa", s); patsplit(s, x, /a/) } }'`,
		`jq -n '"a" * 200000 | gsub("a"; "bb")'`,
		`jq -n '"a" * 200000 | [splits("a")]'`,
		`jq -n '"a" * 200000 | [match("(?=a)"; "g")]'`,
	} {
		r := shelltest.Execute(programs(), l, "set -o pipefail; "+script+` > /dev/null; echo $?`)
		if r.Stopped != nil || !strings.Contains(r.Out, "137") {
			t.Errorf("%s: ended with %d, %v, %q %q; want 137", script, r.Code, r.Stopped, cut(r.Out), cut(r.Err))
		}
	}
}

// TestModulesOfJQAreBounded: one that imports itself, many large ones, and the clock, which is the space's.
func TestModulesOfJQAreBounded(t *testing.T) {
	for script, want := range map[string]string{
		`mkdir m; echo 'import "a" as a; def f: 1;' > m/a.jq; jq -n -L m 'import "a" as a; 1' 2>&1`: "error: the program " +
			"imports more than 64 modules",
		`for i in a b; do { printf '# '; head -c 40000 /dev/zero | tr '\0' x; } > $i.jq; done; jq -n -L . 'include "a"; include "b"; 1' 2>&1`: "bytes",
		`echo 'def f: now | floor;' > a.jq; jq -n -L . 'import "a" as a; a::f'`:                                                               "1772366400",
		`jq -n -L / 'import "../../../../../../etc/hostname" as a; 1' 2>&1`:                                                                   "error: module not found",
	} {
		l := small()
		l.Gas = 1_000_000_000
		r := shelltest.Execute(programs(), l, script)
		if r.Stopped != nil || !strings.Contains(r.Out, want) {
			t.Errorf("%s: got %q, %q, %v; want %q", script, cut(r.Out), cut(r.Err), r.Stopped, want)
		}
	}
}

// A refusal says so to the tier, which may choose a heavier one.
func TestWhatIsLackingIsReported(t *testing.T) {
	for script, want := range map[string]string{
		`sed --nonsense p`:                "option sed --nonsense",
		`echo | sed 's/a/b/e'`:            "feature sed the flag e of s",
		`find . -ok ls \;`:                "option find -ok",
		`sdiff -o x a b`:                  "option sdiff -o",
		`echo a | grep -P '(?R)'`:         "feature grep this expression of Perl: (?R)",
		`tar -cJf x.tar.xz .`:             "option tar -J",
		`jq --stream-errors .`:            "option jq --stream-errors",
		`chown root x`:                    "feature chown there are no other owners here",
		`mkfifo x`:                        "feature mkfifo pipes with names are not supported here: use |",
		`awk -W dump 'BEGIN { print 1 }'`: "option awk -W",
		`echo 5 | split -n r/2 -`:         "option split -n r/2",
	} {
		r := shelltest.Execute(programs(), small(), script)
		if len(r.Lacks) != 1 || r.Lacks[0].String() != want || r.Code == 0 {
			t.Errorf("%s: reported %v and ended with %d; want %q and a failure", script, r.Lacks, r.Code, want)
		}
	}
}

// Archives cannot reach out of the folder into which they are unpacked, by their names or by links that they bring.
func TestArchivesStayInTheirFolder(t *testing.T) {
	r := shelltest.Execute(programs(), small(), `
mkdir in out; cd in; ln -s /tmp escape; tar cf ../a.tar escape; rm escape; mkdir escape; echo bad > escape/f; tar cf ../b.tar escape/f; cd ../out
tar xf ../a.tar; tar xf ../b.tar; ls /tmp
printf 'x' > ../evil; tar cf ../c.tar -P ../evil; mkdir deep; cd deep; tar xf ../../c.tar; ls ..`)
	if strings.Contains(r.Out, "f\n") || strings.Contains(r.Out, "evil") || !strings.Contains(r.Err, "Cannot open") || !strings.Contains(r.Err,
		"'..'") {
		t.Errorf("out %q, err %q", r.Out, r.Err)
	}
}

// The same script has the same output and costs the same, each time.
func TestCommandsAreDeterministic(t *testing.T) {
	script := `
seq 1 200 | shuf > a; sort -n a | awk '{ s += $1; h[$1 % 7]++ } END { for (k in h) print k, h[k]; print s, rand() }'
mkdir -p d/e; for i in 1 2 3; do echo $i > d/$i; echo $i$i > d/e/$i; done; find d -type f -exec grep -l 1 {} +; tar czf x.tgz d; cksum x.tgz; zip -qr x.zip d; cksum x.zip
jq -n -c '{b: now, a: [range(3)]}'; diff -r d d/e; date; echo 'l(2)' | bc -l; awk 'BEGIN { srand(); print rand(); "date" | getline x; print x; print "z" | "cat" }'`
	first := shelltest.Execute(programs(), shelltest.Limits, script)
	if first.Stopped != nil || len(first.Out) < 200 {
		t.Fatalf("it does not run: %+v", first)
	}
	for range 3 {
		if again := shelltest.Execute(programs(), shelltest.Limits, script); again.Out != first.Out || again.Err != first.Err ||
			again.Gas != first.Gas {
			t.Fatalf("got %d gas and\n%s%s\nwant %d gas and\n%s%s", again.Gas, again.Out, again.Err, first.Gas, first.Out, first.Err)
		}
	}
}

func BenchmarkCommands(b *testing.B) {
	for name, script := range map[string]string{
		"sed 100k lines":  `seq 1 100000 | sed 's/1/x/g' > /dev/null`,
		"awk 100k lines":  `seq 1 100000 | awk '{ s += $1 * 2; c[$1 % 10]++ } END { print s }'`,
		"grep 100k lines": `seq 1 100000 | grep -c '9.*9'`,
		"jq 1k objects":   `for i in 1 2 3 4 5 6 7 8 9 10; do seq 1 100; done | jq -c '{a: ., b: [.]}' > /dev/null`,
	} {
		b.Run(name, func(b *testing.B) {
			gas := int64(0)
			for b.Loop() {
				r := shelltest.Execute(programs(), shelltest.Limits, script)
				if r.Stopped != nil || r.Code != 0 {
					b.Fatalf("%+v", r)
				}
				gas = r.Gas
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(gas), "ns/gas")
		})
	}
}
