// What is done with a path.
#include "probes.h"

static u32 fd;

// beneath wants that a call goes nowhere out of its folder, and refuses what is no path and no folder.
static void beneath(u32 dir, u32 (*call)(u32 fd, const void *path, u32 length)) {
	folder(dir, "in"), linked(dir, "in/up", "../.."), linked(dir, "loop", "loop"), file(dir, "file", ""), linked(dir, "in/out", "../../x");
	u32 in = opened(dir, "in", DIR, OF_FOLDERS, 0), f = opened(dir, "file", 0, FD_READ, 0), blind = opened(dir, "in", DIR, FD_READDIR, 0);
	either("..", call(in, P("..")), PERM, NOTCAPABLE);
	either("../x", call(in, P("../x")), PERM, NOTCAPABLE);
	either("./../x", call(in, P("./../x")), PERM, NOTCAPABLE);
	either("../in/x", call(in, P("../in/x")), PERM, NOTCAPABLE);
	either("an absolute path", call(in, P("/x")), PERM, NOTCAPABLE);
	either("an absolute path to where it is", call(in, P("/in/x")), PERM, NOTCAPABLE);
	either("through a link that leads out", call(in, P("up/x")), PERM, NOTCAPABLE);
	want("a loop", call(dir, P("loop/x")), LOOP);
	want("through a file", call(dir, P("file/x")), NOTDIR);
	want("through nothing", call(dir, P("nothing/x")), NOENT);
	want("no path", call(dir, "", 0), NOENT);
	either("a NUL", call(dir, P("a\0b")), INVAL, ILSEQ);
	memset(buffer, 'a', sizeof buffer);
	want("a name of 256 bytes", call(dir, (char *)buffer, 256), NAMETOOLONG);
	want("a path of 4096 bytes", call(dir, (char *)buffer, 4096), NAMETOOLONG);
	want("outside of the memory", call(dir, OUTSIDE, 99), FAULT);
	want("a path of 4 GiB", call(dir, "x", ~0u), NAMETOOLONG);
	either("from a file", call(f, P("x")), NOTDIR, BADF);
	either("from a stream", call(1, P("x")), NOTDIR, BADF);
	either("without the right", call(blind, P("x")), NOTCAPABLE, BADF);
	want("from one that never was", call(1000, P("x")), BADF);
	closed(in), closed(f), closed(blind);
	gone(dir, "in/up"), gone(dir, "in/out"), gone(dir, "loop"), gone(dir, "file"), gone_folder(dir, "in");
}

static u32 open_as(u32 dir, u32 lookup, const char *path, u32 flags, u64 rights) {
	fd = ~0u;
	return path_open(dir, lookup, path, length_of(path), flags, rights, 0, 0, &fd);
}

// missing wants that a path leads to nothing.
static void missing(u32 dir, const char *path) {
	filestat s;
	want(path, path_filestat_get(dir, 0, path, length_of(path), &s), NOENT);
}

void probe_path_create_directory(u32 dir) {
	want("a new one", path_create_directory(dir, P("d")), SUCCESS);
	equal("a new one: type", stat_of(dir, 0, "d").type, DIRECTORY);
	want("in it", path_create_directory(dir, P("d/e")), SUCCESS);
	want("a slash behind it", path_create_directory(dir, P("d/f/")), SUCCESS);
	want("slashes and dots", path_create_directory(dir, P("./d//.//g///")), SUCCESS);
	want("over ..", path_create_directory(dir, P("d/e/../h")), SUCCESS);
	want("it is there", path_create_directory(dir, P("d")), EXIST);
	want("it is there, with a slash", path_create_directory(dir, P("d/")), EXIST);
	want("the folder itself", path_create_directory(dir, P(".")), EXIST);
	file(dir, "f", ""), linked(dir, "l", "nowhere"), linked(dir, "m", "d");
	want("a file is there", path_create_directory(dir, P("f")), EXIST);
	want("a link is there", path_create_directory(dir, P("l")), EXIST);
	want("through a link", path_create_directory(dir, P("m/i")), SUCCESS);
	want("no text", path_create_directory(dir, P("\xff\xfe")), ILSEQ);
	gone(dir, "f"), gone(dir, "l"), gone(dir, "m");
	gone_folder(dir, "d/e"), gone_folder(dir, "d/f"), gone_folder(dir, "d/g"), gone_folder(dir, "d/h"), gone_folder(dir, "d/i"), gone_folder(dir, "d");
	beneath(dir, path_create_directory);
}

static filestat out;
static u32 stating(u32 at, const void *path, u32 length) { return path_filestat_get(at, 0, path, length, &out); }
static u32 stating_behind(u32 at, const void *path, u32 length) { return path_filestat_get(at, FOLLOW, path, length, &out); }
void probe_path_filestat_get(u32 dir) {
	file(dir, "f", "12345"), folder(dir, "d"), linked(dir, "l", "f"), linked(dir, "m", "d"), linked(dir, "n", "nowhere");
	static const struct { const char *path; u32 lookup, type; u64 size; } stats[] = {
		{"f", 0, REGULAR_FILE, 5}, {"f", FOLLOW, REGULAR_FILE, 5}, {"d", 0, DIRECTORY, ~0u}, {"d/", 0, DIRECTORY, ~0u}, {"d", FOLLOW, DIRECTORY, ~0u},
		{"l", 0, SYMBOLIC_LINK, 1}, {"l", FOLLOW, REGULAR_FILE, 5}, {"m", 0, SYMBOLIC_LINK, 1}, {"m", FOLLOW, DIRECTORY, ~0u}, {"m/", 0, DIRECTORY, ~0u},
		{"n", 0, SYMBOLIC_LINK, 7}, {".", 0, DIRECTORY, ~0u}, {"d/..", 0, DIRECTORY, ~0u}, {"d/../f", 0, REGULAR_FILE, 5},
	};
	for (u32 i = 0; i < sizeof stats / sizeof *stats; i++) {
		filestat s = stat_of(dir, stats[i].lookup, stats[i].path);
		equal(stats[i].path, s.type, stats[i].type);
		if (stats[i].size != ~0u) equal(stats[i].path, s.size, stats[i].size);
	}
	equal("names", stat_of(dir, 0, "f").links, 1);
	holds("one file, one inode", stat_of(dir, 0, "f").inode == stat_of(dir, FOLLOW, "l").inode && stat_of(dir, 0, "l").inode != stat_of(dir, 0, "f").inode);
	want("nothing", path_filestat_get(dir, 0, P("x"), &out), NOENT);
	want("behind a link that leads nowhere", path_filestat_get(dir, FOLLOW, P("n"), &out), NOENT);
	want("a file with a slash", path_filestat_get(dir, 0, P("f/"), &out), NOTDIR);
	want("no lookup", path_filestat_get(dir, 2, P("f"), &out), INVAL);
	want("the answer outside of the memory", path_filestat_get(dir, 0, P("f"), OUTSIDE), FAULT);
	gone(dir, "f"), gone(dir, "l"), gone(dir, "m"), gone(dir, "n"), gone_folder(dir, "d");
	beneath(dir, stating);
	beneath(dir, stating_behind);
}

static u32 timing(u32 at, const void *path, u32 length) { return path_filestat_set_times(at, 0, path, length, 1, 2, ATIM | MTIM); }
void probe_path_filestat_set_times(u32 dir) {
	file(dir, "f", ""), linked(dir, "l", "f"), folder(dir, "d"), linked(dir, "n", "nowhere");
	filestat before = stat_of(dir, 0, "f"), link = stat_of(dir, 0, "l");
	want("both", path_filestat_set_times(dir, 0, P("f"), 1000000001, 2000000002, ATIM | MTIM), SUCCESS);
	equal("both: accessed", stat_of(dir, 0, "f").accessed, 1000000001);
	equal("both: modified", stat_of(dir, 0, "f").modified, 2000000002);
	want("accessed", path_filestat_set_times(dir, 0, P("f"), 1000000003, 4, ATIM), SUCCESS);
	equal("accessed: accessed", stat_of(dir, 0, "f").accessed, 1000000003);
	equal("accessed: modified", stat_of(dir, 0, "f").modified, 2000000002);
	want("now", path_filestat_set_times(dir, 0, P("f"), 1, 1, ATIM_NOW | MTIM_NOW), SUCCESS);
	holds("now", stat_of(dir, 0, "f").modified >= before.modified && stat_of(dir, 0, "f").accessed >= before.accessed);
	want("a link itself", path_filestat_set_times(dir, 0, P("l"), 1, 5000000005, MTIM), SUCCESS);
	equal("a link itself: modified", stat_of(dir, 0, "l").modified, 5000000005);
	equal("a link itself: accessed", stat_of(dir, 0, "l").accessed, link.accessed);
	holds("a link itself: not the file", stat_of(dir, 0, "f").modified != 5000000005);
	want("behind a link", path_filestat_set_times(dir, FOLLOW, P("l"), 1, 6000000006, MTIM), SUCCESS);
	equal("behind a link: the file", stat_of(dir, 0, "f").modified, 6000000006);
	equal("behind a link: not the link", stat_of(dir, 0, "l").modified, 5000000005);
	want("a folder", path_filestat_set_times(dir, 0, P("d/"), 1, 7000000007, MTIM), SUCCESS);
	equal("a folder: modified", stat_of(dir, 0, "d").modified, 7000000007);
	want("modified, twice", path_filestat_set_times(dir, 0, P("f"), 0, 0, MTIM | MTIM_NOW), INVAL);
	want("accessed, twice", path_filestat_set_times(dir, 0, P("f"), 0, 0, ATIM | ATIM_NOW), INVAL);
	want("no flag", path_filestat_set_times(dir, 0, P("f"), 0, 0, 16), INVAL);
	equal("what is refused changes nothing", stat_of(dir, 0, "f").modified, 6000000006);
	want("no lookup", path_filestat_set_times(dir, 2, P("f"), 0, 0, MTIM), INVAL);
	want("nothing", path_filestat_set_times(dir, 0, P("x"), 0, 0, MTIM), NOENT);
	want("behind a link that leads nowhere", path_filestat_set_times(dir, FOLLOW, P("n"), 0, 0, MTIM), NOENT);
	want("a file with a slash", path_filestat_set_times(dir, 0, P("f/"), 0, 0, MTIM), NOTDIR);
	gone(dir, "f"), gone(dir, "l"), gone(dir, "n"), gone_folder(dir, "d");
	beneath(dir, timing);
}

static u32 source;
static u32 linking_from(u32 at, const void *path, u32 length) { return path_link(at, 0, path, length, source, P("fresh")); }
static u32 linking_to(u32 at, const void *path, u32 length) { return path_link(source, 0, P("f"), at, path, length); }
void probe_path_link(u32 dir) {
	file(dir, "f", "text"), folder(dir, "d");
	want("a second name", path_link(dir, 0, P("f"), dir, P("g")), SUCCESS);
	holds("a second name: the same file", stat_of(dir, 0, "f").inode == stat_of(dir, 0, "g").inode);
	equal("a second name: names", stat_of(dir, 0, "f").links, 2);
	want("in another folder", path_link(dir, 0, P("g"), dir, P("d/h")), SUCCESS);
	equal("in another folder: names", stat_of(dir, 0, "f").links, 3);
	u32 f = opened(dir, "g", 0, FD_WRITE, APPEND);
	want("through one", written(f, "!"), SUCCESS);
	closed(f);
	content(dir, "d/h", "text!");
	gone(dir, "f"), gone(dir, "d/h");
	equal("one is left", stat_of(dir, 0, "g").links, 1);
	want("a file is there", path_link(dir, 0, P("g"), dir, P("g")), EXIST);
	want("a folder is there", path_link(dir, 0, P("g"), dir, P("d")), EXIST);
	want("a name with a slash", path_link(dir, 0, P("g"), dir, P("h/")), NOENT);
	want("a file with a slash", path_link(dir, 0, P("g/"), dir, P("h")), NOTDIR);
	either("a folder", path_link(dir, 0, P("d"), dir, P("h")), PERM, ACCES);
	want("nothing", path_link(dir, 0, P("x"), dir, P("h")), NOENT);
	linked(dir, "l", "nowhere");
	want("a link that leads nowhere", path_link(dir, 0, P("l"), dir, P("m")), SUCCESS);
	equal("a link that leads nowhere: type", stat_of(dir, 0, "m").type, SYMBOLIC_LINK);
	want("to where a link is", path_link(dir, 0, P("g"), dir, P("l")), EXIST);
	either("behind a link that leads nowhere", path_link(dir, FOLLOW, P("l"), dir, P("h")), NOENT, INVAL);
	want("no lookup", path_link(dir, 2, P("g"), dir, P("h")), INVAL);
	want("no text", path_link(dir, 0, P("g"), dir, P("\xff")), ILSEQ);
	gone(dir, "g"), gone(dir, "l"), gone(dir, "m"), gone_folder(dir, "d");
	source = dir;
	beneath(dir, linking_from);
	file(dir, "f", "");
	beneath(dir, linking_to);
	gone(dir, "f");
}

static u32 opening(u32 at, const void *path, u32 length) { return path_open(at, 0, path, length, 0, 0, 0, 0, &fd); }
static u32 opening_behind(u32 at, const void *path, u32 length) { return path_open(at, FOLLOW, path, length, CREAT, 0, 0, 0, &fd); }
void probe_path_open(u32 dir) {
	file(dir, "f", "12345"), folder(dir, "d"), file(dir, "d/g", "");
	linked(dir, "l", "f"), linked(dir, "m", "d"), linked(dir, "n", "nowhere"), linked(dir, "o", "o"), linked(dir, "p", "fresh");
	static const struct { const char *what, *path; u32 lookup, flags, error, other; } opens[] = {
		{"a file", "f", 0, 0, SUCCESS, SUCCESS}, {"a folder", "d", 0, 0, SUCCESS, SUCCESS}, {"a folder as one", "d", 0, DIR, SUCCESS, SUCCESS},
		{"a folder with a slash", "d/", 0, 0, SUCCESS, SUCCESS}, {"with slashes and dots", ".//d/./../d///g", 0, 0, SUCCESS, SUCCESS},
		{"a file with a slash", "f/", 0, 0, NOTDIR, NOTDIR}, {"a file with slashes", "f///", 0, 0, NOTDIR, NOTDIR},
		{"a file as a folder", "f", 0, DIR, NOTDIR, NOTDIR}, {"nothing", "x", 0, 0, NOENT, NOENT}, {"nothing as a folder", "x", 0, DIR, NOENT, NOENT},
		{"a new name with a slash", "x/", 0, CREAT, ISDIR, NOENT}, {"what is there, as new", "f", 0, CREAT | EXCL, EXIST, EXIST},
		{"a link, as new", "n", 0, CREAT | EXCL, EXIST, EXIST}, {"a folder, as new", "d", 0, CREAT | EXCL, EXIST, EXIST},
		{"a link itself", "l", 0, 0, LOOP, LOOP}, {"a link to a folder itself", "m", 0, 0, LOOP, LOOP},
		{"a link to a folder itself, as one", "m", 0, DIR, NOTDIR, LOOP}, {"a link that leads nowhere itself", "n", 0, 0, LOOP, LOOP},
		{"a loop itself", "o", 0, 0, LOOP, LOOP}, {"behind a link", "l", FOLLOW, 0, SUCCESS, SUCCESS},
		{"behind a link to a folder", "m", FOLLOW, DIR, SUCCESS, SUCCESS}, {"behind a link, as a folder", "l", FOLLOW, DIR, NOTDIR, NOTDIR},
		{"behind a link that leads nowhere", "n", FOLLOW, 0, NOENT, NOENT}, {"behind a loop", "o", FOLLOW, 0, LOOP, LOOP},
		{"through a link", "m/g", 0, 0, SUCCESS, SUCCESS}, {"behind a link, a new file", "p", FOLLOW, CREAT, SUCCESS, SUCCESS},
		{"no lookup", "f", 2, 0, INVAL, INVAL}, {"no flag", "f", 0, 16, INVAL, INVAL}, {"a new folder", "x", 0, CREAT | DIR, INVAL, INVAL},
	};
	for (u32 i = 0; i < sizeof opens / sizeof *opens; i++) {
		u32 e = open_as(dir, opens[i].lookup, opens[i].path, opens[i].flags, 0);
		either(opens[i].what, e, opens[i].error, opens[i].other);
		if (e == SUCCESS) closed(fd);
	}
	missing(dir, "x");
	gone(dir, "fresh");
	// Of rights and flags there is what was asked for, and what is asked for has to be had.
	u32 f = opened(dir, "f", 0, FD_READ, 0);
	equal("to read: rights", fdstat_of(f).base, FD_READ);
	closed(f);
	f = opened(dir, "f", 0, OF_FILES | OF_FOLDERS, DSYNC);
	equal("a file has none of folders", fdstat_of(f).base & (PATH_OPEN | FD_READDIR | PATH_UNLINK_FILE), 0);
	equal("its flags", fdstat_of(f).flags, DSYNC);
	closed(f);
	f = opened(dir, "f", TRUNC, FD_WRITE | FD_FILESTAT_GET, 0);
	equal("cut off: size", size_of(f), 0);
	closed(f);
	f = opened(dir, "d", DIR, FD_READ | FD_SEEK | PATH_OPEN, 0);
	equal("a folder has none of files", fdstat_of(f).base & (FD_READ | FD_SEEK), 0);
	closed(f);
	want("a folder to write", open_as(dir, 0, "d", 0, FD_READ | FD_WRITE), ISDIR);
	want("a folder to write, as one", open_as(dir, 0, "d", DIR, FD_READ | FD_WRITE), ISDIR);
	want("a folder, cut off", open_as(dir, 0, "d", TRUNC, FD_WRITE), ISDIR);
	want("no flag of a descriptor", path_open(dir, 0, P("f"), 0, 0, 0, 32, &fd), INVAL);
	u32 weak = ~0u;
	want("a folder that hands on little", path_open(dir, 0, P("d"), DIR, OF_FOLDERS & ~(PATH_CREATE_FILE | PATH_FILESTAT_SET_SIZE), FD_READ, 0, &weak), SUCCESS);
	want("it hands that on", open_as(weak, 0, "g", 0, FD_READ), SUCCESS);
	closed(fd);
	want("and not more", open_as(weak, 0, "g", 0, FD_READ | FD_WRITE), NOTCAPABLE);
	want("no new file", open_as(weak, 0, "h", CREAT, 0), NOTCAPABLE);
	want("none is cut off", open_as(weak, 0, "g", TRUNC, 0), NOTCAPABLE);
	want("no text", open_as(dir, 0, "\xff", CREAT, 0), ILSEQ);
	want("the answer outside of the memory", path_open(dir, 0, P("h"), CREAT, 0, 0, 0, OUTSIDE), FAULT);
	missing(dir, "h");
	closed(weak);
	// The lowest number that is free.
	u32 a = opened(dir, "f", 0, 0, 0), b = opened(dir, "f", 0, 0, 0);
	equal("the next number", b, a + 1);
	closed(a);
	equal("the one that is free", opened(dir, "f", 0, 0, 0), a);
	closed(a), closed(b);
	gone(dir, "f"), gone(dir, "d/g"), gone_folder(dir, "d"), gone(dir, "l"), gone(dir, "m"), gone(dir, "n"), gone(dir, "o"), gone(dir, "p");
	beneath(dir, opening);
	beneath(dir, opening_behind);
	folder(dir, "in"), linked(dir, "in/out", "../x");
	u32 in = opened(dir, "in", DIR, OF_FOLDERS, 0);
	either("behind a link that leads out, a new file", path_open(in, FOLLOW, P("out"), CREAT, 0, 0, 0, &fd), PERM, NOTCAPABLE);
	missing(dir, "x");
	closed(in), gone(dir, "in/out"), gone_folder(dir, "in");
}

static u8 target[64];
static u32 reading(u32 at, const void *path, u32 length) { return path_readlink(at, path, length, target, sizeof target, &used); }
void probe_path_readlink(u32 dir) {
	linked(dir, "l", "to/where"), linked(dir, "m", "l"), file(dir, "f", ""), folder(dir, "d"), linked(dir, "d/n", "../../\xc3\xbc");
	memset(target, '.', sizeof target);
	want("a link", path_readlink(dir, P("l"), target, sizeof target, &used), SUCCESS);
	equal("a link: length", used, 8);
	same("a link: where to, with nothing behind it", target, "to/where.");
	want("a link to a link", path_readlink(dir, P("m"), target, sizeof target, &used), SUCCESS);
	equal("a link to a link: length", used, 1);
	same("a link to a link", target, "lo");
	want("one that leads out, and over ..", path_readlink(dir, P("d/../d/n"), target, sizeof target, &used), SUCCESS);
	same("one that leads out", target, "../../\xc3\xbc");
	memset(target, '.', sizeof target);
	want("little room", path_readlink(dir, P("l"), target, 4, &used), SUCCESS);
	equal("little room: how much", used, 4);
	same("little room", target, "to/w.");
	want("no room", path_readlink(dir, P("l"), target, 0, &used), SUCCESS);
	equal("no room: how much", used, 0);
	want("a file", path_readlink(dir, P("f"), target, 9, &used), INVAL);
	want("a folder", path_readlink(dir, P("d"), target, 9, &used), INVAL);
	want("nothing", path_readlink(dir, P("x"), target, 9, &used), NOENT);
	want("the answer outside of the memory", path_readlink(dir, P("l"), OUTSIDE, 99, &used), FAULT);
	want("the length outside of the memory", path_readlink(dir, P("l"), target, 9, OUTSIDE), FAULT);
	gone(dir, "l"), gone(dir, "m"), gone(dir, "f"), gone(dir, "d/n"), gone_folder(dir, "d");
	beneath(dir, reading);
}

void probe_path_remove_directory(u32 dir) {
	folder(dir, "d"), folder(dir, "d/e"), file(dir, "f", ""), linked(dir, "l", "d");
	want("one that is not empty", path_remove_directory(dir, P("d")), NOTEMPTY);
	want("one that is not empty, with a slash", path_remove_directory(dir, P("d/")), NOTEMPTY);
	want("an empty one", path_remove_directory(dir, P("d/e")), SUCCESS);
	missing(dir, "d/e");
	want("again", path_remove_directory(dir, P("d/e")), NOENT);
	want("a file", path_remove_directory(dir, P("f")), NOTDIR);
	want("a file with a slash", path_remove_directory(dir, P("f/")), NOTDIR);
	want("a link to one", path_remove_directory(dir, P("l")), NOTDIR);
	u32 e = path_remove_directory(dir, P("."));
	holds("the folder itself is refused", e == INVAL || e == PERM || e == NOTEMPTY);
	folder(dir, "d/f");
	want("with a slash", path_remove_directory(dir, P("d/f/")), SUCCESS);
	u32 open = opened(dir, "d", DIR, OF_FOLDERS, 0);
	want("one that is open", path_remove_directory(dir, P("d")), SUCCESS);
	want("in it nothing is made", path_create_directory(open, P("x")), NOENT);
	folder(dir, "d");
	closed(open);
	gone_folder(dir, "d"), gone(dir, "f"), gone(dir, "l");
	beneath(dir, path_remove_directory);
}

static u32 renaming_from(u32 at, const void *path, u32 length) { return path_rename(at, path, length, source, P("fresh")); }
static u32 renaming_to(u32 at, const void *path, u32 length) { return path_rename(source, P("f"), at, path, length); }
void probe_path_rename(u32 dir) {
#define MOVE(old, fresh) path_rename(dir, P(old), dir, P(fresh))
	file(dir, "f", "f");
	want("a file", MOVE("f", "g"), SUCCESS);
	missing(dir, "f");
	content(dir, "g", "f");
	file(dir, "f", "other");
	want("a file over another", MOVE("g", "f"), SUCCESS);
	missing(dir, "g");
	content(dir, "f", "f");
	want("a file to itself", MOVE("f", "f"), SUCCESS);
	want("a second name", path_link(dir, 0, P("f"), dir, P("g")), SUCCESS);
	want("over its second name: nothing is done", MOVE("f", "g"), SUCCESS);
	content(dir, "f", "f");
	gone(dir, "g");
	folder(dir, "d"), folder(dir, "e");
	want("a folder over an empty one", MOVE("d", "e"), SUCCESS);
	missing(dir, "d");
	file(dir, "e/x", "");
	folder(dir, "d");
	want("a folder over one that is not empty", MOVE("d", "e"), NOTEMPTY);
	want("a folder over a file", MOVE("d", "f"), NOTDIR);
	want("a file over a folder", MOVE("f", "d"), ISDIR);
	want("into itself", MOVE("d", "d/x"), INVAL);
	want("into another", MOVE("d", "e/d"), SUCCESS);
	want("and back", MOVE("e/d", "d"), SUCCESS);
	u32 to = opened(dir, "e", DIR, OF_FOLDERS, 0);
	want("from one folder to another", path_rename(dir, P("f"), to, P("f")), SUCCESS);
	want("and back", path_rename(to, P("f"), dir, P("f")), SUCCESS);
	closed(to);
	want("nothing", MOVE("x", "y"), NOENT);
	want("to where no folder is", MOVE("f", "x/y"), NOENT);
	want("a folder with a slash", MOVE("d/", "c"), SUCCESS);
	want("to a name with a slash", MOVE("c", "d/"), SUCCESS);
	want("both with slashes", MOVE("d/", "c/"), SUCCESS);
	want("a file with a slash", MOVE("f/", "g"), NOTDIR);
	either("a file to a name with a slash", MOVE("f", "g/"), NOTDIR, NOENT);
	linked(dir, "l", "c");
	want("a link itself", MOVE("l", "m"), SUCCESS);
	equal("a link itself: type", stat_of(dir, 0, "m").type, SYMBOLIC_LINK);
	want("over a link", MOVE("f", "m"), SUCCESS);
	equal("over a link: type", stat_of(dir, 0, "m").type, REGULAR_FILE);
	u32 open = opened(dir, "m", 0, FD_READ, 0);
	want("one that is open", MOVE("m", "f"), SUCCESS);
	closed(open);
	want("no text", MOVE("f", "\xff"), ILSEQ);
	gone(dir, "e/x"), gone_folder(dir, "e"), gone_folder(dir, "c");
	source = dir;
	beneath(dir, renaming_from);
	content(dir, "f", "f");
	beneath(dir, renaming_to);
	gone(dir, "f");
}

static u32 pointing(u32 at, const void *path, u32 length) { return path_symlink(P("anything"), at, path, length); }
void probe_path_symlink(u32 dir) {
	file(dir, "f", "text"), folder(dir, "d");
	want("to a file", path_symlink(P("f"), dir, P("l")), SUCCESS);
	equal("to a file: type", stat_of(dir, 0, "l").type, SYMBOLIC_LINK);
	want("to a folder", path_symlink(P("d"), dir, P("m")), SUCCESS);
	want("a file through it", path_link(dir, 0, P("f"), dir, P("m/g")), SUCCESS);
	content(dir, "d/g", "text");
	want("to nothing", path_symlink(P("nowhere"), dir, P("n")), SUCCESS);
	want("to itself", path_symlink(P("o"), dir, P("o")), SUCCESS);
	want("out", path_symlink(P("../../.."), dir, P("p")), SUCCESS);
	want("from below", path_symlink(P("../f"), dir, P("d/q")), SUCCESS);
	equal("from below: the file", stat_of(dir, FOLLOW, "d/q").size, 4);
	want("a file is there", path_symlink(P("x"), dir, P("f")), EXIST);
	want("a folder is there", path_symlink(P("x"), dir, P("d")), EXIST);
	want("a folder is there, with a slash", path_symlink(P("x"), dir, P("d/")), EXIST);
	want("a link is there", path_symlink(P("x"), dir, P("n")), EXIST);
	either("a file is there, with a slash", path_symlink(P("x"), dir, P("f/")), NOTDIR, EXIST);
	want("a new name with a slash", path_symlink(P("x"), dir, P("y/")), NOENT);
	want("to an absolute path", path_symlink(P("/f"), dir, P("y")), PERM);
	want("to the root", path_symlink(P("/"), dir, P("y")), PERM);
	want("to no path", path_symlink("", 0, dir, P("y")), NOENT);
	want("to no text", path_symlink(P("\xff"), dir, P("y")), ILSEQ);
	want("to a NUL", path_symlink(P("a\0b"), dir, P("y")), INVAL);
	want("as no text", path_symlink(P("x"), dir, P("\xff")), ILSEQ);
	want("the target outside of the memory", path_symlink(OUTSIDE, 99, dir, P("y")), FAULT);
	memset(buffer, 'a', sizeof buffer);
	want("a target of 4096 bytes", path_symlink(buffer, 4096, dir, P("y")), NAMETOOLONG);
	missing(dir, "y");
	gone(dir, "d/g"), gone(dir, "d/q"), gone_folder(dir, "d");
	gone(dir, "f"), gone(dir, "l"), gone(dir, "m"), gone(dir, "n"), gone(dir, "o"), gone(dir, "p");
	beneath(dir, pointing);
}

void probe_path_unlink_file(u32 dir) {
	file(dir, "f", "text"), folder(dir, "d"), linked(dir, "l", "f"), linked(dir, "m", "d"), linked(dir, "n", "nowhere"), file(dir, "d/g", "");
	want("a folder", path_unlink_file(dir, P("d")), ISDIR);
	want("a folder with a slash", path_unlink_file(dir, P("d/")), ISDIR);
	want("a file with a slash", path_unlink_file(dir, P("f/")), NOTDIR);
	want("a link", path_unlink_file(dir, P("l")), SUCCESS);
	content(dir, "f", "text");
	want("through a link", path_unlink_file(dir, P("m/g")), SUCCESS);
	missing(dir, "d/g");
	want("a link to a folder", path_unlink_file(dir, P("m")), SUCCESS);
	equal("a link to a folder: that is there", stat_of(dir, 0, "d").type, DIRECTORY);
	want("a link that leads nowhere", path_unlink_file(dir, P("n")), SUCCESS);
	u32 open = opened(dir, "f", 0, FD_READ, 0);
	want("a file that is open", path_unlink_file(dir, P("f")), SUCCESS);
	missing(dir, "f");
	vector v = {buffer, 4};
	want("it is read still", fd_read(open, &v, 1, &used), SUCCESS);
	same("it is read still", buffer, "text");
	closed(open);
	want("again", path_unlink_file(dir, P("f")), NOENT);
	gone_folder(dir, "d");
	beneath(dir, path_unlink_file);
}
