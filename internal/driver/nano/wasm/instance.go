package wasm

import (
	"context"
	"errors"
	"runtime"

	"github.com/tetratelabs/wazero/api"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/meter"
	"agentbox/internal/userland/bound"
)

// Instance is a running module with a memory of its own. One goroutine at a time uses it. The caller closes it.
type Instance struct {
	// State is the state of the imported functions. The engine does not look at it.
	State any
	// Watch, if it is not nil, is called each time that the guest has used a slice of gas. It ends the guest as a host function does, by a
	// panic.
	Watch func()

	*body   // nil once it is closed
	image   *Image
	engine  *Engine
	account *bound.Account
	running int  // calls that are in each other
	failed  bool // a call ended otherwise than by itself or by an exit
	thrown  any  // what a host function threw that is not an error
}

// callContext leads from a call of the engine back to the instance.
type callContext struct {
	context.Context
	in *Instance
}

// errThrown takes the place of what a host function threw on its way through the engine.
var errThrown = errors.New("thrown by a host function")

// New makes an instance that is in the state of the image. Its memory counts on the account until it is closed. Nothing of it runs.
func (im *Image) New(ctx context.Context, account *bound.Account, state any) (*Instance, error) {
	in := &Instance{State: state, image: im, engine: im.code.engine, account: account}
	if in.body = im.takeSpare(); in.body == nil {
		in.body = im.newBody()
	}
	in.linear.account = account
	if im.code.meta.HasMemory {
		if err := in.admit(); err != nil {
			return nil, errors.Join(err, im.discard(ctx, in.body))
		}
	}
	if in.module == nil {
		if err := in.instantiate(ctx, im.code); err != nil {
			in.linear.Free()
			return nil, in.uninstantiable(err)
		}
	}
	if im.code.meta.HasMemory {
		im.addTo(in)
	}
	for i := range im.globals {
		in.globals[i].Set(im.globals[i])
	}
	im.live.Add(1)
	return in, nil
}

// admit refuses an image whose memory does not fit, before the engine would panic for it.
func (in *Instance) admit() error {
	size := in.image.size
	if size > in.linear.most {
		return fault.New(ErrMemory.Kind, ErrMemory.Code, "the image has %d bytes of memory, and at most %d are given", size, in.linear.most)
	}
	if size > uint64(in.account.Spare()) {
		return in.account.Allocate(int64(size))
	}
	in.linear.begin = size
	if in.linear.Reallocate(size) == nil {
		return fault.New(fault.Unavailable, "wasm_no_memory",
			"the system has no room for %d bytes of memory of a WebAssembly guest; run fewer of them at once", size)
	}
	return nil
}

func (in *Instance) uninstantiable(err error) error {
	if _, ok := errors.AsType[*bound.Stopped](err); ok {
		return typed(err)
	}
	return fault.Wrap(err, ErrImport.Kind, ErrImport.Code,
		"the WebAssembly module cannot be instantiated; it may import only what is provided")
}

// Account returns the account under which the instance runs.
func (in *Instance) Account() *bound.Account { return in.account }

// Image returns the image of which the instance was made.
func (in *Instance) Image() *Image { return in.image }

// Close frees the instance and its memory. It may be called more than once, but not from within a call.
func (in *Instance) Close(ctx context.Context) error {
	if in.body == nil {
		return nil
	}
	if in.running > 0 {
		return ErrClosed
	}
	b := in.body
	in.body = nil
	in.image.live.Add(-1)
	if !in.failed && in.image.keepSpare(b) {
		return nil
	}
	return b.close(ctx)
}

// Memory returns the whole memory, nil if there is none. It is valid until the guest runs again.
func (in *Instance) Memory() []byte {
	if in.body == nil || in.memory == nil {
		return nil
	}
	b, _ := in.memory.Read(0, in.memory.Size())
	return b
}

// Bytes returns n bytes of the memory from an address on, or false if they are not within it. They are valid until the guest runs again.
func (in *Instance) Bytes(address, n uint32) ([]byte, bool) {
	if in.body == nil || in.memory == nil {
		return nil, false
	}
	return in.memory.Read(address, n)
}

// Start runs the module's start function, if it has one. It is for instances of the initial image, once.
func (in *Instance) Start(ctx context.Context) error {
	if !in.image.code.meta.Started {
		return nil
	}
	_, err := in.Call(ctx, meter.Start)
	return err
}

// Call runs an exported function. It is stopped by the account, and by the end of ctx when the guest next looks. Its error is a
// *bound.Stopped, a *Trap, an *Exit, or an error that a host function threw; after any of them the instance can be called again, or
// frozen. A host function may call.
func (in *Instance) Call(ctx context.Context, name string, args ...uint64) ([]uint64, error) {
	if in.body == nil {
		return nil, ErrClosed
	}
	f, err := in.function(name)
	if err != nil {
		return nil, err
	}
	t := f.Definition()
	if len(args) != len(t.ParamTypes()) {
		return nil, fault.New(ErrExport.Kind, ErrExport.Code, "the function %q takes %d parameters and was given %d", name, len(t.ParamTypes()),
			len(args))
	}
	stack := make([]uint64, max(len(args), len(t.ResultTypes())))
	copy(stack, args)
	if err := in.enter(ctx, f, stack); err != nil {
		return nil, err
	}
	results := stack[:len(t.ResultTypes())]
	for i, t := range t.ResultTypes() {
		if t == I32 || t == F32 { // the upper half holds what was there before
			results[i] = uint64(uint32(results[i]))
		}
	}
	return results, nil
}

func (in *Instance) function(name string) (api.Function, error) {
	if in.running < maxCached {
		if f := in.cached[in.running][name]; f != nil {
			return f, nil
		}
	}
	f := in.module.ExportedFunction(name)
	if f == nil {
		return nil, fault.New(ErrExport.Kind, ErrExport.Code, "the WebAssembly module exports no function %q", name)
	}
	for _, t := range append(f.Definition().ParamTypes(), f.Definition().ResultTypes()...) {
		if t != I32 && t != I64 && t != F32 && t != F64 && t != api.ValueTypeExternref {
			return nil, fault.New(ErrExport.Kind, ErrExport.Code, "the function %q takes or returns vectors or references; export one of numbers",
				name)
		}
	}
	if in.running < maxCached {
		if in.cached[in.running] == nil {
			in.cached[in.running] = map[string]api.Function{}
		}
		in.cached[in.running][name] = f
	}
	return f, nil
}

// enter calls a function with a slice of gas, and gives back what is left of it.
func (in *Instance) enter(ctx context.Context, f api.Function, stack []uint64) error {
	depth := in.depth.Get()
	if in.running == 0 {
		in.depth.Set(uint64(in.image.code.Depth))
	}
	in.running++
	in.drawGas()
	err := f.CallWithStack(&callContext{Context: ctx, in: in}, stack)
	in.returnGas()
	in.running--
	in.depth.Set(depth)
	if err == nil {
		return nil
	}
	if errors.Is(err, errThrown) {
		thrown := in.thrown
		in.thrown = nil
		if _, exited := thrown.(*Exit); !exited {
			in.failed = true
		}
		if e, ok := thrown.(error); ok {
			return e
		}
		panic(thrown)
	}
	in.failed = true
	return typed(err)
}

// drawGas takes a slice of gas for the guest, if there is any: an account that is empty stops the guest only when it uses more.
func (in *Instance) drawGas() {
	got := int64(0)
	if in.account.Stopped() == nil {
		if want := min(in.engine.o.Slice, in.account.Limits().Gas-in.account.Used()); want > 0 {
			got, _ = in.account.Slice(want)
		}
	}
	in.gas.Set(uint64(got))
}

// returnGas gives the account the remaining gas of the guest.
func (in *Instance) returnGas() {
	in.account.Return(int64(in.gas.Get()))
	in.gas.Set(0)
}

// yield is called by the guest when its gas or its depth is below zero.
func (in *Instance) yield(ctx context.Context) {
	if int64(in.depth.Get()) < 0 {
		panic(&Trap{Kind: StackOverflow, Detail: "stack overflow"})
	}
	if ctx.Err() != nil {
		in.account.Stop(&bound.Stopped{TimedOut: errors.Is(ctx.Err(), context.DeadlineExceeded), Canceled: errors.Is(ctx.Err(),
			context.Canceled)})
	}
	left := int64(in.gas.Get())
	for left < 0 {
		got, err := in.account.Slice(max(in.engine.o.Slice, -left))
		if err != nil {
			in.gas.Set(uint64(left))
			panic(err)
		}
		left += got
	}
	in.gas.Set(uint64(left))
	if in.Watch != nil {
		in.host(func(in *Instance, _ []uint64) { in.Watch() }, nil)
	}
}

// host calls a function of the host: with all gas on the account, and with what it throws kept from the engine, which would make a text
// of it.
func (in *Instance) host(call func(*Instance, []uint64), stack []uint64) {
	in.returnGas()
	defer in.caught()
	call(in, stack)
	in.drawGas()
}

// caught keeps the value that a host function throws. A defect of Go's own goes on, so that its trace is not lost.
func (in *Instance) caught() {
	r := recover()
	if r == nil {
		return
	}
	if _, ok := r.(runtime.Error); ok {
		panic(r)
	}
	in.thrown = r
	panic(errThrown)
}
