package sorting

import (
	"agentbox/internal/userland/program"
)

// charged is the order of lines, charged to a process.
func (s *sorter) charged(p *program.Process) func(a, b []byte) int {
	return func(a, b []byte) int {
		if s.work > 1<<14 {
			p.Charge(s.work)
			s.work = 0
		}
		return s.compare(a, b)
	}
}

// merge calls put with the lines of sorted blocks in their order; of those that are equal, with that of an earlier block first. The
// blocks are used up.
func merge(blocks [][][]byte, compare func(a, b []byte) int, put func(line []byte)) {
	var heap []int // of blocks, by their first lines
	less := func(i, j int) bool {
		c := compare(blocks[heap[i]][0], blocks[heap[j]][0])
		return c < 0 || c == 0 && heap[i] < heap[j]
	}
	down := func(i int) {
		for {
			least := i
			for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
				if less(child, least) {
					least = child
				}
			}
			if least == i {
				return
			}
			heap[i], heap[least] = heap[least], heap[i]
			i = least
		}
	}
	for i := range blocks {
		heap = append(heap, i)
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		down(i)
	}
	for len(heap) > 0 {
		b := heap[0]
		put(blocks[b][0])
		if blocks[b] = blocks[b][1:]; len(blocks[b]) == 0 {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		down(0)
	}
}
