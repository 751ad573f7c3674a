// What is read from an open file, folder or stream, and written to it, and where.
#include "probes.h"

static u64 at;

static u32 read_at(u32 fd, u32 n, u64 offset) {
	vector v = {buffer, n};
	used = 99;
	memset(buffer, '.', sizeof buffer);
	return fd_pread(fd, &v, 1, offset, &used);
}

static u32 write_at(u32 fd, const char *text, u64 offset) {
	vector v = {text, length_of(text)};
	used = 99;
	return fd_pwrite(fd, &v, 1, offset, &used);
}

static u32 allocating(u32 fd) { return fd_allocate(fd, 0, 1); }
void probe_fd_allocate(u32 dir) {
	u32 f = opened(dir, "f", CREAT, OF_FILES, 0);
	want("100 bytes", fd_allocate(f, 0, 100), SUCCESS);
	equal("100 bytes: size", size_of(f), 100);
	want("within", fd_allocate(f, 10, 10), SUCCESS);
	equal("within: size", size_of(f), 100);
	want("over the end", fd_allocate(f, 90, 20), SUCCESS);
	equal("over the end: size", size_of(f), 110);
	want("behind the end", fd_allocate(f, 200, 10), SUCCESS);
	equal("behind the end: size", size_of(f), 210);
	want("what was there", write_at(f, "abc", 0), SUCCESS);
	want("over it", fd_allocate(f, 0, 10), SUCCESS);
	want("is still there", read_at(f, 4, 0), SUCCESS);
	equal("and then zero", buffer[3], 0);
	same("is still there", buffer, "abc");
	want("nothing", fd_allocate(f, 0, 0), INVAL);
	want("a negative offset", fd_allocate(f, R(63), 1), INVAL);
	either("a negative length", fd_allocate(f, 0, R(63)), INVAL, FBIG);
	either("more than a file can hold", fd_allocate(f, R(63) - 2, 10), FBIG, INVAL);
	u32 blind = opened(dir, "f", 0, FD_WRITE, 0);
	either("without the right", fd_allocate(blind, 0, 1), BADF, NOTCAPABLE);
	either("a folder", fd_allocate(dir, 0, 1), BADF, ISDIR);
	either("a stream", fd_allocate(1, 0, 1), BADF, SPIPE);
	nowhere(allocating);
	closed(f), closed(blind), gone(dir, "f");
}

static u32 preading(u32 fd) { return read_at(fd, 1, 0); }
void probe_fd_pread(u32 dir) {
	file(dir, "f", "0123456789");
	u32 f = opened(dir, "f", 0, FD_READ | FD_SEEK | FD_TELL, 0);
	want("in the middle", read_at(f, 3, 4), SUCCESS);
	equal("in the middle: how many", used, 3);
	same("in the middle", buffer, "456.");
	want("the place", fd_tell(f, &at), SUCCESS);
	equal("the place is as before", at, 0);
	want("over the end", read_at(f, 9, 8), SUCCESS);
	equal("over the end: how many", used, 2);
	want("behind the end", read_at(f, 9, 100), SUCCESS);
	equal("behind the end: how many", used, 0);
	vector v[3] = {{buffer, 2}, {buffer + 9, 0}, {buffer + 2, 3}};
	memset(buffer, '.', 10);
	want("two parts", fd_pread(f, v, 3, 1, &used), SUCCESS);
	equal("two parts: how many", used, 5);
	same("two parts", buffer, "12345.");
	want("no parts", fd_pread(f, v, 0, 0, &used), SUCCESS);
	equal("no parts: how many", used, 0);
	want("a negative offset", read_at(f, 1, R(63)), INVAL);
	u32 blind = opened(dir, "f", 0, FD_WRITE | FD_SEEK, 0), stuck = opened(dir, "f", 0, FD_READ, 0);
	either("without the right to read", read_at(blind, 1, 0), BADF, NOTCAPABLE);
	either("without the right to seek", read_at(stuck, 1, 0), BADF, NOTCAPABLE);
	either("a folder", read_at(dir, 1, 0), ISDIR, BADF);
	want("a stream", read_at(0, 1, 0), SPIPE);
	v[0].at = OUTSIDE, v[0].length = 99;
	want("a part outside of the memory", fd_pread(f, v, 1, 0, &used), FAULT);
	want("the parts outside of the memory", fd_pread(f, OUTSIDE, 9, 0, &used), FAULT);
	v[0].at = buffer;
	want("the number outside of the memory", fd_pread(f, v, 1, 0, OUTSIDE), FAULT);
	nowhere(preading);
	closed(f), closed(blind), closed(stuck), gone(dir, "f");
}

static u32 pwriting(u32 fd) { return write_at(fd, "x", 0); }
void probe_fd_pwrite(u32 dir) {
	u32 f = opened(dir, "f", CREAT, FD_WRITE | FD_SEEK | FD_TELL | FD_FILESTAT_GET, 0);
	want("at the beginning", write_at(f, "0123", 0), SUCCESS);
	equal("at the beginning: how many", used, 4);
	want("in the middle", write_at(f, "ab", 1), SUCCESS);
	want("behind the end", write_at(f, "z", 6), SUCCESS);
	equal("behind the end: size", size_of(f), 7);
	want("the place", fd_tell(f, &at), SUCCESS);
	equal("the place is as before", at, 0);
	vector v[2] = {{"X", 1}, {"Y", 1}};
	want("two parts", fd_pwrite(f, v, 2, 4, &used), SUCCESS);
	equal("two parts: how many", used, 2);
	content(dir, "f", "0ab3XYz");
	u32 a = opened(dir, "f", 0, FD_WRITE | FD_SEEK | FD_TELL, APPEND);
	want("where it appends", write_at(a, "A", 0), SUCCESS);
	want("where it appends: the place", fd_tell(a, &at), SUCCESS);
	equal("where it appends: the place is as before", at, 0);
	content(dir, "f", "Aab3XYz");
	want("a negative offset", write_at(f, "x", R(63)), INVAL);
	u32 blind = opened(dir, "f", 0, FD_READ | FD_SEEK, 0);
	either("without the right", write_at(blind, "x", 0), BADF, NOTCAPABLE);
	either("a folder", write_at(dir, "x", 0), ISDIR, BADF);
	want("a stream", write_at(1, "x", 0), SPIPE);
	v[0].at = OUTSIDE, v[0].length = 99;
	want("a part outside of the memory", fd_pwrite(f, v, 1, 0, &used), FAULT);
	v[0].at = "ok", v[1].at = OUTSIDE, v[0].length = 2, v[1].length = 99;
	want("the second part outside of the memory", fd_pwrite(f, v, 2, 0, &used), FAULT);
	content(dir, "f", "Aab3XYz");
	nowhere(pwriting);
	closed(f), closed(a), closed(blind), gone(dir, "f");
}

static u32 reading(u32 fd) { return read_some(fd, 1); }
void probe_fd_read(u32 dir) {
	file(dir, "f", "0123456789");
	u32 f = opened(dir, "f", 0, FD_READ | FD_SEEK | FD_TELL, 0);
	want("the beginning", read_some(f, 3), SUCCESS);
	equal("the beginning: how many", used, 3);
	same("the beginning", buffer, "012.");
	vector v[3] = {{buffer, 2}, {buffer + 9, 0}, {buffer + 2, 3}};
	memset(buffer, '.', 10);
	want("two parts", fd_read(f, v, 3, &used), SUCCESS);
	equal("two parts: how many", used, 5);
	same("two parts", buffer, "34567.");
	want("the place", fd_tell(f, &at), SUCCESS);
	equal("the place", at, 8);
	want("over the end", read_some(f, 10), SUCCESS);
	equal("over the end: how many", used, 2);
	want("at the end", read_some(f, 10), SUCCESS);
	equal("at the end: how many", used, 0);
	want("no room", read_some(f, 0), SUCCESS);
	want("no parts", fd_read(f, v, 0, &used), SUCCESS);
	equal("no parts: how many", used, 0);
	want("too many parts", fd_read(f, buffer, 1025, &used), INVAL);
	u32 w = opened(dir, "f", 0, FD_WRITE, APPEND);
	want("it grows", written(w, "!"), SUCCESS);
	want("what has come", read_some(f, 10), SUCCESS);
	same("what has come", buffer, "!.");
	either("without the right", read_some(w, 1), BADF, NOTCAPABLE);
	either("a folder", read_some(dir, 1), ISDIR, BADF);
	either("an output", read_some(1, 1), BADF, NOTCAPABLE);
	want("from its beginning", fd_seek(f, 0, SET, &at), SUCCESS);
	v[1].at = OUTSIDE, v[1].length = 99;
	want("a part outside of the memory", fd_read(f, v, 2, &used), FAULT);
	want("nothing was read", fd_tell(f, &at), SUCCESS);
	equal("nothing was read", at, 0);
	want("the parts outside of the memory", fd_read(f, OUTSIDE, 9, &used), FAULT);
	want("the number outside of the memory", fd_read(f, v, 1, OUTSIDE), FAULT);
	equal("nothing was read then either", fd_tell(f, &at) + at, 0);
	nowhere(reading);
	closed(f), closed(w), gone(dir, "f");
	if (argument_count < 3) return;
	want("the input", read_some(0, 4095), SUCCESS);
	buffer[used] = 0;
	print((char *)buffer);
	want("the end of the input", read_some(0, 10), SUCCESS);
	equal("the end of the input: how many", used, 0);
}

// list reads a folder with a buffer of some size and returns how many entries there are. It wants each name once.
static u32 list(u32 fd, u32 size, u32 *dots) {
	u64 cookie = 0;
	u32 count = 0;
	for (;;) {
		want("a part", fd_readdir(fd, buffer, size, cookie, &used), SUCCESS);
		holds("a part is no more than there is room", used <= size);
		u32 i = 0;
		while (i + sizeof(dirent) <= used) {
			dirent d;
			memcpy(&d, buffer + i, sizeof d);
			if (i + sizeof d + d.length > used) break;
			if (buffer[i + sizeof d] == '.') ++*dots;
			cookie = d.next, i += sizeof d + d.length, count++;
		}
		if (used < size) return count;
		if (!i) return ~0u; // it does not go on
	}
}

static u32 listing(u32 fd) { return fd_readdir(fd, buffer, 256, 0, &used); }
void probe_fd_readdir(u32 dir) {
	u32 dots = 0;
	equal("an empty folder", list(dir, 4096, &dots), 2);
	equal("an empty folder: itself and the one above", dots, 2);
	file(dir, "f", ""), folder(dir, "d"), linked(dir, "l", "nowhere");
	want("some", fd_readdir(dir, buffer, sizeof buffer, 0, &used), SUCCESS);
	u64 second = 0;
	for (u32 i = 0, n = 0; i < used; n++) {
		dirent d;
		memcpy(&d, buffer + i, sizeof d);
		char name = (char)buffer[i + sizeof d];
		u8 type = name == 'f' ? REGULAR_FILE : name == 'l' ? SYMBOLIC_LINK : DIRECTORY;
		equal("an entry: type", d.type, type);
		equal("an entry: length", d.length, name == '.' && n == 1 ? 2 : 1);
		char path[2] = {name, 0};
		if (name != '.' || d.length == 1) equal("an entry: inode", d.inode, stat_of(dir, 0, path).inode);
		if (n == 3) second = d.next;
		i += sizeof d + d.length;
	}
	want("the rest", fd_readdir(dir, buffer, sizeof buffer, second, &used), SUCCESS);
	equal("the rest: one entry", used, sizeof(dirent) + 1);
	want("behind the end", fd_readdir(dir, buffer, sizeof buffer, 1000, &used), SUCCESS);
	equal("behind the end: nothing", used, 0);
	want("little room", fd_readdir(dir, buffer, 10, 0, &used), SUCCESS);
	equal("little room is filled", used, 10);
	want("no room", fd_readdir(dir, buffer, 0, 0, &used), SUCCESS);
	equal("no room: nothing", used, 0);
	gone(dir, "f"), gone(dir, "l"), gone_folder(dir, "d");
	char name[] = "entry.000";
	for (u32 i = 0; i < 300; i++) {
		name[6] = (char)('0' + i / 100), name[7] = (char)('0' + i / 10 % 10), name[8] = (char)('0' + i % 10);
		file(dir, name, "");
	}
	dots = 0;
	equal("many, by and by", list(dir, 256, &dots), 302);
	equal("many, at once", list(dir, 4096, &dots), 302);
	for (u32 i = 0; i < 300; i++) {
		name[6] = (char)('0' + i / 100), name[7] = (char)('0' + i / 10 % 10), name[8] = (char)('0' + i % 10);
		gone(dir, name);
	}
	file(dir, "f", "");
	u32 f = opened(dir, "f", 0, FD_READ | FD_READDIR, 0), blind = opened(dir, ".", DIR, PATH_OPEN, 0);
	either("a file", fd_readdir(f, buffer, 256, 0, &used), NOTDIR, BADF);
	either("without the right", fd_readdir(blind, buffer, 256, 0, &used), BADF, NOTCAPABLE);
	either("a stream", fd_readdir(0, buffer, 256, 0, &used), NOTDIR, BADF);
	want("outside of the memory", fd_readdir(dir, OUTSIDE, 256, 0, &used), FAULT);
	want("the number outside of the memory", fd_readdir(dir, buffer, 256, 0, OUTSIDE), FAULT);
	nowhere(listing);
	closed(f), closed(blind), gone(dir, "f");
}

static u32 seeking(u32 fd) { return fd_seek(fd, 0, SET, &at); }
void probe_fd_seek(u32 dir) {
	file(dir, "f", "0123456789");
	u32 f = opened(dir, "f", 0, FD_READ | FD_WRITE | FD_SEEK | FD_TELL | FD_FILESTAT_GET, 0);
	static const struct { const char *what; i64 offset; u32 whence; u64 at; } seeks[] = {
		{"from the beginning", 4, SET, 4}, {"from where it is", 3, CUR, 7}, {"back", -2, CUR, 5}, {"from the end", -1, END, 9}, {"the end", 0, END, 10},
		{"where it is", 0, CUR, 10}, {"behind the end", 90, CUR, 100}, {"behind the end by far", 1LL << 40, SET, 1ULL << 40}, {"the beginning", 0, SET, 0},
	};
	for (u32 i = 0; i < sizeof seeks / sizeof *seeks; i++) {
		at = 99;
		want(seeks[i].what, fd_seek(f, seeks[i].offset, seeks[i].whence, &at), SUCCESS);
		equal(seeks[i].what, at, seeks[i].at);
	}
	equal("the size is as before", size_of(f), 10);
	want("a place", fd_seek(f, 4, SET, &at), SUCCESS);
	want("before the beginning", fd_seek(f, -1, SET, &at), INVAL);
	want("before the beginning, from where it is", fd_seek(f, -5, CUR, &at), INVAL);
	want("before the beginning, from the end", fd_seek(f, -11, END, &at), INVAL);
	want("whence that is none", fd_seek(f, 0, 3, &at), INVAL);
	want("it stays", fd_tell(f, &at), SUCCESS);
	equal("it stays", at, 4);
	want("it reads there", read_some(f, 2), SUCCESS);
	same("it reads there", buffer, "45.");
	u32 told = opened(dir, "f", 0, FD_READ | FD_TELL, 0);
	want("where it is, with the right to tell", fd_seek(told, 0, CUR, &at), SUCCESS);
	either("without the right", fd_seek(told, 1, SET, &at), BADF, NOTCAPABLE);
	either("a folder", fd_seek(dir, 0, SET, &at), BADF, ISDIR);
	for (u32 fd = 0; fd < 3; fd++) want("a stream", fd_seek(fd, 0, CUR, &at), SPIPE);
	want("outside of the memory", fd_seek(f, 0, SET, OUTSIDE), FAULT);
	nowhere(seeking);
	closed(f), closed(told), gone(dir, "f");
}

static u32 locating(u32 fd) { return fd_tell(fd, &at); }
void probe_fd_tell(u32 dir) {
	u32 f = opened(dir, "f", CREAT, FD_READ | FD_WRITE | FD_SEEK | FD_TELL, 0);
	equal("the beginning", fd_tell(f, &at) + at, 0);
	want("it is written", written(f, "12345"), SUCCESS);
	want("behind that", fd_tell(f, &at), SUCCESS);
	equal("behind that", at, 5);
	want("it is sought", fd_seek(f, 2, SET, &at), SUCCESS);
	want("there", fd_tell(f, &at), SUCCESS);
	equal("there", at, 2);
	want("it is read", read_some(f, 2), SUCCESS);
	want("behind that too", fd_tell(f, &at), SUCCESS);
	equal("behind that too", at, 4);
	u32 blind = opened(dir, "f", 0, FD_READ, 0);
	either("without the right", fd_tell(blind, &at), BADF, NOTCAPABLE);
	either("a folder", fd_tell(dir, &at), BADF, ISDIR);
	for (u32 fd = 0; fd < 3; fd++) want("a stream", fd_tell(fd, &at), SPIPE);
	want("outside of the memory", fd_tell(f, OUTSIDE), FAULT);
	nowhere(locating);
	closed(f), closed(blind), gone(dir, "f");
}

static u32 writing(u32 fd) {
	vector v = {"x", 1};
	return fd_write(fd, &v, 1, &used);
}
void probe_fd_write(u32 dir) {
	u32 f = opened(dir, "f", CREAT, FD_WRITE | FD_SEEK | FD_FILESTAT_GET, 0);
	want("some", written(f, "0123"), SUCCESS);
	vector v[3] = {{"a", 1}, {"", 0}, {"bc", 2}};
	want("two parts", fd_write(f, v, 3, &used), SUCCESS);
	equal("two parts: how many", used, 3);
	want("no parts", fd_write(f, v, 0, &used), SUCCESS);
	equal("no parts: how many", used, 0);
	want("in the middle", fd_seek(f, 1, SET, &at), SUCCESS);
	want("over what is there", written(f, "X"), SUCCESS);
	content(dir, "f", "0X23abc");
	want("behind the end", fd_seek(f, 9, SET, &at), SUCCESS);
	want("behind the end", written(f, "!"), SUCCESS);
	equal("behind the end: size", size_of(f), 10);
	u32 a = opened(dir, "f", 0, FD_WRITE, APPEND), blind = opened(dir, "f", 0, FD_READ, 0);
	want("it appends", written(a, "A"), SUCCESS);
	equal("it appends: size", size_of(f), 11);
	either("without the right", writing(blind), BADF, NOTCAPABLE);
	either("a folder", writing(dir), ISDIR, BADF);
	either("the input", writing(0), BADF, NOTCAPABLE);
	v[0].at = OUTSIDE, v[0].length = 99;
	want("a part outside of the memory", fd_write(f, v, 1, &used), FAULT);
	v[0].at = "ok", v[0].length = 2, v[2].at = OUTSIDE, v[2].length = 99;
	want("a later part outside of the memory", fd_write(f, v, 3, &used), FAULT);
	equal("nothing was written", size_of(f), 11);
	want("the parts outside of the memory", fd_write(f, OUTSIDE, 9, &used), FAULT);
	want("too many parts", fd_write(f, buffer, 1025, &used), INVAL);
	v[0].length = ~0u;
	want("more than there is", fd_write(f, v, 1, &used), INVAL);
	nowhere(writing);
	closed(f), closed(a), closed(blind), gone(dir, "f");
}
