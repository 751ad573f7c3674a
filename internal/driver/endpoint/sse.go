package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Event is one event of a stream. Name is empty where the stream has no `event:` lines.
type Event struct {
	Name string
	Data []byte // until the next event
}

// ErrEventTooLarge refuses an event beyond MaxEventBytes.
var ErrEventTooLarge = errors.New("an event of the answer is larger than 4 MiB")

// Reader reads server-sent events. The last one counts also where no empty line ends it.
type Reader struct {
	r    *bufio.Reader
	data []byte
}

// NewReader returns a reader of a body.
func NewReader(body io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(body, 16<<10)} }

// peek returns some bytes of the beginning, behind spaces and a byte order mark.
func (r *Reader) peek() []byte {
	for n := 1; n <= 64; n++ {
		head, err := r.r.Peek(n)
		if found := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n\xef\xbb\xbf"); len(found) > 0 {
			return found
		}
		if err != nil {
			return nil
		}
	}
	return nil
}

// Next returns the next event that has data; io.EOF at the end.
func (r *Reader) Next() (Event, error) {
	var e Event
	r.data = r.data[:0]
	has := false
	for {
		line, err := r.line()
		if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			if has && errors.Is(err, io.EOF) {
				e.Data = r.data
				return e, nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if has {
				e.Data = r.data
				return e, nil
			}
			e = Event{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Name = string(value)
		case "data":
			if has {
				r.data = append(r.data, '\n')
			}
			if len(r.data)+len(value) > MaxEventBytes {
				return Event{}, ErrEventTooLarge
			}
			r.data, has = append(r.data, value...), true
		}
	}
}

// line returns the next line without its end. A line at the end of the body need not be ended.
func (r *Reader) line() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(long) > MaxEventBytes {
				return nil, ErrEventTooLarge
			}
			line, err = r.r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	return bytes.TrimPrefix(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), []byte("\ufeff")), err
}
