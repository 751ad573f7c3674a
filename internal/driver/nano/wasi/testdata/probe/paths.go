//go:build wasip1

package main

import (
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
