package meter

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// sections writes a module of the given sections, in their order.
type sections struct{ out []byte }

func (s sections) with(id byte, n int, items []byte) sections {
	if s.out == nil {
		s.out = []byte("\x00asm\x01\x00\x00\x00")
	}
	return sections{(&pass{}).vector(s.out, id, n, items)}
}

// oneFunction is a module of a function without parameters and results, with so many groups of locals.
func oneFunction(groups int, locals, code []byte) []byte {
	body := append(append(appendU32(nil, uint32(groups)), locals...), code...)
	return sections{}.with(sectionType, 1, []byte{0x60, 0, 0}).with(sectionFunction, 1, []byte{0}).
		with(sectionCode, 1, append(appendU32(nil, uint32(len(body))), body...)).out
}

func repeat(n int, item ...byte) []byte { return bytes.Repeat(item, n) }

// TestLimits makes modules of just so much as is taken, and of one more.
func TestLimits(t *testing.T) {
	emptyType := sections{}.with(sectionType, 1, []byte{0x60, 0, 0})
	for name, tc := range map[string]struct {
		most int
		make func(n int) []byte
	}{
		"bytes of a module": {MaxModule, func(n int) []byte {
			const head = 8 + 5 + 1 // what comes before the content of a custom section of four bytes of length, and its length
			content := append(appendName(nil, "x"), make([]byte, n-head-1)...)
			return appendSection([]byte("\x00asm\x01\x00\x00\x00"), 0, content[:n-8-5])
		}},
		"bytes of a function": {MaxFunction, func(n int) []byte {
			return oneFunction(0, nil, append(repeat(n-2, 0x01), opEnd))
		}},
		"nested blocks": {MaxNesting, func(n int) []byte {
			return oneFunction(0, nil, append(repeat(n-1, opBlock, 0x40), repeat(n, opEnd)...))
		}},
		"blocks": {MaxBlocks, func(n int) []byte {
			return oneFunction(0, nil, append(repeat(n, opBlock, 0x40, opEnd), opEnd))
		}},
		"locals": {MaxLocals, func(n int) []byte {
			return oneFunction(2, append(append(appendU32(nil, uint32(n-1)), typeI32), 1, typeI64), []byte{opEnd})
		}},
		"groups of locals": {MaxLocals, func(n int) []byte { return oneFunction(n, repeat(n, 1, typeI32), []byte{opEnd}) }},
		"parameters": {MaxArity, func(n int) []byte {
			return sections{}.with(sectionType, 1, append(append(appendU32([]byte{0x60}, uint32(n)), repeat(n, typeI32)...), 0)).out
		}},
		"results": {MaxArity, func(n int) []byte {
			return sections{}.with(sectionType, 1, append(appendU32([]byte{0x60, 0}, uint32(n)), repeat(n, typeI32)...)).out
		}},
		"types":   {MaxTypes, func(n int) []byte { return sections{}.with(sectionType, n, repeat(n, 0x60, 0, 0)).out }},
		"imports": {MaxImports, func(n int) []byte { return emptyType.with(sectionImport, n, repeat(n, 1, 'a', 1, 'b', 0, 0)).out }},
		"functions": {MaxFunctions, func(n int) []byte {
			return emptyType.with(sectionFunction, n, repeat(n, 0)).with(sectionCode, n, repeat(n, 2, 0, opEnd)).out
		}},
		"tables": {MaxTables, func(n int) []byte { return sections{}.with(sectionTable, n, repeat(n, typeFuncref, 0, 0)).out }},
		"a table": {MaxTable, func(n int) []byte {
			return sections{}.with(sectionTable, 1, appendU32([]byte{typeFuncref, 0}, uint32(n))).out
		}},
		"pages": {1 << 16, func(n int) []byte { return sections{}.with(sectionMemory, 1, appendU32([]byte{0}, uint32(n))).out }},
		"globals": {MaxGlobals, func(n int) []byte {
			return sections{}.with(sectionGlobal, n, repeat(n, typeI32, 0, opI32Const, 0, opEnd)).out
		}},
		"exports": {MaxExports, func(n int) []byte {
			return sections{}.with(sectionMemory, 1, []byte{0, 1}).with(sectionExport, n, repeat(n, 1, 'm', 2, 0)).out
		}},
		"segments of elements": {MaxSegments, func(n int) []byte { return sections{}.with(sectionElement, n, repeat(n, 1, 0, 0)).out }},
		"segments of data":     {MaxSegments, func(n int) []byte { return sections{}.with(sectionData, n, repeat(n, 1, 0)).out }},
		"targets of a branch": {MaxTargets, func(n int) []byte {
			return oneFunction(0, nil, append(append(appendU32([]byte{opI32Const, 0, opBrTable}, uint32(n)), repeat(n+1, 0)...), opEnd))
		}},
		"bytes of a name": {MaxNameLength, func(n int) []byte {
			export := append(appendName(nil, strings.Repeat("n", n)), 2, 0)
			return sections{}.with(sectionMemory, 1, []byte{0, 1}).with(sectionExport, 1, export).out
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Instrument(tc.make(tc.most), Options{}); err != nil {
				t.Errorf("%d: %v", tc.most, err)
			}
			if _, err := Instrument(tc.make(tc.most+1), Options{}); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d: got %v, want %v", tc.most+1, err, ErrTooLarge)
			}
		})
	}
	t.Run("bytes of what comes out", func(t *testing.T) {
		body := append(append([]byte{1, 1, typeV128, opLocalGet, 0}, repeat(MaxFunction/7, 0xfd, 0xe3, 0x01, 0xfd, 0xef, 0x01)...), 0x1a, opEnd)
		code := append(appendU32(nil, uint32(len(body))), body...)
		make := func(n int) []byte {
			return emptyType.with(sectionFunction, n, repeat(n, 0)).with(sectionCode, n, bytes.Repeat(code, n)).out
		}
		if _, err := Instrument(make(1), Options{}); err != nil {
			t.Error(err)
		}
		if _, err := Instrument(make(6), Options{}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v, want %v", err, ErrTooLarge)
		}
	})
}

// TestTablesAreBounded: a table that names no bound, or a larger one, gets ours.
func TestTablesAreBounded(t *testing.T) {
	for _, limits := range []string{"0", "0 5000000"} {
		wasm := metered(t, `(module (table %s funcref) (func (export "run") (param i32) (result i32) (table.grow 0 (ref.null func) (local.get `+
			`0))))`, limits)
		onEach(t, func(t *testing.T, h *host) {
			if o := h.call(t, wasm, 1<<40, "run", MaxTable); o.Results[0] != 0 {
				t.Errorf("got %d", int32(o.Results[0]))
			}
			if o := h.call(t, wasm, 1<<40, "run", MaxTable+1); int32(o.Results[0]) != -1 {
				t.Errorf("got %d", int32(o.Results[0]))
			}
		})
	}
}

// TestRefused says what is refused, and as what.
func TestRefused(t *testing.T) {
	one := sections{}.with(sectionType, 1, []byte{0x60, 0, 0}).with(sectionFunction, 1, []byte{0})
	code := func(code ...byte) []byte { return oneFunction(0, nil, append(code, opEnd)) }
	for name, tc := range map[string]struct {
		wasm []byte
		want error
	}{
		"nothing":                  {nil, ErrMalformed},
		"text":                     {[]byte("(module)"), ErrMalformed},
		"a component":              {[]byte("\x00asm\x0d\x00\x01\x00"), ErrUnsupported},
		"another version":          {[]byte("\x00asm\x02\x00\x00\x00"), ErrMalformed},
		"a cut head":               {[]byte("\x00asm"), ErrMalformed},
		"a section too long":       {[]byte("\x00asm\x01\x00\x00\x00\x01\x7f"), ErrMalformed},
		"a section of 2^32":        {[]byte("\x00asm\x01\x00\x00\x00\x01\xff\xff\xff\xff\x0f"), ErrMalformed},
		"a length of 33 bits":      {[]byte("\x00asm\x01\x00\x00\x00\x01\xff\xff\xff\xff\x1f"), ErrMalformed},
		"a length of ten bytes":    {[]byte("\x00asm\x01\x00\x00\x00\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), ErrMalformed},
		"a vector without content": {sections{}.with(sectionType, 60_000, nil).out, ErrMalformed},
		"sections out of order":    {one.with(sectionType, 0, nil).out, ErrMalformed},
		"an unknown section":       {sections{}.with(13, 0, nil).out, ErrUnsupported},
		"functions without code":   {one.out, ErrMalformed},
		"code without functions":   {sections{}.with(sectionCode, 1, []byte{2, 0, opEnd}).out, ErrMalformed},
		"a type of the future":     {sections{}.with(sectionType, 1, []byte{0x5f, 0}).out, ErrUnsupported},
		"a value of the future":    {sections{}.with(sectionType, 1, []byte{0x60, 1, 0x6e, 0}).out, ErrUnsupported},
		"a name that is not a text": {sections{}.with(sectionType, 1, []byte{0x60, 0, 0}).with(sectionImport, 1, []byte{1, 0xff, 1, 'a', 0,
			0}).out, ErrMalformed},

		"an import of our module": {sections{}.with(sectionType, 1, []byte{0x60, 0, 0}).with(sectionImport, 1,
			append(appendName(appendName(nil, "meter"), "other"), 0, 0)).out, ErrReserved},
		"an export of our gas": {sections{}.with(sectionMemory, 1, []byte{0, 1}).with(sectionExport, 1, append(appendName(nil, Gas), 2,
			0)).out, ErrReserved},
		"an export of our names": {sections{}.with(sectionMemory, 1, []byte{0, 1}).with(sectionExport, 1, append(appendName(nil, "meter.x"), 2,
			0)).out, ErrReserved},
		"an imported memory":       {sections{}.with(sectionImport, 1, []byte{1, 'a', 1, 'b', 2, 0, 1}).out, ErrUnsupported},
		"an imported global":       {sections{}.with(sectionImport, 1, []byte{1, 'a', 1, 'b', 3, typeI32, 0}).out, ErrUnsupported},
		"two memories":             {sections{}.with(sectionMemory, 2, []byte{0, 1, 0, 1}).out, ErrUnsupported},
		"a memory of 64 bits":      {sections{}.with(sectionMemory, 1, []byte{4, 1}).out, ErrUnsupported},
		"a shared memory":          {sections{}.with(sectionMemory, 1, []byte{3, 1, 1}).out, ErrUnsupported},
		"atomics":                  {code(0xfe, 0x03, 0x00), ErrUnsupported},
		"relaxed SIMD":             {code(0xfd, 0x80, 0x02), ErrUnsupported},
		"a hole among vectors":     {code(0xfd, 0x9a, 0x01), ErrUnsupported},
		"exceptions":               {code(0x06, 0x40, opEnd), ErrUnsupported},
		"a throw":                  {code(0x08, 0x00), ErrUnsupported},
		"try_table":                {code(0x1f, 0x40, 0x00, opEnd), ErrUnsupported},
		"garbage collection":       {code(0xfb, 0x00, 0x00), ErrUnsupported},
		"call_ref":                 {code(0x14, 0x00), ErrUnsupported},
		"a misc beyond":            {code(0xfc, 0x12), ErrUnsupported},
		"the second memory":        {code(0x3f, 0x01), ErrUnsupported},
		"a load of another memory": {code(opI32Const, 0, 0x28, 0x42, 0x00, 0x00, 0x1a), ErrUnsupported},
		"a block of a far type":    {code(opBlock, 0x07, opEnd), ErrMalformed},
		"an else without if":       {code(opBlock, 0x40, opElse, opEnd), ErrMalformed},
		"two elses":                {code(opI32Const, 0, opIf, 0x40, opElse, opElse, opEnd), ErrMalformed},
		"a function that goes on":  {oneFunction(0, nil, []byte{opEnd, 0x01}), ErrMalformed},
		"a function without end":   {oneFunction(0, nil, []byte{0x01}), ErrMalformed},
		"an i32 of 35 bits":        {code(opI32Const, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x1a), ErrMalformed},
		"an i64 of 11 bytes":       {code(opI64Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1a), ErrMalformed},
		"locals of 2^32":           {oneFunction(1, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, typeI32}, []byte{opEnd}), ErrTooLarge},
		"a constant that adds": {sections{}.with(sectionGlobal, 1, []byte{typeI32, 0, opI32Const, 0, opI32Const, 0, 0x6a, opEnd}).out,
			ErrUnsupported},
		"a constant of another":     {sections{}.with(sectionGlobal, 1, []byte{typeI32, 0, opGlobalGet, 0, opEnd}).out, ErrUnsupported},
		"elements of a future form": {sections{}.with(sectionElement, 1, []byte{8}).out, ErrUnsupported},

		// The indices at which the pass puts what is its own.
		"reading our gas":         {code(opGlobalGet, 0, 0x1a), ErrMalformed},
		"writing our gas":         {code(opI64Const, 0, opGlobalSet, 0), ErrMalformed},
		"writing our depth":       {code(opI64Const, 0, opGlobalSet, 1), ErrMalformed},
		"exporting our gas":       {sections{}.with(sectionExport, 1, []byte{1, 'g', 3, 0}).out, ErrMalformed},
		"calling beyond":          {code(opCall, 1), ErrMalformed},
		"calling what was added":  {code(opI32Const, 0, opI32Const, 0, opI32Const, 0, 0xfc, 11, 0, opCall, 2), ErrMalformed},
		"tail-calling beyond":     {code(opReturnCall, 1), ErrMalformed},
		"referring beyond":        {code(opRefFunc, 1, 0x1a), ErrMalformed},
		"our locals":              {oneFunction(0, nil, []byte{opLoop, 0x40, opBr, 0, opEnd, opI64Const, 0, 0x21, 0, opEnd}), ErrMalformed},
		"a branch to our block":   {code(opBr, 1), ErrMalformed},
		"a table of such":         {code(opI32Const, 0, opBrTable, 1, 0, 1), ErrMalformed},
		"exporting beyond":        {one.with(sectionExport, 1, []byte{1, 'f', 0, 1}).with(sectionCode, 1, []byte{2, 0, opEnd}).out, ErrMalformed},
		"starting beyond":         {appendSection(one.out, sectionStart, []byte{1}), ErrMalformed},
		"elements beyond":         {one.with(sectionElement, 1, []byte{1, 0, 1, 1}).out, ErrMalformed},
		"an expression beyond":    {one.with(sectionElement, 1, []byte{5, typeFuncref, 1, opRefFunc, 1, opEnd}).out, ErrMalformed},
		"a global's function":     {one.with(sectionGlobal, 1, []byte{typeFuncref, 0, opRefFunc, 1, opEnd}).out, ErrMalformed},
		"growing no table":        {code(opRefNull, typeFuncref, opI32Const, 0, 0xfc, 15, 0, 0x1a), ErrMalformed},
		"an indirect call's type": {code(opI32Const, 0, opCallIndirect, 3, 0), ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Instrument(tc.wasm, Options{}); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestCutAndChanged cuts a module at each byte and changes each byte: nothing panics.
func TestCutAndChanged(t *testing.T) {
	whole, taken := generate(11, false), 0
	for i := range whole {
		if _, err := Instrument(whole[:i], Options{}); err == nil {
			taken++
		}
		changed := bytes.Clone(whole)
		for _, b := range []byte{0x00, 0x7f, 0x80, 0xff, changed[i] + 1, changed[i] ^ 0x40} {
			changed[i] = b
			_, _ = Instrument(changed, Options{Detach: i%2 == 0})
		}
	}
	if taken > 4 { // after the head, the types, the imports, and the code
		t.Errorf("%d cut modules are taken", taken)
	}
}

// FuzzInstrument: nothing panics, and what comes out is valid exactly if the module was.
func FuzzInstrument(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(generate(seed, seed%2 == 0))
	}
	f.Add(oneFunction(0, nil, []byte{opBlock, 0x40, opBr, 1, opEnd, opEnd}))
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	ctx := context.Background()
	config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall)
	f.Fuzz(func(t *testing.T, module []byte) {
		if len(module) > 1<<16 { // no more is learned from larger ones
			return
		}
		before := bytes.Clone(module)
		m, err := Instrument(module, Options{})
		if !bytes.Equal(before, module) {
			t.Fatal("the module was changed")
		}
		if err != nil {
			return
		}
		runtime := wazero.NewRuntimeWithConfig(ctx, config)
		defer runtime.Close(ctx)
		_, plain := runtime.CompileModule(ctx, module)
		_, with := runtime.CompileModule(ctx, m.Wasm)
		if plain != nil && with == nil && !strings.Contains(plain.Error(), "custom") { // what such sections hold is of no effect
			t.Errorf("an invalid module became a valid one: %v", plain)
		}
		if plain == nil && with != nil {
			t.Errorf("a valid module became an invalid one: %v", with)
		}
	})
}
