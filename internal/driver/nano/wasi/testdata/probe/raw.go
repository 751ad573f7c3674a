//go:build wasip1

package main

import (
	"encoding/binary"
	"unsafe"
)

//go:wasmimport wasi_snapshot_preview1 args_get
func rawArgsGet(argv, buf uint32) uint32

//go:wasmimport wasi_snapshot_preview1 args_sizes_get
func rawArgsSizesGet(count, size uint32) uint32

//go:wasmimport wasi_snapshot_preview1 environ_get
func rawEnvironGet(argv, buf uint32) uint32

//go:wasmimport wasi_snapshot_preview1 environ_sizes_get
func rawEnvironSizesGet(count, size uint32) uint32

//go:wasmimport wasi_snapshot_preview1 clock_res_get
func rawClockResGet(id, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 clock_time_get
func rawClockTimeGet(id uint32, precision uint64, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_advise
func rawFdAdvise(fd uint32, off, length uint64, advice uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_allocate
func rawFdAllocate(fd uint32, off, length uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_close
func rawFdClose(fd uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_datasync
func rawFdDatasync(fd uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_get
func rawFdFdstatGet(fd, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_set_flags
func rawFdFdstatSetFlags(fd, flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_set_rights
func rawFdFdstatSetRights(fd uint32, base, inheriting uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_get
func rawFdFilestatGet(fd, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_size
func rawFdFilestatSetSize(fd uint32, size uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_times
func rawFdFilestatSetTimes(fd uint32, atim, mtim uint64, flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_pread
func rawFdPread(fd, iovs, count uint32, off uint64, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_get
func rawFdPrestatGet(fd, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_dir_name
func rawFdPrestatDirName(fd, buf, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_pwrite
func rawFdPwrite(fd, iovs, count uint32, off uint64, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_read
func rawFdRead(fd, iovs, count, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_readdir
func rawFdReaddir(fd, buf, length uint32, cookie uint64, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_renumber
func rawFdRenumber(from, to uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_seek
func rawFdSeek(fd uint32, off int64, whence, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_sync
func rawFdSync(fd uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_tell
func rawFdTell(fd, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_write
func rawFdWrite(fd, iovs, count, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_create_directory
func rawPathCreateDirectory(fd, path, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_get
func rawPathFilestatGet(fd, flags, path, length, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_set_times
func rawPathFilestatSetTimes(fd, flags, path, length uint32, atim, mtim uint64, set uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_link
func rawPathLink(fd, flags, path, length, to, fresh, freshLength uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_open
func rawPathOpen(fd, lookup, path, length, oflags uint32, base, inheriting uint64, fdflags, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_readlink
func rawPathReadlink(fd, path, length, buf, bufLength, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_remove_directory
func rawPathRemoveDirectory(fd, path, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_rename
func rawPathRename(fd, path, length, to, fresh, freshLength uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_symlink
func rawPathSymlink(target, targetLength, fd, path, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_unlink_file
func rawPathUnlinkFile(fd, path, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 poll_oneoff
func rawPollOneoff(in, out, count, events uint32) uint32

//go:wasmimport wasi_snapshot_preview1 proc_exit
func rawProcExit(code uint32)

//go:wasmimport wasi_snapshot_preview1 proc_raise
func rawProcRaise(signal uint32) uint32

//go:wasmimport wasi_snapshot_preview1 random_get
func rawRandomGet(buf, length uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sched_yield
func rawSchedYield() uint32

//go:wasmimport wasi_snapshot_preview1 sock_accept
func rawSockAccept(fd, flags, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_recv
func rawSockRecv(fd, iovs, count, flags, out, outFlags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_send
func rawSockSend(fd, iovs, count, flags, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_shutdown
func rawSockShutdown(fd, how uint32) uint32

// errno is the number of an error of WASI preview 1.
type errno = uint32

const (
	ok          errno = 0
	again       errno = 6
	badf        errno = 8
	exist       errno = 20
	fault       errno = 21
	fbig        errno = 22
	ilseq       errno = 25
	inval       errno = 28
	isdir       errno = 31
	loop        errno = 32
	mfile       errno = 33
	nametoolong errno = 37
	noent       errno = 44
	notdir      errno = 54
	notempty    errno = 55
	notsock     errno = 57
	notsup      errno = 58
	perm        errno = 63
	spipe       errno = 70
	notcapable  errno = 76
)

// The rights.
const (
	fdDatasync uint64 = 1 << iota
	fdRead
	fdSeek
	fdSetFlags
	fdSync
	fdTell
	fdWrite
	fdAdvise
	fdAllocate
	pathCreateDirectory
	pathCreateFile
	pathLinkSource
	pathLinkTarget
	pathOpenRight
	fdReaddir
	pathReadlink
	pathRenameSource
	pathRenameTarget
	pathFilestatGet
	pathSetSize
	pathSetTimes
	fdFilestatGet
	fdSetSize
	fdSetTimes
	pathSymlink
	pathRemoveDirectory
	pathUnlinkFile
	pollReadwrite

	everything = 1<<28 - 1
)

const (
	creat = 1 << iota
	directory
	excl
	trunc
)

const (
	appendFlag   = 1
	dsyncFlag    = 2
	nonblockFlag = 4
	rsyncFlag    = 8
	syncFlag     = 16
)

// outside is a pointer that no memory of a small program has.
const outside = 0xffff_fff0

// arena is where what the host reads and writes lies: its address never changes.
var arena [1 << 20]byte
var arenaUsed uint32

func base() uint32 { return uint32(uintptr(unsafe.Pointer(&arena))) }

// room returns a part of the arena; reset by each wrapper.
func room(n int) uint32 {
	arenaUsed = (arenaUsed + 7) &^ 7
	if arenaUsed+uint32(n) > uint32(len(arena)) {
		arenaUsed = 0
	}
	at := arenaUsed
	arenaUsed += uint32(n)
	clear(arena[at : at+uint32(n)])
	return base() + at
}

func at(p uint32, n int) []byte { return arena[p-base():][:n] }

func text(s string) (uint32, uint32) {
	p := room(len(s) + 1)
	copy(at(p, len(s)), s)
	return p, uint32(len(s))
}

func u32(p uint32) uint32 { return binary.LittleEndian.Uint32(at(p, 4)) }
func u64(p uint32) uint64 { return binary.LittleEndian.Uint64(at(p, 8)) }

// vector makes a list of buffers.
func vector(buffers ...[]byte) (list, count uint32, where []uint32) {
	list = room(8 * len(buffers))
	for i, b := range buffers {
		p := room(len(b))
		copy(at(p, len(b)), b)
		binary.LittleEndian.PutUint32(at(list, 8*len(buffers))[i*8:], p)
		binary.LittleEndian.PutUint32(at(list, 8*len(buffers))[i*8+4:], uint32(len(b)))
		where = append(where, p)
	}
	return list, uint32(len(buffers)), where
}

func write(fd uint32, parts ...string) (uint32, errno) {
	var all [][]byte
	for _, s := range parts {
		all = append(all, []byte(s))
	}
	list, n, _ := vector(all...)
	out := room(4)
	e := rawFdWrite(fd, list, n, out)
	return u32(out), e
}

func pwrite(fd uint32, s string, off uint64) (uint32, errno) {
	list, n, _ := vector([]byte(s))
	out := room(4)
	e := rawFdPwrite(fd, list, n, off, out)
	return u32(out), e
}

func read(fd uint32, sizes ...int) (string, errno) {
	var all [][]byte
	for _, n := range sizes {
		all = append(all, make([]byte, n))
	}
	list, n, where := vector(all...)
	out := room(4)
	e := rawFdRead(fd, list, n, out)
	return gather(where, sizes, u32(out)), e
}

func pread(fd uint32, size int, off uint64) (string, errno) {
	list, n, where := vector(make([]byte, size))
	out := room(4)
	e := rawFdPread(fd, list, n, off, out)
	return gather(where, []int{size}, u32(out)), e
}

func gather(where []uint32, sizes []int, n uint32) string {
	var s string
	for i, p := range where {
		take := min(int(n), sizes[i])
		s += string(at(p, take))
		n -= uint32(take)
	}
	return s
}

func open(fd, lookup uint32, path string, oflags uint32, base, inheriting uint64, fdflags uint32) (uint32, errno) {
	p, n := text(path)
	out := room(4)
	e := rawPathOpen(fd, lookup, p, n, oflags, base, inheriting, fdflags, out)
	return u32(out), e
}

func mkdir(fd uint32, path string) errno {
	p, n := text(path)
	return rawPathCreateDirectory(fd, p, n)
}

func rmdir(fd uint32, path string) errno {
	p, n := text(path)
	return rawPathRemoveDirectory(fd, p, n)
}

func unlink(fd uint32, path string) errno {
	p, n := text(path)
	return rawPathUnlinkFile(fd, p, n)
}

func rename(fd uint32, path string, to uint32, fresh string) errno {
	p, n := text(path)
	q, m := text(fresh)
	return rawPathRename(fd, p, n, to, q, m)
}

func link(fd, flags uint32, path string, to uint32, fresh string) errno {
	p, n := text(path)
	q, m := text(fresh)
	return rawPathLink(fd, flags, p, n, to, q, m)
}

func symlink(target string, fd uint32, path string) errno {
	p, n := text(target)
	q, m := text(path)
	return rawPathSymlink(p, n, fd, q, m)
}

func readlink(fd uint32, path string, size int) (string, errno) {
	p, n := text(path)
	buf, out := room(size), room(4)
	e := rawPathReadlink(fd, p, n, buf, uint32(size), out)
	return string(at(buf, int(u32(out)))), e
}

type stat struct {
	dev, ino         uint64
	kind             byte
	links, size      uint64
	atim, mtim, ctim uint64
}

func statAt(p uint32) stat {
	return stat{u64(p), u64(p + 8), at(p, 17)[16], u64(p + 24), u64(p + 32), u64(p + 40), u64(p + 48), u64(p + 56)}
}

func fstat(fd uint32) (stat, errno) {
	out := room(64)
	e := rawFdFilestatGet(fd, out)
	return statAt(out), e
}

func pathStat(fd, flags uint32, path string) (stat, errno) {
	p, n := text(path)
	out := room(64)
	e := rawPathFilestatGet(fd, flags, p, n, out)
	return statAt(out), e
}

func setTimes(fd, flags uint32, path string, atim, mtim uint64, set uint32) errno {
	p, n := text(path)
	return rawPathFilestatSetTimes(fd, flags, p, n, atim, mtim, set)
}

type fdstat struct {
	kind             byte
	flags            uint16
	base, inheriting uint64
}

func getFdstat(fd uint32) (fdstat, errno) {
	out := room(24)
	e := rawFdFdstatGet(fd, out)
	b := at(out, 24)
	return fdstat{b[0], binary.LittleEndian.Uint16(b[2:]), u64(out + 8), u64(out + 16)}, e
}

func seek(fd uint32, off int64, whence uint32) (uint64, errno) {
	out := room(8)
	e := rawFdSeek(fd, off, whence, out)
	return u64(out), e
}

func tell(fd uint32) (uint64, errno) {
	out := room(8)
	e := rawFdTell(fd, out)
	return u64(out), e
}

func clock(id uint32) (uint64, errno) {
	out := room(8)
	e := rawClockTimeGet(id, 0, out)
	return u64(out), e
}

type dirent struct {
	next, ino uint64
	kind      byte
	name      string
}

// readdir returns the entries that fit whole, and whether the folder is at its end.
func readdir(fd uint32, size int, cookie uint64) ([]dirent, bool, errno) {
	buf, out := room(size), room(4)
	e := rawFdReaddir(fd, buf, uint32(size), cookie, out)
	used := int(u32(out))
	b := at(buf, used)
	var all []dirent
	for len(b) >= 24 {
		n := int(binary.LittleEndian.Uint32(b[16:]))
		if len(b) < 24+n {
			break
		}
		all = append(all, dirent{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), b[20], string(b[24 : 24+n])})
		b = b[24+n:]
	}
	return all, used < size, e
}

type subscription struct {
	user    uint64
	kind    byte
	id      uint32 // of a clock, or a descriptor
	timeout uint64
	flags   uint16
}

type event struct {
	user  uint64
	err   errno
	kind  byte
	bytes uint64
	flags uint16
}

func poll(subs ...subscription) ([]event, errno) {
	in, out, count := room(48*len(subs)), room(32*len(subs)), room(4)
	for i, s := range subs {
		b := at(in, 48*len(subs))[i*48:]
		binary.LittleEndian.PutUint64(b, s.user)
		b[8] = s.kind
		binary.LittleEndian.PutUint32(b[16:], s.id)
		binary.LittleEndian.PutUint64(b[24:], s.timeout)
		binary.LittleEndian.PutUint16(b[40:], s.flags)
	}
	e := rawPollOneoff(in, out, uint32(len(subs)), count)
	var all []event
	for i := range u32(count) {
		b := at(out, 32*len(subs))[i*32:]
		all = append(all, event{
			binary.LittleEndian.Uint64(b), errno(binary.LittleEndian.Uint16(b[8:])), b[10], binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint16(b[24:]),
		})
	}
	return all, e
}
