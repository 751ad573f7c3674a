package textdiff

import (
	"agentbox/internal/userland/program"
)

// compareLines marks the lines of two files that are changed, by the algorithm of Myers.
func compareLines(p *program.Process, x, y *side) {
	m := &myers{p: p}
	inX, inY := map[int]bool{}, map[int]bool{}
	for _, id := range x.ids {
		inX[id] = true
	}
	for _, id := range y.ids {
		inY[id] = true
	}
	keep := func(s *side, other map[int]bool) (ids, at []int) {
		for i, id := range s.ids {
			if other[id] {
				ids, at = append(ids, id), append(at, i)
			} else {
				s.changed[i+1] = true
			}
		}
		return ids, at
	}
	m.a, m.atA = keep(x, inY)
	m.b, m.atB = keep(y, inX)
	m.x, m.y = x, y
	n := len(m.a) + len(m.b) + 3
	p.Hold(n * 16)
	m.forward, m.backward = make([]int, n), make([]int, n)
	m.offset = len(m.b) + 1
	m.limit = 1024
	for m.limit*m.limit < n {
		m.limit *= 2
	}
	m.compare(0, len(m.a), 0, len(m.b))
	p.Drop(n * 16)
}

// myers compares sequences in linear space.
type myers struct {
	p                 *program.Process
	a, b, atA, atB    []int
	x, y              *side
	forward, backward []int
	offset, limit     int
}

func (m *myers) compare(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && m.a[a0] == m.b[b0] {
		a0++
		b0++
	}
	for a0 < a1 && b0 < b1 && m.a[a1-1] == m.b[b1-1] {
		a1--
		b1--
	}
	m.p.Charge(20)
	switch {
	case a0 == a1:
		for ; b0 < b1; b0++ {
			m.y.changed[m.atB[b0]+1] = true
		}
	case b0 == b1:
		for ; a0 < a1; a0++ {
			m.x.changed[m.atA[a0]+1] = true
		}
	default:
		a, b := m.middle(a0, a1, b0, b1)
		m.compare(a0, a, b0, b)
		m.compare(a, a1, b, b1)
	}
}

// middle returns a point that the best way through the two ranges passes.
func (m *myers) middle(a0, a1, b0, b1 int) (int, int) {
	fd, bd := m.forward, m.backward
	o := m.offset
	low, high := a0-b1, a1-b0 // diagonals
	fmid, bmid := a0-b0, a1-b1
	fmin, fmax, bmin, bmax := fmid, fmid, bmid, bmid
	odd := (fmid-bmid)&1 != 0
	const none = 1 << 60
	fd[fmid+o], bd[bmid+o] = a0, a1
	for cost := 1; ; cost++ {
		m.p.Charge(10 + 6*(fmax-fmin+bmax-bmin))
		if fmin > low {
			fmin--
			fd[fmin-1+o] = -1
		} else {
			fmin++
		}
		if fmax < high {
			fmax++
			fd[fmax+1+o] = -1
		} else {
			fmax--
		}
		for d := fmax; d >= fmin; d -= 2 {
			tlo, thi := fd[d-1+o], fd[d+1+o]
			x := thi
			if tlo >= thi {
				x = tlo + 1
			}
			y := x - d
			for x < a1 && y < b1 && m.a[x] == m.b[y] {
				x++
				y++
			}
			fd[d+o] = x
			if odd && bmin <= d && d <= bmax && bd[d+o] <= x {
				return x, y
			}
		}
		if bmin > low {
			bmin--
			bd[bmin-1+o] = none
		} else {
			bmin++
		}
		if bmax < high {
			bmax++
			bd[bmax+1+o] = none
		} else {
			bmax--
		}
		for d := bmax; d >= bmin; d -= 2 {
			tlo, thi := bd[d-1+o], bd[d+1+o]
			x := tlo
			if tlo >= thi {
				x = thi - 1
			}
			y := x - d
			for a0 < x && b0 < y && m.a[x-1] == m.b[y-1] {
				x--
				y--
			}
			bd[d+o] = x
			if !odd && fmin <= d && d <= fmax && x <= fd[d+o] {
				return x, y
			}
		}
		if cost >= m.limit { // the best so far has to do
			best, at := -1, 0
			for d := fmax; d >= fmin; d -= 2 {
				x := min(fd[d+o], a1)
				y := x - d
				if y > b1 {
					x, y = b1+d, b1
				}
				if x+y > best {
					best, at = x+y, x
				}
			}
			return at, best - at
		}
	}
}

// shift moves runs of changes to where they read best, as GNU's diff does.
func shift(s, other *side) {
	changed, theirs := s.changed[1:], other.changed[1:]
	end := len(s.lines)
	i, j := 0, 0
	for {
		for i < end && !changed[i] {
			for theirs[j] {
				j++
			}
			j++
			i++
		}
		if i == end {
			return
		}
		start := i
		for i++; changed[i]; i++ {
		}
		for theirs[j] {
			j++
		}
		corresponding := end
		for {
			length := i - start
			for start > 0 && s.ids[start-1] == s.ids[i-1] {
				start--
				changed[start] = true
				i--
				changed[i] = false
				for s.changed[start] { // the one before
					start--
				}
				for j--; other.changed[j+1]; j-- {
				}
			}
			corresponding = end
			if other.changed[j] { // the one before
				corresponding = i
			}
			for i != end && s.ids[start] == s.ids[i] {
				changed[start] = false
				start++
				changed[i] = true
				for i++; changed[i]; i++ {
				}
				for j++; theirs[j]; j++ {
					corresponding = i
				}
			}
			if length == i-start {
				break
			}
		}
		for corresponding < i {
			start--
			changed[start] = true
			i--
			changed[i] = false
			for j--; other.changed[j+1]; j-- {
			}
		}
	}
}
