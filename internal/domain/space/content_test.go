package space_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

func TestDecodeContent(t *testing.T) {
	const max = 6
	for _, c := range []struct{ content, as, want, code string }{
		{"", "", "", ""},
		{"hello!", "", "hello!", ""},
		{"hello!", "utf-8", "hello!", ""},
		{"hello!!", "utf-8", "", "file_too_large"},
		{"äöü", "utf-8", "äöü", ""},
		{"äöü.", "utf-8", "", "file_too_large"}, // bytes count, not characters
		{"a\xff", "utf-8", "", "invalid_content"},
		{"", "base64", "", ""},
		{"aGVsbG8h", "base64", "hello!", ""},
		{"aGVsbG8=", "base64", "hello", ""},
		{"aGVsbA==", "base64", "hell", ""},
		{"aGVsbG8hIQ==", "base64", "", "file_too_large"}, // 7 bytes
		{"aGVsbG8=aGVs", "base64", "", "file_too_large"}, // padding in the middle does not make it shorter
		{"aGVs====", "base64", "", "invalid_base64"},
		{"aGVsbG8", "base64", "", "invalid_base64"},
		{"aGVsbG9=", "base64", "", "invalid_base64"}, // bits left over
		{"aGVs\nbG8", "base64", "", "invalid_base64"},
		{"aGVs\r\nbG8=\r\n", "base64", "", "invalid_base64"},
		{"aGVs bG8", "base64", "", "invalid_base64"},
		{"=GVs", "base64", "", "invalid_base64"},
		{"====", "base64", "", "invalid_base64"},
		{"_-8=", "base64", "", "invalid_base64"}, // the alphabet for URLs
		{"x", "hex", "", "invalid_encoding"},
		{"x", "BASE64", "", "invalid_encoding"},
	} {
		got, err := space.DecodeContent(c.content, c.as, max)
		if string(got) != c.want || fault.CodeOf(err) != c.code {
			t.Errorf("%q as %q: got %q, %v, want %q, %q", c.content, c.as, got, err, c.want, c.code)
		}
	}
}

func TestThreat33Base64ThatLies(t *testing.T) {
	// The size is known, and refused, before anything is decoded: no allocation of the content's size.
	huge := strings.Repeat("AAAA", 16<<20)
	var err error
	got := testing.AllocsPerRun(3, func() { _, err = space.DecodeContent(huge, space.Base64, 1<<20) })
	if !errors.Is(err, space.ErrFileTooLarge) || !strings.Contains(err.Error(), "50331648") || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("48 MiB where 1 MiB is taken: %v, want file_too_large with both numbers", err)
	}
	if got > 8 {
		t.Errorf("%v allocations for a refusal, want a few", got)
	}
}

func TestEncodeContent(t *testing.T) {
	if got, err := space.EncodeContent([]byte("hé"), space.UTF8); got != "hé" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := space.EncodeContent([]byte("\xff"), ""); !errors.Is(err, space.ErrNotText) {
		t.Errorf("binary as text: %v, want %v", err, space.ErrNotText)
	}
	if got, err := space.EncodeContent([]byte("\xff"), space.Base64); got != "/w==" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := space.EncodeContent(nil, "hex"); fault.CodeOf(err) != "invalid_encoding" {
		t.Errorf("hex: %v", err)
	}
}

func FuzzDecodeContent(f *testing.F) {
	for _, c := range []string{"", "aGVsbG8=", "aGVs\nbG8=", "====", "AA==", "AB==", "hello"} {
		f.Add(c, true)
		f.Add(c, false)
	}
	f.Fuzz(func(t *testing.T, content string, encoded bool) {
		as := space.UTF8
		if encoded {
			as = space.Base64
		}
		const max = 64
		got, err := space.DecodeContent(content, as, max)
		if err != nil {
			return
		}
		if len(got) > max {
			t.Fatalf("%q: %d bytes came out", content, len(got))
		}
		// One content has one text: a text is accepted only if encoding its content again gives the same text.
		if encoded && base64.StdEncoding.EncodeToString(got) != content || !encoded && string(got) != content {
			t.Fatalf("%q decodes to %q", content, got)
		}
	})
}
