package nano

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wazero reads compiled code from its cache into process memory. For CPython that is 31 MB in every worker, most of it never executed.
// The code does not depend on its address. So a file that begins with the code can be mapped over that memory, like the text of a
// program. If anything differs from the expectations here, the memory stays unchanged.

// compiledCode returns the code of this process that lies in wazero's cache, the largest of it; nil if there is none.
func compiledCode(cache string) (code []byte, err error) {
	files, err := filepath.Glob(filepath.Join(cache, "wazero-*", "*"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() <= int64(len(code)) {
			continue
		}
		entry, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found := codeOf(entry)
		if len(found) <= len(code) {
			continue
		}
		if at, err := placeOf(found); err != nil {
			return nil, err
		} else if at != nil {
			code = found
		}
	}
	return code, nil
}

// codeOf takes the code out of a file of wazero's cache: behind a name, a version, and where each function begins. It returns nil for
// anything else.
func codeOf(entry []byte) []byte {
	const name = "WAZEVO"
	if len(entry) <= len(name) || string(entry[:len(name)]) != name {
		return nil
	}
	at := uint64(len(name)) + 1 + uint64(entry[len(name)])
	if at+4 > uint64(len(entry)) {
		return nil
	}
	at += 4 + 8*uint64(binary.LittleEndian.Uint32(entry[at:]))
	if at+8 > uint64(len(entry)) {
		return nil
	}
	size := binary.LittleEndian.Uint64(entry[at:])
	if at += 8; size > uint64(len(entry))-at {
		return nil
	}
	return entry[at : at+size]
}

// placeOf finds where in this process's memory that can be executed, and is not a file's, some code lies; nil if it does nowhere.
func placeOf(code []byte) (at unsafe.Pointer, err error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	page := uintptr(os.Getpagesize())
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to, offset uintptr
		var rights, device, name string
		var node uint64
		n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d %s", &from, &to, &rights, &offset, &device, &node, &name)
		if n != 6 || rights != "r-xp" || node != 0 { // the seventh is a name
			continue
		}
		for ; to-from >= uintptr(len(code)) && from < to; from += page { // neighbours are one line
			if at := unsafe.Add(nil, from); bytes.Equal(unsafe.Slice((*byte)(at), len(code)), code) {
				return at, nil
			}
		}
	}
	return nil, nil
}

// shareCode puts a file that begins with code, and whose length is whole pages, in the place of the same code in this process. Nothing of
// it may be executed meanwhile. If the memory cannot be read, or the code is not found, the memory stays unchanged.
func shareCode(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil || info.Size() == 0 || info.Size()%int64(os.Getpagesize()) != 0 {
		return nil
	}
	view, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return nil // what lies in this folder may not be executed, as where it is mounted so
	}
	at, err := placeOf(view) // to the end of the last page, which is zeroes
	_ = unix.Munmap(view)    // only address space is left of it
	if err != nil || at == nil {
		return nil
	}
	if _, err := unix.MmapPtr(int(file.Fd()), 0, at, uintptr(len(view)), unix.PROT_READ|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
		return fmt.Errorf("share compiled code: %w", err) // nobody knows what lies there now
	}
	return nil
}

// keepCode writes the largest code of this process that lies in wazero's cache into a file of which shareCode can be told.
func keepCode(cache, name string) error {
	code, err := compiledCode(cache)
	if err != nil || code == nil {
		return err
	}
	page := os.Getpagesize()
	return keep(name, append(bytes.Clone(code), make([]byte, -len(code)&(page-1))...))
}
