package worker

import (
	"io"
	"unicode/utf8"

	"agentbox/internal/domain/space"
)

// encodeDisplay returns a display without its content, which follows.
func encodeDisplay(d space.Display) []byte {
	var e encoder
	e.uint(uint64(d.Value))
	e.bool(d.Result)
	e.string(d.Type)
	e.string(d.Media)
	for _, n := range []int{d.Rows, d.Columns, d.Width, d.Height, len(d.Data)} {
		e.uint(uint64(n))
	}
	return e.b
}

// decodeDisplay returns a display whose content, of length bytes, follows.
func decodeDisplay(b []byte) (d space.Display, length int, err error) {
	p := decoder{b: b}
	number := func() int {
		n := p.uint()
		if n > maxNumber {
			p.fail()
			return 0
		}
		return int(n)
	}
	d = space.Display{Value: number(), Result: p.bool(), Type: p.string(), Media: p.string(), Rows: number(), Columns: number(),
		Width: number(), Height: number()}
	if length = number(); length > space.MaxDisplayBytes {
		p.fail()
	}
	return d, length, p.done()
}

// maxNumber is the largest number of anything in a display.
const maxNumber = 1<<31 - 1

// display sends the shown values.
func (s *server) display(d space.Display) error {
	if err := s.send(frameDisplay, encodeDisplay(d), false); err != nil {
		return err
	}
	return s.content(d.Data)
}

// display takes a display frame. It rejects a frame above the display limit, or with a text that is not UTF-8: a correct worker sends
// neither.
func (t *talk) display(payload []byte) error {
	d, length, err := decodeDisplay(payload)
	if err != nil {
		return err
	}
	d.Data = make([]byte, length)
	if !d.Fits(t.displays) {
		return errWire
	}
	if _, err := io.ReadFull(&contents{t: t, left: int64(length)}, d.Data); err != nil {
		return err
	}
	picture := d.Media == space.DisplayPNG || d.Media == space.DisplayJPEG
	if !utf8.ValidString(d.Type) || !picture && !utf8.Valid(d.Data) {
		return errWire
	}
	t.displays = append(t.displays, d)
	return nil
}
