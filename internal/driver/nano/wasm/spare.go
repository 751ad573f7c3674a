package wasm

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"agentbox/internal/driver/nano/meter"
)

// body is what of an instance costs time to make: the module and its address space. A warm image keeps one from an instance to the next,
// whose memory is mapped afresh and whose globals are set in between. There is nothing else in which a module could keep what it knows:
// those whose tables or segments can change are not kept (meter.Module.Unsaved), nor is one that has grown or was ended by a trap.
type body struct {
	module  api.Module // nil until it is instantiated
	memory  api.Memory // nil if it has none
	linear  *linear
	gas     api.MutableGlobal
	depth   api.MutableGlobal
	globals []api.MutableGlobal
	cached  [maxCached]map[string]api.Function // by how many calls are in each other: one that runs has its stack in use
	spent   bool                               // its memory is as an instance left it
}

// maxCached is how deep the calls are in each other whose functions are kept: those of the host, what it calls in the guest, and once more.
const maxCached = 3

func (im *Image) newBody() *body {
	c := im.code
	return &body{linear: &linear{image: im.root(), begin: im.size, most: uint64(min(c.meta.MemoryMax, c.engine.o.MemoryPages)) * pageSize}}
}

func (b *body) instantiate(ctx context.Context, c *Code) (err error) {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	ctx = experimental.WithMemoryAllocator(ctx, b.linear)
	if b.module, err = c.engine.runtime.InstantiateModule(ctx, c.compiled, config); err != nil {
		b.module = nil
		return err
	}
	if c.meta.HasMemory {
		b.memory = b.module.Memory()
	}
	b.gas, b.depth = b.global(meter.Gas), b.global(meter.Depth)
	for _, g := range c.meta.Globals {
		b.globals = append(b.globals, b.global(g.Name))
	}
	return nil
}

func (b *body) global(name string) api.MutableGlobal {
	return b.module.ExportedGlobal(name).(api.MutableGlobal)
}

func (b *body) close(ctx context.Context) (err error) {
	if b.module != nil {
		err = b.module.Close(ctx)
	}
	b.linear.Free()
	return err
}

// Warm prepares the next instance of the image, or of one that stands on it, so that its New is fast. From then on the image reuses the
// memory of an ended instance for the next one, and prepares the pages that the first instances have written, up to Settle. The caller that
// closes an instance calls Warm again when there is time. Warm does nothing for an image that stands on another.
func (im *Image) Warm(ctx context.Context) error {
	if im.under != nil || im.code.meta.Unsaved != "" || !im.code.meta.HasMemory || len(im.globals) != len(im.code.meta.Globals) {
		return nil
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	im.warm = true
	if im.spare != nil && !im.spare.spent {
		return nil
	}
	b := im.spare
	im.spare = nil
	if b != nil && !b.fresh() {
		if err := b.close(ctx); err != nil {
			return err
		}
		b = nil
	}
	if b == nil { // what was kept has its pages
		b = im.newBody()
		if err := b.instantiate(ctx, im.code); err != nil {
			b.linear.Free()
			return err
		}
		b.linear.mapping.ready(im)
	}
	im.spare = b
	return nil
}

// Settle ends the rehearsals, in which the image learns which pages instances write. Later instances teach it nothing.
func (im *Image) Settle() {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.settled = true
}

// learn notes which pages an instance has written: most of what an execution writes are counts that end as they began. The lock is held.
func (im *Image) learn(b *body) {
	for i, is := range im.code.engine.marks.written(&b.linear.mapping, im.size) {
		if i >= len(im.hot) {
			im.hot = append(im.hot, is)
		}
		im.hot[i] = im.hot[i] || is
	}
}

// isHot reports whether a page is one that executions write.
func (im *Image) isHot(page int) bool { return page < len(im.hot) && im.hot[page] }

// fresh gives a body the memory of the image again. It reports whether it could.
func (b *body) fresh() bool {
	b.spent = b.spent && !b.linear.mapping.reset(b.linear.image, b.linear.image.code.engine.marks)
	return !b.spent
}

// takeSpare returns a body that the image has kept, in its first state; nil if there is none for it.
func (im *Image) takeSpare() *body {
	root := im.root()
	root.mu.Lock()
	defer root.mu.Unlock()
	b := root.spare
	if b == nil || im.size != root.size {
		return nil
	}
	root.spare = nil
	if !b.fresh() {
		_ = b.close(context.Background())
		return nil
	}
	return b
}

// keepSpare keeps what an instance leaves, if the image is warm and nothing speaks against it. Its account is free of it in any case that
// it reports.
func (im *Image) keepSpare(b *body) bool {
	root := im.root()
	root.mu.Lock()
	defer root.mu.Unlock()
	if !root.warm || root.spare != nil || b.memory == nil || uint64(b.memory.Size()) != root.size {
		return false
	}
	if !root.settled {
		root.learn(b)
	}
	b.linear.leave()
	b.spent = true
	root.spare = b
	return true
}

// discard gives up a body that was not used.
func (im *Image) discard(ctx context.Context, b *body) error {
	b.linear.leave()
	if b.module != nil && im.keepSpare(b) {
		return nil
	}
	return b.close(ctx)
}
