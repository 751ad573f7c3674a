package awk

func (p *parser) loopBody() []stmt {
	p.loops++
	b := p.body()
	p.loops--
	return b
}

func (p *parser) forLoop() stmt {
	p.next()
	p.expect("(")
	s := &loop{}
	if !p.is(";") {
		if p.tok == tName { // for (x in a)
			at, line, name, start := p.at, p.line, p.text, p.start
			p.next()
			if p.accept("in") && p.tok == tName {
				array := p.reference()
				if p.accept(")") {
					return &forIn{to: p.variable(name), array: array, body: p.loopBody()}
				}
			}
			p.at, p.line, p.tok, p.text, p.start = at, line, tName, name, start
		}
		s.init = p.simple()
	}
	p.expect(";")
	p.newlines()
	if !p.is(";") {
		s.test = p.expr()
	}
	p.expect(";")
	p.newlines()
	if !p.is(")") {
		s.after = p.simple()
	}
	p.expect(")")
	s.body = p.loopBody()
	return s
}

func (p *parser) choose() stmt {
	p.next()
	p.expect("(")
	s := &choose{x: p.expr()}
	p.expect(")")
	p.newlines()
	p.expect("{")
	p.loops++
	for p.terminators(); !p.accept("}"); p.terminators() {
		c := choice{}
		if p.accept("default") {
			p.expect(":")
		} else {
			p.expect("case")
			c.x = p.primaryNoTernary()
			if m, ok := c.x.(*match); ok {
				c.x, c.regex = &text{str(m.source)}, true
			}
			p.expect(":")
		}
		for p.terminators(); !p.is("case") && !p.is("default") && !p.is("}"); p.terminators() {
			c.body = append(c.body, p.statement())
		}
		s.cases = append(s.cases, c)
	}
	p.loops--
	return s
}

func (p *parser) primaryNoTernary() expr { return p.additive() }

// simple reads a statement that may stand in the head of a loop.
func (p *parser) simple() stmt {
	if p.tok != tKeyword || p.text == "getline" {
		return &simple{p.expr()}
	}
	word, begin := p.text, p.start
	switch word {
	case "print", "printf":
		p.next()
		return p.print(word == "printf")
	case "delete":
		p.next()
		if p.tok != tName {
			p.unexpected()
		}
		array := p.reference()
		if x, ok := array.(*element); ok {
			return &deleteOne{x.array, x.subs}
		}
		return &deleteAll{array}
	case "break", "continue":
		if p.loops == 0 {
			p.complain("`%s' is not allowed outside a loop%s", word, map[string]string{"break": " or switch"}[word])
		}
		p.next()
		if word == "break" {
			return &jump{broke}
		}
		return &jump{continued}
	case "next", "nextfile":
		if p.rule != "" && (p.rule != "BEGINFILE" || word == "next") {
			p.complain("`%s' used in %s action", word, p.rule)
		}
		p.next()
		if word == "next" {
			return &jump{nextRecord}
		}
		return &jump{nextFile}
	case "exit", "return":
		p.next()
		var x expr
		if p.tok != tNewline && !p.is(";") && !p.is("}") && p.tok != tEOF {
			x = p.expr()
		}
		if word == "exit" {
			return &exitStmt{x}
		}
		if !p.inFunc {
			p.failAt(begin, "`return' used outside function context")
		}
		return &ret{x}
	}
	p.unexpected()
	return nil
}
