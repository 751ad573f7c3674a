// The program of the probes: `probes list`, or `probes FUNCTION [ARGUMENT...]`. It exits with 1 where something is not as it should be.
#include "probes.h"

const u32 root = 3;
u32 argument_count, used;
u8 buffer[8192];
char *arguments[64];

static const char *now;
static int failed;

void *memset(void *to, int c, size_t n) {
	for (volatile u8 *p = to; n--; p++) *p = (u8)c;
	return to;
}

void *memcpy(void *to, const void *from, size_t n) {
	volatile u8 *t = to;
	for (const u8 *f = from; n--; t++, f++) *t = *f;
	return to;
}

u32 length_of(const char *s) {
	u32 n = 0;
	while (s[n]) n++;
	return n;
}

static int matches(const char *a, const char *b) {
	for (; *a && *a == *b; a++, b++) {}
	return *a == *b;
}

static void say(u32 fd, const char *s) {
	u32 used;
	vector v = {s, length_of(s)};
	while (v.length && fd_write(fd, &v, 1, &used) == SUCCESS) v.at = (const char *)v.at + used, v.length -= used;
}

void print(const char *s) { say(1, s); }

static void say_number(u64 n) {
	char digits[21], *p = digits + 20;
	*p = 0;
	do *--p = (char)('0' + n % 10); while (n /= 10);
	say(2, p);
}

static void say_error(u32 e) {
	static const struct { u32 number; const char *name; } names[] = {
		{SUCCESS, "success"}, {ACCES, "acces"}, {AGAIN, "again"}, {BADF, "badf"}, {EXIST, "exist"}, {FAULT, "fault"}, {FBIG, "fbig"}, {ILSEQ, "ilseq"},
		{INVAL, "inval"}, {ISDIR, "isdir"}, {LOOP, "loop"}, {MFILE, "mfile"}, {NAMETOOLONG, "nametoolong"}, {NOENT, "noent"}, {NOTDIR, "notdir"},
		{NOTEMPTY, "notempty"}, {NOTSOCK, "notsock"}, {NOTSUP, "notsup"}, {PERM, "perm"}, {SPIPE, "spipe"}, {NOTCAPABLE, "notcapable"},
	};
	for (u32 i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == e) return say(2, names[i].name);
	say_number(e);
}

static void wrong(const char *what) {
	failed = 1;
	say(2, now), say(2, ": "), say(2, what), say(2, ": ");
}

void either(const char *what, u32 got, u32 error, u32 other) {
	if (got == error || got == other) return;
	wrong(what), say(2, "want "), say_error(error);
	if (error != other) say(2, " or "), say_error(other);
	say(2, " got "), say_error(got), say(2, "\n");
}

void want(const char *what, u32 got, u32 error) { either(what, got, error, error); }

void equal(const char *what, u64 got, u64 number) {
	if (got == number) return;
	wrong(what), say(2, "want "), say_number(number), say(2, " got "), say_number(got), say(2, "\n");
}

void holds(const char *what, int is) {
	if (!is) wrong(what), say(2, "want yes got no\n");
}

void same(const char *what, const void *got, const char *text) {
	static char shown[256];
	u32 n = length_of(text), i = 0;
	for (; i < n && i < sizeof shown - 1; i++) shown[i] = ((const char *)got)[i];
	shown[i] = 0;
	if (matches(shown, text)) return;
	wrong(what), say(2, "want '"), say(2, text), say(2, "' got '"), say(2, shown), say(2, "'\n");
}

u32 opened(u32 dir, const char *path, u32 flags, u64 rights, u32 fdflags) {
	u32 fd = ~0u;
	want(path, path_open(dir, 0, path, length_of(path), flags, rights, rights, fdflags, &fd), SUCCESS);
	return fd;
}

u32 written(u32 fd, const char *text) {
	u32 used = 0;
	vector v = {text, length_of(text)};
	u32 e = fd_write(fd, &v, 1, &used);
	if (e == SUCCESS) equal("bytes written", used, v.length);
	return e;
}

void file(u32 dir, const char *path, const char *content) {
	u32 fd = opened(dir, path, CREAT | TRUNC, FD_WRITE, 0);
	if (*content) want(path, written(fd, content), SUCCESS);
	closed(fd);
}

void folder(u32 dir, const char *path) { want(path, path_create_directory(dir, path, length_of(path)), SUCCESS); }
void linked(u32 dir, const char *path, const char *target) { want(path, path_symlink(target, length_of(target), dir, path, length_of(path)), SUCCESS); }
void gone(u32 dir, const char *path) { want(path, path_unlink_file(dir, path, length_of(path)), SUCCESS); }
void gone_folder(u32 dir, const char *path) { want(path, path_remove_directory(dir, path, length_of(path)), SUCCESS); }
void closed(u32 fd) { want("it is closed", fd_close(fd), SUCCESS); }

u64 size_of(u32 fd) {
	filestat s = {0};
	want("its size", fd_filestat_get(fd, &s), SUCCESS);
	return s.size;
}

filestat stat_of(u32 dir, u32 lookup, const char *path) {
	filestat s = {0};
	want(path, path_filestat_get(dir, lookup, path, length_of(path), &s), SUCCESS);
	return s;
}

fdstat fdstat_of(u32 fd) {
	fdstat s = {0};
	want("its fdstat", fd_fdstat_get(fd, &s), SUCCESS);
	return s;
}

u32 read_some(u32 fd, u32 n) {
	vector v = {buffer, n};
	used = 99;
	memset(buffer, '.', sizeof buffer);
	return fd_read(fd, &v, 1, &used);
}

void content(u32 dir, const char *path, const char *text) {
	u32 fd = opened(dir, path, 0, FD_READ, 0);
	want(path, read_some(fd, sizeof buffer), SUCCESS);
	equal("how long it is", used, length_of(text));
	same("what it holds", buffer, text);
	closed(fd);
}

void nowhere(u32 (*call)(u32 fd)) {
	u32 fd = opened(root, ".", DIR, 0, 0);
	closed(fd);
	want("a closed one", call(fd), BADF);
	want("one that never was", call(1000), BADF);
	want("a negative one", call(~0u), BADF);
}

static const struct { const char *name; void (*probe)(u32 dir); } probes[] = {
#define LISTED(name) {#name, probe_##name},
	EACH(LISTED)
};

__attribute__((export_name("_start"))) void _start(void) {
	static char text[8192], scratch[64];
	now = "begin";
	u32 size;
	want("args_sizes_get", args_sizes_get(&argument_count, &size), SUCCESS);
	if (argument_count < 2 || argument_count > 64 || size > sizeof text || args_get(arguments, text) != SUCCESS) proc_exit(2);
	for (u32 i = 0; i < sizeof probes / sizeof *probes; i++) {
		if (matches(arguments[1], "list")) print(probes[i].name), print("\n");
		if (!matches(arguments[1], probes[i].name)) continue;
		now = probes[i].name;
		u32 n = length_of(now);
		memcpy(scratch, now, n), memcpy(scratch + n, ".scratch", 9);
		folder(root, scratch);
		u32 dir = ~0u;
		want("its folder", path_open(root, 0, scratch, n + 8, DIR, OF_FOLDERS, OF_FILES | OF_FOLDERS, 0, &dir), SUCCESS);
		probes[i].probe(dir);
		closed(dir);
		gone_folder(root, scratch);
		proc_exit(failed);
	}
	proc_exit(matches(arguments[1], "list") ? 0 : 2);
}
