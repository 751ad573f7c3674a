package nano

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentbox/internal/driver/nano/hostiletest"
)

// The parts of a WebAssembly module, byte by byte.
func leb(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func sized(p ...[]byte) []byte {
	all := slices.Concat(p...)
	return append(leb(uint64(len(all))), all...)
}

func counts(n int, p ...[]byte) []byte { return append(leb(uint64(n)), slices.Concat(p...)...) }

func section(id byte, p ...[]byte) []byte { return append([]byte{id}, sized(p...)...) }

func text(s string) []byte { return sized([]byte(s)) }

func moduleOf(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), slices.Concat(sections...)...)
}

// i32 is the instruction that pushes a number.
func i32(n uint32) []byte {
	out := []byte{0x41}
	v := int64(int32(n))
	for {
		b := byte(v & 0x7f)
		if v >>= 7; v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func i64(n int64) []byte {
	out := []byte{0x42}
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

const (
	vI32, vI64 = 0x7f, 0x7e
	opEnd      = 0x0b
)

// wasiCall is a function that a module imports, by the types of its parameters.
type wasiCall struct {
	name   string
	params string // i: 32 bits, I: 64 bits
}

// everyCall are the functions of WASI.
var everyCall = []wasiCall{
	{"args_get", "ii"}, {"args_sizes_get", "ii"}, {"environ_get", "ii"}, {"environ_sizes_get", "ii"}, {"clock_res_get", "ii"},
	{"clock_time_get", "iIi"},
	{"fd_advise", "iIIi"}, {"fd_allocate", "iII"}, {"fd_close", "i"}, {"fd_datasync", "i"}, {"fd_fdstat_get", "ii"}, {"fd_fdstat_set_flags",
		"ii"},
	{"fd_fdstat_set_rights", "iII"}, {"fd_filestat_get", "ii"}, {"fd_filestat_set_size", "iI"}, {"fd_filestat_set_times", "iIIi"},
	{"fd_pread", "iiiIi"},
	{"fd_prestat_get", "ii"}, {"fd_prestat_dir_name", "iii"}, {"fd_pwrite", "iiiIi"}, {"fd_read", "iiii"}, {"fd_readdir", "iiiIi"},
	{"fd_renumber", "ii"},
	{"fd_seek", "iIii"}, {"fd_sync", "i"}, {"fd_tell", "ii"}, {"fd_write", "iiii"}, {"path_create_directory", "iii"}, {"path_filestat_get",
		"iiiii"},
	{"path_filestat_set_times", "iiiiIIi"}, {"path_link", "iiiiiii"}, {"path_open", "iiiiiIIii"}, {"path_readlink", "iiiiii"},
	{"path_remove_directory", "iii"},
	{"path_rename", "iiiiii"}, {"path_symlink", "iiiii"}, {"path_unlink_file", "iii"}, {"poll_oneoff", "iiii"}, {"sched_yield", ""},
	{"random_get", "ii"},
	{"sock_accept", "iii"}, {"sock_recv", "iiiiii"}, {"sock_send", "iiiii"}, {"sock_shutdown", "ii"},
}

func typeOf(params string, results ...byte) []byte {
	p := make([]byte, 0, len(params))
	for _, c := range params {
		p = append(p, map[rune]byte{'i': vI32, 'I': vI64}[c])
	}
	return slices.Concat([]byte{0x60}, sized(p), sized(results))
}

// calling is a module with a page of memory whose code may call what is imported, as function 0 and so on.
func calling(calls []wasiCall, memory []byte, code ...[]byte) []byte {
	types, imports := [][]byte{typeOf("")}, [][]byte{}
	for i, c := range calls {
		types = append(types, typeOf(c.params, vI32))
		imports = append(imports, text("wasi_snapshot_preview1"), text(c.name), []byte{0}, leb(uint64(i+1)))
	}
	n := len(calls)
	return moduleOf(section(1, counts(len(types), types...)), section(2, counts(n, imports...)), section(3, counts(1, leb(0))),
		section(5, []byte{1, 0, 1}),
		section(7, counts(2, text("_start"), []byte{0}, leb(uint64(n)), text("memory"), []byte{2, 0})),
		section(10, counts(1, sized([]byte{0}, slices.Concat(code...), []byte{opEnd}))), section(11, counts(1, []byte{0, 0x41, 0, opEnd},
			sized(memory))))
}

// looping repeats code without an end.
func looping(code ...[]byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, slices.Concat(code...), []byte{0x0c, 0, opEnd})
}

// args pushes the same number for each parameter.
func args(params string, n uint32) (all []byte) {
	for _, c := range params {
		if c == 'i' {
			all = append(all, i32(n)...)
		} else {
			all = append(all, i64(int64(n)|int64(n)<<32)...)
		}
	}
	return all
}

func call(f int) []byte { return append([]byte{0x10}, leb(uint64(f))...) }

const opDrop = 0x1a

// floods calls each function with the same numbers as arguments, again and again.
func floods(numbers ...uint32) []byte {
	var code []byte
	for _, n := range numbers {
		for i, c := range everyCall {
			if c.name == "fd_close" || c.name == "fd_renumber" && n < 3 { // it goes on hearing and printing
				continue
			}
			code = slices.Concat(code, args(c.params, n), call(i), []byte{opDrop})
		}
	}
	return calling(everyCall, bytes.Repeat([]byte{0xff}, 1024), looping(code))
}

// plain is a module with one function and what else is said.
func plain(code []byte, more ...[]byte) []byte {
	head := [][]byte{section(1, counts(1, typeOf(""))), section(3, counts(1, leb(0)))}
	tail := [][]byte{section(7, counts(1, text("_start"), []byte{0, 0})), section(10, counts(1, sized([]byte{0}, code, []byte{opEnd})))}
	all := slices.Concat(head, more, tail)
	order := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11} // more may be any section
	slices.SortStableFunc(all, func(a, b []byte) int { return bytes.IndexByte(order, a[0]) - bytes.IndexByte(order, b[0]) })
	return moduleOf(all...)
}

// hostileModules are modules and how they end.
func hostileModules() []struct {
	name, end string
	module    []byte
} {
	iovec := func(at, n uint32) []byte {
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, at), n)
	}
	write := []wasiCall{{"fd_write", "iiii"}}
	million := 1_000_000
	memory := section(5, []byte{1, 0, 1})
	loop := looping()
	type m = struct {
		name, end string
		module    []byte
	}
	return []m{
		{"loop", hostiletest.ByTime, plain(loop)},
		{"start function that loops", hostiletest.ByTime, plain(loop, section(8, leb(0)))},
		{"recursion", hostiletest.ByCode, plain(call(0))},
		{"unreachable", hostiletest.ByCode, plain([]byte{0})},
		{"memory to its bound and beyond", hostiletest.ByTime, plain(looping(i32(1), []byte{0x40, 0, opDrop}), memory)},
		{"memory that is filled again and again", hostiletest.ByAny, plain(looping(i32(100), []byte{0x40, 0, opDrop}, i32(0), i32(1),
			[]byte{0x3f, 0}, i32(16), []byte{0x74, 0xfc, 11, 0}), memory)},
		{"memory that is copied again and again", hostiletest.ByAny, plain(looping(i32(0), i32(1), i32(65535), []byte{0xfc, 10, 0, 0}), memory)},
		{"memory of 4 GiB", hostiletest.ByCode, plain(nil, section(5, slices.Concat([]byte{1, 0}, leb(65536))))},
		{"memory of 512 MiB", hostiletest.ByCode, plain(nil, section(5, slices.Concat([]byte{1, 0}, leb(8192))))},
		{"table of 4 G entries", hostiletest.ByCode, plain(nil, section(4, slices.Concat([]byte{1, 0x70, 0}, leb(1<<32-1))))},
		{"table of 100 M entries", hostiletest.ByCode, plain(nil, section(4, slices.Concat([]byte{1, 0x70, 0}, leb(100_000_000))))},
		{"table that grows", hostiletest.ByAny, plain(looping([]byte{0xd0, 0x70}, i32(1000), []byte{0xfc, 15, 0, opDrop}),
			section(4, []byte{1, 0x70, 0, 1}))},
		{"1000 tables of 1 M", hostiletest.ByCode, plain(nil, section(4, counts(1000, bytes.Repeat(slices.Concat([]byte{0x70, 0}, leb(1_000_000)),
			1000))))},
		{"call outside of the table", hostiletest.ByCode, plain(slices.Concat(i32(1<<31), []byte{0x11, 0, 0}), section(4, []byte{1, 0x70, 0,
			1}))},
		{"call of an empty entry", hostiletest.ByCode, plain(slices.Concat(i32(0), []byte{0x11, 0, 0}), section(4, []byte{1, 0x70, 0, 1}))},
		{"tail calls without an end", hostiletest.ByTime, plain(slices.Concat([]byte{0x12, 0}))},
		{"data behind the end of the memory", hostiletest.ByCode, plain(nil, memory, section(11, counts(1, []byte{0}, i32(65535), []byte{opEnd},
			sized([]byte("xx")))))},
		{"data far behind it", hostiletest.ByCode, plain(nil, memory, section(11, counts(1, []byte{0}, i32(1<<32-1), []byte{opEnd},
			sized([]byte("xx")))))},
		{"elements behind the end of the table", hostiletest.ByCode, plain(nil, section(4, []byte{1, 0x70, 0, 1}), section(9, counts(1, []byte{0},
			i32(5), []byte{opEnd, 1, 0})))},
		{"load from the end", hostiletest.ByCode, plain(slices.Concat(i32(1<<32-1), []byte{0x28, 2}, leb(1<<32-1), []byte{opDrop}), memory)},
		{"a million functions", hostiletest.ByAny, moduleOf(section(1, counts(1, typeOf(""))), section(3, counts(million, bytes.Repeat([]byte{0},
			million))),
			section(7, counts(1, text("_start"), []byte{0, 0})), section(10, counts(million, bytes.Repeat([]byte{2, 0, opEnd}, million))))},
		{"a million globals", hostiletest.ByAny, plain(nil, section(6, counts(million, bytes.Repeat([]byte{vI32, 0, 0x41, 0, opEnd}, million))))},
		{"a million types", hostiletest.ByAny, moduleOf(section(1, counts(million, bytes.Repeat([]byte{0x60, 0, 0}, million))),
			section(3, counts(1, leb(0))),
			section(7, counts(1, text("_start"), []byte{0, 0})), section(10, counts(1, []byte{2, 0, opEnd})))},
		{"4 G locals", hostiletest.ByCode, moduleOf(section(1, counts(1, typeOf(""))), section(3, counts(1, leb(0))),
			section(7, counts(1, text("_start"), []byte{0, 0})),
			section(10, counts(1, sized([]byte{1}, leb(1<<32-1), []byte{vI32, opEnd}))))},
		{"a million locals", hostiletest.ByAny, moduleOf(section(1, counts(1, typeOf(""))), section(3, counts(1, leb(0))),
			section(7, counts(1, text("_start"), []byte{0, 0})),
			section(10, counts(1, sized([]byte{1}, leb(uint64(million)), []byte{vI32, opEnd}))))},
		{"a br_table of a million", hostiletest.ByAny, plain(slices.Concat(i32(7), []byte{0x0e}, leb(uint64(million)), bytes.Repeat([]byte{0},
			million), []byte{0}))},
		{"a million blocks", hostiletest.ByAny, plain(slices.Concat(bytes.Repeat([]byte{0x02, 0x40}, million), bytes.Repeat([]byte{opEnd},
			million)))},
		{"a million additions", hostiletest.ByAny, plain(slices.Concat(i32(1), bytes.Repeat([]byte{0x41, 1, 0x6a}, million), []byte{opDrop}))},
		{"a deep stack", hostiletest.ByAny, plain(slices.Concat(bytes.Repeat([]byte{0x41, 1}, million), bytes.Repeat([]byte{opDrop}, million)))},
		{"30 MB of loops", hostiletest.ByAny, moduleOf(section(1, counts(1, typeOf(""))), section(3, counts(300_000, bytes.Repeat([]byte{0},
			300_000))),
			section(7, counts(1, text("_start"), []byte{0, 0})), section(10, counts(300_000, bytes.Repeat(sized([]byte{0}, bytes.Repeat(loop, 18),
				[]byte{opEnd}), 300_000))))},
		{"what counts more than there is", hostiletest.ByCode, moduleOf(section(1, leb(1<<32-1)))},
		{"half a module", hostiletest.ByCode, plain(loop)[:20]},
		{"a number that never ends", hostiletest.ByCode, moduleOf([]byte{1}, bytes.Repeat([]byte{0x80}, 100))},
		{"an import that is not there", hostiletest.ByCode, moduleOf(section(1, counts(1, typeOf(""))), section(2, counts(1, text("env"),
			text("system"), []byte{0, 0})))},
		{"the metering's own import", hostiletest.ByCode, moduleOf(section(1, counts(1, typeOf(""))), section(2, counts(1, text("agentbox"),
			text("yield"), []byte{0, 0})))},
		{"yields", hostiletest.ByTime, calling([]wasiCall{{"sched_yield", ""}}, nil, looping(call(0), []byte{opDrop}))},
		{"polls of nothing", hostiletest.ByTime, calling([]wasiCall{{"poll_oneoff", "iiii"}}, nil, looping(args("iiii", 0), call(0),
			[]byte{opDrop}))},
		{"polls of everything", hostiletest.ByTime, calling([]wasiCall{{"poll_oneoff", "iiii"}}, nil, looping(i32(0), i32(0), i32(1365), i32(0),
			call(0), []byte{opDrop}))},
		{"chance", hostiletest.ByTime, calling([]wasiCall{{"random_get", "ii"}}, nil, looping(i32(0), i32(65536), call(0), []byte{opDrop}))},
		{"writes of nothing", hostiletest.ByTime, calling(write, nil, looping(i32(1), i32(0), i32(0), i32(100), call(0), []byte{opDrop}))},
		{"writes over themselves", hostiletest.ByOutput, calling(write, bytes.Repeat(iovec(0, 65536), 8), looping(i32(1), i32(0), i32(8), i32(0),
			call(0), []byte{opDrop}))},
		{"writes of more than there is", hostiletest.ByAny, calling(write, bytes.Repeat(iovec(0, 65536), 4096), looping(i32(1), i32(0), i32(4096),
			i32(65532), call(0), []byte{opDrop}))},
		{"each call with 0", hostiletest.ByTime, floods(0)},
		{"each call with 1 and 3", hostiletest.ByAny, floods(1, 3)},
		{"each call with the end of the memory", hostiletest.ByTime, floods(65535, 65536)},
		{"each call with the largest numbers", hostiletest.ByAny, floods(1<<32-1, 1<<31-1, 1<<31)},
		{"each call with whatever", hostiletest.ByAny, floods(4, 5, 8, 16, 255, 1024, 4096)},
	}
}

// TestHostileModules runs modules that take what they can.
func TestHostileModules(t *testing.T) {
	t.Parallel()
	h, n := besieged(t)
	var late overshoots
	t.Run("all", func(t *testing.T) {
		for _, x := range hostileModules() {
			hostileCase(t, h, n, &late, hostiletest.Script{Name: x.name, End: x.end}, func(t *testing.T, dir string) {
				if err := os.WriteFile(filepath.Join(dir, "m"), x.module, 0o755); err != nil {
					t.Fatal(err)
				}
			}, "bash", "-c", "./m")
		}
	})
	late.log(t)
	t.Logf("a worker held %d MiB at most", workersMemory()>>20)
}
