// Time zones. The C library for WASI knows UTC only; these functions take the place of the ones by which all of its others (localtime, mktime, strftime) ask
// for a zone. The host has the zone database, and reads the variable TZ as GNU's C library does.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "zone.h"

struct answer {
    int32_t summer, offset, opposite;
    char name[16];
};

__attribute__((import_module("nano"), import_name("zone"))) extern void host_zone(const char *tz, uint32_t len, int64_t seconds, uint32_t local, struct answer *out);

const char __utc[] = "UTC";

static char *zone;                                                    // value of TZ when tzset was called last; NULL for UTC
static struct name { struct name *next; char text[16]; } *names;      // abbreviations that were handed out: they stay

// tzset has the variable TZ hold from now on.
void
tzset(void)
{
    const char *tz = getenv("TZ");
    free(zone);
    zone = tz && *tz ? strdup(tz) : NULL;
}

static const char *
keep(const char *text)
{
    if (strcmp(text, __utc) == 0) {
        return __utc;
    }
    for (struct name *n = names; n; n = n->next) {
        if (strcmp(n->text, text) == 0) {
            return n->text;
        }
    }
    struct name *n = malloc(sizeof *n);
    if (!n) {
        return __utc;
    }
    memcpy(n->text, text, sizeof n->text);
    n->next = names;
    names = n;
    return n->text;
}

// __secs_to_zone tells what zone holds at a time, which is one of local time where local is set. opposite is the offset of the other half of the year.
void
__secs_to_zone(long long seconds, int local, int *summer, long *offset, long *opposite, const char **name)
{
    struct answer a = {.opposite = 3600, .name = "UTC"}; // GNU's library shifts an hour of summer time that a zone has not
    if (zone) {
        host_zone(zone, strlen(zone), seconds, local, &a);
    }
    *summer = a.summer;
    *offset = a.offset;
    if (opposite) {
        *opposite = a.opposite;
    }
    *name = keep(a.name);
}

const char *
__tm_to_tzname(const struct tm *tm)
{
    return tm->tm_zone ? tm->tm_zone : "";
}
