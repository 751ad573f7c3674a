package awk

func (p *parser) expr() expr {
	p.enter()
	defer func() { p.depth-- }()
	x := p.or()
	if p.accept("?") {
		p.newlines()
		a := p.expr()
		p.newlines()
		p.expect(":")
		p.newlines()
		return &ternary{x, a, p.expr()}
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for p.accept("||") {
		p.newlines()
		x = &binary{"||", x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.in()
	for p.accept("&&") {
		p.newlines()
		x = &binary{"&&", x, p.in()}
	}
	return x
}

func (p *parser) in() expr {
	x := p.matching()
	for p.is("in") && !p.noIn {
		p.next()
		if p.tok != tName {
			p.unexpected()
		}
		subs := []expr{x}
		if g, ok := x.(*group); ok {
			subs = g.list
		}
		x = &inArray{subs, p.reference()}
	}
	return x
}

func (p *parser) matching() expr {
	x := p.comparison()
	for p.is("~") || p.is("!~") {
		not := p.text == "!~"
		p.next()
		x = &matches{not, x, p.comparison()}
	}
	return x
}

func (p *parser) comparison() expr {
	x := p.concat()
	for {
		switch {
		case p.is("<") || p.is("<=") || p.is("==") || p.is("!=") || p.is(">=") || p.is(">") && !p.noGT:
			op := p.text
			p.next()
			x = &binary{op, x, p.concat()}
		case p.is("|") || p.is("|&"):
			at, line, start, op := p.at, p.line, p.start, p.text
			p.next()
			if !p.is("getline") {
				p.at, p.line, p.tok, p.text, p.start = at, line, tOp, op, start
				return x
			}
			p.next()
			x = p.concatTo(&getline{to: p.maybeLvalue(), kind: op[len(op)-1], from: x})
		default:
			return x
		}
	}
}

func (p *parser) concat() expr { return p.concatTo(p.additive()) }

// concatTo reads what is put behind an expression.
func (p *parser) concatTo(x expr) expr {
	for {
		switch {
		case p.tok == tNumber || p.tok == tString || p.tok == tName || p.tok == tCall || p.tok == tBuiltin,
			p.is("$") || p.is("(") || p.is("!") || p.is("++") || p.is("--") || p.is("@"):
			if p.is("in") {
				return x
			}
			x = &concat{x, p.additive()}
		case p.is("-") || p.is("+"):
			return x
		default:
			return x
		}
	}
}

func (p *parser) additive() expr {
	x := p.multiplicative()
	for p.is("+") || p.is("-") {
		op := p.text
		p.next()
		x = &binary{op, x, p.multiplicative()}
	}
	return x
}

func (p *parser) multiplicative() expr {
	x := p.unary()
	for p.is("*") || p.is("/") || p.is("%") {
		op := p.text
		p.next()
		y := p.unary()
		if n, ok := y.(*number); ok && n.v.n == 0 && op != "*" {
			if _, ok := x.(*number); ok {
				p.wrong("division by zero attempted%s", map[string]string{"%": " in `%'"}[op])
			}
		}
		x = &binary{op, x, y}
	}
	return x
}

func (p *parser) unary() expr {
	if p.is("!") || p.is("-") || p.is("+") {
		p.enter()
		defer func() { p.depth-- }()
		op := p.text[0]
		p.next()
		return &unary{op, p.unary()}
	}
	return p.power()
}

func (p *parser) power() expr {
	x := p.postfix()
	if p.accept("^") {
		p.enter()
		defer func() { p.depth-- }()
		if p.is("-") || p.is("+") || p.is("!") {
			op := p.text[0]
			p.next()
			return &binary{"^", x, &unary{op, p.power()}}
		}
		return &binary{"^", x, p.power()}
	}
	return x
}

func isLvalue(x expr) bool {
	switch x.(type) {
	case *global, *local, *dollar, *element:
		return true
	}
	return false
}

func (p *parser) postfix() expr {
	x := p.primary()
	if !isLvalue(x) {
		return x
	}
	switch {
	case p.is("++"):
		p.next()
		return &step{to: x, delta: 1}
	case p.is("--"):
		p.next()
		return &step{to: x, delta: -1}
	case p.tok == tOp && (p.text == "=" || p.text == "+=" || p.text == "-=" || p.text == "*=" || p.text == "/=" || p.text == "%=" ||
		p.text == "^="):
		op := p.text[:len(p.text)-1]
		p.next()
		p.newlines()
		return &assign{op, x, p.expr()}
	}
	return x
}

// maybeLvalue reads the variable of a getline, if there is one.
func (p *parser) maybeLvalue() expr {
	if p.tok == tName || p.is("$") {
		return p.primary()
	}
	return nil
}

func (p *parser) primary() expr {
	p.enter()
	defer func() { p.depth-- }()
	switch p.tok {
	case tNumber:
		n := p.num
		p.next()
		return &number{num(n)}
	case tString:
		s := p.text
		p.next()
		return &text{str(s)}
	case tName:
		return p.reference()
	case tCall:
		c := &call{name: p.text, line: p.line}
		if _, isLocal := p.locals[p.text]; isLocal {
			x := p.variable(p.text)
			p.next()
			return x
		}
		c.fn = p.named(p.text)
		p.next()
		c.args = p.arguments()
		return c
	case tBuiltin:
		b := &builtinCall{fn: builtins[p.text], name: p.text, line: p.line}
		p.next()
		if p.is("(") {
			b.args = p.arguments()
			b.end = p.before
		} else if b.name != "length" {
			p.unexpected()
		}
		p.check(b)
		return b
	case tKeyword:
		if p.text == "getline" {
			p.next()
			g := &getline{to: p.maybeLvalue()}
			if p.accept("<") {
				g.kind = '<'
				g.from = p.postfixNoAssign()
			}
			return g
		}
	case tOp:
		switch p.text {
		case "/", "/=":
			r := p.regex()
			p.next()
			return &match{r}
		case "@":
			return p.typed()
		case "$":
			p.next()
			if p.is("++") || p.is("--") || p.is("-") || p.is("+") || p.is("!") {
				return &dollar{p.incremented()}
			}
			return &dollar{p.primary()}
		case "++", "--":
			return p.incremented()
		case "!":
			p.next()
			return &unary{'!', p.unary()}
		case "-", "+":
			op := p.text[0]
			p.next()
			return &unary{op, p.unary()}
		case "(":
			p.next()
			was, in := p.noGT, p.noIn
			p.noGT, p.noIn = false, false
			p.newlines()
			list := p.list()
			p.newlines()
			p.expect(")")
			p.noGT, p.noIn = was, in
			if len(list) > 1 {
				return &group{list}
			}
			if isLvalue(list[0]) { // (x)++ is as good, but (x) y = z is not
				return &group{list}
			}
			return list[0]
		}
	}
	p.unexpected()
	return nil
}

// typed reads what begins with @: an expression that is a value, or a call of the function that a variable names.
func (p *parser) typed() expr {
	p.next()
	if p.is("/") || p.is("/=") {
		r := p.regex()
		p.next()
		return &text{regexValue(r)}
	}
	if p.tok != tCall {
		p.unexpected()
	}
	x := &indirect{name: p.variable(p.text), line: p.line}
	p.next()
	x.args = p.arguments()
	return x
}

func (p *parser) postfixNoAssign() expr { return p.primary() }

func (p *parser) incremented() expr {
	switch {
	case p.is("++") || p.is("--"):
		delta := 1.0
		if p.text == "--" {
			delta = -1
		}
		p.next()
		x := p.primary()
		if g, ok := x.(*group); ok && len(g.list) == 1 {
			x = g.list[0]
		}
		if !isLvalue(x) {
			p.unexpected()
		}
		return &step{to: x, delta: delta, prefix: true}
	case p.is("-") || p.is("+") || p.is("!"):
		op := p.text[0]
		p.next()
		return &unary{op, p.incremented()}
	}
	return p.primary()
}

// arguments reads ( ... ).
func (p *parser) arguments() []expr {
	was, in := p.noGT, p.noIn
	p.noGT, p.noIn = false, false
	p.expect("(")
	var args []expr
	p.newlines()
	if !p.is(")") {
		args = p.list()
		p.newlines()
	}
	p.expect(")")
	p.noGT, p.noIn = was, in
	return args
}

// check looks at how many arguments a function got.
func (p *parser) check(b *builtinCall) {
	bounds := arity[b.name]
	if len(b.args) < bounds[0] || len(b.args) > bounds[1] {
		p.failAt(b.end, "%d is invalid as number of arguments for %s", len(b.args), b.name)
	}
}
