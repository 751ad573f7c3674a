// The functions of WASI preview 1 as a module imports them, and what the probes say what they have found with. There is no C library below.
#ifndef PROBES_H
#define PROBES_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

#define NAMED(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))

NAMED(args_get) u32 args_get(void *argv, void *buf);
NAMED(args_sizes_get) u32 args_sizes_get(void *count, void *size);
NAMED(environ_get) u32 environ_get(void *environ, void *buf);
NAMED(environ_sizes_get) u32 environ_sizes_get(void *count, void *size);
NAMED(clock_res_get) u32 clock_res_get(u32 id, void *out);
NAMED(clock_time_get) u32 clock_time_get(u32 id, u64 precision, void *out);
NAMED(fd_advise) u32 fd_advise(u32 fd, u64 offset, u64 length, u32 advice);
NAMED(fd_allocate) u32 fd_allocate(u32 fd, u64 offset, u64 length);
NAMED(fd_close) u32 fd_close(u32 fd);
NAMED(fd_datasync) u32 fd_datasync(u32 fd);
NAMED(fd_fdstat_get) u32 fd_fdstat_get(u32 fd, void *out);
NAMED(fd_fdstat_set_flags) u32 fd_fdstat_set_flags(u32 fd, u32 flags);
NAMED(fd_fdstat_set_rights) u32 fd_fdstat_set_rights(u32 fd, u64 base, u64 inheriting);
NAMED(fd_filestat_get) u32 fd_filestat_get(u32 fd, void *out);
NAMED(fd_filestat_set_size) u32 fd_filestat_set_size(u32 fd, u64 size);
NAMED(fd_filestat_set_times) u32 fd_filestat_set_times(u32 fd, u64 accessed, u64 modified, u32 flags);
NAMED(fd_pread) u32 fd_pread(u32 fd, const void *vectors, u32 count, u64 offset, void *out);
NAMED(fd_prestat_get) u32 fd_prestat_get(u32 fd, void *out);
NAMED(fd_prestat_dir_name) u32 fd_prestat_dir_name(u32 fd, void *buf, u32 length);
NAMED(fd_pwrite) u32 fd_pwrite(u32 fd, const void *vectors, u32 count, u64 offset, void *out);
NAMED(fd_read) u32 fd_read(u32 fd, const void *vectors, u32 count, void *out);
NAMED(fd_readdir) u32 fd_readdir(u32 fd, void *buf, u32 length, u64 cookie, void *out);
NAMED(fd_renumber) u32 fd_renumber(u32 from, u32 to);
NAMED(fd_seek) u32 fd_seek(u32 fd, i64 offset, u32 whence, void *out);
NAMED(fd_sync) u32 fd_sync(u32 fd);
NAMED(fd_tell) u32 fd_tell(u32 fd, void *out);
NAMED(fd_write) u32 fd_write(u32 fd, const void *vectors, u32 count, void *out);
NAMED(path_create_directory) u32 path_create_directory(u32 fd, const void *path, u32 length);
NAMED(path_filestat_get) u32 path_filestat_get(u32 fd, u32 lookup, const void *path, u32 length, void *out);
NAMED(path_filestat_set_times) u32 path_filestat_set_times(u32 fd, u32 lookup, const void *path, u32 length, u64 accessed, u64 modified, u32 flags);
NAMED(path_link) u32 path_link(u32 from, u32 lookup, const void *old, u32 length, u32 to, const void *fresh, u32 fresh_length);
NAMED(path_open) u32 path_open(u32 fd, u32 lookup, const void *path, u32 length, u32 flags, u64 base, u64 inheriting, u32 fdflags, void *out);
NAMED(path_readlink) u32 path_readlink(u32 fd, const void *path, u32 length, void *buf, u32 size, void *out);
NAMED(path_remove_directory) u32 path_remove_directory(u32 fd, const void *path, u32 length);
NAMED(path_rename) u32 path_rename(u32 from, const void *old, u32 length, u32 to, const void *fresh, u32 fresh_length);
NAMED(path_symlink) u32 path_symlink(const void *target, u32 target_length, u32 fd, const void *path, u32 length);
NAMED(path_unlink_file) u32 path_unlink_file(u32 fd, const void *path, u32 length);
NAMED(poll_oneoff) u32 poll_oneoff(const void *in, void *out, u32 count, void *events);
NAMED(proc_exit) _Noreturn void proc_exit(u32 code);
NAMED(proc_raise) u32 proc_raise(u32 signal);
NAMED(random_get) u32 random_get(void *buf, u32 length);
NAMED(sched_yield) u32 sched_yield(void);
NAMED(sock_accept) u32 sock_accept(u32 fd, u32 flags, void *out);
NAMED(sock_recv) u32 sock_recv(u32 fd, const void *vectors, u32 count, u32 flags, void *out, void *out_flags);
NAMED(sock_send) u32 sock_send(u32 fd, const void *vectors, u32 count, u32 flags, void *out);
NAMED(sock_shutdown) u32 sock_shutdown(u32 fd, u32 how);

enum {
	SUCCESS = 0, ACCES = 2, AGAIN = 6, BADF = 8, EXIST = 20, FAULT = 21, FBIG = 22, ILSEQ = 25, INVAL = 28, ISDIR = 31, LOOP = 32, MFILE = 33,
	NAMETOOLONG = 37, NOENT = 44, NOTDIR = 54, NOTEMPTY = 55, NOTSOCK = 57, NOTSUP = 58, PERM = 63, SPIPE = 70, NOTCAPABLE = 76,
};

enum { UNKNOWN = 0, CHARACTER_DEVICE = 2, DIRECTORY = 3, REGULAR_FILE = 4, SYMBOLIC_LINK = 7 }; // types of files
enum { FOLLOW = 1 };                                                                           // lookup
enum { CREAT = 1, DIR = 2, EXCL = 4, TRUNC = 8 };                                              // path_open
enum { APPEND = 1, DSYNC = 2, NONBLOCK = 4, RSYNC = 8, SYNC = 16 };                            // descriptors
enum { ATIM = 1, ATIM_NOW = 2, MTIM = 4, MTIM_NOW = 8 };                                       // times
enum { SET = 0, CUR = 1, END = 2 };                                                            // whence

#define R(bit) (1ULL << (bit))
#define FD_DATASYNC R(0)
#define FD_READ R(1)
#define FD_SEEK R(2)
#define FD_FDSTAT_SET_FLAGS R(3)
#define FD_SYNC R(4)
#define FD_TELL R(5)
#define FD_WRITE R(6)
#define FD_ADVISE R(7)
#define FD_ALLOCATE R(8)
#define PATH_CREATE_DIRECTORY R(9)
#define PATH_CREATE_FILE R(10)
#define PATH_LINK_SOURCE R(11)
#define PATH_LINK_TARGET R(12)
#define PATH_OPEN R(13)
#define FD_READDIR R(14)
#define PATH_READLINK R(15)
#define PATH_RENAME_SOURCE R(16)
#define PATH_RENAME_TARGET R(17)
#define PATH_FILESTAT_GET R(18)
#define PATH_FILESTAT_SET_SIZE R(19)
#define PATH_FILESTAT_SET_TIMES R(20)
#define FD_FILESTAT_GET R(21)
#define FD_FILESTAT_SET_SIZE R(22)
#define FD_FILESTAT_SET_TIMES R(23)
#define PATH_SYMLINK R(24)
#define PATH_REMOVE_DIRECTORY R(25)
#define PATH_UNLINK_FILE R(26)
#define POLL_FD_READWRITE R(27)
#define OF_FILES (R(0) | R(1) | R(2) | R(3) | R(4) | R(5) | R(6) | R(7) | R(8) | R(21) | R(22) | R(23) | R(27))
#define OF_FOLDERS (R(9) | R(10) | R(11) | R(12) | R(13) | R(14) | R(15) | R(16) | R(17) | R(18) | R(19) | R(20) | R(21) | R(23) | R(24) | R(25) | R(26))

typedef struct { const void *at; u32 length; } vector;
typedef struct { u8 type; u16 flags; u64 base, inheriting; } fdstat;
typedef struct { u64 device, inode; u8 type; u64 links, size, accessed, modified, changed; } filestat;
typedef struct { u64 next, inode; u32 length; u8 type; } dirent;
typedef struct { u64 user; u8 kind; union { struct { u32 id; u64 timeout, precision; u16 flags; } clock; u32 fd; }; } subscription;
typedef struct { u64 user; u16 error; u8 kind; u64 bytes; u16 flags; } event;

_Static_assert(sizeof(fdstat) == 24 && sizeof(filestat) == 64 && sizeof(dirent) == 24 && sizeof(subscription) == 48 && sizeof(event) == 32, "the layout of preview 1");

// OUTSIDE is beyond the end of the memory. P is a path of a call: where it lies and how long it is.
#define OUTSIDE ((void *)0xfffffff0)
#define P(s) (s), (u32)(sizeof(s) - 1)

// What a probe says: `function: case: want X got Y`.
void want(const char *what, u32 got, u32 error);                  // one error
void either(const char *what, u32 got, u32 error, u32 other);     // one of two
void equal(const char *what, u64 got, u64 number);                // a number
void holds(const char *what, int is);                             // anything else
void same(const char *what, const void *got, const char *text);   // bytes

// What probes begin with; it is said where that fails.
u32 length_of(const char *s);
u32 opened(u32 dir, const char *path, u32 flags, u64 rights, u32 fdflags);
void file(u32 dir, const char *path, const char *content);
void folder(u32 dir, const char *path);
void linked(u32 dir, const char *path, const char *target);
void gone(u32 dir, const char *path);        // a file or a link
void gone_folder(u32 dir, const char *path);
void closed(u32 fd);
u64 size_of(u32 fd);
u32 written(u32 fd, const char *text);                        // the error of fd_write
u32 read_some(u32 fd, u32 n);                                 // the error of fd_read; what it read is in buffer, how much in used
void content(u32 dir, const char *path, const char *text);    // wants that a file holds just that
void nowhere(u32 (*call)(u32 fd));                            // wants badf of a call that is given no descriptor
filestat stat_of(u32 dir, u32 lookup, const char *path);
fdstat fdstat_of(u32 fd);
void print(const char *s);
void *memset(void *to, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);

extern u8 buffer[8192];
extern u32 argument_count, used;
extern char *arguments[64];
extern const u32 root; // the folder that is open from the beginning

// A probe has a folder of its own, which it leaves empty.
#define EACH(X) \
	X(args_get) X(args_sizes_get) X(environ_get) X(environ_sizes_get) X(clock_res_get) X(clock_time_get) X(fd_advise) X(fd_allocate) X(fd_close) X(fd_datasync) \
	X(fd_fdstat_get) X(fd_fdstat_set_flags) X(fd_fdstat_set_rights) X(fd_filestat_get) X(fd_filestat_set_size) X(fd_filestat_set_times) X(fd_pread) \
	X(fd_prestat_get) X(fd_prestat_dir_name) X(fd_pwrite) X(fd_read) X(fd_readdir) X(fd_renumber) X(fd_seek) X(fd_sync) X(fd_tell) X(fd_write) \
	X(path_create_directory) X(path_filestat_get) X(path_filestat_set_times) X(path_link) X(path_open) X(path_readlink) X(path_remove_directory) X(path_rename) \
	X(path_symlink) X(path_unlink_file) X(poll_oneoff) X(proc_exit) X(proc_raise) X(random_get) X(sched_yield) X(sock_accept) X(sock_recv) X(sock_send) \
	X(sock_shutdown)
#define DECLARED(name) void probe_##name(u32 dir);
EACH(DECLARED)

#endif
