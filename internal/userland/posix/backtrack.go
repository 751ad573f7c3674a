package posix

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNesting bounds the backtracker's recursion.
const maxNesting = 20_000

// gasPerStep is what a step of the backtracker costs.
const gasPerStep = 12

// walker matches by trying.
type walker struct {
	r     *Regexp
	text  string
	caps  []int
	depth int
	steps int64
	err   error
	keep  int // where \K was, -1 for nowhere
}

// backtrack returns the first match at or behind from: of those at one place the first that trying everything greedily finds.
func (r *Regexp) backtrack(text string, from int) ([]int, error) {
	w := &walker{r: r, text: text, caps: make([]int, 2*(r.groups+1))}
	for at := from; at <= len(text); {
		for i := range w.caps {
			w.caps[i] = -1
		}
		end := -1
		w.keep = -1
		if w.match(r.tree, at, func(i int) bool { end = i; return true }) && w.err == nil {
			w.caps[0], w.caps[1] = at, end
			if w.keep >= 0 {
				w.caps[0] = w.keep
			}
			return w.caps, r.charge(w.steps * gasPerStep)
		}
		if w.err != nil {
			return nil, w.err
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += max(size, 1)
	}
	return nil, r.charge(gasPerMatch + w.steps*gasPerStep)
}

// match matches a node at i and what follows it. It is long because it is one switch over the kinds of nodes.
//
//nolint:cyclop // one case for each instruction
func (w *walker) match(n *node, i int, next func(int) bool) bool {
	if w.err != nil {
		return false
	}
	if w.steps++; w.steps >= 1000 {
		if w.err = w.r.charge(w.steps * gasPerStep); w.err != nil {
			return false
		}
		w.steps = 0
	}
	if w.depth++; w.depth > maxNesting {
		w.err = ErrComplex
		return false
	}
	defer func() { w.depth-- }()
	switch n.op {
	case opEmpty:
		return next(i)
	case opRune, opAny, opSet:
		size := w.one(n, i)
		return size > 0 && next(i+size)
	case opLineStart:
		return (i == 0 || n.lines && w.text[i-1] == '\n') && next(i)
	case opLineEnd:
		return (i == len(w.text) || n.lines && w.text[i] == '\n') && next(i)
	case opTextStart:
		return i == 0 && next(i)
	case opTextEnd:
		return i == len(w.text) && next(i)
	case opEdge:
		return w.word(i, true) != w.word(i, false) && next(i)
	case opNotEdge:
		return w.word(i, true) == w.word(i, false) && next(i)
	case opWordStart:
		return !w.word(i, true) && w.word(i, false) && next(i)
	case opWordEnd:
		return w.word(i, true) && !w.word(i, false) && next(i)
	case opGroup:
		if n.group < 0 {
			return w.match(n.subs[0], i, next)
		}
		a, b := w.caps[2*n.group], w.caps[2*n.group+1]
		if w.match(n.subs[0], i, func(j int) bool {
			c, d := w.caps[2*n.group], w.caps[2*n.group+1]
			w.caps[2*n.group], w.caps[2*n.group+1] = i, j
			if next(j) {
				return true
			}
			w.caps[2*n.group], w.caps[2*n.group+1] = c, d
			return false
		}) {
			return true
		}
		w.caps[2*n.group], w.caps[2*n.group+1] = a, b
		return false
	case opConcat:
		return w.sequence(n.subs, i, next)
	case opAlternate:
		for _, s := range n.subs {
			if w.match(s, i, next) {
				return true
			}
		}
		return false
	case opReference:
		a, b := w.caps[2*n.group], w.caps[2*n.group+1]
		if a < 0 || i+b-a > len(w.text) {
			return false
		}
		was, is := w.text[a:b], w.text[i:i+b-a]
		if was != is && (!w.r.fold || !strings.EqualFold(was, is)) {
			return false
		}
		return next(i + b - a)
	case opAhead:
		return w.match(n.subs[0], i, func(int) bool { return true }) != n.not && w.err == nil && next(i)
	case opBehind:
		found := false
		for j := i; j >= 0 && !found && w.err == nil; j-- {
			found = w.match(n.subs[0], j, func(k int) bool { return k == i })
		}
		return found != n.not && w.err == nil && next(i)
	case opAtomic:
		end := -1
		return w.match(n.subs[0], i, func(j int) bool { end = j; return true }) && next(end)
	case opKeep:
		old := w.keep
		w.keep = i
		if next(i) {
			return true
		}
		w.keep = old
		return false
	case opRepeat:
		if n.lazy {
			return w.lazy(n, 0, i, next)
		}
		switch n.subs[0].op {
		case opRune, opAny, opSet:
			return w.run(n, i, next)
		}
		return w.repeat(n, 0, i, next)
	}
	return false
}

func (w *walker) sequence(subs []*node, i int, next func(int) bool) bool {
	switch len(subs) {
	case 0:
		return next(i)
	case 1:
		return w.match(subs[0], i, next)
	}
	return w.match(subs[0], i, func(j int) bool { return w.sequence(subs[1:], j, next) })
}

// run matches a repeated character: as many as there are, then fewer.
func (w *walker) run(n *node, i int, next func(int) bool) bool {
	at := i
	ends := 0
	for n.max < 0 || ends < n.max {
		size := w.one(n.subs[0], at)
		if size <= 0 {
			break
		}
		at += size
		ends++
		w.steps++
	}
	for ends >= n.min {
		if next(at) {
			return true
		}
		if w.err != nil || ends == 0 {
			return false
		}
		_, size := utf8.DecodeLastRuneInString(w.text[i:at])
		at -= size
		ends--
		w.steps++
	}
	return false
}

func (w *walker) repeat(n *node, count, i int, next func(int) bool) bool {
	if n.max < 0 || count < n.max {
		if w.match(n.subs[0], i, func(j int) bool {
			return (j > i || count < n.min) && w.repeat(n, count+1, j, next)
		}) {
			return true
		}
	}
	return count >= n.min && next(i)
}

func (w *walker) lazy(n *node, count, i int, next func(int) bool) bool {
	if count >= n.min && next(i) {
		return true
	}
	return (n.max < 0 || count < n.max) && w.match(n.subs[0], i, func(j int) bool {
		return (j > i || count < n.min) && w.lazy(n, count+1, j, next)
	})
}

// one returns how long the character at i is if the node matches it, 0 if not.
func (w *walker) one(n *node, i int) int {
	if i >= len(w.text) {
		return 0
	}
	r, size := rune(w.text[i]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRuneInString(w.text[i:])
	}
	switch n.op {
	case opRune:
		if r == n.r || w.r.fold && unicode.ToLower(r) == unicode.ToLower(n.r) {
			return size
		}
		return 0
	case opSet:
		low, high := 0, len(n.ranges)/2
		for low < high {
			m := (low + high) / 2
			switch {
			case r < n.ranges[2*m]:
				high = m
			case r > n.ranges[2*m+1]:
				low = m + 1
			default:
				return size
			}
		}
		return 0
	}
	return size
}

// word reports whether a character of a word stands before or at i.
func (w *walker) word(i int, before bool) bool {
	var r rune
	if before {
		r, _ = utf8.DecodeLastRuneInString(w.text[:i])
	} else {
		r, _ = utf8.DecodeRuneInString(w.text[i:])
	}
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func foldRanges(r rune) []rune {
	all := []rune{r, r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		all = append(all, f, f)
	}
	if len(all) == 4 && all[0] > all[2] {
		all[0], all[1], all[2], all[3] = all[2], all[3], all[0], all[1]
	}
	return all
}
