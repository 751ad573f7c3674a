package javascript

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/vfs"
)

// callGas is the cost of each call of the host, without the moved bytes.
const callGas = 200

func floatBits(f float64) uint64 { return math.Float64bits(f) }

// thrown is an error of the host's that a program sees, with the code that Node gives it.
type thrown struct{ code, message string }

func (t *thrown) Error() string { return t.message }

// known returns how a program sees an error; false where it is none of its business.
func known(err error) (code, message string, ok bool) {
	if t, is := errors.AsType[*thrown](err); is {
		return t.code, t.message, true
	}
	if e, is := errors.AsType[vfs.Errno](err); is {
		return errnoNames[e], e.Error(), true
	}
	return "", "", false
}

// errnoNames are the names of the file system's errors.
var errnoNames = map[vfs.Errno]string{
	vfs.EACCES: "EACCES", vfs.EBADF: "EBADF", vfs.EBUSY: "EBUSY", vfs.EEXIST: "EEXIST", vfs.EFBIG: "EFBIG", vfs.EINVAL: "EINVAL",
	vfs.EIO:    "EIO",
	vfs.EISDIR: "EISDIR", vfs.ELOOP: "ELOOP", vfs.EMFILE: "EMFILE", vfs.EMLINK: "EMLINK", vfs.ENAMETOOLONG: "ENAMETOOLONG",
	vfs.ENOENT: "ENOENT",
	vfs.ENOMEM: "ENOMEM", vfs.ENOSPC: "ENOSPC", vfs.ENOTDIR: "ENOTDIR", vfs.ENOTEMPTY: "ENOTEMPTY", vfs.ENOTSUP: "ENOTSUP", vfs.ENXIO: "ENXIO",
	vfs.EPERM: "EPERM", vfs.EPIPE: "EPIPE", vfs.EROFS: "EROFS", vfs.ESPIPE: "ESPIPE", vfs.ETXTBSY: "ETXTBSY", vfs.EXDEV: "EXDEV",
	vfs.EAGAIN: "EAGAIN",
}

// define provides the imports of the interpreter.
func define(ctx context.Context, e *wasm.Engine) error {
	const badf = 8
	refuse := func(*run, []uint64) uint64 { return badf }
	err := e.Define(ctx, "env",
		function("host_call", "iiiii", (*run).dispatch),
		wasm.Function{Name: "host_interrupt", Results: types("i"), Call: func(in *wasm.Instance, s []uint64) {
			if r := in.State.(*run); r.p != nil {
				r.p.Charge(1) // which looks at the deadline
			}
			s[0] = 0
		}},
		wasm.Function{Name: "host_promise_rejection", Params: types("iii"), Call: func(in *wasm.Instance, s []uint64) {
			in.State.(*run).rejection(whole("iii", s))
		}},
		function("host_module_normalize", "ii", (*run).normalize),
		function("host_module_load", "ii", (*run).load),
		function("host_get_timezone_offset", "ii", (*run).zoneOffset),
	)
	return errors.Join(err, e.Define(ctx, "wasi_snapshot_preview1",
		function("clock_time_get", "iIi", func(r *run, s []uint64) uint64 {
			b, err := r.vm.bytes(s[2], 8)
			if err != nil {
				panic(err)
			}
			binary.LittleEndian.PutUint64(b, uint64(r.account.Now().UnixNano()))
			return 0
		}),
		function("random_get", "ii", func(r *run, s []uint64) uint64 {
			b, err := r.vm.bytes(s[0], s[1])
			if err != nil {
				panic(err)
			}
			r.account.Entropy(b)
			return 0
		}),
		function("fd_close", "i", refuse), function("fd_fdstat_get", "ii", refuse), function("fd_seek", "iIii", refuse), function("fd_write",
			"iiii", refuse),
	))
}

// zoneOffset returns how many seconds local time is ahead of UTC at a time: seconds since 1970, which come in two halves.
func (r *run) zoneOffset(s []uint64) uint64 {
	if r.p == nil { // the image, which is for every zone
		return 0
	}
	r.p.Charge(10)
	_, offset := time.Unix(int64(s[0]<<32|s[1]), 0).In(r.intl.local()).Zone()
	return uint64(uint32(offset))
}

// function is an import of the interpreter's that returns an i32. In params, i is an i32 and I an i64.
func function(name, params string, f func(*run, []uint64) uint64) wasm.Function {
	return wasm.Function{Name: name, Params: types(params), Results: types("i"), Call: func(in *wasm.Instance, s []uint64) {
		s[0] = f(in.State.(*run), whole(params, s))
	}}
}

func types(params string) []byte {
	all := make([]byte, len(params))
	for i := range params {
		all[i] = wasm.I32
		if params[i] == 'I' {
			all[i] = wasm.I64
		}
	}
	return all
}

// whole clears the upper halves of numbers of 32 bits, which hold old bits.
func whole(params string, s []uint64) []uint64 {
	for i := range params {
		if params[i] == 'i' {
			s[i] = uint64(uint32(s[i]))
		}
	}
	return s
}

// operation is a host function for the prelude. It returns nil, a bool, a number, a string, bytes or a value.
type operation func(r *run, a *arguments) (any, error)

// arguments are those of an operation. The first failure to read one is kept.
type arguments struct {
	vm   *guest
	all  []value
	next int
	err  error
}

func (a *arguments) take() value {
	if a.next >= len(a.all) {
		a.err = errors.Join(a.err, errors.New("the prelude called the host with too few arguments"))
		return 0
	}
	a.next++
	return a.all[a.next-1]
}

func (a *arguments) number() float64 {
	v := a.take()
	if a.err != nil {
		return 0
	}
	n, err := a.vm.number(v)
	a.err = err
	return n
}

func (a *arguments) int() int {
	n := a.number()
	if math.IsNaN(n) {
		return 0
	}
	return int(max(min(n, 1<<53), -1<<53))
}

func (a *arguments) text() string {
	v := a.take()
	if a.err != nil {
		return ""
	}
	s, err := a.vm.text(v)
	a.err = err
	return s
}

// bytes takes an ArrayBuffer, an offset and a length. They are valid until the guest runs.
func (a *arguments) bytes() []byte {
	v, off, n := a.take(), a.int(), a.int()
	if a.err != nil {
		return nil
	}
	b, err := a.vm.buffer(v)
	if err != nil || off < 0 || n < 0 || off > len(b) || n > len(b)-off {
		a.err = errors.Join(err, &thrown{"ERR_OUT_OF_RANGE", "the buffer is smaller than that"})
		return nil
	}
	return b[off : off+n]
}

// dispatch calls an operation for the guest. It returns a value, or 0 where an exception waits.
func (r *run) dispatch(s []uint64) uint64 {
	name, err := r.vm.bytes(s[0], s[1])
	if err != nil {
		panic(err)
	}
	op := operations[string(name)]
	a := &arguments{vm: r.vm}
	if n := s[3]; n > 0 {
		list, err := r.vm.bytes(s[4], 4*n)
		if err != nil {
			panic(err)
		}
		for i := range n {
			a.all = append(a.all, value(binary.LittleEndian.Uint32(list[4*i:])))
		}
	}
	if err := r.account.Charge(callGas); err != nil {
		panic(err)
	}
	if r.p == nil && !early[string(name)] {
		panic(fmt.Errorf("the prelude called %s while the image was made", name))
	}
	result, err := op(r, a)
	err = errors.Join(err, a.err)
	if err == nil {
		var v value
		if v, err = r.result(result); err == nil {
			return uint64(v)
		}
	}
	code, message, ok := known(err)
	if !ok {
		panic(err)
	}
	if err := r.vm.throw(code, message); err != nil {
		panic(err)
	}
	return 0
}

// result makes a value of what an operation returned.
func (r *run) result(x any) (value, error) {
	var v uint64
	var err error
	switch x := x.(type) {
	case nil:
		v, err = r.vm.call("qjs_get_undefined")
	case bool:
		name := "qjs_get_false"
		if x {
			name = "qjs_get_true"
		}
		v, err = r.vm.call(name)
	case int:
		v, err = r.vm.call("qjs_new_number", floatBits(float64(x)))
	case float64:
		v, err = r.vm.call("qjs_new_number", floatBits(x))
	case string:
		return r.vm.str(x)
	case []byte:
		var at uint64
		if at, err = r.vm.put(x); err != nil {
			return 0, err
		}
		if v, err = r.vm.call("qjs_new_uint8_array", at, uint64(len(x))); err == nil {
			err = r.vm.must("wasm_free", at)
		}
	case value:
		return x, nil
	default:
		return 0, fmt.Errorf("an operation returned %T", x)
	}
	if err == nil && v == 0 {
		err = errMemory
	}
	return value(v), err
}

// rejection notes a promise that was rejected, or one that is handled after all.
func (r *run) rejection(s []uint64) {
	id, err := r.vm.call("qjs_get_value_ptr", s[0])
	if err != nil {
		panic(err)
	}
	if s[2] == 0 {
		r.rejects = append(r.rejects, rejection{value(s[0]), value(s[1]), id})
		return
	}
	for i, j := range r.rejects {
		if j.id == id {
			err = errors.Join(r.vm.free(j.promise), r.vm.free(j.reason))
			r.rejects = append(r.rejects[:i], r.rejects[i+1:]...)
			break
		}
	}
	if err = errors.Join(err, r.vm.free(value(s[0])), r.vm.free(value(s[1]))); err != nil {
		panic(err)
	}
}

// name reads a C string.
func (r *run) name(at uint64) string {
	const most = 1 << 16
	for n := uint64(64); ; n *= 2 {
		b, err := r.vm.bytes(at, n)
		if err != nil {
			whole := r.vm.in.Memory()
			b = whole[min(at, uint64(len(whole))):]
		}
		for i, c := range b {
			if c == 0 {
				return string(b[:i])
			}
		}
		if err != nil || n >= most {
			panic(errAddress)
		}
	}
}

// normalize resolves an import of a module.
func (r *run) normalize(s []uint64) uint64 {
	id, err := r.modules.resolve(r.name(s[0]), r.name(s[1]), true)
	return r.handOver(id, err)
}

// load returns the text of a module, with its length where the guest wants it.
func (r *run) load(s []uint64) uint64 {
	text, err := r.modules.module(r.name(s[0]))
	at := r.handOver(text, err)
	if at != 0 {
		b, err := r.vm.bytes(s[1], 4)
		if err != nil {
			panic(err)
		}
		binary.LittleEndian.PutUint32(b, uint32(len(text)))
	}
	return at
}

// handOver gives the guest a text, or has an exception thrown and returns 0.
func (r *run) handOver(text string, err error) uint64 {
	if err == nil {
		var at uint64
		if at, err = r.vm.put([]byte(text)); err == nil {
			return at
		}
	}
	code, message, ok := known(err)
	if !ok {
		panic(err)
	}
	if err := r.vm.throw(code, message); err != nil {
		panic(err)
	}
	return 0
}
