package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	plugin "github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"golang.org/x/net/html/charset"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/web"
)

// Page returns a fetched page as a model reads it: its status, its address, and its text. It returns charset_unknown or charset_wrong for a
// text that it cannot decode.
func Page(a web.Answer, at string, f Fetch) (string, error) {
	text := fmt.Sprintf("status: %d\nurl: %s\ntype: %s\n", a.Status, at, a.Media)
	if len(a.Body) == 0 {
		return text, nil
	}
	body, err := charset.NewReaderLabel(cmp.Or(a.Charset, "utf-8"), bytes.NewReader(a.Body))
	if err != nil {
		return "", fault.New(fault.Invalid, "charset_unknown", "the text of the page has the unknown charset %.60q", a.Charset)
	}
	raw, err := io.ReadAll(io.LimitReader(body, 4*web.MaxBody))
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "charset_wrong", "the text of the page is not in its charset")
	}
	content := strings.ToValidUTF8(string(raw), "\uFFFD")
	if !f.Raw && (a.Media == "text/html" || a.Media == "application/xhtml+xml") {
		if content, err = Markdown(content, at); err != nil {
			return "", err
		}
	}
	if a.Cut {
		content += fmt.Sprintf("\n[the page has more than %d bytes; the rest is left out]\n", web.MaxBody)
	}
	return text + "\n" + content, nil
}

// ErrHTML means that a text cannot be turned into Markdown.
var ErrHTML = fault.New(fault.Invalid, "html_not_converted", "the HTML cannot be turned into Markdown")

// HTML are the arguments of the tool html_to_markdown.
type HTML struct {
	head
	HTML string `json:"html"`
	Base string `json:"base_url"` // of relative links; "" for none
}

// ReadHTML reads the arguments of the tool html_to_markdown.
func ReadHTML(arguments json.RawMessage) (HTML, error) {
	var h HTML
	if err := strictly(arguments, &h); err != nil {
		return h, err
	}
	if h.HTML == "" || len(h.HTML) > web.MaxBody {
		return h, wrong("html has 1 to %d bytes", web.MaxBody)
	}
	if h.Base == "" {
		return h, nil
	}
	_, err := web.Clean(h.Base)
	return h, err
}

// Markdown turns HTML into Markdown without scripts and styles. Base is the address for relative links, "" for none.
func Markdown(html, base string) (text string, err error) {
	defer func() {
		if r := recover(); r != nil { // the HTML is hostile input for the library
			text, err = "", fault.New(ErrHTML.Kind, ErrHTML.Code, "%s: %.200s", ErrHTML.Msg, fmt.Sprint(r))
		}
	}()
	doc, err := tree(html)
	if err != nil {
		return "", err
	}
	if cost(doc, base) > maxCost {
		return "", fault.New(ErrHTML.Kind, ErrHTML.Code, "%s: it would have more than %d MiB", ErrHTML.Msg, maxCost>>20)
	}
	var options []converter.ConvertOptionFunc
	if base != "" {
		options = append(options, converter.WithDomain(base))
	}
	c := converter.NewConverter(converter.WithPlugins(plugin.NewBasePlugin(), commonmark.NewCommonmarkPlugin()))
	c.Register.UnEscaper(bracket, converter.PriorityEarly)
	raw, err := c.ConvertNode(doc, options...)
	if err != nil {
		return "", fault.Wrap(err, ErrHTML.Kind, ErrHTML.Code, "%s", ErrHTML.Msg)
	}
	return strings.TrimSpace(string(raw)) + "\n", nil
}

// bracket reports whether a [ of a text is escaped: 1 for yes, -1 for "ask the next one". The library looks for the ] up to the end of the
// line, for each [ of the line: hours for a page of them.
func bracket(text []byte, at int) int {
	if text[at] != '[' {
		return -1
	}
	if near := text[at:min(at+100, len(text))]; len(near) == 100 && bytes.IndexByte(near, '\n') < 0 && bytes.IndexByte(near, ']') < 0 {
		return 1
	}
	return -1
}
