package tools_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	htmltomarkdown "github.com/JohannesKaufmann/html-to-markdown/v2"

	"agentbox/internal/service/tools"
)

// TestPagesAsBrowsersReadThem holds that pages become what the library makes of them with its own parser, which reads them as browsers do:
// those with tags that nobody closed and those with tags that cross each other, too.
func TestPagesAsBrowsersReadThem(t *testing.T) {
	for _, page := range []string{
		"<!doctype html><html><head><title>T</title><style>a{}</style></head><body><h1>News</h1><p>One<p>Two <b>bold</b> &amp; &lt;more</body>",
		"<ul><li>a<li>b<ul><li>c</ul><li>d</ul>after",
		"<ol start=3><li><p>a</p><p>b</p></li><li>c</li></ol>",
		"<dl><dt>a<dd>b<dt>c<dd>d</dl>",
		"<p>a <a href='/x' title=t>one <b>two</b></a> and <a href=y>three<a href=z>four</a> five",
		"<a href=/x><div>in a <em>link</em></div></a> out",
		"<div><a href=/x>a<div>b</a>c</div>d</div>e",
		"<b>one<div>two</b> three</div> four",
		"<td><a href=/x>a</td></a>b<table><td><b>c</table>d</b>e",
		"<blockquote><p>a<p>b<blockquote>c</blockquote></blockquote>d",
		"<pre>\n<code class=language-go>a\n\tb &lt; c\n</code></pre>",
		"<h2>one<h3>two</h3></h2>three",
		"<table><tr><th>a<th>b<tr><td>1<td><b>2</b></table>after",
		"<table><tbody><tr><td><ul><li>x</ul></td></tr></tbody></table>",
		"<td>no table</td><tr>text",
		"a<br>b<br/>c</br>d<hr>e<img src=i.png alt='x [y]'>f",
		"a<script>if (a<b) {}</script>b<noscript><p>c</noscript>d<iframe src=x>e</iframe>f<textarea>g</textarea>h",
		"<!-- a --><p>x<!-- b -->y<?pi?>z</p>",
		"<div/>a<span/>b<svg><path/><title>icon</title></svg>c",
		"<p>text</div></section></p>more</body></html> end",
		"<select><option>a<option>b</select>",
		"[a] * b _c_ # d 1. e\n<p>- f</p><p>[g]</p><p>" + strings.Repeat("[x ", 20) + "</p>",
		"", "plain", "<", "<p", "a & b &copy; &#x41; &bogus;",
	} {
		want, err := htmltomarkdown.ConvertString(page)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tools.Markdown(page, ""); err != nil || got != strings.TrimSpace(want)+"\n" {
			t.Errorf("%s:\ngot  %q, %v\nwant %q", page, got, err, want)
		}
	}
}

// TestAHostilePage is at most 1 MiB, and wants hours or all memory. It is converted or refused soon and within little memory.
func TestAHostilePage(t *testing.T) {
	const most = 1 << 20
	fill := func(start, piece string) string { return start + strings.Repeat(piece, (most-len(start))/len(piece)) }
	var fonts, nested strings.Builder
	for i := range 400 {
		fonts.WriteString("<font size=" + strings.Repeat("1", i%7+1) + strings.Repeat("0", i/7) + ">")
		nested.WriteString("<ol start=999999999><li>")
	}
	for name, page := range map[string]string{
		"open formatting":        fill("<p>"+fonts.String(), "</p><p>a"),
		"quotations and lines":   fill("<pre>"+strings.Repeat("<blockquote>", 400), "a\n"),
		"quotations and breaks":  fill(strings.Repeat("<blockquote>", 400), "a<br>"),
		"lists and lines":        fill(nested.String(), "a<br>"),
		"bold and italic":        fill(strings.Repeat("<b><i>", 200), "a<br>"),
		"brackets":               fill("", "["),
		"brackets in lists":      fill(strings.Repeat("<ul><li>", 50), "["),
		"tags":                   fill("", "<b>"),
		"tags that end":          fill("", "<b>x</b>"),
		"spans":                  fill("", "<span>"),
		"code":                   fill("", "<b><code>x</code></b>"),
		"empty code":             fill("", "<b><code></code></b>"),
		"empty items":            fill("<ul>", "<li>"),
		"text between comments":  fill("", "a<!---->"),
		"text between inputs":    fill("", "a<input>"),
		"attributes":             fill("<p ", "a "),
		"attributes of bold":     fill("", "<b a b c d>"),
		"cells":                  fill("<table>", "<td>x"),
		"nested tables":          fill("", "<table><td>"),
		"links":                  fill("", "<a href=b>b</a>"),
		"end tags":               fill(strings.Repeat("<div>", 300), "</p>"),
		"marks of the converter": fill("", "*\a\uF002"),
		"backticks":              fill("<ul><li><code>", "`"),
		"headings":               fill("", "<h1>a<blockquote>"),
		"dashes":                 fill("", "- "),
		"spaces and dashes":      fill("", "-"+strings.Repeat(" ", 500)),
		"newlines":               fill("<pre>", "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			text, err := tools.Markdown(page, "https://example.com/"+strings.Repeat("x", 2000)+"/")
			took := time.Since(begun)
			runtime.ReadMemStats(&after)
			if err != nil && !errors.Is(err, tools.ErrHTML) {
				t.Errorf("got %v", err)
			}
			all := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%s, %d MiB, %d bytes, %v", took, all, len(text), err)
			if took > 20*time.Second || all > 3000 || len(text) > 64<<20 {
				t.Errorf("it took %s and %d MiB, and made %d bytes", took, all, len(text))
			}
		})
	}
}

// TestThePageWithTheMostTags is converted, and one with a tag more is refused.
func TestThePageWithTheMostTags(t *testing.T) {
	for tags, fits := range map[int]bool{150_000: true, 150_001: false} {
		text, err := tools.Markdown(strings.Repeat("<br>", tags-1)+"<p>end", "")
		if fits && (err != nil || !strings.HasSuffix(text, "end\n")) || !fits && !errors.Is(err, tools.ErrHTML) {
			t.Errorf("%d tags: got %d bytes, %v", tags, len(text), err)
		}
	}
}
