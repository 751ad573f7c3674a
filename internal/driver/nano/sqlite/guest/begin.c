// What SQLite's shell does first in a nano space.
//
// The C library of WASI begins in the root. nano_begin moves to the working folder, which the host names in a variable.
//
// WASI has no shared memory. SQLite then opens a database of the journal mode WAL only in the locking mode "exclusive", with the index of
// its log in the memory of the program. So the shell looks at each database that it opens: byte 19 of the file is 2 in that mode.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sqlite3.h"

static int opened(sqlite3 *db, char **message, const void *api) {
	(void)message;
	(void)api;
	const char *name = sqlite3_db_filename(db, "main");
	FILE *file = name && *name ? fopen(name, "rb") : NULL;
	if (!file) return SQLITE_OK;
	unsigned char head[20];
	size_t n = fread(head, 1, sizeof head, file);
	fclose(file);
	if (n == sizeof head && head[19] == 2) sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
	return SQLITE_OK;
}

void nano_begin(void) {
	const char *folder = getenv("AGENTBOX_FOLDER");
	if (folder && chdir(folder)) perror("sqlite3: the working folder");
	unsetenv("AGENTBOX_FOLDER");
	sqlite3_initialize();
	sqlite3_auto_extension((void (*)(void))opened);
}
