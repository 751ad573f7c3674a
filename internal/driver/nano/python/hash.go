package python

import "crypto/sha256"

// Hash identifies the interpreter with its library and its boot script: an image belongs to all three.
func (r *Runtime) Hash() [sha256.Size]byte {
	h := sha256.New()
	for _, part := range [][]byte{r.Module, r.Library, boot} {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
