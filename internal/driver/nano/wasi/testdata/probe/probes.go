//go:build wasip1

package main

import (
	"encoding/binary"
	"os"
	"strings"
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
	yes(must(clock(2))-work < 1e9, "what was slept is not work")
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

	// Files opened from a folder lack the rights that the folder gave up.
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
	// Writes take effect at once, for every descriptor.
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
