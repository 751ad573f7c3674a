// What an open file, folder or stream is, and what is changed of that.
#include "probes.h"

static u64 at;

static u32 advising(u32 fd) { return fd_advise(fd, 0, 0, 0); }
void probe_fd_advise(u32 dir) {
	file(dir, "f", "12345");
	u32 f = opened(dir, "f", 0, FD_READ | FD_ADVISE | FD_FILESTAT_GET, 0), blind = opened(dir, "f", 0, FD_READ, 0);
	for (u32 advice = 0; advice < 6; advice++) want("each advice", fd_advise(f, 1, 2, advice), SUCCESS);
	want("beyond its end", fd_advise(f, 1000, 1000, 0), SUCCESS);
	equal("its size is as before", size_of(f), 5);
	want("no advice", fd_advise(f, 0, 0, 6), INVAL);
	want("no advice by far", fd_advise(f, 0, 0, 256), INVAL);
	want("a negative offset", fd_advise(f, R(63), 0, 0), INVAL);
	want("a negative length", fd_advise(f, 0, R(63), 0), INVAL);
	want("an end that cannot be", fd_advise(f, R(63) - 1, 2, 0), INVAL);
	either("without the right", fd_advise(blind, 0, 0, 0), BADF, NOTCAPABLE);
	nowhere(advising);
	closed(f), closed(blind), gone(dir, "f");
}

void probe_fd_close(u32 dir) {
	file(dir, "f", "x");
	u32 f = opened(dir, "f", 0, FD_READ, 0);
	want("a file", fd_close(f), SUCCESS);
	want("again", fd_close(f), BADF);
	want("it reads no more", read_some(f, 1), BADF);
	u32 next = opened(dir, "f", 0, FD_READ, 0);
	equal("its number is free", next, f);
	u32 other = opened(dir, "f", 0, FD_READ, 0);
	closed(next);
	want("another one stays open", read_some(other, 1), SUCCESS);
	gone(dir, "f");
	want("without a name it stays open", read_some(other, 1), SUCCESS);
	closed(other);
	u32 d = opened(dir, ".", DIR, FD_READDIR, 0);
	want("a folder", fd_close(d), SUCCESS);
	nowhere(fd_close);
	u32 twin = opened(root, ".", DIR, OF_FOLDERS, 0);
	want("the folder from the beginning", fd_close(root), SUCCESS);
	u32 prestat[2];
	want("it is none any more", fd_prestat_get(root, prestat), BADF);
	equal("what was opened from it stays open", fdstat_of(twin).type, DIRECTORY);
	equal("the first number is free", opened(twin, ".", DIR, OF_FOLDERS, 0), root);
	closed(twin);
}

static void synced(u32 dir, u32 (*call)(u32 fd), u64 right) {
	u32 f = opened(dir, "f", CREAT, FD_WRITE | right, 0), blind = opened(dir, "f", 0, FD_WRITE, 0);
	want("it is written", written(f, "x"), SUCCESS);
	want("a file", call(f), SUCCESS);
	want("again", call(f), SUCCESS);
	either("without the right", call(blind), BADF, NOTCAPABLE);
	nowhere(call);
	closed(f), closed(blind), gone(dir, "f");
}
void probe_fd_datasync(u32 dir) { synced(dir, fd_datasync, FD_DATASYNC); }
void probe_fd_sync(u32 dir) { synced(dir, fd_sync, FD_SYNC); }

static fdstat stat_out;
static u32 telling(u32 fd) { return fd_fdstat_get(fd, &stat_out); }
void probe_fd_fdstat_get(u32 dir) {
	u32 f = opened(dir, "f", CREAT, FD_READ | FD_WRITE, APPEND | SYNC);
	fdstat s = fdstat_of(f);
	equal("a file: type", s.type, REGULAR_FILE);
	equal("a file: flags", s.flags, APPEND | SYNC);
	equal("a file: rights", s.base, FD_READ | FD_WRITE);
	s = fdstat_of(dir);
	equal("a folder: type", s.type, DIRECTORY);
	equal("a folder: flags", s.flags, 0);
	equal("a folder: rights that are none of folders", s.base & (FD_READ | FD_WRITE | FD_SEEK | FD_TELL | FD_ALLOCATE | FD_FILESTAT_SET_SIZE), 0);
	equal("a folder: what it hands on", s.inheriting & OF_FILES, OF_FILES);
	s = fdstat_of(root);
	equal("the folder from the beginning: rights", s.base & OF_FOLDERS, OF_FOLDERS);
	equal("the folder from the beginning: what it hands on", s.inheriting & (OF_FOLDERS | OF_FILES), OF_FOLDERS | OF_FILES);
	for (u32 fd = 0; fd < 3; fd++) {
		s = fdstat_of(fd);
		equal("a stream: it cannot be sought", s.base & (FD_SEEK | FD_TELL), 0);
		holds("a stream: its right", s.base & (fd ? FD_WRITE : FD_READ));
		equal("a stream: a device where it is a terminal", s.type, argument_count > 2 ? CHARACTER_DEVICE : UNKNOWN);
	}
	want("outside of the memory", fd_fdstat_get(f, OUTSIDE), FAULT);
	nowhere(telling);
	closed(f), gone(dir, "f");
}

static u32 flagging(u32 fd) { return fd_fdstat_set_flags(fd, 0); }
void probe_fd_fdstat_set_flags(u32 dir) {
	u32 f = opened(dir, "f", CREAT, OF_FILES, APPEND);
	want("it appends", written(f, "ab"), SUCCESS);
	want("from its beginning", fd_seek(f, 0, SET, &at), SUCCESS);
	want("it appends", written(f, "cd"), SUCCESS);
	want("no more", fd_fdstat_set_flags(f, 0), SUCCESS);
	equal("no more: flags", fdstat_of(f).flags, 0);
	want("from its beginning", fd_seek(f, 0, SET, &at), SUCCESS);
	want("it writes over", written(f, "X"), SUCCESS);
	want("again", fd_fdstat_set_flags(f, APPEND), SUCCESS);
	want("it appends again", written(f, "e"), SUCCESS);
	content(dir, "f", "Xbcde");
	for (u32 flag = APPEND; flag <= SYNC; flag <<= 1) {
		u32 e = fd_fdstat_set_flags(f, flag);
		either("each flag", e, SUCCESS, NOTSUP);
		if (e == SUCCESS) equal("each flag is told", fdstat_of(f).flags, flag);
	}
	want("no flag", fd_fdstat_set_flags(f, 32), INVAL);
	u32 blind = opened(dir, "f", 0, FD_READ, 0);
	either("without the right", fd_fdstat_set_flags(blind, 0), BADF, NOTCAPABLE);
	nowhere(flagging);
	closed(f), closed(blind), gone(dir, "f");
}

static u32 limiting(u32 fd) { return fd_fdstat_set_rights(fd, 0, 0); }
void probe_fd_fdstat_set_rights(u32 dir) {
	u32 f = opened(dir, "f", CREAT, FD_READ | FD_WRITE | FD_SEEK | FD_TELL, 0);
	want("as they are", fd_fdstat_set_rights(f, fdstat_of(f).base, fdstat_of(f).inheriting), SUCCESS);
	want("it writes", written(f, "abc"), SUCCESS);
	want("fewer", fd_fdstat_set_rights(f, FD_SEEK | FD_TELL, 0), SUCCESS);
	equal("fewer: told", fdstat_of(f).base, FD_SEEK | FD_TELL);
	either("it writes no more", written(f, "x"), NOTCAPABLE, BADF);
	either("it reads no more", read_some(f, 1), NOTCAPABLE, BADF);
	want("it is sought still", fd_seek(f, 0, SET, &at), SUCCESS);
	want("they do not come back", fd_fdstat_set_rights(f, FD_SEEK | FD_READ, 0), NOTCAPABLE);
	want("nor as what is handed on", fd_fdstat_set_rights(f, FD_SEEK, FD_READ), NOTCAPABLE);
	want("none", fd_fdstat_set_rights(f, 0, 0), SUCCESS);
	either("it is sought no more", fd_seek(f, 0, SET, &at), NOTCAPABLE, BADF);
	closed(f);
	u32 d = ~0u;
	want("a folder", path_open(dir, 0, P("."), DIR, PATH_OPEN | PATH_CREATE_FILE, FD_READ | FD_WRITE, 0, &d), SUCCESS);
	want("of a folder, what is handed on", fd_fdstat_set_rights(d, PATH_OPEN, FD_READ), SUCCESS);
	closed(opened(d, "f", 0, FD_READ, 0));
	want("a file that writes", path_open(d, 0, P("f"), 0, FD_WRITE, 0, 0, &f), NOTCAPABLE);
	want("a new file", path_open(d, 0, P("g"), CREAT, FD_READ, 0, 0, &f), NOTCAPABLE);
	want("a new folder", path_create_directory(d, P("g")), NOTCAPABLE);
	nowhere(limiting);
	closed(d), gone(dir, "f");
}

static filestat filestat_out;
static u32 stating(u32 fd) { return fd_filestat_get(fd, &filestat_out); }
void probe_fd_filestat_get(u32 dir) {
	file(dir, "f", "12345"), file(dir, "g", "");
	u32 f = opened(dir, "f", 0, FD_READ | FD_WRITE | FD_FILESTAT_GET, 0), g = opened(dir, "g", 0, FD_FILESTAT_GET, 0);
	filestat s, other, folder;
	want("a file", fd_filestat_get(f, &s), SUCCESS);
	equal("a file: type", s.type, REGULAR_FILE);
	equal("a file: size", s.size, 5);
	equal("a file: names", s.links, 1);
	holds("a file: times", s.accessed && s.modified && s.changed);
	want("another", fd_filestat_get(g, &other), SUCCESS);
	equal("another: device", other.device, s.device);
	holds("another: inode", other.inode != s.inode);
	want("a folder", fd_filestat_get(dir, &folder), SUCCESS);
	equal("a folder: type", folder.type, DIRECTORY);
	want("a second name", path_link(dir, 0, P("f"), dir, P("l")), SUCCESS);
	want("a second name", fd_filestat_get(f, &other), SUCCESS);
	equal("a second name: names", other.links, 2);
	filestat by = stat_of(dir, 0, "l");
	holds("a second name: the same file", by.inode == s.inode && by.device == s.device);
	gone(dir, "f"), gone(dir, "l");
	want("without a name", fd_filestat_get(f, &other), SUCCESS);
	equal("without a name: names", other.links, 0);
	for (u32 fd = 0; fd < 3; fd++) {
		want("a stream", fd_filestat_get(fd, &s), SUCCESS);
		holds("a stream: no file", s.type != REGULAR_FILE && s.type != DIRECTORY);
	}
	want("outside of the memory", fd_filestat_get(f, OUTSIDE), FAULT);
	u32 blind = opened(dir, "g", 0, FD_READ, 0);
	either("without the right", fd_filestat_get(blind, &s), BADF, NOTCAPABLE);
	nowhere(stating);
	closed(f), closed(g), closed(blind), gone(dir, "g");
}

static u32 sizing(u32 fd) { return fd_filestat_set_size(fd, 0); }
void probe_fd_filestat_set_size(u32 dir) {
	file(dir, "f", "12345");
	u32 f = opened(dir, "f", 0, OF_FILES, 0);
	want("it is read", read_some(f, 4), SUCCESS);
	want("shorter", fd_filestat_set_size(f, 3), SUCCESS);
	equal("shorter: size", size_of(f), 3);
	want("shorter", fd_tell(f, &at), SUCCESS);
	equal("shorter: the place is as before", at, 4);
	want("longer", fd_filestat_set_size(f, 10), SUCCESS);
	want("longer", fd_seek(f, 0, SET, &at), SUCCESS);
	want("longer", read_some(f, 20), SUCCESS);
	equal("longer: size", used, 10);
	same("longer: what was there", buffer, "123");
	for (u32 i = 3; i < 10; i++) equal("longer: zeros", buffer[i], 0);
	want("none", fd_filestat_set_size(f, 0), SUCCESS);
	equal("none: size", size_of(f), 0);
	want("a negative one", fd_filestat_set_size(f, R(63)), INVAL);
	u32 blind = opened(dir, "f", 0, FD_WRITE, 0);
	either("without the right", fd_filestat_set_size(blind, 0), BADF, NOTCAPABLE);
	either("a folder", fd_filestat_set_size(dir, 0), BADF, ISDIR);
	either("a stream", fd_filestat_set_size(1, 0), BADF, INVAL);
	nowhere(sizing);
	closed(f), closed(blind), gone(dir, "f");
}

static u32 timing(u32 fd) { return fd_filestat_set_times(fd, 0, 0, 0); }
void probe_fd_filestat_set_times(u32 dir) {
	u32 f = opened(dir, "f", CREAT, OF_FILES, 0);
	filestat s, now;
	want("both", fd_filestat_set_times(f, 1000000001, 2000000002, ATIM | MTIM), SUCCESS);
	want("both", fd_filestat_get(f, &s), SUCCESS);
	equal("both: accessed", s.accessed, 1000000001);
	equal("both: modified", s.modified, 2000000002);
	want("modified", fd_filestat_set_times(f, 5, 3000000003, MTIM), SUCCESS);
	want("modified", fd_filestat_get(f, &s), SUCCESS);
	equal("modified: accessed", s.accessed, 1000000001);
	equal("modified: modified", s.modified, 3000000003);
	want("neither", fd_filestat_set_times(f, 5, 6, 0), SUCCESS);
	want("neither", fd_filestat_get(f, &now), SUCCESS);
	holds("neither: as before", now.accessed == s.accessed && now.modified == s.modified);
	clock_time_get(0, 0, &at);
	want("now", fd_filestat_set_times(f, 5, 6, ATIM_NOW | MTIM_NOW), SUCCESS);
	want("now", fd_filestat_get(f, &now), SUCCESS);
	holds("now: accessed", now.accessed >= at);
	holds("now: modified", now.modified >= at);
	want("accessed, twice", fd_filestat_set_times(f, 1, 2, ATIM | ATIM_NOW), INVAL);
	want("modified, twice", fd_filestat_set_times(f, 1, 2, MTIM | MTIM_NOW), INVAL);
	want("no flag", fd_filestat_set_times(f, 1, 2, 16), INVAL);
	want("a folder", fd_filestat_set_times(dir, 0, 4000000004, MTIM), SUCCESS);
	want("a folder", fd_filestat_get(dir, &s), SUCCESS);
	equal("a folder: modified", s.modified, 4000000004);
	u32 blind = opened(dir, "f", 0, FD_WRITE, 0);
	either("without the right", fd_filestat_set_times(blind, 0, 0, 0), BADF, NOTCAPABLE);
	nowhere(timing);
	closed(f), closed(blind), gone(dir, "f");
}

static u32 prestat[2];
static u32 prestating(u32 fd) { return fd_prestat_get(fd, prestat); }
void probe_fd_prestat_get(u32 dir) {
	want("the first folder", fd_prestat_get(root, prestat), SUCCESS);
	equal("its kind", prestat[0], 0);
	holds("its name is no more than a path", prestat[1] > 0 && prestat[1] < 4096);
	u32 n = root;
	while (fd_prestat_get(n, prestat) == SUCCESS) n++;
	want("behind the last one", fd_prestat_get(n, prestat), BADF);
	want("a folder that the program has opened", fd_prestat_get(dir, prestat), BADF);
	for (u32 fd = 0; fd < 3; fd++) want("a stream", fd_prestat_get(fd, prestat), BADF);
	want("outside of the memory", fd_prestat_get(root, OUTSIDE), FAULT);
	nowhere(prestating);
}

static u32 naming(u32 fd) { return fd_prestat_dir_name(fd, buffer, sizeof buffer); }
void probe_fd_prestat_dir_name(u32 dir) {
	for (u32 fd = root; fd_prestat_get(fd, prestat) == SUCCESS; fd++) {
		u32 n = prestat[1];
		memset(buffer, '.', sizeof buffer);
		want("a name", fd_prestat_dir_name(fd, buffer, n), SUCCESS);
		equal("a name has no NUL behind it", buffer[n], '.');
		buffer[n] = 0;
		equal("a name is as long as was told", length_of((char *)buffer), n);
		print((char *)buffer), print("\n");
		want("room for more", fd_prestat_dir_name(fd, buffer, n + 9), SUCCESS);
		either("room for less", fd_prestat_dir_name(fd, buffer, n - 1), NAMETOOLONG, INVAL);
	}
	want("no room", fd_prestat_dir_name(root, buffer, 0), NAMETOOLONG);
	want("outside of the memory", fd_prestat_dir_name(root, OUTSIDE, 99), FAULT);
	want("a folder that the program has opened", naming(dir), BADF);
	nowhere(naming);
}

void probe_fd_renumber(u32 dir) {
	file(dir, "a", "a"), file(dir, "b", "b");
	u32 a = opened(dir, "a", 0, FD_READ | FD_SEEK, 0), b = opened(dir, "b", 0, FD_READ | FD_WRITE, 0);
	fdstat before = fdstat_of(a);
	want("a file to another one's number", fd_renumber(a, b), SUCCESS);
	want("the old number", fd_close(a), BADF);
	fdstat after = fdstat_of(b);
	holds("it is the same as before", after.type == before.type && after.flags == before.flags && after.base == before.base && after.inheriting == before.inheriting);
	want("it reads", read_some(b, 1), SUCCESS);
	same("it reads", buffer, "a.");
	want("to a number that is free", fd_renumber(b, a), BADF);
	want("to a number that never was", fd_renumber(b, 1000), BADF);
	want("from a number that is free", fd_renumber(a, b), BADF);
	want("from a negative one", fd_renumber(~0u, b), BADF);
	want("to a negative one", fd_renumber(b, ~0u), BADF);
	want("to itself", fd_renumber(b, b), SUCCESS);
	want("to itself: it is open still", fd_close(b), SUCCESS);
	// Over the standard streams, and over the folder from the beginning.
	u32 copy = opened(dir, "b", 0, FD_READ, 0);
	want("over the input", fd_renumber(copy, 0), SUCCESS);
	want("over the input: it reads", read_some(0, 1), SUCCESS);
	same("over the input: it reads", buffer, "b.");
	gone(dir, "a"), gone(dir, "b");
	u32 again = opened(root, ".", DIR, OF_FOLDERS, 0);
	want("over the folder from the beginning", fd_renumber(again, root), SUCCESS);
	want("it is none any more", fd_prestat_get(root, prestat), BADF);
	equal("it is a folder", fdstat_of(root).type, DIRECTORY);
}
