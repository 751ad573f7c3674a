package tools

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"agentbox/internal/domain/fault"
)

// The bounds of a page as a tree. A page is hostile input, and a tag of it costs more than its bytes.
const (
	maxTags  = 150_000
	maxNest  = 200      // elements within each other; the text of deeper ones is in the last one
	maxCost  = 32 << 20 // bytes of Markdown, roughly
	maxAttrs = 50       // attributes of an element that are read
)

// names are names of elements.
type names map[string]bool

func named(list string) names {
	set := names{}
	for _, name := range strings.Fields(list) {
		set[name] = true
	}
	return set
}

var (
	ignored  = named("html head body link meta base input")
	dropped  = named("script style iframe noscript noembed noframes textarea title") // with their content
	empty    = named("area base br col embed frame hr img input keygen link meta param source track wbr")
	headings = named("h1 h2 h3 h4 h5 h6")
	inline   = named("a b big code em font i nobr s small strike strong tt u") // an end tag closes them within blocks, too
	tables   = named("table caption colgroup col tbody thead tfoot tr td th")
	walls    = named("table td th caption button object applet marquee template") // an end tag outside closes nothing inside
	blocks   = named("address article aside blockquote center details dialog dd dir div dl dt fieldset figcaption figure footer form " +
		"h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul xmp")
	repeated = named("blockquote ul ol li b strong i em a") // the converter writes on each line of their content

	table, links, paragraph, drawn = named("table"), named("a"), named("p"), named("svg math")
)

// planter makes a tree of tags. It closes the elements that their authors forget to close, as browsers do. The parser of the library does
// all that browsers do: it repeats each open formatting element in each later paragraph, and makes 20 GB of a page of 1 MiB.
type planter struct {
	top  *html.Node
	open []*html.Node // from the body
	text strings.Builder
	tags int
}

// tree reads HTML. The tree has at most one element for each tag.
func tree(page string) (*html.Node, error) {
	p := &planter{top: &html.Node{Type: html.DocumentNode}}
	root := &html.Node{Type: html.ElementNode, DataAtom: atom.Html, Data: "html"}
	body := &html.Node{Type: html.ElementNode, DataAtom: atom.Body, Data: "body"}
	p.top.AppendChild(root)
	root.AppendChild(body)
	p.open = []*html.Node{body}
	z := html.NewTokenizer(strings.NewReader(page))
	within := "" // a dropped element
	for {
		switch token := z.Next(); token {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				return nil, fault.Wrap(z.Err(), ErrHTML.Kind, ErrHTML.Code, "%s", ErrHTML.Msg)
			}
			p.flush()
			return p.top, nil
		case html.TextToken:
			if within == "" {
				p.say(bytes.ReplaceAll(z.Text(), []byte{0}, nil))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if string(name) == within {
				within = ""
			} else {
				p.end(string(name))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			raw, _ := z.TagName()
			name := string(raw)
			if dropped[name] { // the tokenizer gives its content as one text
				within = name
				continue
			}
			within = ""
			if p.tags++; p.tags > maxTags {
				return nil, fault.New(ErrHTML.Kind, ErrHTML.Code, "%s: it has more than %d tags", ErrHTML.Msg, maxTags)
			}
			p.begin(name, z, token == html.SelfClosingTagToken)
		}
	}
}

// say adds text. The first line break in a pre is not of its text.
func (p *planter) say(text []byte) {
	if n := p.open[len(p.open)-1]; n.Data == "pre" && n.FirstChild == nil && p.text.Len() == 0 {
		text = bytes.TrimPrefix(text, []byte("\n"))
	}
	p.text.Write(text)
}

// flush adds the text so far to the last open element.
func (p *planter) flush() {
	if p.text.Len() > 0 {
		p.open[len(p.open)-1].AppendChild(&html.Node{Type: html.TextNode, Data: p.text.String()})
		p.text.Reset()
	}
}

// last returns the place of the last open element of these, behind the last one of the walls; -1 for none.
func (p *planter) last(of, walls names) int {
	for i := len(p.open) - 1; i > 0; i-- {
		if of[p.open[i].Data] {
			return i
		}
		if walls[p.open[i].Data] {
			break
		}
	}
	return -1
}

// close closes the elements from a place on.
func (p *planter) close(from int) {
	if from > 0 {
		p.flush()
		p.open = p.open[:from]
	}
}

// release closes a formatting element. Blocks in it stay open: what follows in them follows them, and what follows them is no more in it.
func (p *planter) release(at int) {
	if at < 0 {
		return
	}
	p.flush()
	for _, n := range p.open[at+1:] {
		if blocks[n.Data] || tables[n.Data] {
			p.open = slices.Delete(p.open, at, at+1)
			return
		}
	}
	p.open = p.open[:at]
}

// begin adds an element. It first closes those that cannot be around it.
func (p *planter) begin(name string, z *html.Tokenizer, selfClosing bool) {
	if ignored[name] {
		return
	}
	switch {
	case tables[name] && name != "table":
		if p.last(table, nil) < 0 {
			return // outside of a table it is nothing
		}
		switch name {
		case "tr":
			p.close(p.behind("tbody", "thead", "tfoot"))
		case "td", "th":
			p.close(p.behind("tr"))
		default:
			p.close(p.behind())
		}
	case name == "li":
		p.close(p.item("li"))
	case name == "dd" || name == "dt":
		p.close(p.item("dd", "dt"))
	case name == "a":
		p.release(p.last(links, walls))
	case name == "option" || name == "optgroup":
		if p.open[len(p.open)-1].Data == "option" {
			p.close(len(p.open) - 1)
		}
	}
	if blocks[name] {
		p.close(p.last(paragraph, walls))
		if headings[name] && headings[p.open[len(p.open)-1].Data] {
			p.close(len(p.open) - 1)
		}
	}
	p.flush()
	n := &html.Node{Type: html.ElementNode, DataAtom: atom.Lookup([]byte(name)), Data: name, Attr: attributes(z)}
	void := empty[name] || selfClosing && p.last(drawn, nil) > 0
	if !void && len(p.open) >= maxNest {
		return
	}
	p.open[len(p.open)-1].AppendChild(n)
	if !void {
		p.open = append(p.open, n)
	}
}

// behind returns the place behind the last table, or behind the last part of it of these names.
func (p *planter) behind(parts ...string) int {
	at := p.last(table, nil)
	for i := len(p.open) - 1; i > at; i-- {
		if slices.Contains(parts, p.open[i].Data) {
			return i + 1
		}
	}
	return at + 1
}

// item returns the place of the item that another one ends; -1 for none.
func (p *planter) item(of ...string) int {
	for i := len(p.open) - 1; i > 0; i-- {
		name := p.open[i].Data
		if slices.Contains(of, name) {
			return i
		}
		if walls[name] || blocks[name] && name != "address" && name != "div" && name != "p" {
			break
		}
	}
	return -1
}

// end closes the last open element of a name.
func (p *planter) end(name string) {
	of := names{name: true}
	switch {
	case name == "br":
		p.flush()
		p.open[len(p.open)-1].AppendChild(&html.Node{Type: html.ElementNode, DataAtom: atom.Br, Data: "br"})
	case name == "table":
		p.close(p.last(of, nil))
	case tables[name]:
		p.close(p.last(of, table))
	case headings[name]:
		p.close(p.last(headings, walls))
	case inline[name]:
		p.release(p.last(of, walls))
	case blocks[name] || walls[name]:
		p.close(p.last(of, walls))
	default:
		for i := len(p.open) - 1; i > 0 && !blocks[p.open[i].Data] && !walls[p.open[i].Data]; i-- {
			if p.open[i].Data == name {
				p.close(i)
				return
			}
		}
	}
}

// attributes returns the first attributes of a tag.
func attributes(z *html.Tokenizer) (list []html.Attribute) {
	for len(list) < maxAttrs {
		key, value, more := z.TagAttr()
		if len(key) > 0 {
			list = append(list, html.Attribute{Key: string(key), Val: string(value)})
		}
		if !more {
			break
		}
	}
	return list
}

// cost estimates how many bytes of Markdown a tree becomes. A line within lists and quotations has something of each of them, and each link
// the address of the page.
func cost(n *html.Node, base string) int {
	sum := 0
	var visit func(n *html.Node, around int)
	visit = func(n *html.Node, around int) {
		switch {
		case n.Type == html.TextNode:
			sum += len(n.Data) + (strings.Count(n.Data, "\n")+1)*around
		case n.Data == "a" || n.Data == "img":
			sum += len(base) + around
		case n.Type == html.ElementNode:
			sum += 4 + 2*around
		}
		if repeated[n.Data] && n.Type == html.ElementNode {
			around += 4
		}
		if n.Data == "ol" && n.Type == html.ElementNode {
			around += 20 // a list can begin with a number of as many digits
		}
		for c := n.FirstChild; c != nil && sum <= maxCost; c = c.NextSibling {
			visit(c, around)
		}
	}
	visit(n, 0)
	return sum
}
