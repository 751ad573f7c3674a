package meter

// immediate is the operand that follows an opcode.
type immediate uint8

const (
	refused      immediate = iota // no instruction that is taken
	none                          // nothing
	blockType                     // a block type
	label                         // a label
	labels                        // br_table: a vector of labels, and one more
	function                      // a function
	indirect                      // a type and a table
	local                         // a local
	global                        // a global
	table                         // a table
	memarg                        // an alignment and an offset
	zero                          // the memory, which is 0
	zeroes                        // two memories
	signed32                      // a signed number of 32 bits
	signed64                      // one of 64
	bytes4                        // four bytes
	bytes8                        // eight
	bytes16                       // sixteen: v128.const, and the lanes of a shuffle
	selection                     // select: a vector of types
	reference                     // the type of a reference
	segment                       // a segment of data or elements
	segmentZero                   // a data segment and the memory
	segmentTable                  // a segment of elements and a table
	tables                        // two tables
	lane                          // a lane
	memargLane                    // both
)

// rounding says which operations on floating-point numbers leave open, by the specification, which NaN they return, and in which shape they
// return it. The others are exact to the bit: constants, loads, reinterpretation, abs, neg, copysign, pmin, pmax (they choose one of
// two), and what makes floats from integers, which is never a NaN.
type rounding uint8

const (
	exact rounding = iota
	float32Result
	float64Result
	float32x4Result
	float64x2Result
)

// operation is the pass's knowledge of an instruction.
type operation struct {
	imm   immediate
	cost  uint8
	nan   rounding
	takes rounding // the shape of the vectors that it takes, if it does not care which NaN is in a lane
	pops  int8     // how many values it takes from the stack, if it is pure
	pure  bool     // it puts one value on the stack, and the pass looks over it for what takes a float
	float bool     // all that it takes are floats, and it does not care which NaN they are
}

// Codes of instructions with a prefix: the prefix 0xfc begins at 256, 0xfd (vectors) at 512.
const (
	prefixMisc   = 0x100
	prefixVector = 0x200
)

const (
	opUnreachable        = 0x00
	opBlock              = 0x02
	opLoop               = 0x03
	opIf                 = 0x04
	opElse               = 0x05
	opEnd                = 0x0b
	opBr                 = 0x0c
	opBrIf               = 0x0d
	opBrTable            = 0x0e
	opReturn             = 0x0f
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opSelect             = 0x1b
	opLocalGet           = 0x20
	opLocalSet           = 0x21
	opLocalTee           = 0x22
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opTableSet           = 0x26
	opMemorySize         = 0x3f
	opMemoryGrow         = 0x40
	opI32Const           = 0x41
	opI64Const           = 0x42
	opF32Const           = 0x43
	opF64Const           = 0x44
	opI32Ne              = 0x47
	opI32GtU             = 0x4b
	opI32LeU             = 0x4d
	opI64LtS             = 0x53
	opI64LeU             = 0x58
	opF32Eq              = 0x5b
	opF64Eq              = 0x61
	opI32Add             = 0x6a
	opI32Sub             = 0x6b
	opI32And             = 0x71
	opI64Add             = 0x7c
	opI64Sub             = 0x7d
	opI64Or              = 0x84
	opI64Shl             = 0x86
	opI64ShrU            = 0x88
	opI64ExtendI32U      = 0xad
	opRefNull            = 0xd0
	opRefFunc            = 0xd2

	opMemoryInit = prefixMisc + 8
	opDataDrop   = prefixMisc + 9
	opMemoryCopy = prefixMisc + 10
	opMemoryFill = prefixMisc + 11
	opTableInit  = prefixMisc + 12
	opElemDrop   = prefixMisc + 13
	opTableCopy  = prefixMisc + 14
	opTableGrow  = prefixMisc + 15
	opTableFill  = prefixMisc + 17

	opV128Const     = prefixVector + 12
	opF32x4Eq       = prefixVector + 0x41
	opF64x2Eq       = prefixVector + 0x47
	opV128Bitselect = prefixVector + 0x52
)

// instructions holds each operation by its code.
type instructions [prefixVector + 256]operation

// newInstructions returns the table of instructions.
//
// Gas costs: 1, more for what is much slower (a division, a call, growing, a float with its NaN made canonical), and 0 for what is no
// instruction of a machine.
func newInstructions() *instructions {
	t := &instructions{}
	set := func(imm immediate, cost uint8, from, to int) {
		for i := from; i <= to; i++ {
			t[i] = operation{imm: imm, cost: cost}
		}
	}
	set(none, 0, 0x00, 0x01)
	set(blockType, 0, opBlock, opLoop)
	set(blockType, 1, opIf, opIf)
	set(none, 0, opElse, opElse)
	set(none, 0, opEnd, opEnd)
	set(label, 1, opBr, opBrIf)
	set(labels, 2, opBrTable, opBrTable)
	set(none, 1, opReturn, opReturn)
	set(function, 3, opCall, opCall)
	set(indirect, 5, opCallIndirect, opCallIndirect)
	set(function, 3, opReturnCall, opReturnCall)
	set(indirect, 5, opReturnCallIndirect, opReturnCallIndirect)
	set(none, 1, 0x1a, opSelect)
	set(selection, 1, 0x1c, 0x1c)
	set(local, 1, opLocalGet, opLocalTee)
	set(global, 1, opGlobalGet, opGlobalSet)
	set(table, 1, 0x25, opTableSet)
	set(memarg, 1, 0x28, 0x3e)
	set(zero, 1, 0x3f, 0x3f)
	set(zero, 64, opMemoryGrow, opMemoryGrow)
	set(signed32, 1, opI32Const, opI32Const)
	set(signed64, 1, opI64Const, opI64Const)
	set(bytes4, 1, opF32Const, opF32Const)
	set(bytes8, 1, opF64Const, opF64Const)
	set(none, 1, 0x45, 0xc4)
	set(none, 8, 0x6d, 0x70) // i32 divisions and remainders
	set(none, 8, 0x7f, 0x82) // i64
	set(reference, 1, opRefNull, opRefNull)
	set(none, 1, 0xd1, 0xd1)
	set(function, 1, opRefFunc, opRefFunc)
	set(none, 1, prefixMisc, prefixMisc+7) // trunc_sat
	set(segmentZero, 4, opMemoryInit, opMemoryInit)
	set(segment, 4, opDataDrop, opDataDrop)
	set(zeroes, 4, opMemoryCopy, opMemoryCopy)
	set(zero, 4, opMemoryFill, opMemoryFill)
	set(segmentTable, 4, opTableInit, opTableInit)
	set(segment, 4, opElemDrop, opElemDrop)
	set(tables, 4, opTableCopy, opTableCopy)
	set(table, 64, opTableGrow, opTableGrow)
	set(table, 1, prefixMisc+16, prefixMisc+16)
	set(table, 4, opTableFill, opTableFill)

	const v = prefixVector
	set(memarg, 1, v, v+11)
	set(bytes16, 1, opV128Const, v+13)
	set(none, 1, v+14, v+20)
	set(lane, 1, v+21, v+34)
	set(none, 1, v+35, v+83)
	set(memargLane, 1, v+84, v+91)
	set(memarg, 1, v+92, v+93)
	set(none, 1, v+94, v+255)
	for _, hole := range [...]int{0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4,
		0xe2, 0xee} {
		t[v+hole] = operation{}
	}

	nan := func(result rounding, cost uint8, pops int8, codes ...int) {
		for _, i := range codes {
			t[i].nan, t[i].cost, t[i].pops, t[i].pure, t[i].float, t[i].takes = result, cost, pops, true, true, result
		}
	}
	nan(float32Result, 2, 1, 0x8d, 0x8e, 0x8f, 0x90) // f32 ceil floor trunc nearest
	nan(float32Result, 6, 1, 0x91)                   // sqrt
	nan(float32Result, 2, 2, 0x92, 0x93, 0x94, 0x96, 0x97)
	nan(float32Result, 6, 2, 0x95) // div
	nan(float64Result, 2, 1, 0x9b, 0x9c, 0x9d, 0x9e)
	nan(float64Result, 6, 1, 0x9f)
	nan(float64Result, 2, 2, 0xa0, 0xa1, 0xa2, 0xa4, 0xa5)
	nan(float64Result, 6, 2, 0xa3)
	nan(float32Result, 2, 1, 0xb6) // f32.demote_f64
	nan(float64Result, 2, 1, 0xbb) // f64.promote_f32
	nan(float32x4Result, 3, 1, v+0x67, v+0x68, v+0x69, v+0x6a)
	nan(float32x4Result, 8, 1, v+0xe3)
	nan(float32x4Result, 3, 2, v+0xe4, v+0xe5, v+0xe6, v+0xe8, v+0xe9)
	nan(float32x4Result, 8, 2, v+0xe7)
	nan(float64x2Result, 3, 1, v+0x74, v+0x75, v+0x7a, v+0x94)
	nan(float64x2Result, 8, 1, v+0xef)
	nan(float64x2Result, 3, 2, v+0xf0, v+0xf1, v+0xf2, v+0xf4, v+0xf5)
	nan(float64x2Result, 8, 2, v+0xf3)
	nan(float32x4Result, 3, 1, v+0x5e) // f32x4.demote_f64x2_zero
	nan(float64x2Result, 3, 1, v+0x5f) // f64x2.promote_low_f32x4
	t[v+0x5e].takes, t[v+0x5f].takes = float64x2Result, float32x4Result

	// Instructions that compare floats or convert them to integers return the same for every NaN.
	indifferent := func(pops int8, from, to int) {
		for i := from; i <= to; i++ {
			t[i].pops, t[i].pure, t[i].float = pops, true, true
		}
	}
	indifferent(2, opF32Eq, 0x66)
	indifferent(1, 0xa8, 0xab)
	indifferent(1, 0xae, 0xb1)
	indifferent(1, prefixMisc, prefixMisc+7)

	// Over these the pass looks for the instruction that takes a float from the stack. Each puts one value on the stack.
	over := func(pops int8, from, to int) {
		for i := from; i <= to; i++ {
			t[i].pops, t[i].pure = pops, true
		}
	}
	over(0, opLocalGet, opLocalGet)
	over(0, opGlobalGet, opGlobalGet)
	over(0, opI32Const, opF64Const)
	over(1, 0x28, 0x35) // loads
	over(2, 0x6a, 0x6c) // i32 add sub mul
	over(2, 0x71, 0x78)
	over(2, opI64Add, 0x7e)
	over(2, 0x83, 0x8a)
	over(1, 0xb2, 0xb5) // floats of integers
	over(1, 0xb7, 0xba)
	over(0, opV128Const, opV128Const)
	over(1, v, v+10) // loads of vectors
	return t
}
