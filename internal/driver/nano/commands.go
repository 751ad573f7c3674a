package nano

import (
	"maps"
	"slices"
	"strings"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/javascript"
	"agentbox/internal/driver/nano/python"
	"agentbox/internal/driver/nano/sqlite"
	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/toolbox"
	"agentbox/internal/userland/zstandard"
)

// Commands returns the names of the commands that a nano space has, in order: those of the shell and of the interpreters, whether this
// build has them or not.
func Commands() []string {
	t := program.Table{}.Add(shell.Programs(), coreutils.Programs(), toolbox.Programs(), zstandard.Programs())
	names := append(slices.Collect(maps.Keys(t)), "bash", "sh", "dash", "python", "python3", "python3.13", "js", "node", "bun", "wasm",
		"sqlite3")
	slices.Sort(names)
	return slices.Compact(names)
}

// Modules of the interpreters. They tell before a command runs whether it needs a heavier tier. A name that is missing here would cost a
// promotion, one too many an attempt in vain.
const (
	modules = `__future__ _io _thread abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cProfile calendar cmath
		cmd code
		codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg csv dataclasses datetime dbm
		decimal
		difflib dis doctest email encodings enum errno faulthandler filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt
		getpass
		gettext glob graphlib gzip hashlib heapq hmac html http imaplib importlib inspect io ipaddress itertools json keyword linecache locale
		logging lzma
		mailbox marshal math mimetypes modulefinder multiprocessing netrc ntpath nturl2path numbers opcode operator optparse os pathlib pdb pickle
		pickletools pkgutil platform plistlib poplib posix posixpath pprint profile pstats py_compile pyclbr pydoc pyexpat queue quopri random re
		reprlib rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtplib socket socketserver sqlite3 sre_compile
		sre_constants sre_parse stat statistics
		string stringprep struct subprocess symtable sys sysconfig tabnanny tarfile tempfile textwrap this threading time timeit token tokenize
		tomllib
		trace traceback tracemalloc types typing tzdata unicodedata unittest urllib uuid warnings wave weakref webbrowser wsgiref xml xmlrpc
		zipapp zipfile
		zipimport zlib zoneinfo`
	builtins = `assert async_hooks buffer child_process console constants crypto diagnostics_channel dns events fs http https module net os
		path
		perf_hooks process punycode querystring readline stream string_decoder sys timers tty url util v8 vm worker_threads zlib`
)

// Modules returns the names of the modules that Python has in a nano space, without those of packages and without most of those with an
// underscore.
func Modules() []string { return strings.Fields(modules) }

// Builtins returns the names of Node's modules that JavaScript has in a nano space.
func Builtins() []string { return strings.Fields(builtins) }

// Offer lists the commands and interpreters of a nano space of this build. It is the same on every host.
func Offer() space.Offer {
	o := space.Offer{Tier: Name, Programs: Commands(), Modules: []string{}, Packages: []string{}, Node: []string{}, Lacks: lacks()}
	if _, err := python.Key(); err == nil {
		o.Modules = Modules()
	} else {
		o.Programs = slices.DeleteFunc(o.Programs, func(name string) bool { return strings.HasPrefix(name, "python") })
	}
	if _, err := javascript.Key(); err == nil {
		o.Node = Builtins()
	} else {
		o.Programs = slices.DeleteFunc(o.Programs, func(name string) bool { return name == "js" || name == "node" || name == "bun" })
	}
	if _, err := sqlite.Key(); err != nil {
		o.Programs = slices.DeleteFunc(o.Programs, func(name string) bool { return name == "sqlite3" })
	}
	slices.Sort(o.Modules)
	slices.Sort(o.Node)
	return o
}

func lacks() []string {
	return []string{space.Binaries, space.Concurrency, space.Ownership, space.Processes, space.Sockets, space.SpecialFiles}
}
