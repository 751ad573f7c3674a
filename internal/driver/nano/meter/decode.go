package meter

// declarations reads the declarations of locals: their bytes, the number of groups, and the number of locals.
func (w *rewriter) declarations(r *reader) (groups []byte, n int, declared uint32) {
	n = r.count(MaxLocals, "groups of locals")
	off := r.off
	for range n {
		k := r.u32()
		if int64(declared)+int64(k) > MaxLocals {
			r.fail(tooLarge("a function has more than %d locals, at byte %d", MaxLocals, r.at+r.off))
			return nil, 0, 0
		}
		declared += k
		w.p.valueType(r)
	}
	return r.since(off), n, declared
}

// decode reads the instructions of a function and checks every index, so that none reaches the parts that the pass adds.
// It is long because it is one switch over the opcodes.
//
//nolint:cyclop // one case for each shape of an instruction
func (w *rewriter) decode(r *reader) {
	p := w.p
	w.code = w.code[:0]
	w.calls, w.loops, w.total = false, false, 0
	depth, blocks := 1, 0
	for depth > 0 {
		if r.err != nil {
			return
		}
		off := r.off
		op := uint16(r.byte())
		switch op {
		case 0xfc, 0xfd:
			sub := r.u32()
			if sub > 0xff || (op == 0xfc && sub > 0x11) {
				r.fail(unsupported("the instruction %#x %#x at byte %d", op, sub, r.at+off))
				return
			}
			op = prefixMisc*(op-0xfb) + uint16(sub)
		}
		var arg uint32
		o := &w.p.operations[op]
		switch o.imm {
		case refused:
			r.fail(unsupported("the instruction %#x at byte %d", r.since(off), r.at+off))
			return
		case none:
		case blockType:
			depth++
			if depth > MaxNesting {
				r.fail(tooLarge("more than %d nested blocks at byte %d", MaxNesting, r.at+off))
				return
			}
			if blocks++; blocks > w.p.o.MaxBlocks {
				r.fail(tooLarge("a function has more than %d blocks, at byte %d", w.p.o.MaxBlocks, r.at+off))
				return
			}
			w.blockType(r)
		case label:
			arg = r.u32()
			w.label(r, arg, depth)
		case labels:
			for range r.count(MaxTargets, "targets of a branch") {
				w.label(r, r.u32(), depth)
			}
			w.label(r, r.u32(), depth)
		case function:
			arg = r.u32()
			p.within(r, arg, len(p.functions), "function")
		case indirect:
			arg = r.u32()
			p.within(r, arg, p.declaredTypes, "type")
			p.within(r, r.u32(), len(p.tables), "table")
		case local:
			arg = r.u32()
			p.within(r, arg, int(w.locals), "local")
		case global:
			arg = r.u32()
			p.within(r, arg, len(p.globals), "global")
		case table:
			arg = r.u32()
			p.within(r, arg, len(p.tables), "table")
		case memarg, memargLane:
			if r.u32() >= 32 {
				r.fail(unsupported("an alignment, or a memory beside the first, at byte %d", r.at+off))
				return
			}
			r.u32()
			if o.imm == memargLane {
				r.byte()
			}
		case zero, zeroes:
			w.memory(r)
			if o.imm == zeroes {
				w.memory(r)
			}
		case signed32:
			r.signed(32)
		case signed64:
			r.signed(64)
		case bytes4:
			r.bytes(4)
		case bytes8:
			r.bytes(8)
		case bytes16:
			r.bytes(16)
		case selection:
			for range r.count(MaxArity, "types of a select") {
				p.valueType(r)
			}
		case reference:
			p.referenceType(r)
		case segment:
			r.u32()
		case segmentZero:
			r.u32()
			w.memory(r)
		case segmentTable, tables:
			r.u32()
			p.within(r, r.u32(), len(p.tables), "table")
		case lane:
			r.byte()
		}
		switch op {
		case opEnd:
			depth--
		case opLoop:
			w.loops = true
		case opCall, opCallIndirect, opReturnCall, opReturnCallIndirect:
			w.calls = true
		case opTableSet, opTableInit, opTableCopy, opTableGrow, opTableFill:
			p.unsaved = "it changes its tables while it runs"
		case opDataDrop, opElemDrop:
			p.unsaved = "it drops segments while it runs"
		}
		w.total += int64(o.cost)
		w.code = append(w.code, instruction{op: op, off: uint32(off), arg: arg})
	}
	if r.err == nil && r.left() > 0 {
		r.malformed("a function goes on after its end")
	}
	w.body, w.end = r.b, uint32(r.off)
}

func (w *rewriter) label(r *reader, l uint32, depth int) {
	if int64(l) >= int64(depth) {
		r.malformed("a branch goes beyond the function")
	}
}

func (w *rewriter) memory(r *reader) {
	if r.byte() != 0 {
		r.fail(unsupported("a memory beside the first at byte %d", r.at+r.off))
	}
}

func (w *rewriter) blockType(r *reader) {
	off := r.off
	t := r.signed(33)
	if t >= 0 {
		w.p.within(r, uint32(t), w.p.declaredTypes, "type")
	} else if b := r.since(off); len(b) == 1 && b[0] != 0x40 && !isValueType(b[0]) {
		r.fail(unsupported("the block type %#x at byte %d", b, r.at+off))
	} else if len(b) > 1 {
		r.malformed("a block type")
	}
}
