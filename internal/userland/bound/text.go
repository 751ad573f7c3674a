package bound

import "strings"

// Piece is how many bytes are copied between two charges: less than a millisecond's work, also where the memory is new.
const Piece = 256 << 10

// gasPerCopied is for how many bytes of a long text a unit of gas stands.
const gasPerCopied = 4

// Append appends to a text, as append does. It can be stopped on the way: it moves a long text piece by piece. The caller charges short
// texts.
func Append[T string | []byte](a *Account, dst []byte, src T) ([]byte, error) {
	size := len(dst) + len(src)
	if size > cap(dst) && size > Piece {
		grown := make([]byte, 0, max(size, min(2*cap(dst), cap(dst)+64<<20)))
		var err error
		if grown, err = fill(a, grown, dst); err != nil {
			return dst, err
		}
		dst = grown
	}
	if len(src) <= Piece {
		return append(dst, src...), nil
	}
	return fill(a, dst, src)
}

// fill appends piece by piece what there is room for.
func fill[T string | []byte](a *Account, dst []byte, src T) ([]byte, error) {
	for len(src) > 0 {
		n := min(len(src), Piece)
		if err := a.Charge(int64(n / gasPerCopied)); err != nil {
			return dst, err
		}
		dst, src = append(dst, src[:n]...), src[n:]
	}
	return dst, nil
}

// Copy copies into a text of the same length or a longer one, as copy does. A long copy can be stopped on the way.
func (a *Account) Copy(dst, src []byte) error {
	for len(src) > Piece {
		if err := a.Charge(Piece / gasPerCopied); err != nil {
			return err
		}
		n := copy(dst[:Piece], src)
		dst, src = dst[n:], src[n:]
	}
	copy(dst, src)
	return nil
}

// Text returns a new text that joins the parts. It copies a long one piece by piece, and charges for it.
func Text[T string | []byte](a *Account, parts ...T) (string, error) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range parts {
		for len(p) > 0 {
			n := min(len(p), Piece)
			if size > Piece {
				if err := a.Charge(int64(n / gasPerCopied)); err != nil {
					return "", err
				}
			}
			b.WriteString(string(p[:n]))
			p = p[n:]
		}
	}
	return b.String(), nil
}
