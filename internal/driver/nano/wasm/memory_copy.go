//go:build !linux || nocow

package wasm

// store holds the memory of an image.
type store struct{ content []byte }

func newStore(content []byte, size uint64) (store, error) {
	b := make([]byte, size)
	copy(b, content)
	return store{content: b}, nil
}

// bytes returns the content, only to be read.
func (s *store) bytes() []byte { return s.content }

func (s *store) close() error {
	s.content = nil
	return nil
}

// mapping is a copy of the image.
type mapping struct {
	memory []byte
	filled bool
}

// resize makes size bytes usable. It grows by a half at least, so that growing page by page copies little.
func (m *mapping) resize(image *Image, size, most uint64) []byte {
	if !m.filled {
		m.memory, m.filled = make([]byte, size), true
		copy(m.memory, image.store.content)
		return m.memory
	}
	if size > uint64(cap(m.memory)) {
		grown := make([]byte, len(m.memory), min(max(size, size+size/2), most))
		copy(grown, m.memory)
		m.memory = grown
	}
	m.memory = m.memory[:size]
	return m.memory
}

// reset returns a memory that has not grown to the image. It reports whether it could.
func (m *mapping) reset(image *Image, _ marks) bool {
	if !m.filled || uint64(len(m.memory)) != image.size {
		return false
	}
	copy(m.memory, image.store.content)
	return true
}

// ready has nothing to do: a copy has all its pages.
func (m *mapping) ready(*Image) {}

// populate likewise.
func (m *mapping) populate(uint64, uint64) {}

func (m *mapping) free() { *m = mapping{} }

// marks would tell which pages were written: of a copy all were.
type marks struct{}

func openMarks() marks                        { return marks{} }
func (marks) close()                          {}
func (marks) written(*mapping, uint64) []bool { return nil }
