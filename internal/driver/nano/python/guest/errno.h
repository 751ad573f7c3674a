// Programs know errors by Linux's numbers: "[Errno 2] No such file or directory". WASI has numbers of its own, in the order of the names, so CPython's sources
// are changed, by scripts/nano, to tell these where they make an OSError and the module errno.
#ifndef NANO_ERRNO_H
#define NANO_ERRNO_H

// The numbers of Linux, by those of WASI.
static const unsigned char nano_errnos[] = {
    0,   7,   13, 98, 99, 97,  11, 114, 9,  74, 16,  125, 10, 103, 111, 104, 35, 89, 33, 122, // success, 2big ... dquot
    17,  14,  27, 113, 43, 84, 115, 4,  22, 5,  106, 21,  40, 24,  31,  90,  72, 36, 100, 102, // exist ... netreset
    101, 23,  105, 19, 2,  8,  37, 67,  12, 42, 92,  28,  38, 107, 20,  39,  131, 88, 95, 25, // netunreach ... notty
    6,   75,  130, 1, 32,  71, 93, 91,  34, 30, 29,  3,   116, 110, 26, 18,  133,             // nxio ... xdev, notcapable
};

static inline int
nano_errno(int wasi)
{
    return wasi >= 0 && wasi < (int)sizeof nano_errnos ? nano_errnos[wasi] : wasi;
}

static inline int
nano_errno_of(int number)
{
    for (int i = 0; i < (int)sizeof nano_errnos; i++) {
        if (nano_errnos[i] == number) {
            return i;
        }
    }
    return number;
}

#endif
