//go:build wasip1

package main

import (
	"fmt"
	"slices"
	"strings"
)

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
	// Removing an entry while the list is read does not move the later entries; a new list lacks the entry.
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
