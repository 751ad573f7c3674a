package javascript

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"math"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
)

// value is a value of the interpreter's, by the address of what holds it; 0 is none. The owner frees it.
type value uint32

// How text is evaluated.
const (
	asModule = 1 << 0
	asAsync  = 1 << 7
)

// guest speaks with an instance of the interpreter.
type guest struct {
	in    *wasm.Instance
	ctx   context.Context
	cell  uint64           // where the interpreter leaves a length
	known map[string]value // the entries and undefined
}

func mapKeys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// call calls an exported function that returns one number or none.
func (g *guest) call(name string, args ...uint64) (uint64, error) {
	results, err := g.in.Call(g.ctx, name, args...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return results[0], nil
}

func (g *guest) must(name string, args ...uint64) error {
	_, err := g.call(name, args...)
	return err
}

var errAddress = errors.New("the JavaScript interpreter named memory that it does not have")

// bytes returns memory of the guest. It is valid until the guest runs.
func (g *guest) bytes(at, n uint64) ([]byte, error) {
	b, ok := g.in.Bytes(uint32(at), uint32(n))
	if !ok {
		return nil, errAddress
	}
	return b, nil
}

// put copies bytes, and a zero behind them, into memory that the guest has allocated.
func (g *guest) put(text []byte) (uint64, error) {
	if err := g.in.Account().Charge(int64(len(text)) / 8); err != nil {
		return 0, err
	}
	at, err := g.call("wasm_malloc", uint64(len(text)+1))
	if err != nil {
		return 0, err
	}
	if at == 0 {
		return 0, errMemory
	}
	b, err := g.bytes(at, uint64(len(text)+1))
	if err != nil {
		return 0, err
	}
	copy(b, text)
	b[len(text)] = 0
	return at, nil
}

var errMemory = errors.New("the JavaScript heap is full")

// str returns a string of the interpreter's.
func (g *guest) str(text string) (value, error) {
	at, err := g.put([]byte(text))
	if err != nil {
		return 0, err
	}
	v, err := g.call("qjs_new_string", at, uint64(len(text)))
	return value(v), errors.Join(err, g.must("wasm_free", at))
}

// text returns a value as a copied string.
func (g *guest) text(v value) (string, error) {
	at, err := g.call("qjs_get_string_len", uint64(v), g.cell)
	if err != nil {
		return "", err
	}
	if at == 0 {
		return "", errMemory
	}
	b, err := g.bytes(g.cell, 4)
	if err != nil {
		return "", err
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if err := g.in.Account().Charge(int64(n) / 8); err != nil {
		return "", err
	}
	if b, err = g.bytes(at, n); err != nil {
		return "", err
	}
	text := string(b)
	return text, g.must("qjs_free_cstring", at)
}

// number returns a value as a number.
func (g *guest) number(v value) (float64, error) {
	b, err := g.bytes(uint64(v), 8)
	if err != nil {
		return 0, err
	}
	if raw := binary.LittleEndian.Uint64(b); raw>>32 == 0 { // a small integer lies there as it is
		return float64(int32(uint32(raw))), nil
	}
	raw, err := g.call("qjs_get_float64", uint64(v))
	return math.Float64frombits(raw), err
}

// buffer returns the memory of an ArrayBuffer. It is valid until the guest runs.
func (g *guest) buffer(v value) ([]byte, error) {
	at, err := g.call("qjs_get_array_buffer", uint64(v), g.cell)
	if err != nil {
		return nil, err
	}
	b, err := g.bytes(g.cell, 4)
	if err != nil {
		return nil, err
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if at == 0 {
		return nil, nil
	}
	return g.bytes(at, n)
}

// free gives a value up.
func (g *guest) free(v value) error {
	if v == 0 {
		return nil
	}
	return g.must("qjs_free_value", uint64(v))
}

// eval evaluates text. thrown says that an exception waits.
func (g *guest) eval(text, file string, how uint64) (v value, thrown bool, err error) {
	code, err := g.put([]byte(text))
	if err != nil {
		return 0, false, err
	}
	name, err := g.put([]byte(file))
	if err != nil {
		return 0, false, err
	}
	result, err := g.call("qjs_eval", code, uint64(len(text)), name, how)
	if err != nil {
		return 0, false, err
	}
	if err := errors.Join(g.must("wasm_free", code), g.must("wasm_free", name)); err != nil {
		return 0, false, err
	}
	return g.outcome(value(result))
}

// outcome says whether a result is an exception that waits.
func (g *guest) outcome(result value) (v value, thrown bool, err error) {
	if result == 0 {
		return 0, true, nil
	}
	bad, err := g.call("qjs_is_exception", uint64(result))
	if err != nil {
		return 0, false, err
	}
	if bad != 0 {
		return 0, true, g.free(result)
	}
	return result, false, nil
}

// exception takes the exception that waits.
func (g *guest) exception() (value, error) {
	v, err := g.call("qjs_get_exception")
	return value(v), err
}

// describe returns the exception that waits as text, for defects of the prelude.
func (g *guest) describe() string {
	v, err := g.exception()
	if err != nil {
		return err.Error()
	}
	text, err := g.text(v)
	if err != nil {
		return err.Error()
	}
	if stack, err := g.property(v, "stack"); err == nil {
		if more, err := g.text(stack); err == nil {
			text += "\n" + more
		}
	}
	return text
}

// property returns a property of an object.
func (g *guest) property(v value, name string) (value, error) {
	at, err := g.put([]byte(name))
	if err != nil {
		return 0, err
	}
	p, err := g.call("qjs_get_prop_string", uint64(v), at)
	return value(p), errors.Join(err, g.must("wasm_free", at))
}

// set sets a property of an object to a value, which it keeps.
func (g *guest) set(v value, name string, to value) error {
	at, err := g.put([]byte(name))
	if err != nil {
		return err
	}
	return errors.Join(g.must("qjs_set_prop_string", uint64(v), at, uint64(to)), g.must("wasm_free", at), g.free(to))
}

// ask evaluates an expression of the host's own and returns its string.
func (g *guest) ask(expression string) (string, error) {
	v, thrown, err := g.eval(expression, "node:internal/ask", 0)
	if err != nil {
		return "", err
	}
	if thrown {
		return "", fault.New(fault.Internal, "prelude_invalid", "the prelude failed: %s", g.describe())
	}
	text, err := g.text(v)
	return text, errors.Join(err, g.free(v))
}

// entries are the functions of the prelude that the host calls.
var entries = []string{"begin", "cell", "exit", "fatal", "globals", "main", "print", "start", "step", "ticks", "unhandled"}

// apply calls one of the entries with values, which it frees. An exception becomes the outcome thrown.
func (g *guest) apply(name string, args ...value) (v value, thrown bool, err error) {
	list := make([]byte, 4*len(args))
	for i, a := range args {
		binary.LittleEndian.PutUint32(list[4*i:], uint32(a))
	}
	at, err := g.put(list)
	if err != nil {
		return 0, false, err
	}
	result, err := g.call("qjs_call", uint64(g.known[name]), uint64(g.known["undefined"]), uint64(len(args)), at)
	if err != nil {
		return 0, false, err
	}
	err = g.must("wasm_free", at)
	for _, a := range args {
		err = errors.Join(err, g.free(a))
	}
	if err != nil {
		return 0, false, err
	}
	return g.outcome(value(result))
}

// drain executes the jobs that wait: what promises have begun. It reports whether there were any.
func (g *guest) drain() (ran bool, err error) {
	for {
		left, err := g.call("qjs_is_job_pending")
		if err != nil || left == 0 {
			return ran, err
		}
		if _, err := g.call("qjs_execute_pending_job"); err != nil {
			return ran, err
		}
		ran = true
	}
}

// install makes the host's operations functions of the global object __host.
func (g *guest) install(names []string) error {
	host, err := g.call("qjs_new_object")
	if err != nil {
		return err
	}
	for _, name := range names {
		at, err := g.put([]byte(name))
		if err != nil {
			return err
		}
		f, err := g.call("qjs_new_host_function", at, uint64(len(name)), 0)
		if err != nil {
			return err
		}
		if err := errors.Join(g.must("wasm_free", at), g.set(value(host), name, value(f))); err != nil {
			return err
		}
	}
	global, err := g.call("qjs_get_global")
	if err != nil {
		return err
	}
	return errors.Join(g.set(value(global), "__host", value(host)), g.free(value(global)))
}

// throw has an error thrown in the guest, which the host function whose result is 0 goes on with.
func (g *guest) throw(code, message string) error {
	var e value
	if code == syntaxError {
		made, thrown, err := g.eval("new SyntaxError()", "node:internal/throw", 0)
		if err != nil || thrown {
			return errors.Join(err, errMemory)
		}
		e, code = made, ""
	} else {
		made, err := g.call("qjs_new_error")
		if err != nil {
			return err
		}
		e = value(made)
	}
	for _, p := range [...][2]string{{"message", message}, {"code", code}} {
		if p[1] == "" {
			continue
		}
		v, err := g.str(p[1])
		if err != nil {
			return err
		}
		if err := g.set(e, p[0], v); err != nil {
			return err
		}
	}
	return errors.Join(g.must("qjs_throw", uint64(e)), g.free(e))
}

// ended returns the bound that ended an execution, nil for an error of another kind.
func ended(err error) *bound.Stopped {
	s, _ := errors.AsType[*bound.Stopped](err)
	return s
}
