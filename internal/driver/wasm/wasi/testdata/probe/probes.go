//go:build wasip1

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var probes = []probe{
	{name: "args", do: args}, {name: "environ", do: environ}, {name: "clock_res", do: clockRes}, {name: "clock_time", do: clockTime},
	{name: "advise", do: advise}, {name: "allocate", do: allocate}, {name: "close", do: closing}, {name: "sync", do: syncing},
	{name: "fdstat", do: fdstats}, {name: "set_flags", do: setFlags}, {name: "set_rights", do: setRights}, {name: "filestat", do: filestats},
	{name: "set_size", do: setSize}, {name: "set_times", do: times}, {name: "pread_pwrite", do: preadPwrite}, {name: "pwrite_append", do: pwriteAppend},
	{name: "prestat", do: prestat}, {name: "read_write", do: readWrite}, {name: "vectors", do: vectors}, {name: "readdir", do: readdirs},
	{name: "readdir_lots", do: readdirLots}, {name: "renumber", do: renumber}, {name: "seek_tell", do: seekTell}, {name: "directory_seek", do: directorySeek},
	{name: "dir_fd_failures", do: dirFailures}, {name: "dirfd_not_dir", do: dirfdNotDir}, {name: "create_directory", do: createDirectory},
	{name: "path_filestat", do: pathFilestats}, {name: "symlink_filestat", do: symlinkFilestat}, {name: "path_link", do: links},
	{name: "path_open_flags", do: openFlags}, {name: "path_open_rights", do: openRights}, {name: "path_open_preopen", do: openPreopen},
	{name: "path_open_lots", do: openLots}, {name: "truncation_rights", do: truncationRights}, {name: "readlink", do: readlinks},
	{name: "remove_directory", do: removeDirectory}, {name: "rename", do: renames}, {name: "rename_slashes", do: renameSlashes},
	{name: "symlink", do: symlinks}, {name: "symlink_loop", do: symlinkLoop}, {name: "dangling", do: dangling}, {name: "nofollow", do: nofollow},
	{name: "unlink", do: unlinks}, {name: "dangling_fd", do: danglingFd}, {name: "interesting_paths", do: interesting}, {name: "names", do: names},
	{name: "escape", do: escape}, {name: "poll_clock", do: pollClock}, {name: "poll_stdio", do: pollStdio}, {name: "poll_errors", do: pollErrors},
	{name: "random", do: random}, {name: "yield", do: yield}, {name: "raise", do: raise}, {name: "sock", do: sock}, {name: "faults", do: faults},
	{name: "isatty", do: isatty}, {name: "go_os", do: goOS}, {name: "stdio", do: stdio, ends: true}, {name: "close_preopen", do: closePreopen, ends: true},
	{name: "overwrite_preopen", do: overwritePreopen, ends: true}, {name: "exit", do: exit, ends: true}, {name: "abort", do: abort, ends: true},
	{name: "sink", do: sink, ends: true}, {name: "cat", do: cat, ends: true}, {name: "leave", do: leave, ends: true}, {name: "spin", do: spin, ends: true},
}

func args(uint32) {
	count, size := room(4), room(4)
	want(rawArgsSizesGet(count, size), ok)
	n, bytes := u32(count), u32(size)
	equal(int(n), len(os.Args))
	argv, buf := room(int(4*n)), room(int(bytes))
	want(rawArgsGet(argv, buf), ok)
	total := uint32(0)
	for i := range n {
		p := u32(argv + 4*i)
		equal(p, buf+total)
		equal(string(at(p, len(os.Args[i])+1)), os.Args[i]+"\x00")
		total += uint32(len(os.Args[i]) + 1)
	}
	equal(total, bytes)
	want(rawArgsSizesGet(outside, size), fault)
	want(rawArgsSizesGet(count, outside), fault)
	want(rawArgsGet(outside, buf), fault)
	want(rawArgsGet(argv, outside), fault)
}

func environ(uint32) {
	count, size := room(4), room(4)
	want(rawEnvironSizesGet(count, size), ok)
	n, bytes := u32(count), u32(size)
	equal(int(n), len(os.Environ()))
	argv, buf := room(int(4*n)), room(int(bytes)+1)
	want(rawEnvironGet(argv, buf), ok)
	for i := range n {
		s := os.Environ()[i]
		equal(string(at(u32(argv+4*i), len(s)+1)), s+"\x00")
	}
	want(rawEnvironSizesGet(outside, size), fault)
}

func clockRes(uint32) {
	for id := range uint32(4) {
		out := room(8)
		want(rawClockResGet(id, out), ok)
		yes(u64(out) > 0, "a clock has a resolution")
	}
	want(rawClockResGet(4, room(8)), inval)
	want(rawClockResGet(0, outside), fault)
}

func clockTime(uint32) {
	for id := range uint32(4) {
		first, second := must(clock(id)), must(clock(id))
		yes(first <= second, "a clock does not go back")
		yes(first > 0, "a clock has begun")
	}
	_, e := clock(4)
	want(e, inval)
	want(rawClockTimeGet(0, 0, outside), fault)
	work, wall := must(clock(2)), must(clock(1))
	_, _ = poll(subscription{kind: 0, id: 1, timeout: 5e9})
	yes(must(clock(1))-wall >= 5e9, "what was slept is on the clock")
	yes(must(clock(2))-work < 1e9, "what was slept is no work")
}

func advise(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdAdvise|fdFilestatGet|fdSetSize|fdAllocate, 0, 0))
	want(rawFdFilestatSetSize(fd, 100), ok)
	for advice := range uint32(6) {
		want(rawFdAdvise(fd, 10, 50, advice), ok)
	}
	equal(must(fstat(fd)).size, 100)
	want(rawFdAdvise(fd, 10, 50, 6), inval)
	want(rawFdAdvise(fd, 1<<63, 50, 0), inval)
	want(rawFdAdvise(fd, 1<<62, 1<<62, 0), inval)
	want(rawFdAdvise(99, 0, 0, 0), badf)
	want(rawFdAllocate(fd, 100, 100), ok)
	equal(must(fstat(fd)).size, 200)
	want(rawFdClose(fd), ok)
	fd = must(open(dir, 0, "f", 0, fdRead, 0, 0))
	want(rawFdAdvise(fd, 0, 0, 0), badf, notcapable)
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

func allocate(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdAllocate|fdFilestatGet, 0, 0))
	want(rawFdAllocate(fd, 0, 100), ok)
	equal(must(fstat(fd)).size, 100)
	want(rawFdAllocate(fd, 10, 10), ok)
	equal(must(fstat(fd)).size, 100)
	want(rawFdAllocate(fd, 90, 20), ok)
	equal(must(fstat(fd)).size, 110)
	want(rawFdAllocate(fd, 0, 0), inval)
	want(rawFdAllocate(fd, 1<<63, 1), inval)
	want(rawFdAllocate(fd, 1<<62, 1<<62), fbig)
	want(rawFdAllocate(fd, 0, 1<<50), fbig)
	s, e := pread(fd, 200, 0)
	want(e, badf, notcapable) // it has no right to seek
	equal(s, "")
	want(rawFdClose(fd), ok)
	want(rawFdAllocate(fd, 0, 1), badf)
	want(unlink(dir, "f"), ok)
}

func closing(dir uint32) {
	fd := must(open(dir, 0, "f", creat, 0, 0, 0))
	again := must(open(dir, 0, "f", 0, 0, 0, 0))
	yes(again > fd, "the lowest free number is taken")
	want(rawFdClose(fd), ok)
	want(rawFdClose(fd), badf)
	equal(must(open(dir, 0, "f", 0, 0, 0, 0)), fd)
	want(rawFdClose(fd), ok)
	want(rawFdClose(again), ok)
	want(rawFdClose(1<<31), badf)
	want(unlink(dir, "f"), ok)
}

func syncing(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdWrite|fdSync|fdDatasync, 0, 0))
	want(rawFdSync(fd), ok)
	want(rawFdDatasync(fd), ok)
	want(rawFdFdstatSetRights(fd, fdWrite, 0), ok)
	want(rawFdSync(fd), notcapable)
	want(rawFdDatasync(fd), notcapable)
	want(rawFdClose(fd), ok)
	want(rawFdSync(fd), badf)
	want(rawFdDatasync(fd), badf)
	want(unlink(dir, "f"), ok)
}

func fdstats(dir uint32) {
	s := must(getFdstat(dir))
	equal(s.kind, 3)
	equal(s.flags, 0)
	equal(s.base&(fdSetSize|fdRead|fdWrite|fdSeek), 0)
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite, 0, appendFlag|nonblockFlag|dsyncFlag|rsyncFlag|syncFlag))
	s = must(getFdstat(fd))
	equal(s.kind, 4)
	equal(s.flags, appendFlag|nonblockFlag|dsyncFlag|rsyncFlag|syncFlag)
	equal(s.base, fdRead|fdWrite)
	equal(s.inheriting, 0)
	want(rawFdFdstatGet(fd, outside), fault)
	want(rawFdClose(fd), ok)
	_, e := getFdstat(fd)
	want(e, badf)
	want(unlink(dir, "f"), ok)
}

func setFlags(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdSeek|fdSetFlags, 0, appendFlag))
	equal(must(write(fd, strings.Repeat("a", 100))), 100)
	must(seek(fd, 0, 0))
	equal(must(read(fd, 200)), strings.Repeat("a", 100))
	must(seek(fd, 0, 0))
	equal(must(write(fd, strings.Repeat("b", 100))), 100)
	must(seek(fd, 100, 0))
	equal(must(read(fd, 100)), strings.Repeat("b", 100))
	want(rawFdFdstatSetFlags(fd, 0), ok)
	must(seek(fd, 0, 0))
	equal(must(write(fd, strings.Repeat("c", 100))), 100)
	must(seek(fd, 0, 0))
	equal(must(read(fd, 100)), strings.Repeat("c", 100))
	equal(must(pathStat(dir, 0, "f")).size, 200)
	want(rawFdFdstatSetFlags(fd, nonblockFlag|syncFlag), ok)
	equal(must(getFdstat(fd)).flags, nonblockFlag|syncFlag)
	want(rawFdFdstatSetFlags(fd, 32), inval)
	want(rawFdFdstatSetRights(fd, 0, 0), ok)
	want(rawFdFdstatSetFlags(fd, 0), notcapable)
	want(rawFdClose(fd), ok)
	want(rawFdFdstatSetFlags(fd, 0), badf)
	fd = must(open(dir, 0, "f", 0, fdRead|fdSetFlags, 0, 0))
	want(rawFdFdstatSetFlags(fd, appendFlag), ok)
	_, e := write(fd, "x")
	want(e, badf) // to append is not to be allowed to write
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

func setRights(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdSeek|fdTell, 0, 0))
	equal(must(write(fd, "0123")), 4)
	must(seek(fd, 0, 0))
	equal(must(read(fd, 4)), "0123")
	s := must(getFdstat(fd))
	want(rawFdFdstatSetRights(fd, s.base, s.inheriting), ok)
	want(rawFdFdstatSetRights(fd, s.base&^(fdRead|fdWrite), s.inheriting), ok)
	equal(must(getFdstat(fd)).base, fdSeek|fdTell)
	_, e := read(fd, 4)
	want(e, notcapable)
	_, e = write(fd, "x")
	want(e, notcapable)
	_, e = pread(fd, 4, 0)
	want(e, notcapable)
	_, e = pwrite(fd, "x", 0)
	want(e, notcapable)
	must(seek(fd, 1, 0))
	want(rawFdFdstatSetRights(fd, s.base, s.inheriting), notcapable)
	want(rawFdFdstatSetRights(fd, fdSeek, fdRead), notcapable)
	want(rawFdFdstatSetRights(fd, fdSeek|1<<40, 0), notcapable)
	want(rawFdFdstatSetRights(fd, 0, 0), ok)
	_, e = seek(fd, 0, 0)
	want(e, notcapable)
	_, e = tell(fd)
	want(e, notcapable)
	_, e = fstat(fd)
	want(e, badf, notcapable)
	want(rawFdClose(fd), ok)
	want(rawFdFdstatSetRights(fd, 0, 0), badf)

	// What a folder gives up, nothing that is opened from it has.
	sub := must(open(dir, 0, ".", directory, everything&^(fdWrite|fdAllocate), everything, 0))
	s = must(getFdstat(sub))
	want(rawFdFdstatSetRights(sub, s.base, s.inheriting&^fdWrite), ok)
	_, e = open(sub, 0, "f", 0, fdRead|fdWrite, 0, 0)
	want(e, notcapable)
	want(rawFdClose(must(open(sub, 0, "f", 0, fdRead, 0, 0))), ok)
	for _, x := range []struct {
		right uint64
		call  func() errno
	}{
		{pathCreateDirectory, func() errno { return mkdir(sub, "d") }},
		{pathCreateFile, func() errno { _, e := open(sub, 0, "g", creat, 0, 0, 0); return e }},
		{pathLinkSource, func() errno { return link(sub, 0, "f", dir, "l") }},
		{pathLinkTarget, func() errno { return link(dir, 0, "f", sub, "l") }},
		{pathOpenRight, func() errno { _, e := open(sub, 0, "f", 0, 0, 0, 0); return e }},
		{fdReaddir, func() errno { _, _, e := readdir(sub, 100, 0); return e }},
		{pathReadlink, func() errno { _, e := readlink(sub, "l", 10); return e }},
		{pathRenameSource, func() errno { return rename(sub, "f", dir, "h") }},
		{pathRenameTarget, func() errno { return rename(dir, "f", sub, "h") }},
		{pathFilestatGet, func() errno { _, e := pathStat(sub, 0, "f"); return e }},
		{pathSetSize, func() errno { _, e := open(sub, 0, "f", trunc, 0, 0, 0); return e }},
		{pathSetTimes, func() errno { return setTimes(sub, 0, "f", 1, 1, 5) }},
		{fdFilestatGet, func() errno { _, e := fstat(sub); return e }},
		{fdSetTimes, func() errno { return rawFdFilestatSetTimes(sub, 1, 1, 5) }},
		{pathSymlink, func() errno { return symlink("x", sub, "s") }},
		{pathRemoveDirectory, func() errno { return rmdir(sub, "d") }},
		{pathUnlinkFile, func() errno { return unlink(sub, "f") }},
		{fdSetFlags, func() errno { return rawFdFdstatSetFlags(sub, 0) }},
		{fdSync, func() errno { return rawFdSync(sub) }},
		{fdDatasync, func() errno { return rawFdDatasync(sub) }},
		{fdAdvise, func() errno { return rawFdAdvise(sub, 0, 0, 0) }},
	} {
		s = must(getFdstat(sub))
		want(rawFdFdstatSetRights(sub, s.base&^x.right, s.inheriting), ok)
		if e := x.call(); e != notcapable {
			wrong("without right %x: errno %d", x.right, e)
		}
	}
	want(rawFdClose(sub), ok)
	want(unlink(dir, "f"), ok)
}

func filestats(dir uint32) {
	s := must(fstat(dir))
	equal(s.kind, 3)
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdFilestatGet, 0, 0))
	must(write(fd, "hello"))
	s = must(fstat(fd))
	equal(s, must(pathStat(dir, 0, "f")))
	equal(s.kind, 4)
	equal(s.size, 5)
	equal(s.links, 1)
	yes(s.ino != must(fstat(dir)).ino, "files have their own numbers")
	equal(s.dev, must(fstat(dir)).dev)
	want(rawFdFilestatGet(fd, outside), fault)
	want(rawFdClose(fd), ok)
	_, e := fstat(fd)
	want(e, badf)
	want(unlink(dir, "f"), ok)
}

func setSize(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdSeek|fdFilestatGet|fdSetSize, 0, 0))
	must(write(fd, "hello"))
	want(rawFdFilestatSetSize(fd, 2), ok)
	equal(must(pread(fd, 10, 0)), "he")
	want(rawFdFilestatSetSize(fd, 6), ok)
	equal(must(pread(fd, 10, 0)), "he\x00\x00\x00\x00")
	want(rawFdFilestatSetSize(fd, 1<<63), inval)
	want(rawFdFilestatSetSize(fd, 1<<50), fbig)
	equal(must(fstat(fd)).size, 6)
	want(rawFdClose(fd), ok)
	want(rawFdFilestatSetSize(fd, 0), badf)
	fd = must(open(dir, 0, "f", 0, fdRead, 0, 0))
	want(rawFdFilestatSetSize(fd, 0), badf, inval, notcapable)
	want(rawFdClose(fd), ok)
	want(rawFdClose(must(open(dir, 0, "f", trunc, fdWrite, 0, 0))), ok)
	equal(must(pathStat(dir, 0, "f")).size, 0)
	want(unlink(dir, "f"), ok)
}

func times(dir uint32) {
	const atimFlag, atimNow, mtimFlag, mtimNow = 1, 2, 4, 8
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdFilestatGet|fdSetTimes, 0, 0))
	old := must(fstat(fd))
	want(rawFdFilestatSetTimes(fd, 1_500_000_000_000_000_001, 1_600_000_000_000_000_002, mtimFlag), ok)
	s := must(fstat(fd))
	equal(s.mtim, 1_600_000_000_000_000_002)
	equal(s.atim, old.atim)
	want(rawFdFilestatSetTimes(fd, 1_500_000_000_000_000_001, 7, atimFlag), ok)
	s = must(fstat(fd))
	equal(s.atim, 1_500_000_000_000_000_001)
	equal(s.mtim, 1_600_000_000_000_000_002)
	before := must(clock(0))
	want(rawFdFilestatSetTimes(fd, 1, 1, atimNow|mtimNow), ok)
	s = must(fstat(fd))
	yes(s.atim >= before && s.mtim >= before, "now is now")
	want(rawFdFilestatSetTimes(fd, 1, 1, atimFlag|atimNow), inval)
	want(rawFdFilestatSetTimes(fd, 1, 1, mtimFlag|mtimNow), inval)
	want(rawFdFilestatSetTimes(fd, 1, 1, 16), inval)
	equal(must(fstat(fd)).mtim, s.mtim)
	want(rawFdClose(fd), ok)
	want(rawFdFilestatSetTimes(fd, 1, 1, 5), badf)
	want(setTimes(dir, 0, "f", 11, 12, atimFlag|mtimFlag), ok)
	s = must(pathStat(dir, 0, "f"))
	equal(s.atim, 11)
	equal(s.mtim, 12)
	want(setTimes(dir, 0, "f", 1, 1, atimFlag|atimNow), inval)
	want(setTimes(dir, 2, "f", 1, 1, atimFlag), inval)
	want(setTimes(dir, 0, "g", 1, 1, atimFlag), noent)
	want(unlink(dir, "f"), ok)
}

func preadPwrite(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdSeek|fdTell, 0, 0))
	equal(must(pwrite(fd, "0123", 0)), 4)
	equal(must(pread(fd, 10, 0)), "0123")
	equal(must(pread(fd, 10, 2)), "23")
	equal(must(pread(fd, 10, 4)), "")
	equal(must(pread(fd, 10, 1<<40)), "")
	equal(must(pwrite(fd, "ab", 2)), 2)
	equal(must(pread(fd, 10, 0)), "01ab")
	equal(must(tell(fd)), 0)
	equal(must(pwrite(fd, "z", 6)), 1)
	equal(must(pread(fd, 10, 3)), "b\x00\x00z")
	_, e := pread(fd, 1, 1<<63)
	want(e, inval)
	_, e = pwrite(fd, "x", 1<<63)
	want(e, inval)
	_, e = pwrite(fd, "x", 1<<62)
	want(e, fbig)
	equal(must(pwrite(fd, "", 1<<20)), 0)
	want(rawFdFdstatSetRights(fd, fdRead|fdWrite, 0), ok)
	_, e = pread(fd, 1, 0)
	want(e, notcapable)
	_, e = pwrite(fd, "x", 0)
	want(e, notcapable)
	want(rawFdClose(fd), ok)
	_, e = pread(fd, 1, 0)
	want(e, badf)
	_, e = pread(0, 1, 0)
	want(e, spipe)
	_, e = pwrite(1, "x", 0)
	want(e, spipe)
	equal(must(pathStat(dir, 0, "f")).size, 7)
	want(unlink(dir, "f"), ok)
}

func pwriteAppend(dir uint32) {
	fd := must(open(dir, 0, "f", creat|trunc, fdWrite|fdSeek|fdTell, 0, appendFlag))
	equal(must(write(fd, "ab")), 2)
	equal(must(seek(fd, 0, 0)), 0)
	equal(must(write(fd, "cd")), 2)
	equal(must(seek(fd, 0, 1)), 4)
	equal(must(pwrite(fd, "xyz", 0)), 3)
	equal(must(tell(fd)), 4)
	equal(must(seek(fd, 0, 2)), 4)
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

func prestat(dir uint32) {
	out := room(8)
	want(rawFdPrestatGet(3, out), ok)
	equal(u32(out), 0)
	n := u32(out + 4)
	buf := room(int(n) + 1)
	want(rawFdPrestatDirName(3, buf, 0), nametoolong, inval)
	want(rawFdPrestatDirName(3, buf, n), ok)
	want(rawFdPrestatDirName(3, buf, n+1), ok)
	equal(at(buf, int(n)+1)[n], 0)
	want(rawFdPrestatDirName(3, outside, n), fault)
	want(rawFdPrestatGet(3, outside), fault)
	for _, fd := range []uint32{0, 1, 2, dir, 99} {
		want(rawFdPrestatGet(fd, out), badf)
		want(rawFdPrestatDirName(fd, buf, n), badf)
	}
}

func readWrite(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead, 0, 0))
	_, e := write(fd, "x")
	want(e, badf, notcapable)
	want(rawFdClose(fd), ok)
	fd = must(open(dir, 0, "f", 0, fdWrite, 0, 0))
	equal(must(write(fd, "hello")), 5)
	_, e = read(fd, 1)
	want(e, badf, notcapable)
	want(rawFdClose(fd), ok)
	_, e = write(fd, "x")
	want(e, badf)
	_, e = read(fd, 1)
	want(e, badf)
	fd = must(open(dir, 0, "f", 0, fdRead|fdWrite|fdSeek, 0, 0))
	equal(must(read(fd, 3)), "hel")
	equal(must(write(fd, "p")), 1)
	equal(must(read(fd, 3)), "o")
	equal(must(read(fd, 3)), "")
	want(rawFdClose(fd), ok)
	// What is written is there at once, for every descriptor.
	a := must(open(dir, 0, "f", trunc, fdWrite, 0, 0))
	b := must(open(dir, 0, "f", 0, fdRead, 0, 0))
	equal(must(read(b, 9)), "")
	must(write(a, "now"))
	equal(must(read(b, 9)), "now")
	want(rawFdClose(a), ok)
	want(rawFdClose(b), ok)
	want(unlink(dir, "f"), ok)
}

func vectors(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdSeek, 0, 0))
	equal(must(write(fd, "ab", "", "cde")), 5)
	must(seek(fd, 0, 0))
	equal(must(read(fd, 1, 0, 2, 9)), "abcde")
	equal(must(write(fd)), 0)
	equal(must(read(fd)), "")
	out := room(4)
	list := room(8 * 1025)
	want(rawFdWrite(fd, list, 1024, out), ok)
	want(rawFdWrite(fd, list, 1025, out), inval)
	want(rawFdWrite(fd, list, 1<<31, out), inval)
	want(rawFdWrite(fd, outside, 1, out), fault)
	want(rawFdWrite(fd, list, 1, outside), fault)
	binary.LittleEndian.PutUint32(at(list, 8), outside)
	binary.LittleEndian.PutUint32(at(list, 8)[4:], 100)
	want(rawFdWrite(fd, list, 1, out), fault)
	want(rawFdRead(fd, list, 1, out), fault)
	want(rawFdPread(fd, list, 1, 0, out), fault)
	want(rawFdPwrite(fd, list, 1, 0, out), fault)
	binary.LittleEndian.PutUint32(at(list, 8), 0)
	binary.LittleEndian.PutUint32(at(list, 8)[4:], 1<<31)
	want(rawFdWrite(fd, list, 1, out), fault, inval)
	// A list with a wrong buffer does nothing of what stands before it.
	p, _ := text("zz")
	binary.LittleEndian.PutUint32(at(list, 16), p)
	binary.LittleEndian.PutUint32(at(list, 16)[4:], 2)
	binary.LittleEndian.PutUint32(at(list, 16)[8:], outside)
	binary.LittleEndian.PutUint32(at(list, 16)[12:], 100)
	want(rawFdWrite(fd, list, 2, out), fault)
	equal(must(pathStat(dir, 0, "f")).size, 5)
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

func readdirs(dir uint32) {
	self := must(fstat(dir))
	all, end, e := readdir(dir, 256, 0)
	want(e, ok)
	yes(end, "an empty folder fits")
	equal(len(all), 2)
	equal(all[0].name+" "+all[1].name, ". ..")
	equal(all[0].kind, 3)
	equal(all[1].kind, 3)
	equal(all[0].ino, self.ino)
	equal(all[1].ino, must(fstat(root)).ino)
	file(dir, "file", "")
	want(mkdir(dir, "dir"), ok)
	want(symlink("file", dir, "link"), ok)
	all, end, e = readdir(dir, 256, 0)
	want(e, ok)
	yes(end, "it fits")
	equal(len(all), 5)
	equal(all[2].name+" "+all[3].name+" "+all[4].name, "dir file link")
	equal(all[2].kind, 3)
	equal(all[3].kind, 4)
	equal(all[4].kind, 7)
	equal(all[3].ino, must(pathStat(dir, 0, "file")).ino)
	rest, _, e := readdir(dir, 256, all[2].next)
	want(e, ok)
	equal(len(rest), 2)
	equal(rest[0], all[3])
	// What is removed while the list is read does not move what comes behind it; a list that is begun anew knows.
	want(rmdir(dir, "dir"), ok)
	rest, _, _ = readdir(dir, 256, all[2].next)
	equal(len(rest), 2)
	all, _, _ = readdir(dir, 256, 0)
	equal(len(all), 4)
	rest, end, e = readdir(dir, 256, 1000)
	want(e, ok)
	yes(end && len(rest) == 0, "behind the end there is nothing")
	// Too little room: the part that fits, and the buffer is full.
	out, buf := room(4), room(26)
	want(rawFdReaddir(dir, buf, 26, 0, out), ok)
	equal(u32(out), 26)
	want(rawFdReaddir(dir, buf, 0, 0, out), ok)
	equal(u32(out), 0)
	want(rawFdReaddir(dir, outside, 100, 0, out), fault)
	want(rawFdReaddir(dir, buf, 26, 0, outside), fault)
	fd := must(open(dir, 0, "file", 0, fdRead, 0, 0))
	_, _, e = readdir(fd, 100, 0)
	want(e, notdir, badf)
	want(rawFdClose(fd), ok)
	_, _, e = readdir(fd, 100, 0)
	want(e, badf)
	want(unlink(dir, "file"), ok)
	want(unlink(dir, "link"), ok)
}

func readdirLots(dir uint32) {
	for i := range 1000 {
		file(dir, fmt.Sprintf("file.%d", i), "")
	}
	seen := map[string]int{}
	cookie := uint64(0)
	for {
		all, end, e := readdir(dir, 256, cookie)
		want(e, ok)
		for _, x := range all {
			seen[x.name]++
			cookie = x.next
		}
		if end || len(all) == 0 {
			break
		}
	}
	equal(len(seen), 1002)
	for i := range 1000 {
		equal(seen[fmt.Sprintf("file.%d", i)], 1)
		want(unlink(dir, fmt.Sprintf("file.%d", i)), ok)
	}
}

func renumber(dir uint32) {
	from := must(open(dir, 0, "a", creat, fdRead|fdWrite, 0, appendFlag))
	to := must(open(dir, 0, "b", creat, fdRead|fdWrite|fdSeek, 0, 0))
	was := must(getFdstat(from))
	must(write(from, "x"))
	want(rawFdRenumber(from, to), ok)
	want(rawFdClose(from), badf)
	equal(must(getFdstat(to)), was)
	must(write(to, "y"))
	equal(must(pathStat(dir, 0, "a")).size, 2)
	equal(must(pathStat(dir, 0, "b")).size, 0)
	want(rawFdRenumber(to, from), badf)
	want(rawFdRenumber(from, to), badf)
	want(rawFdRenumber(to, 1<<30), badf)
	want(rawFdRenumber(to, to), ok)
	want(rawFdClose(to), ok)
	want(unlink(dir, "a"), ok)
	want(unlink(dir, "b"), ok)
}

func seekTell(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdSeek|fdTell, 0, 0))
	equal(must(tell(fd)), 0)
	must(write(fd, strings.Repeat("x", 100)))
	equal(must(tell(fd)), 100)
	equal(must(seek(fd, -50, 1)), 50)
	equal(must(seek(fd, 0, 1)), 50)
	equal(must(seek(fd, 10, 0)), 10)
	equal(must(seek(fd, -1, 2)), 99)
	equal(must(seek(fd, 100, 2)), 200)
	equal(must(pathStat(dir, 0, "f")).size, 100)
	must(write(fd, "y"))
	equal(must(pathStat(dir, 0, "f")).size, 201)
	_, e := seek(fd, -2000, 1)
	want(e, inval)
	_, e = seek(fd, -1, 0)
	want(e, inval)
	_, e = seek(fd, 0, 3)
	want(e, inval)
	equal(must(tell(fd)), 201)
	want(rawFdSeek(fd, 0, 0, outside), fault)
	want(rawFdTell(fd, outside), fault)
	want(rawFdFdstatSetRights(fd, fdTell, 0), ok)
	equal(must(seek(fd, 0, 1)), 0)
	_, e = seek(fd, 1, 0)
	want(e, notcapable)
	want(rawFdClose(fd), ok)
	_, e = seek(fd, 0, 0)
	want(e, badf)
	_, e = tell(fd)
	want(e, badf)
	_, e = seek(0, 0, 1)
	want(e, spipe)
	_, e = tell(1)
	want(e, spipe)
	want(unlink(dir, "f"), ok)
}

func directorySeek(dir uint32) {
	want(mkdir(dir, "d"), ok)
	fd := must(open(dir, 0, "d", directory, fdSeek, 0, 0))
	_, e := seek(fd, 0, 1)
	want(e, badf)
	equal(must(getFdstat(fd)).base&fdSeek, 0)
	want(rawFdClose(fd), ok)
	want(rmdir(dir, "d"), ok)
}

func dirFailures(dir uint32) {
	_, e := read(dir, 9)
	want(e, isdir)
	_, e = pread(dir, 9, 0)
	want(e, isdir)
	_, e = write(dir, "x")
	want(e, isdir)
	_, e = pwrite(dir, "x", 0)
	want(e, isdir)
	for whence := range uint32(3) {
		_, e = seek(dir, 0, whence)
		want(e, badf)
	}
	_, e = tell(dir)
	want(e, badf)
	want(rawFdAllocate(dir, 0, 1), badf)
	want(rawFdFilestatSetSize(dir, 0), badf)
}

func dirfdNotDir(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite, 0, 0))
	_, e := open(fd, 0, "foo", creat, 0, 0, 0)
	want(e, notdir)
	for _, e := range []errno{
		mkdir(fd, "d"), rmdir(fd, "d"), unlink(fd, "d"), rename(fd, "a", dir, "b"), rename(dir, "f", fd, "b"), link(fd, 0, "a", dir, "b"), link(dir, 0, "f", fd, "b"),
		symlink("x", fd, "y"), setTimes(fd, 0, "x", 1, 1, 1),
	} {
		want(e, notdir)
	}
	_, e = pathStat(fd, 0, "x")
	want(e, notdir)
	_, e = readlink(fd, "x", 9)
	want(e, notdir)
	want(rawFdClose(fd), ok)
	_, e = open(fd, 0, "foo", creat, 0, 0, 0)
	want(e, badf)
	want(unlink(dir, "f"), ok)
}

func createDirectory(dir uint32) {
	want(mkdir(dir, "d"), ok)
	want(mkdir(dir, "d"), exist)
	want(mkdir(dir, "d/e/"), ok)
	want(mkdir(dir, "x/y"), noent)
	want(mkdir(dir, "."), exist)
	want(mkdir(dir, ""), noent)
	file(dir, "f", "")
	want(mkdir(dir, "f"), exist)
	want(mkdir(dir, "f/x"), notdir)
	want(symlink("nowhere", dir, "l"), ok)
	want(mkdir(dir, "l"), exist)
	want(mkdir(99, "d"), badf)
	want(rawPathCreateDirectory(dir, outside, 100), fault)
	want(unlink(dir, "l"), ok)
	want(unlink(dir, "f"), ok)
	want(rmdir(dir, "d/e"), ok)
	want(rmdir(dir, "d"), ok)
}

func pathFilestats(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite, 0, appendFlag|syncFlag))
	equal(must(getFdstat(fd)).flags, appendFlag|syncFlag)
	s := must(pathStat(dir, 0, "f"))
	equal(s.size, 0)
	want(setTimes(dir, 0, "f", 0, s.mtim-100, 4), ok)
	equal(must(pathStat(dir, 0, "f")).mtim, s.mtim-100)
	want(setTimes(dir, 0, "f", 0, s.mtim, 4|8), inval)
	want(setTimes(dir, 0, "f", 0, 0, 1|2), inval)
	equal(must(pathStat(dir, 0, "f")).mtim, s.mtim-100)
	_, e := pathStat(dir, 2, "f")
	want(e, inval)
	_, e = pathStat(dir, 0, "g")
	want(e, noent)
	_, e = pathStat(dir, 0, "f/")
	want(e, notdir)
	_, e = pathStat(99, 0, "f")
	want(e, badf)
	p, n := text("f")
	want(rawPathFilestatGet(dir, 0, p, n, outside), fault)
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

func symlinkFilestat(dir uint32) {
	file(dir, "f", "")
	want(symlink("f", dir, "l"), ok)
	l, f := must(pathStat(dir, 0, "l")), must(pathStat(dir, 0, "f"))
	equal(l.kind, 7)
	equal(l.size, 1)
	want(setTimes(dir, 0, "l", 0, l.mtim-200, 4), ok)
	equal(must(pathStat(dir, 0, "l")).mtim, l.mtim-200)
	equal(must(pathStat(dir, 0, "f")).mtim, f.mtim)
	equal(must(pathStat(dir, 1, "l")), must(pathStat(dir, 0, "f")))
	want(setTimes(dir, 1, "l", 0, 77, 4), ok)
	equal(must(pathStat(dir, 0, "f")).mtim, 77)
	want(unlink(dir, "l"), ok)
	want(unlink(dir, "f"), ok)
}

func links(dir uint32) {
	file(dir, "f", "hello")
	want(link(dir, 0, "f", dir, "l"), ok)
	equal(must(pathStat(dir, 0, "l")), must(pathStat(dir, 0, "f")))
	equal(must(pathStat(dir, 0, "l")).links, 2)
	a := must(open(dir, 0, "f", 0, fdRead|fdFilestatGet, 0, 0))
	b := must(open(dir, 0, "l", 0, fdRead|fdFilestatGet, 0, 0))
	equal(must(getFdstat(a)), must(getFdstat(b)))
	equal(must(fstat(a)), must(fstat(b)))
	want(rawFdClose(a), ok)
	want(rawFdClose(b), ok)
	want(unlink(dir, "l"), ok)
	equal(must(pathStat(dir, 0, "f")).links, 1)

	want(mkdir(dir, "d"), ok)
	sub := must(open(dir, 0, "d", directory, everything&^(fdWrite|fdAllocate), everything, 0))
	want(link(dir, 0, "f", sub, "l"), ok)
	equal(must(pathStat(sub, 0, "l")).ino, must(pathStat(dir, 0, "f")).ino)
	want(unlink(sub, "l"), ok)
	want(rawFdClose(sub), ok)

	want(link(dir, 0, "f", dir, "f"), exist)
	want(link(dir, 0, "f", dir, "d"), exist)
	want(link(dir, 0, "d", dir, "e"), perm)
	want(link(dir, 0, "f", dir, "l/"), noent)
	want(link(dir, 0, "x", dir, "l"), noent)
	want(link(dir, 2, "f", dir, "l"), inval)
	want(rmdir(dir, "d"), ok)

	want(symlink("target", dir, "s"), ok)
	want(link(dir, 0, "s", dir, "l"), ok)
	equal(must(readlink(dir, "l", 20)), "target")
	want(unlink(dir, "l"), ok)
	want(link(dir, 0, "f", dir, "s"), exist)
	want(link(dir, 1, "s", dir, "l"), noent, inval)
	want(unlink(dir, "s"), ok)
	want(symlink("s", dir, "s"), ok)
	want(link(dir, 0, "s", dir, "l"), ok)
	want(unlink(dir, "l"), ok)
	want(unlink(dir, "s"), ok)
	want(unlink(dir, "f"), ok)
}

func openFlags(dir uint32) {
	_, e := open(dir, 0, "f", 0, 0, 0, 0)
	want(e, noent)
	_, e = open(dir, 0, "f", excl, 0, 0, 0)
	want(e, noent)
	_, e = open(dir, 0, "f", trunc, 0, 0, 0)
	want(e, noent)
	want(rawFdClose(must(open(dir, 0, "f", creat|excl, fdWrite, 0, 0))), ok)
	_, e = open(dir, 0, "f", creat|excl, fdWrite, 0, 0)
	want(e, exist)
	want(rawFdClose(must(open(dir, 0, "f", creat, fdWrite, 0, 0))), ok)
	_, e = open(dir, 0, "f", directory, 0, 0, 0)
	want(e, notdir)
	_, e = open(dir, 0, "g", creat|directory, 0, 0, 0)
	want(e, inval)
	_, e = open(dir, 0, "f", 16, 0, 0, 0)
	want(e, inval)
	_, e = open(dir, 2, "f", 0, 0, 0, 0)
	want(e, inval)
	_, e = open(dir, 0, "f", 0, 0, 0, 32)
	want(e, inval)
	fd := must(open(dir, 0, "f", 0, fdRead|fdWrite, 0, nonblockFlag))
	equal(must(getFdstat(fd)).flags, nonblockFlag)
	want(rawFdClose(fd), ok)
	file(dir, "f", "hello")
	fd = must(open(dir, 0, "f", trunc, fdRead, 0, 0))
	equal(must(read(fd, 9)), "")
	want(rawFdClose(fd), ok)
	want(symlink("g", dir, "l"), ok)
	_, e = open(dir, 0, "l", creat, fdWrite, 0, 0)
	want(e, loop)
	_, e = open(dir, 1, "l", creat|excl, fdWrite, 0, 0)
	want(e, exist)
	want(rawFdClose(must(open(dir, 1, "l", creat, fdWrite, 0, 0))), ok)
	equal(must(pathStat(dir, 0, "g")).kind, 4)
	want(mkdir(dir, "d"), ok)
	_, e = open(dir, 0, "d", creat, 0, 0, 0)
	want(e, isdir)
	_, e = open(dir, 0, "d", 0, fdRead|fdWrite, 0, 0)
	want(e, isdir)
	_, e = open(dir, 0, "d", trunc, 0, 0, 0)
	want(e, isdir)
	_, e = open(dir, 0, "x/", creat, 0, 0, 0)
	want(e, isdir, noent)
	p, n := text("f")
	want(rawPathOpen(dir, 0, p, n, 0, 0, 0, 0, outside), fault)
	want(rawPathOpen(dir, 0, outside, n+20, 0, 0, 0, 0, room(4)), fault)
	for _, name := range []string{"f", "g", "l"} {
		want(unlink(dir, name), ok)
	}
	want(rmdir(dir, "d"), ok)
}

func openRights(dir uint32) {
	file(dir, "f", "x")
	sub := must(open(dir, 0, ".", directory, everything&^(fdWrite|fdAllocate), fdRead|fdSeek, 0))
	equal(must(getFdstat(sub)).inheriting, fdRead|fdSeek)
	_, e := open(sub, 0, "f", 0, fdRead|fdTell, 0, 0)
	want(e, notcapable)
	_, e = open(sub, 0, "f", 0, fdRead, fdTell, 0)
	want(e, notcapable)
	_, e = open(sub, 0, "f", 0, fdRead, 0, syncFlag)
	want(e, notcapable)
	_, e = open(sub, 0, "f", 0, fdRead, 0, dsyncFlag)
	want(e, notcapable)
	fd := must(open(sub, 0, "f", 0, fdRead|fdSeek, 0, 0))
	equal(must(getFdstat(fd)).base, fdRead|fdSeek)
	want(rawFdClose(fd), ok)
	want(rawFdClose(sub), ok)
	// A right that a kind of file cannot have is not given.
	fd = must(open(dir, 0, "f", 0, fdRead|pathOpenRight, fdRead, 0))
	equal(must(getFdstat(fd)), fdstat{4, 0, fdRead, 0})
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

func openPreopen(uint32) {
	s := must(getFdstat(3))
	for _, right := range []uint64{
		pathCreateDirectory, pathCreateFile, pathLinkSource, pathLinkTarget, pathOpenRight, fdReaddir, pathReadlink, pathRenameSource, pathRenameTarget,
		pathSymlink, pathRemoveDirectory, pathUnlinkFile, pathFilestatGet, pathSetTimes, fdFilestatGet, fdSetTimes,
	} {
		yes(s.base&right != 0, fmt.Sprintf("base right %x", right))
		yes(s.inheriting&right != 0, fmt.Sprintf("inheriting right %x", right))
	}
	for _, right := range []uint64{
		fdDatasync, fdRead, fdSeek, fdSetFlags, fdSync, fdTell, fdWrite, fdAdvise, fdAllocate, fdFilestatGet, fdSetSize, fdSetTimes, pollReadwrite,
	} {
		yes(s.inheriting&right != 0, fmt.Sprintf("inheriting right %x", right))
	}
	equal(s.base&fdSetSize, 0)
	want(rawFdClose(must(open(3, 0, ".", 0, s.base, s.inheriting, 0))), ok)
	want(rawFdClose(must(open(3, 0, ".", 0, 0, 0, 0))), ok)
	want(rawFdClose(must(open(3, 0, ".", directory, 0, 0, 0))), ok)
	want(rawFdClose(must(open(3, 0, ".", directory, fdRead, 0, 0))), ok)
	_, e := open(3, 0, ".", directory, fdRead|fdWrite, 0, 0)
	want(e, isdir)
}

func openLots(dir uint32) {
	file(dir, "f", "")
	var all []uint32
	for {
		fd, e := open(dir, 0, "f", 0, fdRead, 0, 0)
		if e != ok {
			want(e, mfile)
			break
		}
		yes(!slices.Contains(all, fd), "each has its own number")
		if all = append(all, fd); len(all) > 10_000 {
			wrong("there is no bound")
			break
		}
	}
	yes(len(all) >= 50, "some can be open")
	for _, fd := range all {
		want(rawFdClose(fd), ok)
	}
	for range 5000 {
		want(rawFdClose(must(open(dir, 0, "f", 0, fdRead, 0, 0))), ok)
	}
	want(unlink(dir, "f"), ok)
}

func truncationRights(dir uint32) {
	file(dir, "f", "")
	s := must(getFdstat(dir))
	equal(s.base&fdSetSize, 0)
	sub := must(open(dir, 0, ".", directory, s.base, s.inheriting, 0))
	want(rawFdClose(must(open(sub, 0, "f", trunc, 0, 0, 0))), ok)
	want(rawFdFdstatSetRights(sub, s.base, s.inheriting&^fdSetSize), ok)
	want(rawFdClose(must(open(sub, 0, "f", trunc, 0, 0, 0))), ok)
	want(rawFdFdstatSetRights(sub, s.base&^pathSetSize, s.inheriting&^fdSetSize), ok)
	equal(must(getFdstat(sub)).base&pathSetSize, 0)
	_, e := open(sub, 0, "f", trunc, 0, 0, 0)
	want(e, notcapable)
	want(rawFdClose(sub), ok)
	want(unlink(dir, "f"), ok)
}

func readlinks(dir uint32) {
	want(symlink("target", dir, "l"), ok)
	equal(must(readlink(dir, "l", 10)), "target")
	equal(must(readlink(dir, "l", 6)), "target")
	equal(must(readlink(dir, "l", 4)), "targ")
	equal(must(readlink(dir, "l", 0)), "")
	_, e := readlink(dir, "x", 9)
	want(e, noent)
	file(dir, "f", "")
	_, e = readlink(dir, "f", 9)
	want(e, inval)
	_, e = readlink(dir, "l/", 9)
	want(e, noent, notdir)
	p, n := text("l")
	want(rawPathReadlink(dir, p, n, outside, 20, room(4)), fault)
	want(rawPathReadlink(dir, p, n, room(20), 20, outside), fault)
	want(unlink(dir, "f"), ok)
	want(unlink(dir, "l"), ok)
}

func removeDirectory(dir uint32) {
	want(mkdir(dir, "d"), ok)
	want(rmdir(dir, "d"), ok)
	want(mkdir(dir, "d"), ok)
	want(rmdir(dir, "d/"), ok)
	file(dir, "f", "")
	want(rmdir(dir, "f"), notdir)
	want(rmdir(dir, "f/"), notdir)
	want(rmdir(dir, "x"), noent)
	want(mkdir(dir, "d"), ok)
	file(dir, "d/f", "")
	want(rmdir(dir, "d"), notempty)
	want(unlink(dir, "d/f"), ok)
	want(mkdir(dir, "d/e"), ok)
	want(rmdir(dir, "d"), notempty)
	want(rmdir(dir, "d/e"), ok)
	want(symlink("d", dir, "l"), ok)
	want(rmdir(dir, "l"), notdir)
	want(rmdir(dir, "l/"), notdir)
	want(rmdir(dir, "d/."), inval)
	fd := must(open(dir, 0, "d", directory, everything&^(fdWrite|fdAllocate), everything, 0))
	want(rmdir(dir, "d"), ok)
	// A folder without a name: nothing can be made in it any more.
	want(mkdir(fd, "x"), noent)
	_, e := open(fd, 0, "x", creat, 0, 0, 0)
	want(e, noent)
	want(rawFdClose(fd), ok)
	want(unlink(dir, "l"), ok)
	want(unlink(dir, "f"), ok)
}

func renames(dir uint32) {
	gone := func(name string) {
		_, e := pathStat(dir, 0, name)
		want(e, noent)
	}
	want(mkdir(dir, "s"), ok)
	want(rename(dir, "s", dir, "t"), ok)
	gone("s")
	want(mkdir(dir, "s"), ok)
	want(rename(dir, "s", dir, "t"), ok)
	gone("s")
	want(mkdir(dir, "s"), ok)
	file(dir, "t/file", "")
	want(rename(dir, "s", dir, "t"), notempty)
	want(rename(dir, "s", dir, "t/file"), notdir)
	want(rename(dir, "t", dir, "t/u"), inval)
	want(unlink(dir, "t/file"), ok)
	want(rmdir(dir, "t"), ok)
	want(rmdir(dir, "s"), ok)
	file(dir, "s", "1")
	want(rename(dir, "s", dir, "t"), ok)
	gone("s")
	file(dir, "s", "22")
	want(rename(dir, "s", dir, "t"), ok)
	gone("s")
	equal(must(pathStat(dir, 0, "t")).size, 2)
	want(rename(dir, "t", dir, "t"), ok)
	want(mkdir(dir, "d"), ok)
	want(rename(dir, "t", dir, "d"), isdir)
	want(rename(dir, "t", dir, "x/y"), noent)
	want(rename(dir, "x", dir, "y"), noent)
	want(symlink("t", dir, "l"), ok)
	want(rename(dir, "l", dir, "m"), ok)
	equal(must(readlink(dir, "m", 9)), "t")
	sub := must(open(dir, 0, "d", directory, everything&^(fdWrite|fdAllocate), everything, 0))
	fd := must(open(dir, 0, "t", 0, fdRead, 0, 0))
	want(rename(dir, "t", sub, "t"), ok)
	equal(must(read(fd, 9)), "22")
	want(rawFdClose(fd), ok)
	want(unlink(sub, "t"), ok)
	want(rawFdClose(sub), ok)
	want(rename(99, "a", dir, "b"), badf)
	want(rename(dir, "a", 99, "b"), badf)
	want(unlink(dir, "m"), ok)
	want(rmdir(dir, "d"), ok)
}

func renameSlashes(dir uint32) {
	want(mkdir(dir, "s"), ok)
	want(rename(dir, "s/", dir, "t"), ok)
	want(rename(dir, "t", dir, "s/"), ok)
	want(rename(dir, "s/", dir, "t/"), ok)
	want(rename(dir, "t", dir, "s"), ok)
	want(rmdir(dir, "s"), ok)
	file(dir, "s", "")
	want(rename(dir, "s/", dir, "t"), notdir)
	want(rename(dir, "s", dir, "t/"), notdir)
	want(rename(dir, "s/", dir, "t/"), notdir)
	want(unlink(dir, "s"), ok)
}

func symlinks(dir uint32) {
	file(dir, "t", "x")
	want(symlink("t", dir, "l"), ok)
	want(rawFdClose(must(open(dir, 1, "l", 0, 0, 0, 0))), ok)
	want(symlink("x", dir, "l"), exist)
	want(symlink("x", dir, "t"), exist)
	want(symlink("x", dir, "t/"), exist, notdir)
	want(symlink("x", dir, "n/"), noent)
	want(symlink("", dir, "n"), noent)
	want(symlink("x", dir, "a/b"), noent)
	want(symlink("/", dir, "n"), perm)
	want(symlink("/etc/passwd", dir, "n"), perm)
	want(mkdir(dir, "d"), ok)
	want(symlink("x", dir, "d"), exist)
	want(symlink("x", dir, "d/"), exist)
	want(symlink("d", dir, "m"), ok)
	want(rawFdClose(must(open(dir, 1, "m", directory, 0, 0, 0))), ok)
	file(dir, "m/f", "")
	want(unlink(dir, "d/f"), ok)
	want(symlink(strings.Repeat("a", 4095), dir, "n"), ok)
	want(unlink(dir, "n"), ok)
	want(symlink(strings.Repeat("a", 4096), dir, "n"), nametoolong)
	for _, name := range []string{"l", "t", "m"} {
		want(unlink(dir, name), ok)
	}
	want(rmdir(dir, "d"), ok)
}

func symlinkLoop(dir uint32) {
	want(symlink("l", dir, "l"), ok)
	for follow := range uint32(2) {
		_, e := open(dir, follow, "l", 0, 0, 0, 0)
		want(e, loop)
	}
	_, e := pathStat(dir, 1, "l")
	want(e, loop)
	_, e = open(dir, 0, "l/x", creat, 0, 0, 0)
	want(e, loop)
	want(unlink(dir, "l"), ok)
	file(dir, "0", "end")
	for i := range 41 {
		want(symlink(fmt.Sprint(i), dir, fmt.Sprint(i+1)), ok)
	}
	want(rawFdClose(must(open(dir, 1, "40", 0, 0, 0, 0))), ok)
	_, e = open(dir, 1, "41", 0, 0, 0, 0)
	want(e, loop)
	for i := range 42 {
		want(unlink(dir, fmt.Sprint(i)), ok)
	}
}

func dangling(dir uint32) {
	want(symlink("target", dir, "l"), ok)
	_, e := open(dir, 0, "l", directory, 0, 0, 0)
	want(e, notdir, loop)
	_, e = open(dir, 0, "l", 0, 0, 0, 0)
	want(e, loop)
	_, e = open(dir, 1, "l", 0, 0, 0, 0)
	want(e, noent)
	_, e = pathStat(dir, 1, "l")
	want(e, noent)
	must(pathStat(dir, 0, "l"))
	want(unlink(dir, "l"), ok)
}

func nofollow(dir uint32) {
	want(mkdir(dir, "t"), ok)
	want(symlink("t", dir, "l"), ok)
	_, e := open(dir, 0, "l", directory, 0, 0, 0)
	want(e, loop, notdir)
	_, e = open(dir, 0, "l", 0, 0, 0, 0)
	want(e, loop)
	want(rawFdClose(must(open(dir, 1, "l", directory, 0, 0, 0))), ok)
	want(rawFdClose(must(open(dir, 0, "l/", directory, 0, 0, 0))), ok)
	want(rmdir(dir, "t"), ok)
	file(dir, "t", "")
	_, e = open(dir, 0, "l", directory, 0, 0, 0)
	want(e, loop, notdir)
	_, e = open(dir, 0, "l", 0, 0, 0, 0)
	want(e, loop)
	_, e = open(dir, 1, "l", directory, 0, 0, 0)
	want(e, notdir)
	want(unlink(dir, "t"), ok)
	want(unlink(dir, "l"), ok)
}

func unlinks(dir uint32) {
	want(mkdir(dir, "d"), ok)
	want(unlink(dir, "d"), isdir)
	want(unlink(dir, "d/"), isdir)
	want(rmdir(dir, "d"), ok)
	file(dir, "f", "")
	want(unlink(dir, "f/"), notdir)
	want(unlink(dir, "f"), ok)
	want(unlink(dir, "f"), noent)
	want(unlink(dir, "."), isdir)
	want(unlink(99, "f"), badf)
}

func danglingFd(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdSeek|fdFilestatGet, 0, 0))
	must(write(fd, "hello"))
	want(unlink(dir, "f"), ok)
	must(seek(fd, 0, 0))
	equal(must(read(fd, 9)), "hello")
	must(write(fd, "!"))
	equal(must(fstat(fd)).size, 6)
	equal(must(fstat(fd)).links, 0)
	file(dir, "f", "")
	equal(must(pathStat(dir, 0, "f")).size, 0)
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
	want(mkdir(dir, "d"), ok)
	fd = must(open(dir, 0, "d", directory, fdFilestatGet, 0, 0))
	want(rmdir(dir, "d"), ok)
	equal(must(fstat(fd)).kind, 3)
	want(rawFdClose(fd), ok)
}

func interesting(dir uint32) {
	want(mkdir(dir, "d"), ok)
	want(mkdir(dir, "d/n"), ok)
	file(dir, "d/n/f", "")
	fails := func(path string, any ...errno) {
		_, e := open(dir, 0, path, 0, 0, 0, 0)
		if !slices.Contains(any, e) {
			wrong("open %q: errno %d, want %v", path, e, any)
		}
	}
	works := func(path string) {
		want(rawFdClose(must(open(dir, 0, path, 0, 0, 0, 0))), ok)
	}
	fails("/d/n/f", perm)
	works("d/.//n/../../d/n/../n///./f")
	fails("d/n/f\x00", inval)
	fails("d/n/f/", notdir)
	fails("d/n/f///", notdir)
	fails("d/n/f/.", notdir)
	fails("d/n/f/..", notdir)
	works("d/n/")
	works("d/n///")
	works("./././d/../d/n/.")
	fails("d/n/../../../d/n/f", perm)
	fails("..", perm)
	fails("../x", perm)
	fails("d/../../x", perm)
	fails("", noent)
	fails("d/x/../n", noent)
	want(unlink(dir, "d/n/f"), ok)
	want(rmdir(dir, "d/n"), ok)
	want(rmdir(dir, "d"), ok)
}

func names(dir uint32) {
	long := strings.Repeat("n", 255)
	file(dir, long, "")
	want(unlink(dir, long), ok)
	_, e := open(dir, 0, long+"n", creat, 0, 0, 0)
	want(e, nametoolong)
	_, e = pathStat(dir, 0, strings.Repeat("./", 2047)+".")
	want(e, ok)
	_, e = pathStat(dir, 0, strings.Repeat("./", 2048))
	want(e, nametoolong)
	p := room(8)
	want(rawPathUnlinkFile(dir, p, 1<<31), nametoolong)
	// New names are text.
	_, e = open(dir, 0, "\xff", creat, 0, 0, 0)
	want(e, ilseq)
	want(mkdir(dir, "a\xc3"), ilseq)
	want(symlink("x", dir, "\xff"), ilseq)
	want(symlink("\xff", dir, "x"), ilseq)
	want(mkdir(dir, "日本 é"), ok)
	want(rmdir(dir, "日本 é"), ok)
	// Folders do not lie too deep.
	at, depth := "", 0
	for ; depth < 300; depth++ {
		if e := mkdir(dir, at+"d"); e != ok {
			want(e, nametoolong)
			break
		}
		at += "d/"
	}
	yes(depth > 200 && depth < 256, fmt.Sprintf("%d folders", depth))
	for ; depth > 0; depth-- {
		want(rmdir(dir, at), ok)
		at = at[:len(at)-2]
	}
}

func escape(dir uint32) {
	want(mkdir(dir, "d"), ok)
	for _, target := range []string{"..", "../..", "d/../..", "./../x", "d/../../../etc/passwd"} {
		want(symlink(target, dir, "l"), ok)
		_, e := open(dir, 1, "l", 0, 0, 0, 0)
		want(e, perm)
		_, e = open(dir, 0, "l/x", creat, fdWrite, 0, 0)
		want(e, perm)
		_, e = pathStat(dir, 1, "l")
		want(e, perm)
		want(mkdir(dir, "l/x"), perm)
		want(rename(dir, "l/x", dir, "y"), perm)
		want(link(dir, 1, "l", dir, "y"), perm)
		want(unlink(dir, "l"), ok)
	}
	want(rename(dir, "d", dir, "../d"), perm)
	want(link(dir, 0, "d", dir, "../d"), perm)
	want(symlink("x", dir, "../d"), perm)
	// A folder that moves takes its bound with it.
	want(mkdir(dir, "d/e"), ok)
	fd := must(open(dir, 0, "d/e", directory, everything&^(fdWrite|fdAllocate), everything, 0))
	want(rename(dir, "d/e", dir, "e"), ok)
	_, e := open(fd, 0, "..", 0, 0, 0, 0)
	want(e, perm)
	want(rawFdClose(fd), ok)
	want(rmdir(dir, "e"), ok)
	want(rmdir(dir, "d"), ok)
}

func pollClock(uint32) {
	for id := range uint32(2) {
		before := must(clock(id))
		all := must(poll(subscription{user: 7, kind: 0, id: id, timeout: 3600e9}))
		equal(len(all), 1)
		equal(all[0], event{7, 0, 0, 0, 0})
		passed := must(clock(id)) - before
		yes(passed >= 3600e9 && passed < 3601e9, fmt.Sprintf("an hour is %d ns", passed))
		all = must(poll(subscription{user: 8, kind: 0, id: id, timeout: must(clock(id)) + 5e9, flags: 1}))
		equal(len(all), 1)
		all = must(poll(subscription{user: 9, kind: 0, id: id, timeout: 1, flags: 1}))
		equal(all[0].user, 9)
	}
	all := must(poll(subscription{user: 1, id: 1, timeout: 9e9}, subscription{user: 2, id: 1, timeout: 1e9}, subscription{user: 3, id: 0, timeout: 1e9}))
	yes(len(all) >= 1 && all[0].user == 2, "the first is told first")
	all = must(poll(subscription{user: 1, id: 2, timeout: 1}))
	equal(all[0].err, notsup)
	all = must(poll(subscription{user: 1, id: 9, timeout: 1}))
	equal(all[0].err, inval)
	all = must(poll(subscription{user: 1, id: 1, timeout: 1, flags: 2}))
	equal(all[0].err, inval)
}

func pollStdio(dir uint32) {
	all := must(poll(subscription{user: 1, kind: 0, id: 1, timeout: 200e6}, subscription{user: 2, kind: 1, id: 0}))
	yes(len(all) >= 1, "one of them comes")
	for _, x := range all {
		equal(x.err, 0)
	}
	all = must(poll(subscription{user: 1, kind: 2, id: 1}, subscription{user: 2, kind: 2, id: 2}, subscription{user: 3, kind: 0, id: 1, timeout: 200e6}))
	equal(len(all), 2)
	equal(all[0].user+all[1].user, 3)
	file(dir, "f", "hello")
	fd := must(open(dir, 0, "f", 0, fdRead|fdWrite|pollReadwrite, 0, 0))
	all = must(poll(subscription{user: 4, kind: 1, id: fd}, subscription{user: 5, kind: 2, id: fd}))
	equal(len(all), 2)
	equal(all[0], event{4, 0, 1, 5, 0})
	equal(all[1], event{5, 0, 2, 0, 0})
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

func pollErrors(dir uint32) {
	want(rawPollOneoff(room(8), room(8), 0, room(4)), inval)
	want(rawPollOneoff(outside, room(32), 1, room(4)), fault)
	want(rawPollOneoff(room(48), outside, 1, room(4)), fault)
	want(rawPollOneoff(room(48), room(32), 1, outside), fault)
	want(rawPollOneoff(room(48), room(32), 1<<31, room(4)), inval)
	_, e := poll(subscription{kind: 3})
	want(e, inval)
	all := must(poll(subscription{user: 1, kind: 1, id: 99}, subscription{user: 2, kind: 0, id: 1, timeout: 1e9}))
	equal(len(all), 1)
	equal(all[0], event{1, badf, 1, 0, 0})
	fd := must(open(dir, 0, "f", creat, fdRead, 0, 0))
	all = must(poll(subscription{user: 1, kind: 1, id: fd}))
	yes(all[0].err == badf || all[0].err == notcapable, "it has no right to be waited for")
	want(rawFdClose(fd), ok)
	fd = must(open(dir, 0, "f", 0, fdRead|pollReadwrite, 0, 0))
	all = must(poll(subscription{user: 1, kind: 2, id: fd}))
	equal(all[0].err, badf)
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

func random(uint32) {
	want(rawRandomGet(room(8), 0), ok)
	a, b := room(100), room(100)
	want(rawRandomGet(a, 99), ok)
	want(rawRandomGet(b, 99), ok)
	yes(string(at(a, 99)) != string(at(b, 99)), "chance does not repeat itself")
	equal(at(a, 100)[99], 0)
	big := room(1 << 19)
	want(rawRandomGet(big, 1<<19), ok)
	zeros := 0
	for _, x := range at(big, 1<<19) {
		if x == 0 {
			zeros++
		}
	}
	yes(zeros > 1500 && zeros < 2600, "every byte is as likely")
	want(rawRandomGet(outside, 100), fault)
}

func yield(uint32) { want(rawSchedYield(), ok) }

func raise(uint32) {
	for _, signal := range []uint32{0, 16, 17, 22, 27} {
		want(rawProcRaise(signal), ok)
	}
	want(rawProcRaise(18), notsup)
	want(rawProcRaise(31), inval)
	want(rawProcRaise(1<<31), inval)
}

func sock(dir uint32) {
	out := room(8)
	for _, fd := range []uint32{0, dir} {
		want(rawSockAccept(fd, 0, out), notsock)
		want(rawSockRecv(fd, out, 0, 0, out, out), notsock)
		want(rawSockSend(fd, out, 0, 0, out), notsock)
		want(rawSockShutdown(fd, 1), notsock)
		want(rawSockShutdown(fd, 9), inval)
	}
	want(rawSockAccept(99, 0, out), badf)
	want(rawSockRecv(99, out, 0, 0, out, out), badf)
	want(rawSockSend(99, out, 0, 0, out), badf)
	want(rawSockShutdown(99, 1), badf)
}

// faults calls with paths that lie outside of the memory.
func faults(dir uint32) {
	p, n := text("x")
	for _, e := range []errno{
		rawPathCreateDirectory(dir, outside, 100), rawPathRemoveDirectory(dir, outside, 100), rawPathUnlinkFile(dir, outside, 100),
		rawPathFilestatGet(dir, 0, outside, 100, room(64)), rawPathFilestatSetTimes(dir, 0, outside, 100, 0, 0, 0), rawPathLink(dir, 0, outside, 100, dir, p, n),
		rawPathLink(dir, 0, p, n, dir, outside, 100), rawPathRename(dir, outside, 100, dir, p, n), rawPathRename(dir, p, n, dir, outside, 100),
		rawPathSymlink(outside, 100, dir, p, n), rawPathSymlink(p, n, dir, outside, 100), rawPathReadlink(dir, outside, 100, p, n, room(4)),
		rawPathOpen(dir, 0, outside, 100, 0, 0, 0, 0, room(4)), rawRandomGet(1, 1<<31), rawFdReaddir(dir, 1, 1<<31, 0, room(4)),
	} {
		want(e, fault)
	}
}

func isatty(dir uint32) {
	fd := must(open(dir, 0, "f", creat, fdRead|fdWrite|fdSeek|fdTell, 0, 0))
	for _, fd := range []uint32{0, 1, 2, fd} {
		s := must(getFdstat(fd))
		yes(s.kind != 2 || s.base&(fdSeek|fdTell) != 0, "nothing is a terminal")
	}
	want(rawFdClose(fd), ok)
	want(unlink(dir, "f"), ok)
}

// goOS does with Go's own functions what programs do.
func goOS(uint32) {
	no := func(err error) {
		if err != nil {
			wrong("%v", err)
		}
	}
	name := "/go_os.scratch"
	no(os.MkdirAll(name+"/a/b/c", 0o755))
	no(os.WriteFile(name+"/a/b/c/f", []byte("hello"), 0o644))
	no(os.Symlink("b/c/f", name+"/a/l"))
	no(os.Link(name+"/a/b/c/f", name+"/a/h"))
	text, err := os.ReadFile(name + "/a/l")
	no(err)
	equal(string(text), "hello")
	no(os.Rename(name+"/a/b", name+"/a/z"))
	no(os.Truncate(name+"/a/h", 4))
	no(os.Chtimes(name+"/a/h", time.Unix(1, 0), time.Unix(2, 0)))
	info, err := os.Stat(name + "/a/z/c/f")
	no(err)
	equal(info.Size(), 4)
	yes(info.ModTime().Equal(time.Unix(2, 0)), "the time is the other name's")
	var seen []string
	no(filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		seen = append(seen, strings.TrimPrefix(path, name)+d.Type().String()[:1])
		return err
	}))
	equal(strings.Join(seen, " "), "d /ad /a/h- /a/lL /a/zd /a/z/cd /a/z/c/f-")
	f, err := os.CreateTemp(name, "tmp")
	no(err)
	_, err = f.WriteString("0123456789")
	no(err)
	_, err = f.Seek(-3, io.SeekEnd)
	no(err)
	rest, err := io.ReadAll(f)
	no(err)
	equal(string(rest), "789")
	no(f.Close())
	_, err = os.Open(name + "/none")
	yes(errors.Is(err, fs.ErrNotExist), "what is not there does not exist")
	yes(errors.Is(os.Mkdir(name, 0o755), fs.ErrExist), "what is there exists")
	began := time.Now()
	time.Sleep(time.Hour)
	yes(time.Since(began) >= time.Hour && time.Since(began) < time.Hour+time.Minute, "an hour is an hour")
	all, err := os.ReadDir(name)
	no(err)
	for _, x := range all {
		no(os.RemoveAll(name + "/" + x.Name()))
	}
}

func stdio(dir uint32) {
	for fd := range uint32(3) {
		to := must(open(dir, 0, "f", creat, 0, 0, 0))
		want(rawFdRenumber(fd, to), ok)
		must(getFdstat(to))
		_, e := getFdstat(fd)
		want(e, badf)
		want(unlink(dir, "f"), ok)
	}
}

func closePreopen(dir uint32) {
	want(rawFdClose(3), ok)
	equal(must(getFdstat(dir)).kind, 3)
	_, e := getFdstat(3)
	want(e, badf)
	want(rawFdPrestatGet(3, room(8)), badf)
}

func overwritePreopen(dir uint32) {
	was := must(fstat(dir))
	want(rawFdRenumber(dir, 3), ok)
	is := must(fstat(3))
	equal(is, was)
	_, e := getFdstat(dir)
	want(e, badf)
	want(rawFdPrestatGet(3, room(8)), badf)
}

func exit(uint32) {
	var code uint32
	_, _ = fmt.Sscan(os.Args[2], &code)
	rawProcExit(code)
}

func abort(uint32) { rawProcRaise(6) }

// sink writes more than anybody wants to read.
func sink(uint32) {
	line := strings.Repeat("x", 1023) + "\n"
	for {
		if _, e := write(1, line); e != ok {
			rawProcExit(e)
		}
	}
}

// cat copies stdin to stdout.
func cat(uint32) {
	for {
		s, e := read(0, 4000, 96)
		if e != ok {
			rawProcExit(e)
		}
		if s == "" {
			rawProcExit(0)
		}
		must(write(1, s))
	}
}

// filter is cat as Go does it: without waiting in a read or write, but in a poll.
func filter() {
	if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
		rawProcExit(1)
	}
	// And as C does it.
	want(rawFdFdstatSetFlags(1, 0), ok)
	must(write(1, strings.Repeat("y", 100_000)))
	rawProcExit(0)
}

// leave leaves a file and fails.
func leave(dir uint32) {
	file(dir, "left", "behind\n")
	rawProcExit(3)
}

func spin(uint32) {
	for {
	}
}
