package meter

// value writes an expression of a type.
func (g *generator) value(t byte, depth int) {
	g.size--
	if depth == 0 || g.size < 0 {
		switch g.IntN(4) {
		case 0:
			g.b = g.constant(g.b, t)
		case 1:
			g.emit(opGlobalGet, globalOf(t))
		default:
			g.emit(opLocalGet, g.localOf(t))
		}
		return
	}
	switch g.IntN(16) {
	case 0:
		g.value(t, depth-1)
		g.emit(opLocalTee, g.localOf(t))
	case 1:
		g.value(t, depth-1)
		g.value(t, depth-1)
		g.value(typeI32, depth-1)
		if g.IntN(2) == 0 {
			g.emit(0x1c, 1, t)
		} else {
			g.emit(opSelect)
		}
	case 2:
		g.block([]byte{t}, func() {
			g.statement(depth - 1)
			g.value(t, depth-1)
		})
	case 3: // the results of a call, all but one dropped
		f := g.IntN(len(g.functions))
		ft := g.types[g.functions[f]]
		g.values(ft.params, depth-1)
		g.callTo(f, false)
		for range ft.results {
			g.emit(0x1a)
		}
		g.value(t, 0)
	case 4:
		if label, values, ok := g.branchTo(); ok && len(values) == 1 && values[0] == t {
			g.value(t, depth-1)
			g.value(typeI32, depth-1)
			g.emit(opBrIf, label)
			return
		}
		g.value(t, depth-1)
	default:
		g.operation(t, depth-1)
	}
}

// operation writes one that returns such a type.
func (g *generator) operation(t byte, depth int) {
	pick := func(codes ...byte) { g.emit(codes[g.IntN(len(codes))]) }
	some := func(from, to int) { g.emit(byte(from + g.IntN(to-from+1))) }
	take := func(types ...byte) { g.values(types, depth) }
	load := func(align byte, codes ...byte) {
		g.address(depth)
		pick(codes...)
		g.emit(align, byte(g.IntN(100)))
	}
	switch t {
	case typeI32:
		switch g.IntN(12) {
		case 0:
			take(t)
			pick(0x45, 0x67, 0x68, 0x69, 0xc0, 0xc1)
		case 1:
			take(typeI64)
			pick(0x50, 0xa7)
		case 2:
			take(typeI64, typeI64)
			some(0x51, 0x5a)
		case 3:
			take(typeF32, typeF32)
			some(0x5b, 0x60)
		case 4:
			take(typeF64, typeF64)
			some(0x61, 0x66)
		case 5:
			load(0, 0x28, 0x2c, 0x2d, 0x2e, 0x2f)
		case 6:
			take(typeF64)
			if g.IntN(4) == 0 {
				pick(0xaa, 0xab)
			} else {
				g.emit(0xfc, byte(2+g.IntN(2)))
			}
		case 7:
			take(typeF32)
			g.emit(0xbc)
		case 8:
			take(typeV128)
			g.emit(0xfd)
			pick(0x53, 0x63)
			if g.b[len(g.b)-1] == 0x63 {
				return
			}
		case 9:
			take(t, t)
			if g.IntN(4) == 0 {
				some(0x6d, 0x70)
			} else {
				some(0x46, 0x4f)
			}
		default:
			take(t, t)
			pick(0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78)
		}
	case typeI64:
		switch g.IntN(6) {
		case 0:
			take(typeI32)
			pick(0xac, 0xad)
		case 1:
			load(0, 0x29, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35)
		case 2:
			take(typeF64)
			g.emit(0xbd)
		case 3:
			take(typeV128)
			g.emit(0xfd, 0x1d, byte(g.IntN(2)))
		case 4:
			take(t, t)
			if g.IntN(4) == 0 {
				some(0x7f, 0x82)
			} else {
				some(0x83, 0x8a)
			}
		default:
			take(t, t)
			some(0x7c, 0x7e)
		}
	case typeF32:
		switch g.IntN(7) {
		case 0:
			take(typeI32)
			pick(0xb2, 0xb3, 0xbe)
		case 1:
			take(typeF64)
			g.emit(0xb6)
			g.nan(t, false)
		case 2:
			load(0, 0x2a)
		case 3:
			take(t)
			pick(0x8b, 0x8c)
		case 4:
			take(t)
			some(0x8d, 0x91)
			g.nan(t, false)
		default:
			take(t, t)
			some(0x92, 0x97)
			g.nan(t, false)
		}
	case typeF64:
		switch g.IntN(7) {
		case 0:
			take(typeI64)
			pick(0xb9, 0xba, 0xbf)
		case 1:
			take(typeF32)
			g.emit(0xbb)
			g.nan(t, false)
		case 2:
			load(0, 0x2b)
		case 3:
			take(t, t)
			g.emit(0xa6)
		case 4:
			take(t)
			some(0x9b, 0x9f)
			g.nan(t, false)
		default:
			take(t, t)
			some(0xa0, 0xa5)
			g.nan(t, false)
		}
	default:
		g.vector(depth)
	}
}

// vector writes an operation on vectors.
func (g *generator) vector(depth int) {
	code := func(codes ...int) {
		g.emit(0xfd)
		g.b = appendU32(g.b, uint32(codes[g.IntN(len(codes))]))
	}
	switch g.IntN(9) {
	case 0:
		g.address(depth)
		g.emit(0xfd, 0, 0, byte(g.IntN(50)))
	case 1:
		g.value(typeF64, depth)
		code(0x14)
	case 2:
		g.value(typeF32, depth)
		code(0x13)
	case 3:
		g.values([]byte{typeV128, typeV128}, depth)
		code(0x6e, 0xae, 0xd1, 0x4e, 0x50, 0x51, 0x23, 0x47, 0x41)
	case 4:
		g.value(typeV128, depth)
		code(0x67, 0x68, 0x69, 0x6a, 0xe3)
		g.nan(typeV128, false)
	case 5:
		g.values([]byte{typeV128, typeV128}, depth)
		code(0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9)
		g.nan(typeV128, false)
	case 6:
		g.value(typeV128, depth)
		code(0x74, 0x75, 0x7a, 0x94, 0xef, 0x5f)
		g.nan(typeV128, true)
	case 7:
		g.value(typeV128, depth)
		code(0x5e)
		g.nan(typeV128, false)
	default:
		g.values([]byte{typeV128, typeV128}, depth)
		code(0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5)
		g.nan(typeV128, true)
	}
}

// statement writes what leaves nothing on the stack.
func (g *generator) statement(depth int) {
	if depth <= 0 || g.size < 0 {
		g.emit(0x01)
		return
	}
	depth--
	t := valueTypes[g.IntN(len(valueTypes))]
	small := func(n int) { g.emit(opI32Const, byte(g.IntN(n))) }
	switch g.IntN(14) {
	case 0, 1:
		g.value(t, depth)
		g.emit(0x21, g.localOf(t))
	case 2:
		g.value(t, depth)
		g.emit(opGlobalSet, globalOf(t))
	case 3, 4:
		g.address(depth)
		g.value(t, depth)
		switch t {
		case typeV128:
			g.emit(0xfd, 11)
		default:
			g.emit(map[byte]byte{typeI32: 0x36, typeI64: 0x37, typeF32: 0x38, typeF64: 0x39}[t])
		}
		g.emit(0, byte(g.IntN(100)))
	case 5, 6:
		g.block(nil, func() {
			for range 1 + g.IntN(3) {
				g.statement(depth)
			}
		})
	case 7: // a branch out, and what is never reached behind it
		label, values, ok := g.branchTo()
		if !ok {
			g.emit(0x01)
			return
		}
		g.value(typeI32, depth)
		g.emit(opIf, 0x40)
		g.labels = append(g.labels, nil)
		g.values(values, depth)
		switch g.IntN(4) {
		case 0:
			small(4)
			g.emit(opBrTable, 1, label+1, label+1)
		case 1:
			g.emit(opBr, label+1)
			g.statement(depth)
		default:
			g.emit(opBr, label+1)
		}
		g.labels = g.labels[:len(g.labels)-1]
		g.emit(opEnd)
	case 8:
		g.value(typeI32, depth)
		g.emit(opIf, 0x40)
		g.labels = append(g.labels, nil)
		g.leave(depth)
		g.labels = g.labels[:len(g.labels)-1]
		g.emit(opEnd)
	case 9:
		g.address(depth)
		switch g.IntN(3) {
		case 0:
			small(20)
			small(20)
			g.emit(0xfc, 8, 1, 0)
		case 1:
			g.address(0)
			g.emit(opI32Const, 0xe8, 0x07, 0xfc, 10, 0, 0)
		default:
			g.value(typeI32, 0)
			g.emit(opI32Const, 0xe8, 0x07, 0xfc, 11, 0)
		}
	case 10:
		small(2)
		g.emit(opMemoryGrow, 0)
		g.emit(0x21, g.localOf(typeI32))
	case 11:
		small(12)
		switch g.IntN(4) {
		case 0:
			small(4)
			small(4)
			g.emit(0xfc, 12, 1, 0)
		case 1:
			small(10)
			small(5)
			g.emit(0xfc, 14, 0, 0)
		case 2:
			g.emit(opRefFunc, byte(1), 0x1a, opRefNull, typeFuncref)
			small(3)
			g.emit(0xfc, 17, 0)
		default:
			g.emit(0x25, 0, 0xd1, 0x1a)
			g.emit(opRefNull, typeFuncref)
			small(3)
			g.emit(0xfc, 15, 0, 0x1a)
		}
	case 12:
		if g.IntN(8) == 0 {
			g.emit(0xfc, 9, 1)
		} else if g.IntN(8) == 0 {
			g.emit(0xfc, 13, 1)
		}
		g.emit(opI32Const, 7, opCall, 0, 0x1a)
	default:
		f := g.IntN(len(g.functions))
		ft := g.types[g.functions[f]]
		g.values(ft.params, depth)
		g.callTo(f, false)
		for range ft.results {
			g.emit(0x1a)
		}
	}
}

// leave writes a return, a tail call or, rarely, a trap.
func (g *generator) leave(depth int) {
	if g.IntN(3) == 0 {
		for f, t := range g.functions {
			if ft := g.types[t]; string(ft.results) == string(g.results) && g.IntN(2) == 0 {
				g.values(ft.params, depth)
				g.callTo(f, true)
				return
			}
		}
	}
	if g.IntN(30) == 0 {
		g.emit(opUnreachable)
		return
	}
	g.values(g.results, depth)
	g.emit(opReturn)
}
