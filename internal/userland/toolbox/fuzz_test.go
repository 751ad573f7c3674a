package toolbox_test

import (
	"errors"
	"strings"
	"testing"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/shelltest"
)

// fuzz runs a command with arguments that nobody has thought of. It may end in any way, but not by a panic, and not later than its bound
// of gas.
func fuzz(f *testing.F, command func(text string) string, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	limits := small()
	limits.Gas = 5_000_000
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || strings.Contains(text, "\x00") {
			t.Skip("no argument of a command")
		}
		r := shelltest.Execute(programs(), limits, command(text))
		if r.Stopped != nil && !errors.As(r.Stopped, new(*bound.Stopped)) {
			t.Fatalf("%q: %v", text, r.Stopped)
		}
	})
}

// word writes a text as one word of the shell.
func word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func FuzzAwk(f *testing.F) {
	fuzz(f, func(s string) string { return `printf 'a b 1\nc,d 2\n' | awk ` + word(s) },
		`{ print $1; x[$2]++ } END { for (k in x) print k, x[k] }`, `BEGIN { printf "%5.2f|%-5s|%c\n", 1, "a", 65; print substr("hello", 0, 3) }`,
		`BEGIN { while (i++ < 3) print strftime("%c", i) }`,
		`/a/,/b/ { gsub(/./, "&&"); print toupper($0) | "cat" }`,
		`function f(a) { return a ? f(a - 1) + 1 : 0 } BEGIN { print f(10), length(), split("a:b", q, ":") }`)
}

func FuzzSed(f *testing.F) {
	fuzz(f, func(s string) string { return `seq 5 | sed ` + word(s) },
		`1d;1,3p`, `s/\(.\)/[\1]/2g;y/abc/x\ty/`, `:a;N;$!ba;s/\n/,/g`, `2,~4{=;l;n};0,/3/c\x`, `/2/a\thello\x41`, `$!{h;d};H;x`)
}

func FuzzJQ(f *testing.F) {
	fuzz(f, func(s string) string { return `echo '{"a":[1,2,{"b":"c"}],"d":null}' | jq -c ` + word(s) },
		`.a[] | tostring`, `$ARGS.named, $__loc__`, `[.. | numbers] | add`, `.a | map(select(type == "number")) | @csv`,
		`"a,b" | test("A(?=,)"; "xi"), sub("(?<x>.)"; "\(.x)!"; "g")`,
		`reduce range(5) as $i (0; . + $i), (0 | strflocaltime("%c")), try error("x") catch .`, `.[999999999] = 0`,
		`path(..), limit(3; repeat(1)), input?`)
}

func FuzzDate(f *testing.F) {
	fuzz(f, func(s string) string {
		return `date -d ` + word(s) + `; date -u -d @0 +` + word(s) + `; TZ=` + word(s) + ` date`
	},
		"next friday 10:00 EST", "@1.5", "2020-01-01T10:00:00.123+05:30 + 3 days ago", "%Y %_10d %^a %:::z %-H %N", "CET-1CEST,M3.5.0,M10.5.0/3",
		`TZ="Asia/Tokyo" 17-Jun-1992`)
}

func FuzzNumfmt(f *testing.F) {
	fuzz(f, func(s string) string {
		return `numfmt --from=auto ` + word(s) + `; numfmt --to=si --invalid=ignore --field=` + word(s) + ` '1 2000 3'; numfmt --format=` +
			word(s) + ` 1; seq -f ` + word(s) + ` 2; seq -- ` + word(s) + ` 3`
	}, "1.5K", "12Qi", "-3", "1-3,5", "%'010.3f%%", "0x1p-3", "1e-3", "nan")
}

func FuzzPrintf(f *testing.F) {
	fuzz(f, func(s string) string {
		return `printf ` + word(s) + ` 1 a 0x1f 2.5; awk 'BEGIN { printf ` + word(s) + `, 1, "a" }'; env -S` + word(s)
	},
		`%5d|%-5s|%x|%.2f\n`, `%*d %b %q %(%F)T`, `\x41\u00e9\101%%`, `echo "a b" ${HOME} \_ 'c'`)
}
