package space

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
)

// How the bytes of a file travel in JSON text; the empty string means UTF8.
const (
	UTF8   = "utf-8"
	Base64 = "base64"
)

// DecodeContent returns the bytes of content, at most max of them. It computes the size after decoding, and checks it, before it decodes.
// It accepts only the standard form of base64: padded, without line breaks or spaces, and with zero bits in unused positions.
func DecodeContent(content string, as string, max int64) ([]byte, error) {
	size := int64(len(content))
	switch as {
	case "", UTF8:
		if !utf8.ValidString(content) {
			return nil, fault.New(fault.Invalid, "invalid_content", "the content is not UTF-8 text; send it as base64")
		}
	case Base64:
		if size%4 != 0 || strings.ContainsAny(content, "\r\n") {
			return nil, invalidBase64()
		}
		size = size / 4 * 3
		if tail, ok := strings.CutSuffix(content, "="); ok {
			size--
			if strings.HasSuffix(tail, "=") {
				size--
			}
		}
	default:
		return nil, fault.New(fault.Invalid, "invalid_encoding", "there is no encoding %.20q; use utf-8 or base64", as)
	}
	if size > max {
		return nil, fault.New(fault.Exhausted, ErrFileTooLarge.Code, "the content has %d bytes; at most %d are taken", size, max)
	}
	if as != Base64 {
		return []byte(content), nil
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(content)
	if err != nil {
		return nil, invalidBase64()
	}
	return decoded, nil
}

// EncodeContent writes bytes as text. UTF8 refuses bytes that are not UTF-8 with ErrNotText.
func EncodeContent(content []byte, as string) (string, error) {
	switch as {
	case "", UTF8:
		if !utf8.Valid(content) {
			return "", fault.New(fault.Conflict, ErrNotText.Code, "the file is not UTF-8 text").With("read it with encoding base64")
		}
		return string(content), nil
	case Base64:
		return base64.StdEncoding.EncodeToString(content), nil
	}
	return "", fault.New(fault.Invalid, "invalid_encoding", "there is no encoding %.20q; use utf-8 or base64", as)
}

func invalidBase64() error {
	return fault.New(fault.Invalid, "invalid_base64",
		"the content is not standard base64: padded to a multiple of four, without spaces or line breaks")
}
