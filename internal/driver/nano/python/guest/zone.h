// What zone.c has beyond the C library's own <time.h>. All of CPython is compiled with it.
void tzset(void);
