// Package contexts keeps the state of an interpreter between the pieces of code that it runs, its cells, in a file of the space.
//
// So a context is forked, rewound and removed with the files. Code of the space can write such a file. So its statements about the file are
// checked, and it is trusted no more than the memory of a guest.
package contexts

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"slices"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Folder is where the contexts of a space lie.
const Folder = "/workspace/" + space.ContextFolder

// Language is that of an interpreter, and the ending of its files.
type Language string

// The languages.
const (
	Python     Language = "py"
	JavaScript Language = "js"
)

// A file is a head and then the delta of the interpreter's memory.
const (
	magic       = space.ContextMagic
	headBytes   = space.ContextHead
	languageAt  = 4
	bytesPerGas = 8
)

// Errors of contexts.
var (
	ErrBroken  = fault.New(fault.Invalid, "context_broken", "the context is broken")
	ErrOther   = fault.New(fault.Conflict, "context_version", "the context belongs to another version of the interpreter")
	ErrChanged = fault.New(fault.Conflict, "context_changed", "the context was changed meanwhile by another cell")
)

// Context is an open context.
type Context struct {
	Cells uint64      // that have ended in it
	State *wasm.Delta // how they have left the interpreter, nil for a new context

	p        *program.Process
	path     string
	language Language
	node     *vfs.Node // of the file, nil for a new context
	held     int64
}

// Open reads the context with a name, whose states belong to the image with a hash. If there is none, it returns a new context. The caller
// closes it. Open removes the variable with long code from the program's environment.
func Open(p *program.Process, language Language, name string, image [sha256.Size]byte) (*Context, error) {
	if err := space.ContextName(name); err != nil {
		return nil, err
	}
	p.Env = slices.DeleteFunc(slices.Clone(p.Env), func(pair string) bool { return strings.HasPrefix(pair, space.CellVariable+"=") })
	c := &Context{p: p, path: Folder + "/" + name + "." + string(language), language: language}
	h, err := p.FS.Open(p.At(), c.path, vfs.Read, 0)
	if errors.Is(err, vfs.ENOENT) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	if c.node = h.Node(); h.Kind() != vfs.Regular {
		return nil, errors.Join(c.broken(), h.Close())
	}
	raw, err := h.ReadAll()
	if err = errors.Join(err, h.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	c.held = int64(len(raw))
	p.Charge(len(raw) / bytesPerGas)
	if err := c.decode(raw, image); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close frees the memory of the state. The state must not be used afterwards.
func (c *Context) Close() {
	c.p.Account.Release(c.held)
	c.held, c.State = 0, nil
}

func (c *Context) broken() error {
	return fault.New(ErrBroken.Kind, ErrBroken.Code,
		"%s is damaged, or no context of this language; remove it to begin anew, or use another name", c.path)
}

func (c *Context) decode(raw []byte, image [sha256.Size]byte) error {
	if len(raw) < headBytes || string(raw[:len(magic)]) != magic {
		return c.broken()
	}
	head, rest := raw[len(magic):headBytes], raw[headBytes:]
	state := &wasm.Delta{}
	if string(head[:languageAt]) != c.language.field() || binary.LittleEndian.Uint32(head[languageAt+8:]) != sum(rest) ||
		state.UnmarshalBinary(rest) != nil {
		return c.broken()
	}
	if state.Base != image {
		return fault.New(ErrOther.Kind, ErrOther.Code,
			"%s belongs to another version of the interpreter, which nothing can go on with; remove it to begin anew, or use another name", c.path)
	}
	c.Cells, c.State = binary.LittleEndian.Uint64(head[languageAt:]), state
	return nil
}

// field is the language as it stands in the head.
func (l Language) field() string { return (string(l) + "\x00\x00\x00\x00")[:languageAt] }

// sum finds damage, not malice.
func sum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// encode returns the file of a state.
func (c *Context) encode(state *wasm.Delta) []byte {
	b := make([]byte, 0, headBytes+state.EncodedBytes())
	b = append(append(b, magic...), c.language.field()...)
	b = binary.LittleEndian.AppendUint64(b, c.Cells+1)
	b = state.Append(append(b, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(b[headBytes-4:], sum(b[headBytes:]))
	return b
}

// Keep writes the state after one cell more, in one step: where it fails, the context is as it was.
func (c *Context) Keep(state *wasm.Delta) error {
	size := headBytes + state.EncodedBytes()
	c.p.Charge(size / bytesPerGas)
	if err := c.p.Account.Allocate(int64(size)); err != nil {
		return err
	}
	defer c.p.Account.Release(int64(size))
	at := c.p.At()
	switch node, err := c.p.FS.Lookup(at, c.path, true); {
	case err != nil && !errors.Is(err, vfs.ENOENT):
		return fmt.Errorf("%s: %w", c.path, err)
	case err == nil && node != c.node, err != nil && c.node != nil:
		return fault.New(ErrChanged.Kind, ErrChanged.Code, "%s was changed while the cell ran; run the cells of a context one after the other",
			c.path)
	}
	for _, dir := range []string{path.Dir(Folder), Folder} {
		if err := c.p.FS.Mkdir(at, dir, 0o755); err != nil && !errors.Is(err, vfs.EEXIST) {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	fresh := c.path + space.ContextUnfinished
	if err := c.write(fresh, c.encode(state)); err != nil {
		if err := c.p.FS.Unlink(at, fresh); err != nil && !errors.Is(err, vfs.ENOENT) {
			c.p.Check(err)
		}
		return fmt.Errorf("%s, of %d bytes: %w", c.path, size, err)
	}
	return c.p.FS.Rename(at, fresh, at, c.path)
}

func (c *Context) write(path string, content []byte) error {
	if err := c.p.FS.Unlink(c.p.At(), path); err != nil && !errors.Is(err, vfs.ENOENT) {
		return err
	}
	h, err := c.p.FS.Open(c.p.At(), path, vfs.Write|vfs.Create|vfs.Exclusive, 0o644)
	if err != nil {
		return err
	}
	_, err = h.Write(content)
	return errors.Join(err, h.Close())
}

// Failed prints why the state of a context could not be read, or not be kept, and returns the exit code of that. It ends the program
// where the execution ended.
func Failed(p *program.Process, err error) int {
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
	if errors.Is(err, bound.ErrMemory) {
		p.Errorf("not enough memory for the context; it is as it was before")
		p.Kill(program.SIGKILL)
	}
	p.Errorf("%s", err)
	return 2
}
