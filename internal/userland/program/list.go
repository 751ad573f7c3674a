package program

// blockLen is how many elements of a List lie in one piece.
const blockLen = 4096

// List is a sequence that may become long. Its elements never move, so that it grows in small steps. The zero value is empty.
type List[T any] struct {
	blocks [][]T
}

// Append adds an element at the end.
func (l *List[T]) Append(v T) {
	last := len(l.blocks) - 1
	if last < 0 || len(l.blocks[last]) == blockLen {
		size := blockLen
		if last < 0 {
			size = 16
		}
		l.blocks = append(l.blocks, make([]T, 0, size))
		last++
	}
	l.blocks[last] = append(l.blocks[last], v)
}

// Len returns how many elements there are.
func (l *List[T]) Len() int {
	last := len(l.blocks) - 1
	if last < 0 {
		return 0
	}
	return last*blockLen + len(l.blocks[last])
}

// At returns where an element is.
func (l *List[T]) At(i int) *T { return &l.blocks[i/blockLen][i%blockLen] }

// Blocks returns the elements in their order, in pieces that lie together.
func (l *List[T]) Blocks() [][]T { return l.blocks }
