package javascript

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

// buffers is the host's part of the module buffer and of TextDecoder.
type buffers struct{ run *run }

// gasPerDecoded is the cost of decoding a byte of an old encoding.
const gasPerDecoded = 10

// encodingName returns the name that the web's standard gives the encoding of a label; empty for none.
func (bf buffers) encodingName(a *arguments) (any, error) {
	label := a.text()
	if a.err != nil {
		return nil, a.err
	}
	e, err := htmlindex.Get(label)
	if err != nil {
		return "", nil //nolint:nilerr // the prelude says that there is none
	}
	name, err := htmlindex.Name(e)
	if err != nil || name == "replacement" || name == "x-user-defined" {
		return "", nil //nolint:nilerr // as above
	}
	return name, nil
}

// decodeAs makes text of bytes in an old encoding. Before it stands how many of them it has used, and a colon: where more will come, a
// character may be left in part.
func (bf buffers) decodeAs(a *arguments) (any, error) {
	name, more, fatal := a.text(), a.int() != 0, a.int() != 0
	b := a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	bf.run.p.Charge(len(b) * gasPerDecoded)
	e, err := htmlindex.Get(name)
	if err != nil {
		return nil, err
	}
	if page, ok := e.(*charmap.Charmap); ok {
		text, whole := ofPage(page, b)
		if fatal && !whole {
			return nil, undecodable(name)
		}
		return strconv.Itoa(len(b)) + ":" + text, nil
	}
	var out strings.Builder
	from, into := b, make([]byte, 4096)
	decoder := e.NewDecoder().Transformer
	for {
		wrote, read, err := decoder.Transform(into, from, !more)
		out.Write(into[:wrote])
		from = from[read:]
		if errors.Is(err, transform.ErrShortDst) {
			continue
		}
		if err != nil && !errors.Is(err, transform.ErrShortSrc) {
			return nil, err
		}
		break
	}
	text := out.String()
	if fatal && strings.ContainsRune(text, utf8.RuneError) {
		return nil, undecodable(name)
	}
	return strconv.Itoa(len(b)-len(from)) + ":" + text, nil
}

func undecodable(name string) error {
	return &thrown{"ERR_ENCODING_INVALID_ENCODED_DATA", "The encoded data was not valid for encoding " + name}
}

// ofPage makes text of bytes that are a character each, and says whether all are. As on the web, controls that a page does not name are
// themselves.
func ofPage(page *charmap.Charmap, b []byte) (text string, whole bool) {
	var out strings.Builder
	whole = true
	for _, c := range b {
		r := page.DecodeByte(c)
		if r == utf8.RuneError && c >= 0x80 && c < 0xa0 {
			r = rune(c)
		}
		whole = whole && r != utf8.RuneError
		out.WriteRune(r)
	}
	return out.String(), whole
}

// decode makes a string of UTF-8. With fatal, invalid UTF-8 is an error.
func (bf buffers) decode(a *arguments) (any, error) {
	b, fatal := a.bytes(), false
	text := string(b)
	fatal = a.int() != 0
	if a.err != nil {
		return nil, a.err
	}
	bf.run.p.Charge(len(text))
	if utf8.ValidString(text) {
		return text, nil
	}
	if fatal {
		return nil, &thrown{"ERR_ENCODING_INVALID_ENCODED_DATA", "The encoded data was not valid for encoding utf-8"}
	}
	var s strings.Builder
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		if c == utf8.RuneError && size == 1 {
			size = spoiled(text)
		}
		s.WriteRune(c)
		text = text[size:]
	}
	return s.String(), nil
}

func (bf buffers) base64(a *arguments) (any, error) {
	b := a.bytes()
	bf.run.p.Charge(len(b))
	text := base64.StdEncoding.EncodeToString(b)
	if a.int() != 0 {
		text = base64.RawURLEncoding.EncodeToString(b)
	}
	return text, nil
}

// unbase64 decodes as leniently as Node does.
func (bf buffers) unbase64(a *arguments) (any, error) {
	clean := strings.Map(func(c rune) rune {
		switch {
		case c == '-':
			return '+'
		case c == '_':
			return '/'
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			return c
		}
		return -1
	}, a.text())
	bf.run.p.Charge(len(clean))
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	b, err := base64.RawStdEncoding.DecodeString(clean)
	if err != nil {
		return nil, &thrown{"ERR_INVALID_ARG_VALUE", "The string is not base64"}
	}
	return b, nil
}
