// What a program is given, its clocks, its chance, its end, and what it waits for.
#include "probes.h"

// texts probes a list of texts, of which sizes tells the measure, and prints it.
static void texts(u32 (*get)(void *, void *), u32 count, u32 size) {
	static char *list[65], text[8192];
	text[size] = 'x', list[count] = text;
	want("all of them", get(list, text), SUCCESS);
	const char *next = text;
	for (u32 i = 0; i < count; i++) {
		holds("one begins where the one before has ended", list[i] == next);
		next += length_of(list[i]) + 1;
		print("["), print(list[i]), print("]\n");
	}
	equal("they fill what was told", (u64)(next - text), size);
	holds("nothing is written behind them", text[size] == 'x' && list[count] == text);
	if (!count) return;
	want("the list outside of the memory", get(OUTSIDE, text), FAULT);
	want("the text outside of the memory", get(list, OUTSIDE), FAULT);
}

void probe_args_get(u32 dir) {
	(void)dir;
	u32 count = 0, size = 0;
	want("their sizes", args_sizes_get(&count, &size), SUCCESS);
	texts(args_get, count, size);
}

void probe_environ_get(u32 dir) {
	(void)dir;
	u32 count = 0, size = 0;
	want("their sizes", environ_sizes_get(&count, &size), SUCCESS);
	texts(environ_get, count, size);
}

void probe_args_sizes_get(u32 dir) {
	(void)dir;
	u32 count = 0, size = 0, bytes = 0;
	want("both", args_sizes_get(&count, &size), SUCCESS);
	equal("how many", count, argument_count);
	for (u32 i = 0; i < count; i++) bytes += length_of(arguments[i]) + 1;
	equal("how long, each with its NUL", size, bytes);
	want("the number outside of the memory", args_sizes_get(OUTSIDE, &size), FAULT);
	want("the size outside of the memory", args_sizes_get(&count, OUTSIDE), FAULT);
}

void probe_environ_sizes_get(u32 dir) {
	(void)dir;
	static char *list[64], text[8192];
	u32 count = 99, size = 99, bytes = 0;
	want("both", environ_sizes_get(&count, &size), SUCCESS);
	want("the variables", environ_get(list, text), SUCCESS);
	for (u32 i = 0; i < count; i++) bytes += length_of(list[i]) + 1;
	equal("how long, each with its NUL", size, bytes);
	want("the number outside of the memory", environ_sizes_get(OUTSIDE, &size), FAULT);
	want("the size outside of the memory", environ_sizes_get(&count, OUTSIDE), FAULT);
}

void probe_clock_res_get(u32 dir) {
	(void)dir;
	for (u32 id = 0; id < 4; id++) {
		u64 n = 0;
		want("a clock", clock_res_get(id, &n), SUCCESS);
		holds("it is more than nothing and at most a second", n > 0 && n <= 1000000000);
	}
	u64 n;
	want("no clock", clock_res_get(4, &n), INVAL);
	want("no clock by far", clock_res_get(~0u, &n), INVAL);
	want("outside of the memory", clock_res_get(0, OUTSIDE), FAULT);
}

void probe_clock_time_get(u32 dir) {
	(void)dir;
	for (u32 id = 0; id < 4; id++) {
		u64 first = 0, second = 0;
		want("a clock", clock_time_get(id, 0, &first), SUCCESS);
		want("with a precision", clock_time_get(id, 1000000, &second), SUCCESS);
		holds("it goes on", first < second);
	}
	u64 n;
	want("the wall's", clock_time_get(0, 0, &n), SUCCESS);
	holds("it is later than 2020", n > 1577836800ULL * 1000000000);
	want("no clock", clock_time_get(4, 0, &n), INVAL);
	want("no clock by far", clock_time_get(~0u, 0, &n), INVAL);
	want("outside of the memory", clock_time_get(0, 0, OUTSIDE), FAULT);
}

void probe_random_get(u32 dir) {
	(void)dir;
	static u8 one[1024], other[1024];
	u32 zeros = 0, equals = 0;
	want("1024 bytes", random_get(one, 1024), SUCCESS);
	want("and again", random_get(other, 1024), SUCCESS);
	for (u32 i = 0; i < 1024; i++) zeros += one[i] == 0, equals += one[i] == other[i];
	holds("they are not zero", zeros < 64);
	holds("they are others", equals < 64);
	one[0] = one[1] = 7;
	want("none", random_get(one, 0), SUCCESS);
	holds("none is written", one[0] == 7);
	want("outside of the memory", random_get(OUTSIDE, 32), FAULT);
	want("more than there is", random_get(one, ~0u), FAULT);
}

void probe_sched_yield(u32 dir) {
	(void)dir;
	for (int i = 0; i < 10; i++) want("others go on", sched_yield(), SUCCESS);
}

void probe_proc_exit(u32 dir) {
	(void)dir;
	u32 code = 0;
	if (argument_count > 2)
		for (const char *p = arguments[2]; *p; p++) code = code * 10 + (u32)(*p - '0');
	closed(dir);
	gone_folder(root, "proc_exit.scratch");
	proc_exit(code);
}

void probe_proc_raise(u32 dir) {
	(void)dir;
	static const u32 ignored[] = {0, 16, 17, 22, 27}; // none, chld, cont, urg, winch
	for (u32 i = 0; i < sizeof ignored / sizeof *ignored; i++) want("one that is ignored", proc_raise(ignored[i]), SUCCESS);
	want("one that stops", proc_raise(18), NOTSUP);
	want("no signal", proc_raise(31), INVAL);
	want("no signal by far", proc_raise(~0u), INVAL);
	if (argument_count < 3) return;
	closed(dir);
	gone_folder(root, "proc_raise.scratch");
	proc_raise(6); // abrt
	want("what ends the program", SUCCESS, ~0u);
}

static u32 poll(subscription *in, event *out, u32 n) {
	u32 events = 99;
	want("waiting", poll_oneoff(in, out, n, &events), SUCCESS);
	return events;
}

void probe_poll_oneoff(u32 dir) {
	subscription s[3] = {0};
	event e[3];
	u32 n;
	s[0].user = 7, s[0].clock.id = 1, s[0].clock.timeout = 5000000;
	u64 before, after;
	clock_time_get(1, 0, &before);
	equal("a span: events", poll(s, e, 1), 1);
	clock_time_get(1, 0, &after);
	holds("a span: it is over", after - before >= 5000000);
	equal("a span: whose", e[0].user, 7);
	equal("a span: of a clock", e[0].kind, 0);
	want("a span: error", e[0].error, SUCCESS);
	s[0].clock.flags = 1, s[0].clock.timeout = after + 5000000;
	equal("a time: events", poll(s, e, 1), 1);
	clock_time_get(1, 0, &before);
	holds("a time: it has come", before >= after + 5000000);
	s[0].clock.id = 0, s[0].clock.timeout = 1;
	equal("a time that is over: events", poll(s, e, 1), 1);
	s[1] = s[0], s[1].user = 8, s[1].clock.flags = 0, s[1].clock.timeout = 3600ULL * 1000000000;
	equal("the first of two: events", poll(s, e, 2), 1);
	equal("the first of two: whose", e[0].user, 7);
	s[0].clock.id = 9;
	equal("no clock: events", poll(s, e, 1), 1);
	want("no clock: error", e[0].error, INVAL);
	s[0].clock.id = 1, s[0].clock.flags = 2;
	equal("a flag that is none: events", poll(s, e, 1), 1);
	want("a flag that is none: error", e[0].error, INVAL);

	for (u32 fd = 1; fd < 3; fd++) {
		subscription w = {.user = fd, .kind = 2, .fd = fd};
		equal("output is ready: events", poll(&w, e, 1), 1);
		equal("output is ready: whose", e[0].user, fd);
		equal("output is ready: of a write", e[0].kind, 2);
		want("output is ready: error", e[0].error, SUCCESS);
	}
	subscription in = {.user = 3, .kind = 1, .fd = 0};
	equal("input is ready or has ended: events", poll(&in, e, 1), 1);
	equal("input is ready or has ended: of a read", e[0].kind, 1);
	want("input is ready or has ended: error", e[0].error, SUCCESS);

	file(dir, "f", "12345");
	u32 f = opened(dir, "f", 0, FD_READ | FD_WRITE | POLL_FD_READWRITE, 0), blind = opened(dir, "f", 0, FD_READ, 0);
	subscription both[2] = {{.user = 1, .kind = 1, .fd = f}, {.user = 2, .kind = 2, .fd = f}};
	equal("a file is ready: events", poll(both, e, 2), 2);
	equal("a file is ready: bytes", e[0].bytes, 5);
	subscription bad[2] = {{.user = 1, .kind = 1, .fd = 99}, {.user = 2, .kind = 1, .fd = blind}};
	equal("errors: events", poll(bad, e, 2), 2);
	want("no descriptor: error", e[0].error, BADF);
	either("without the right: error", e[1].error, NOTCAPABLE, BADF);
	closed(f), closed(blind), gone(dir, "f");

	want("nothing", poll_oneoff(s, e, 0, &n), INVAL);
	s[0].kind = 3;
	want("no kind", poll_oneoff(s, e, 1, &n), INVAL);
	s[0].kind = 0, s[0].clock.flags = 0, s[0].clock.timeout = 1;
	want("subscriptions outside of the memory", poll_oneoff(OUTSIDE, e, 1, &n), FAULT);
	want("events outside of the memory", poll_oneoff(s, OUTSIDE, 1, &n), FAULT);
	want("the number outside of the memory", poll_oneoff(s, e, 1, OUTSIDE), FAULT);
}

// socket probes a function of sockets, of which there are none.
static void no_socket(u32 dir, u32 (*call)(u32 fd)) {
	file(dir, "f", "");
	u32 f = opened(dir, "f", 0, FD_READ | FD_WRITE, 0);
	want("a stream", call(1), NOTSOCK);
	want("a file", call(f), NOTSOCK);
	want("a folder", call(dir), NOTSOCK);
	closed(f), gone(dir, "f");
	want("a closed one", call(f), BADF);
	want("no descriptor", call(~0u), BADF);
}

static u16 flags;
static const vector some = {buffer, 16};
static u32 accepting(u32 fd) { return sock_accept(fd, 0, &used); }
static u32 receiving(u32 fd) { return sock_recv(fd, &some, 1, 0, &used, &flags); }
static u32 sending(u32 fd) { return sock_send(fd, &some, 1, 0, &used); }
static u32 ending(u32 fd) { return sock_shutdown(fd, 1); }
void probe_sock_accept(u32 dir) { no_socket(dir, accepting); }
void probe_sock_recv(u32 dir) { no_socket(dir, receiving); }
void probe_sock_send(u32 dir) { no_socket(dir, sending); }
void probe_sock_shutdown(u32 dir) {
	no_socket(dir, ending);
	for (u32 how = 1; how <= 3; how++) want("each way", sock_shutdown(1, how), NOTSOCK);
	either("neither way", sock_shutdown(1, 0), INVAL, NOTSOCK);
	either("no way", sock_shutdown(1, 4), INVAL, NOTSOCK);
	want("a closed one, no way", sock_shutdown(99, 4), BADF);
}
