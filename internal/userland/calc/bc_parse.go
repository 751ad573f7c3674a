package calc

import (
	"strings"
)

func (c *calculator) expr() *calcNode {
	c.enter()
	defer func() { c.nest-- }()
	n := c.and()
	for c.tok == "||" {
		c.advance()
		n = &calcNode{op: "||", args: []*calcNode{n, c.and()}}
	}
	return n
}

func (c *calculator) and() *calcNode {
	n := c.not()
	for c.tok == "&&" {
		c.advance()
		n = &calcNode{op: "&&", args: []*calcNode{n, c.not()}}
	}
	return n
}

func (c *calculator) not() *calcNode {
	if c.accept("!") {
		c.enter()
		defer func() { c.nest-- }()
		return &calcNode{op: "!", args: []*calcNode{c.not()}}
	}
	n := c.sum()
	for {
		switch c.tok {
		case "<", "<=", ">", ">=", "==", "!=":
			op := c.tok
			c.advance()
			n = &calcNode{op: op, args: []*calcNode{n, c.sum()}}
			continue
		}
		return n
	}
}

func (c *calculator) sum() *calcNode {
	n := c.product()
	for c.tok == "+" || c.tok == "-" {
		op := c.tok
		c.advance()
		n = &calcNode{op: op, args: []*calcNode{n, c.product()}}
	}
	return n
}

func (c *calculator) product() *calcNode {
	n := c.power()
	for c.tok == "*" || c.tok == "/" || c.tok == "%" {
		op := c.tok
		c.advance()
		n = &calcNode{op: op, args: []*calcNode{n, c.power()}}
	}
	return n
}

func (c *calculator) power() *calcNode {
	n := c.unary()
	if c.accept("^") {
		c.enter()
		defer func() { c.nest-- }()
		return &calcNode{op: "^", args: []*calcNode{n, c.power()}}
	}
	return n
}

func (c *calculator) unary() *calcNode {
	if c.accept("-") {
		c.enter()
		defer func() { c.nest-- }()
		return &calcNode{op: "neg", args: []*calcNode{c.unary()}}
	}
	if c.tok == "++" || c.tok == "--" {
		op := c.tok
		c.advance()
		return &calcNode{op: "pre" + op, args: []*calcNode{c.lvalue(c.primary())}}
	}
	n := c.primary()
	switch c.tok {
	case "++", "--":
		op := c.tok
		c.advance()
		return &calcNode{op: "post" + op, args: []*calcNode{c.lvalue(n)}}
	case "=", "+=", "-=", "*=", "/=", "%=", "^=":
		op := strings.TrimSuffix(c.tok, "=")
		c.lvalue(n)
		c.advance()
		return &calcNode{op: "=", name: op, args: []*calcNode{n, c.expr()}}
	}
	return n
}

func (c *calculator) lvalue(n *calcNode) *calcNode {
	if n.op != "var" && n.op != "element" {
		c.syntax()
	}
	return n
}

func (c *calculator) primary() *calcNode {
	switch c.tok {
	case "num":
		n := &calcNode{op: "num", name: c.text}
		c.advance()
		return n
	case "(":
		c.advance()
		n := c.expr()
		c.expect(")")
		return &calcNode{op: "()", args: []*calcNode{n}}
	case ".":
		c.advance()
		return &calcNode{op: "var", name: "last"}
	case "name":
		name := c.text
		c.advance()
		switch {
		case c.accept("("):
			n := &calcNode{op: "call", name: name}
			for c.tok != ")" {
				if c.tok == "name" {
					at, line, text := c.at, c.line, c.text
					c.advance()
					if c.tok == "[" {
						c.advance()
						if c.accept("]") {
							n.args = append(n.args, &calcNode{op: "array", name: text})
							c.accept(",")
							continue
						}
					}
					c.at, c.line, c.tok, c.text = at, line, "name", text
				}
				n.args = append(n.args, c.expr())
				if !c.accept(",") {
					break
				}
			}
			c.expect(")")
			return n
		case c.accept("["):
			n := &calcNode{op: "element", name: name, args: []*calcNode{c.expr()}}
			c.expect("]")
			return n
		}
		return &calcNode{op: "var", name: name}
	}
	c.syntax()
	return nil
}
