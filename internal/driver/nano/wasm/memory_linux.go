//go:build linux && !nocow

package wasm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// store holds the memory of an image in a file without a name, of which each instance has a private mapping, and one to read it. A
// process that may make no file any more has the memory alone, which each instance copies: the images that it makes are of modules before
// they have run, which hold little.
type store struct {
	fd   int // -1 for none
	view []byte
	data int // behind so many bytes everything is zero
}

// newStore writes content at the beginning of a file of the given size. Pieces that are zero take no room.
func newStore(content []byte, size uint64) (store, error) {
	if size == 0 {
		return store{fd: -1}, nil
	}
	fd, err := unix.MemfdCreate("agentbox-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if errors.Is(err, unix.EPERM) {
		return withoutFile(content, size)
	}
	if err != nil {
		return store{}, err
	}
	err = unix.Ftruncate(fd, int64(size))
	for at := 0; err == nil && at < len(content); at += pieceSize {
		piece := content[at:min(at+pieceSize, len(content))]
		if !isZero(piece) {
			_, err = unix.Pwrite(fd, piece, int64(at))
		}
	}
	if err == nil { // nobody changes it any more, not even by mistake
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	var view []byte
	if err == nil {
		view, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		_ = unix.Close(fd)
		return store{}, err
	}
	return store{fd: fd, view: view, data: len(content)}, nil
}

func withoutFile(content []byte, size uint64) (store, error) {
	view, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return store{}, err
	}
	copy(view, content)
	if err := unix.Mprotect(view, unix.PROT_READ); err != nil {
		return store{}, errors.Join(err, unix.Munmap(view))
	}
	return store{fd: -1, view: view, data: len(content)}, nil
}

// bytes returns the content, only to be read.
func (s *store) bytes() []byte { return s.view }

func (s *store) close() error {
	if s.view == nil {
		return nil
	}
	err := unix.Munmap(s.view)
	s.view = nil
	if s.fd < 0 {
		return err
	}
	if e := unix.Close(s.fd); err == nil {
		err = e
	}
	return err
}

// mapping is reserved address space, at whose beginning the image is mapped privately: a page is copied when it is written.
type mapping struct {
	address  unsafe.Pointer
	reserved uintptr
	usable   uintptr
}

// resize makes size bytes usable; nil if the system has no room.
func (m *mapping) resize(image *Image, size, most uint64) []byte {
	if m.address == nil {
		if !m.open(image, most) {
			return nil
		}
	}
	if n := uintptr(size); n > m.usable {
		fresh := unsafe.Slice((*byte)(unsafe.Add(m.address, m.usable)), n-m.usable)
		if unix.Mprotect(fresh, unix.PROT_READ|unix.PROT_WRITE) != nil {
			return nil
		}
		m.usable = n
	}
	return unsafe.Slice((*byte)(m.address), size)
}

func (m *mapping) open(image *Image, most uint64) bool {
	reserved := uintptr(max(most, pageSize)) // so that an empty memory has an address, too
	address, err := unix.MmapPtr(-1, 0, nil, reserved, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return false
	}
	if n := uintptr(len(image.store.view)); n > 0 {
		if image.store.fd < 0 {
			memory := unsafe.Slice((*byte)(address), n)
			if err = unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE); err == nil {
				copy(memory, image.store.view[:image.store.data])
			}
		} else {
			_, err = unix.MmapPtr(image.store.fd, 0, address, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
		}
		if err != nil {
			_ = unix.MunmapPtr(address, reserved)
			return false
		}
		m.usable = n
	}
	m.address, m.reserved = address, reserved
	return true
}

// reset returns a memory that has not grown to the image. It reports whether it could. Pages that are hot keep their place and are
// written over, so that the next execution does not wait for them one by one; the others that were written are dropped, and with them
// what they held.
func (m *mapping) reset(image *Image, k marks) bool {
	if m.address == nil || image.store.fd < 0 || m.usable != uintptr(image.size) {
		return false
	}
	memory := unsafe.Slice((*byte)(m.address), m.usable)
	written := k.written(m, image.size)
	if written == nil {
		return unix.Madvise(memory, unix.MADV_DONTNEED) == nil
	}
	for i := 0; i < len(written); {
		if !written[i] {
			i++
			continue
		}
		from, hot := i, image.isHot(i)
		for i++; i < len(written) && written[i] && image.isHot(i) == hot; i++ {
		}
		page := memory[from*pieceSize : i*pieceSize]
		if hot {
			copy(page, image.store.view[from*pieceSize:])
		} else if unix.Madvise(page, unix.MADV_DONTNEED) != nil {
			return false
		}
	}
	return true
}

// ready has pages of its own where the memory will be written, at once and not one by one. A system that cannot do so does it then.
func (m *mapping) ready(image *Image) {
	memory := unsafe.Slice((*byte)(m.address), m.usable)
	for i := 0; i < len(image.hot); {
		if !image.hot[i] {
			i++
			continue
		}
		from := i
		for i++; i < len(image.hot) && image.hot[i]; i++ {
		}
		if unix.Madvise(memory[from*pieceSize:i*pieceSize], unix.MADV_POPULATE_WRITE) != nil {
			return
		}
	}
}

// populate is ready for a part that is written next.
func (m *mapping) populate(from, n uint64) {
	begin, end := from&^(pieceSize-1), (from+n+pieceSize-1)&^(pieceSize-1)
	if end <= uint64(m.usable) {
		_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(m.address, begin)), end-begin), unix.MADV_POPULATE_WRITE)
	}
}

func (m *mapping) free() {
	if m.address != nil {
		_ = unix.MunmapPtr(m.address, m.reserved)
		*m = mapping{}
	}
}

// marks tells which pages of the process were written, from /proc/self/pagemap; nil where that cannot be read.
type marks struct{ file *os.File }

// openMarks opens the file by a thread that has given up for a moment what root may do: so it does not tell where in the machine's memory
// the pages lie.
func openMarks() (k marks) {
	if os.Getpagesize() != pieceSize {
		return marks{}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var may, less [2]unix.CapUserData
	if unix.Capget(&header, &may[0]) != nil {
		return marks{}
	}
	for i := range may {
		less[i] = unix.CapUserData{Permitted: may[i].Permitted, Inheritable: may[i].Inheritable}
	}
	if unix.Capset(&header, &less[0]) != nil {
		return marks{}
	}
	file, err := os.Open("/proc/self/pagemap")
	if err == nil {
		k.file = file
	}
	if err := unix.Capset(&header, &may[0]); err != nil {
		panic(fmt.Sprintf("a thread cannot take back what it gave up for a moment: %v", err)) // it would act otherwise than the others
	}
	return k
}

func (k marks) close() {
	if k.file != nil {
		_ = k.file.Close()
	}
}

// written returns for each piece of the memory whether it may have been written, or nil if that is not known. A page that was written is
// one of the process's own; one that only was read, or was not touched, is still one of the image's file, or none.
func (k marks) written(m *mapping, size uint64) []bool {
	const present, swapped, file = 1 << 63, 1 << 62, 1 << 61
	entries := make([]byte, size/pieceSize*8)
	if k.file == nil || m.address == nil {
		return nil
	}
	if n, _ := k.file.ReadAt(entries, int64(uintptr(m.address)/pieceSize*8)); n != len(entries) {
		return nil
	}
	written := make([]bool, size/pieceSize)
	for i := range written {
		e := binary.NativeEndian.Uint64(entries[i*8:])
		written[i] = e&(present|swapped) != 0 && e&file == 0
	}
	return written
}
