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
	maxCost  = 32 << 20 // bytes that are written, roughly
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
)

// element is an open element.
type element struct {
	*html.Node
	block, wall, table bool
}

// planter makes a tree of tags. It closes the elements that their authors forget to close, as browsers do. Browsers also repeat each open
// formatting element in each later paragraph, and so does the parser of the library, which makes 20 GB of a page of 1 MiB. Here such an
// element ends with the block around it.
type planter struct {
	top    *html.Node
	open   []element // from the body
	drawn  int       // of them are svg or math
	within string    // a dropped element
	text   strings.Builder
	tags   int
}

// tree reads HTML. The tree has at most two elements for each tag.
func tree(page string) (*html.Node, error) {
	p := &planter{top: &html.Node{Type: html.DocumentNode}}
	root := &html.Node{Type: html.ElementNode, DataAtom: atom.Html, Data: "html"}
	p.top.AppendChild(root)
	p.open = []element{{Node: &html.Node{Type: html.ElementNode, DataAtom: atom.Body, Data: "body"}}}
	root.AppendChild(p.open[0].Node)
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch token := z.Next(); token {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				return nil, fault.Wrap(z.Err(), ErrHTML.Kind, ErrHTML.Code, "%s", ErrHTML.Msg)
			}
			p.flush()
			return p.top, nil
		case html.TextToken:
			if p.within == "" {
				p.say(bytes.ReplaceAll(z.Text(), []byte{0}, nil))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if string(name) == p.within {
				p.within = ""
			} else {
				p.end(string(name))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			if p.tags++; p.tags > maxTags {
				return nil, fault.New(ErrHTML.Kind, ErrHTML.Code, "%s: it has more than %d tags", ErrHTML.Msg, maxTags)
			}
			p.start(z, token == html.SelfClosingTagToken)
		}
	}
}

// start reads a start tag. The tokenizer gives the content of a dropped element as one text.
func (p *planter) start(z *html.Tokenizer, selfClosing bool) {
	raw, _ := z.TagName()
	name := string(raw)
	p.within = ""
	switch {
	case ignored[name]:
	case p.drawn > 0 && (selfClosing || name == "title"): // in pictures the words of HTML mean nothing else
		z.NextIsNotRawText()
		if !dropped[name] || name == "title" {
			p.begin(name, z, selfClosing)
		}
	case dropped[name]:
		p.within = name
	default:
		p.begin(name, z, false)
	}
}

// last returns the last open element.
func (p *planter) last() element { return p.open[len(p.open)-1] }

// say adds text. The first line break in a pre is not of its text.
func (p *planter) say(text []byte) {
	if n := p.last(); n.Data == "pre" && n.FirstChild == nil && p.text.Len() == 0 {
		text = bytes.TrimPrefix(text, []byte("\n"))
	}
	p.text.Write(text)
}

// flush adds the text so far to the last open element.
func (p *planter) flush() {
	if p.text.Len() > 0 {
		p.last().AppendChild(&html.Node{Type: html.TextNode, Data: p.text.String()})
		p.text.Reset()
	}
}

// find returns the place of the last open element of a name, or of one of some names. It looks behind no wall; -1 for none.
func (p *planter) find(name string, or names) int {
	for i := len(p.open) - 1; i > 0; i-- {
		if p.open[i].Data == name || or != nil && or[p.open[i].Data] {
			return i
		}
		if p.open[i].wall {
			break
		}
	}
	return -1
}

// part returns the place of the last open element of a name in the last table, or of that table; -1 for none.
func (p *planter) part(name string) int {
	for i := len(p.open) - 1; i > 0; i-- {
		if p.open[i].Data == name {
			return i
		}
		if p.open[i].Data == "table" {
			break
		}
	}
	return -1
}

// item returns the place of the item of a list that another one ends; -1 for none.
func (p *planter) item(one, other string) int {
	for i := len(p.open) - 1; i > 0; i-- {
		n := p.open[i]
		if n.Data == one || n.Data == other {
			return i
		}
		if n.wall || n.block && n.Data != "address" && n.Data != "div" && n.Data != "p" {
			break
		}
	}
	return -1
}

// close closes the elements from a place on.
func (p *planter) close(from int) {
	if from < 1 {
		return
	}
	p.flush()
	for _, n := range p.open[from:] {
		p.leave(n)
	}
	p.open = p.open[:from]
}

func (p *planter) leave(n element) {
	if n.Data == "svg" || n.Data == "math" {
		p.drawn--
	}
}

// release closes a formatting element. A block in it that is open stays open: it moves behind the element, and what is in it so far gets
// such an element of its own.
func (p *planter) release(at int) {
	if at < 1 {
		return
	}
	p.flush()
	first := at + 1
	for first < len(p.open) && !p.open[first].block && !p.open[first].table {
		first++
	}
	if first == len(p.open) {
		p.close(at)
		return
	}
	block, around := p.open[first].Node, p.open[at].Node
	block.Parent.RemoveChild(block)
	inner := &html.Node{Type: html.ElementNode, DataAtom: around.DataAtom, Data: around.Data, Attr: around.Attr}
	for c := block.FirstChild; c != nil; c = block.FirstChild {
		block.RemoveChild(c)
		inner.AppendChild(c)
	}
	if inner.FirstChild != nil {
		block.AppendChild(inner)
	}
	p.open[at-1].AppendChild(block)
	for _, n := range p.open[at:first] {
		p.leave(n)
	}
	p.open = slices.Delete(p.open, at, first)
}

// begin adds an element. It first closes those that cannot be around it.
func (p *planter) begin(name string, z *html.Tokenizer, void bool) {
	block := blocks[name]
	switch {
	case tables[name] && name != "table":
		if p.part("table") < 0 {
			return // outside of a table it is nothing
		}
		p.row(name)
	case name == "li":
		p.close(p.item("li", "li"))
	case name == "dd" || name == "dt":
		p.close(p.item("dd", "dt"))
	case name == "a":
		p.release(p.find("a", nil))
	case name == "option" || name == "optgroup":
		if p.last().Data == "option" {
			p.close(len(p.open) - 1)
		}
	}
	if block {
		p.close(p.find("p", nil))
		if headings[name] && headings[p.last().Data] {
			p.close(len(p.open) - 1)
		}
	}
	p.flush()
	void = void || empty[name]
	if !void && len(p.open) >= maxNest {
		return
	}
	n := &html.Node{Type: html.ElementNode, DataAtom: atom.Lookup([]byte(name)), Data: name, Attr: attributes(z)}
	p.last().AppendChild(n)
	if void {
		return
	}
	p.open = append(p.open, element{n, block, walls[name], tables[name]})
	if name == "svg" || name == "math" {
		p.drawn++
	}
}

// row closes the parts of the last table that another part ends.
func (p *planter) row(name string) {
	from := p.part("table")
	for i := len(p.open) - 1; i > from; i-- {
		is := p.open[i].Data
		if name == "tr" && (is == "tbody" || is == "thead" || is == "tfoot") || (name == "td" || name == "th") && is == "tr" {
			from = i
		}
	}
	p.close(from + 1)
}

// end closes the last open element of a name.
func (p *planter) end(name string) {
	switch {
	case name == "br":
		p.flush()
		p.last().AppendChild(&html.Node{Type: html.ElementNode, DataAtom: atom.Br, Data: "br"})
	case tables[name]:
		p.close(p.part(name))
	case headings[name]:
		p.close(p.find(name, headings))
	case inline[name]:
		p.release(p.find(name, nil))
	case blocks[name] || walls[name]:
		p.close(p.find(name, nil))
	default:
		for i := len(p.open) - 1; i > 0 && !p.open[i].block && !p.open[i].wall; i-- {
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

// cost estimates how many bytes the converter writes for a tree. It writes a text anew for each list and quotation around it, and something
// of each of them on each line; a link has the address of the page.
func cost(n *html.Node, base string) int {
	sum := 0
	var visit func(n *html.Node, deep, around int)
	visit = func(n *html.Node, deep, around int) {
		switch {
		case n.Type == html.TextNode:
			sum += len(n.Data)*deep + (strings.Count(n.Data, "\n")+1)*around
		case n.Data == "a" || n.Data == "img":
			sum += len(base) + around
		case n.Type == html.ElementNode:
			sum += 4 + 2*around
		}
		if repeated[n.Data] && n.Type == html.ElementNode {
			deep++
			around += 4
		}
		if n.Data == "ol" && n.Type == html.ElementNode {
			around += 20 // a list can begin with a number of as many digits
		}
		for c := n.FirstChild; c != nil && sum <= maxCost; c = c.NextSibling {
			visit(c, deep, around)
		}
	}
	visit(n, 1, 0)
	return sum
}
