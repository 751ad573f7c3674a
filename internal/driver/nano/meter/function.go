package meter

import "encoding/binary"

// instruction is one of a function's instructions; the next one begins where it ends.
type instruction struct {
	op  uint16
	off uint32 // where it begins in the body
	arg uint32 // its index or its label, if it has one
}

// enclosure is a block, a loop, an if, or the function itself around the instruction at hand.
type enclosure struct {
	op      byte  // opBlock, opLoop, opIf, opElse, or opUnreachable for the function
	barren  bool  // it began in code that is never reached
	reached bool  // something branches to its end, or the first arm of its if ended there
	inherit int64 // the way since the last look at the gas when its if was entered
	longest int64 // the longest such way that leads to its end
}

// rewriter rewrites one function after the other, with the same memory.
type rewriter struct {
	p    *pass
	code []instruction
	body []byte // the function's body, and where its instructions end
	end  uint32

	out       []byte // the finished code
	block     []byte // the basic block at hand, whose charge comes in front of it
	cost      int64  // of the basic block
	way       int64  // the most gas taken on any way since the last look, without the basic block
	small     int64  // calls in the basic block: each may be of a leaf in which nothing looks
	looks     bool   // the basic block begins with a look at the gas
	dead      bool   // the instruction at hand is never reached
	enclosed  []enclosure
	calls     bool // the function calls others: only then it takes stack
	loops     bool
	total     int64 // what its instructions cost, each once
	units     int64 // of stack that the function takes
	entering  bool  // the basic block is the function's first
	results   []byte
	locals    uint32
	scratches [scratchKinds]uint32 // locals that the pass adds, plus one; 0 if it has not
	added     []byte               // their types
}

// The kinds of locals that the pass adds.
const (
	scratchGas = iota
	scratchDepth
	scratchF32
	scratchF64
	scratchV128
	scratchKinds
)

// rewrite appends the metered body of a function, with its length in front.
func (w *rewriter) rewrite(dst []byte, r *reader, t *funcType) []byte {
	groups, n, declared := w.declarations(r)
	w.locals = uint32(len(t.params)) + declared
	begin := r.off
	w.decode(r)
	if r.err != nil {
		return dst
	}
	w.out, w.block, w.enclosed, w.added = w.out[:0], w.block[:0], w.enclosed[:0], w.added[:0]
	w.cost, w.way, w.small, w.dead = 0, 0, 0, false
	w.scratches = [scratchKinds]uint32{}
	w.units = 1 + (int64(r.off-begin)+16*int64(w.locals))/frameUnit
	w.cost = 1 + int64(declared)/8
	w.entering = true
	w.looks = w.calls || w.loops || w.total+w.cost > leaf
	w.results = t.results
	w.enclosed = append(w.enclosed, enclosure{op: opUnreachable})
	for i := range w.code {
		w.step(i)
	}

	count := appendU32(nil, uint32(n+len(w.added)))
	dst = appendU32(dst, uint32(len(count)+len(groups)+2*len(w.added)+len(w.out)))
	dst = append(dst, count...)
	dst = append(dst, groups...)
	for _, t := range w.added {
		dst = append(dst, 1, t)
	}
	return append(dst, w.out...)
}

// raw returns the bytes of an instruction.
func (w *rewriter) raw(i int) []byte {
	end := w.end
	if i+1 < len(w.code) {
		end = w.code[i+1].off
	}
	return w.body[w.code[i].off:end]
}

// step rewrites one instruction.
func (w *rewriter) step(i int) {
	in := w.code[i]
	o := &w.p.operations[in.op]
	raw := w.raw(i)
	if !w.dead {
		w.charge(int64(o.cost))
	}
	switch in.op {
	case opUnreachable:
		w.block = append(w.block, raw...)
		w.leave()
	case opBlock:
		w.block = append(w.block, raw...)
		w.enclosed = append(w.enclosed, enclosure{op: opBlock, barren: w.dead})
	case opLoop:
		w.flush()
		w.out = append(w.out, raw...)
		w.looks = true
		w.enclosed = append(w.enclosed, enclosure{op: opLoop, barren: w.dead})
	case opIf:
		w.block = append(w.block, raw...)
		w.flush()
		w.enclosed = append(w.enclosed, enclosure{op: opIf, barren: w.dead, inherit: w.way})
	case opElse:
		w.otherwise(raw)
	case opEnd:
		w.close(raw)
	case opBr, opBrIf:
		w.exit(int(in.arg) == len(w.enclosed)-1)
		w.block = append(w.block, raw...)
		w.flush()
		w.reach(in.arg)
		w.dead = w.dead || in.op == opBr
	case opBrTable:
		w.branches(raw)
	case opReturn:
		w.exit(true)
		w.comeBack(raw)
		w.leave()
	case opCall:
		w.small++
		w.call(in.arg)
	case opCallIndirect:
		w.small++
		w.block = append(w.block, raw...)
	case opReturnCall, opReturnCallIndirect:
		w.tailCall(in, raw)
	case opRefFunc:
		w.block = appendU32(append(w.block, opRefFunc), w.p.shifted(in.arg))
	case opMemoryCopy:
		w.block = appendU32(append(w.block, opCall), w.p.addedFunction(copyMemory, 0))
	case opMemoryFill:
		w.block = appendU32(append(w.block, opCall), w.p.addedFunction(fillMemory, 0))
	case opMemoryInit:
		w.block = appendU32(append(w.block, opCall), w.p.addedFunction(bulkOfBytes, 0))
		w.block = append(w.block, raw...)
	case opTableInit, opTableCopy, opTableFill:
		w.block = appendU32(append(w.block, opCall), w.p.addedFunction(bulkOfEntries, 0))
		w.block = append(w.block, raw...)
	case opMemoryGrow:
		w.block = appendU32(append(w.block, opCall), w.p.addedFunction(growMemory, 0))
	case opTableGrow:
		w.block = appendU32(append(w.block, opCall), w.p.addedFunction(growTable, in.arg))
	default:
		w.block = append(w.block, raw...)
		if o.nan != exact && !w.dead && !w.consumed(i) {
			w.canonical(o.nan)
		}
	}
}

// charge adds to the cost of the basic block. A block that would be too long becomes two, with a look between them.
func (w *rewriter) charge(cost int64) {
	if w.cost > 0 && w.cost+cost+leaf*w.small > stretch {
		w.flush()
		w.looks = true
	}
	w.cost += cost
}

// leave ends a basic block after which nothing follows.
func (w *rewriter) leave() {
	w.flush()
	w.dead = true
}

// reach notes that something branches to a label, after the flush of the basic block that it ends.
func (w *rewriter) reach(label uint32) {
	if w.dead {
		return
	}
	e := &w.enclosed[len(w.enclosed)-1-int(label)]
	e.reached = true
	e.longest = max(e.longest, w.way)
}

// exit makes sure that a way out of the function is short since the last look: else callers that return one after the other would take, all
// together, much without one.
func (w *rewriter) exit(out bool) {
	if !out || w.dead {
		return
	}
	if leaf*w.small > tail {
		w.flush()
		w.look()
		w.way = 0
	} else if w.way+w.cost+leaf*w.small > tail {
		w.looks = true
	}
}

func (w *rewriter) otherwise(raw []byte) {
	w.flush()
	w.out = append(w.out, raw...)
	e := &w.enclosed[len(w.enclosed)-1]
	if e.op != opIf {
		w.p.r.malformed("an else without its if")
		return
	}
	w.reachedHere(e)
	e.op = opElse
	w.way, w.dead = e.inherit, e.barren
}

// reachedHere notes that the last instruction reaches the end of an enclosure.
func (w *rewriter) reachedHere(e *enclosure) {
	if !w.dead {
		e.reached = true
		e.longest = max(e.longest, w.way)
	}
}

// close ends an enclosure.
func (w *rewriter) close(raw []byte) {
	e := w.enclosed[len(w.enclosed)-1]
	w.enclosed = w.enclosed[:len(w.enclosed)-1]
	switch {
	case e.op == opUnreachable:
		w.exit(true)
		w.flush()
		if w.calls {
			w.out = append(w.out, opEnd)
			w.out = w.releaseStack(w.out)
		}
		w.out = append(w.out, opEnd)
	case e.op == opLoop, e.op == opBlock && !e.reached:
		w.block = append(w.block, raw...)
	default:
		w.flush()
		w.out = append(w.out, raw...)
		w.reachedHere(&e)
		if e.op == opIf && !e.barren {
			e.reached = true
			e.longest = max(e.longest, e.inherit)
		}
		w.way, w.dead = e.longest, !e.reached
	}
}

func (w *rewriter) branches(raw []byte) {
	r := &reader{b: raw, off: 1}
	var targets []uint32
	for n := r.u32() + 1; n > 0; n-- {
		targets = append(targets, r.u32())
	}
	for _, l := range targets {
		w.exit(int(l) == len(w.enclosed)-1)
	}
	w.block = append(w.block, raw...)
	w.flush()
	for _, l := range targets {
		w.reach(l)
	}
	w.dead = true
}

func (w *rewriter) call(f uint32) {
	w.block = appendU32(append(w.block, opCall), w.p.shifted(f))
}

// comeBack returns from the function: where it takes stack, to the end of the block around it, which gives that back.
func (w *rewriter) comeBack(raw []byte) {
	if !w.calls {
		w.block = append(w.block, raw...)
		return
	}
	w.block = appendU32(append(w.block, opBr), uint32(len(w.enclosed)-1))
}

// tailCall rewrites a tail call. The function's stack is given back before. A call that does not fit into the registers of every machine
// is no tail call in wazero, which keeps the frame then: so it is none here either.
func (w *rewriter) tailCall(in instruction, raw []byte) {
	w.exit(true)
	w.small++
	direct := in.op == opReturnCall
	index := in.arg
	if direct {
		index = w.p.functions[in.arg]
	}
	t := w.p.types[index]
	inRegisters := fits(t.params) && fits(t.results)
	if inRegisters {
		w.block = w.releaseStack(w.block)
	}
	switch {
	case inRegisters && direct:
		w.block = appendU32(append(w.block, opReturnCall), w.p.shifted(in.arg))
	case inRegisters:
		w.block = append(w.block, raw...)
	case direct:
		w.call(in.arg)
		w.comeBack(nil)
	default:
		w.block = append(append(w.block, opCallIndirect), raw[1:]...)
		w.comeBack(nil)
	}
	w.leave()
}

// fits reports whether values are passed in registers alone, on amd64 and arm64.
func fits(types []byte) bool {
	var ints, floats int
	for _, t := range types {
		switch t {
		case typeF32, typeF64, typeV128:
			floats++
		default:
			ints++
		}
	}
	return ints <= 6 && floats <= 8
}

// flush ends the basic block: its charge, a look if it needs one, and then its code.
func (w *rewriter) flush() {
	if w.cost > 0 {
		w.looks = w.looks || w.way+w.cost > stretch
		w.way += w.cost
		w.pay()
		if w.looks {
			w.way = 0
		}
		w.way += leaf * w.small
	}
	w.out = append(w.out, w.block...)
	w.block, w.cost, w.small, w.looks = w.block[:0], 0, 0, false
}

// pay appends what charges for a basic block and looks.
func (w *rewriter) pay() {
	enters := w.entering && w.calls
	if enters {
		w.out = subtract(w.out, w.p.depth(), w.units)
		w.out = w.keep(w.out, w.p.depth(), scratchDepth)
	}
	w.out = subtract(w.out, w.p.gas(), w.cost)
	if !w.looks {
		w.out = appendU32(append(w.out, opGlobalSet), w.p.gas())
	} else {
		w.out = w.keep(w.out, w.p.gas(), scratchGas)
		w.out = appendU32(append(w.out, opLocalGet), w.scratch(scratchGas))
		if enters {
			w.out = appendU32(append(w.out, opLocalGet), w.scratch(scratchDepth))
			w.out = append(w.out, opI64Or)
		}
		w.out = w.p.yieldBelowZero(w.out)
	}
	if enters {
		w.out = append(w.out, opBlock)
		w.out = append(w.out, w.p.blockTypeOf(w.results)...)
	}
	w.entering = false
}

// look looks at the gas without a charge.
func (w *rewriter) look() {
	w.out = appendU32(append(w.out, opGlobalGet), w.p.gas())
	w.out = w.p.yieldBelowZero(w.out)
}

// keep sets a global and keeps its value in a local of the pass.
func (w *rewriter) keep(b []byte, global uint32, kind int) []byte {
	b = appendU32(append(b, opLocalTee), w.scratch(kind))
	return appendU32(append(b, opGlobalSet), global)
}

// releaseStack releases the stack that the function took.
func (w *rewriter) releaseStack(b []byte) []byte {
	b = appendU32(append(b, opGlobalGet), w.p.depth())
	b = appendSigned(append(b, opI64Const), w.units)
	b = append(b, opI64Add)
	return appendU32(append(b, opGlobalSet), w.p.depth())
}

// subtract leaves a global less a number on the stack.
func subtract(b []byte, global uint32, n int64) []byte {
	b = appendU32(append(b, opGlobalGet), global)
	b = appendSigned(append(b, opI64Const), n)
	return append(b, opI64Sub)
}

// scratch returns the local of a kind, which it adds to the function.
func (w *rewriter) scratch(kind int) uint32 {
	if w.scratches[kind] == 0 {
		w.added = append(w.added, [scratchKinds]byte{typeI64, typeI64, typeF32, typeF64, typeV128}[kind])
		w.scratches[kind] = w.locals + uint32(len(w.added)) // plus one
	}
	return w.scratches[kind] - 1
}

// consumed reports whether the float that an instruction leaves on the stack is taken, in the same basic block, by an instruction that
// does not care which NaN it is. So a chain of arithmetic pays once.
func (w *rewriter) consumed(i int) bool {
	const far = 24
	shape := w.p.operations[w.code[i].op].nan
	above := int8(0)
	for _, in := range w.code[i+1 : min(i+1+far, len(w.code))] {
		o := &w.p.operations[in.op]
		if !o.pure {
			return false
		}
		if above < o.pops {
			isVector := shape == float32x4Result || shape == float64x2Result
			return o.float && (!isVector || o.takes == shape)
		}
		above += 1 - o.pops
	}
	return false
}

// canonical makes any NaN on the stack the one whose sign is positive and whose payload is its highest bit alone.
func (w *rewriter) canonical(shape rounding) {
	b := w.block
	switch shape {
	case float32Result:
		x := w.scratch(scratchF32)
		b = appendU32(append(b, opLocalTee), x)
		b = binary.LittleEndian.AppendUint32(append(b, opF32Const), 0x7fc00000)
		b = appendU32(append(b, opLocalGet), x)
		b = appendU32(append(b, opLocalGet), x)
		b = append(b, opF32Eq, opSelect)
	case float64Result:
		x := w.scratch(scratchF64)
		b = appendU32(append(b, opLocalTee), x)
		b = binary.LittleEndian.AppendUint64(append(b, opF64Const), 0x7ff8000000000000)
		b = appendU32(append(b, opLocalGet), x)
		b = appendU32(append(b, opLocalGet), x)
		b = append(b, opF64Eq, opSelect)
	default:
		x := w.scratch(scratchV128)
		nan, equal := uint64(0x7fc000007fc00000), byte(opF32x4Eq&0xff)
		if shape == float64x2Result {
			nan, equal = 0x7ff8000000000000, opF64x2Eq&0xff
		}
		b = appendU32(append(b, opLocalTee), x)
		b = append(b, 0xfd, opV128Const&0xff)
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, nan), nan)
		b = appendU32(append(b, opLocalGet), x)
		b = appendU32(append(b, opLocalGet), x)
		b = append(b, 0xfd, equal, 0xfd, opV128Bitselect&0xff)
	}
	w.block = b
}
