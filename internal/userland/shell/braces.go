package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func hasBrace(parts []syntax.WordPart) bool {
	for _, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			return true
		}
	}
	return false
}

// expandBraces returns the words that a word with brace expressions expands to.
func expandBraces(sh *shell, parts []syntax.WordPart) [][]syntax.WordPart {
	for i, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		var middle [][]syntax.WordPart
		if b.Sequence {
			for _, s := range braceSequence(sh, b) {
				middle = append(middle, []syntax.WordPart{&syntax.Lit{Value: s}})
			}
		} else {
			for _, e := range b.Elems {
				middle = append(middle, expandBraces(sh, e.Parts)...)
			}
		}
		rest := expandBraces(sh, parts[i+1:])
		spareMemory(sh, (48+16*len(parts))*len(middle)*len(rest)) // each word copies the common parts
		all := make([][]syntax.WordPart, 0, len(middle)*len(rest))
		for _, m := range middle {
			for j, r := range rest {
				if j%1024 == 0 {
					sh.charge(20 * min(len(rest)-j, 1024))
				}
				word := make([]syntax.WordPart, 0, i+len(m)+len(r))
				word = append(append(append(word, parts[:i]...), m...), r...)
				all = append(all, word)
			}
		}
		return all
	}
	return [][]syntax.WordPart{parts}
}

// braceSequence returns the words of {a..b..c}.
func braceSequence(sh *shell, b *syntax.BraceExp) []string {
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	step := int64(0)
	if len(b.Elems) > 2 {
		step, _ = strconv.ParseInt(b.Elems[2].Lit(), 10, 64)
	}
	x, errX := strconv.ParseInt(from, 10, 64)
	y, errY := strconv.ParseInt(to, 10, 64)
	letters := errX != nil || errY != nil
	if letters {
		x, y = int64(from[0]), int64(to[0])
	}
	if step < 0 {
		step = -step
	}
	step = max(step, 1)
	width := 0
	for _, s := range []string{from, to} {
		if digits := strings.TrimLeft(s, "-+"); !letters && len(digits) > 1 && digits[0] == '0' {
			width = max(len(from), len(to))
		}
	}
	count := (max(x, y)-min(x, y))/step + 1
	if count > 1<<31-2 || count <= 0 { // as in bash: a range that is too long is not a sequence
		s := "{" + from + ".." + to
		if len(b.Elems) > 2 {
			s += ".." + b.Elems[2].Lit()
		}
		return []string{s + "}"}
	}
	spareMemory(sh, int(min(count, 1<<34))*64)
	all := make([]string, 0, count)
	for n := x; ; {
		if len(all)%1024 == 0 {
			sh.charge(int(min(count-int64(len(all)), 1024)) * 10)
		}
		if letters {
			all = append(all, string(rune(n)))
		} else {
			s := strconv.FormatInt(n, 10)
			if len(s) < width {
				if n < 0 {
					s = "-" + strings.Repeat("0", width-len(s)) + s[1:]
				} else {
					s = strings.Repeat("0", width-len(s)) + s
				}
			}
			all = append(all, s)
		}
		if int64(len(all)) >= count {
			return all
		}
		if x <= y {
			n += step
		} else {
			n -= step
		}
	}
}
