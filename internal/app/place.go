package app

import (
	"fmt"
	"os"
	"strings"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/wasm"
	"agentbox/internal/service/placer"
)

// What the tier nano has, by which is seen before a command runs whether it needs more. A name that is missing here costs a promotion, one too many
// an attempt in vain.
const (
	nanoModules = `__future__ _io _thread abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins cProfile calendar cmath cmd code
		codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal
		difflib dis doctest email encodings enum errno faulthandler filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass
		gettext glob graphlib gzip hashlib heapq hmac html http imaplib importlib inspect io ipaddress itertools json keyword linecache locale logging
		mailbox marshal math mimetypes modulefinder multiprocessing netrc ntpath nturl2path numbers opcode operator optparse os pathlib pdb pickle
		pickletools pkgutil platform plistlib poplib posix posixpath pprint profile pstats py_compile pyclbr pydoc pyexpat queue quopri random re
		reprlib rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtplib socket socketserver sqlite3 stat statistics
		string stringprep struct subprocess symtable sys sysconfig tabnanny tarfile tempfile textwrap this threading time timeit token tokenize tomllib
		trace traceback tracemalloc types typing tzdata unicodedata unittest urllib uuid warnings wave weakref webbrowser wsgiref xml xmlrpc zipapp zipfile
		zipimport zlib zoneinfo`
	nanoBuiltins = `assert async_hooks buffer child_process console constants crypto diagnostics_channel dns events fs http https module net os path
		perf_hooks process punycode querystring readline stream string_decoder timers tty url util v8 vm worker_threads zlib`
)

// maxRulesFile is how much of a file of rules is read: one byte more than is taken.
const maxRulesFile = placer.MaxRulesBytes + 1

// place returns what finds the needs of commands, by the operator's rules where he has some.
func place(c Config) (space.Place, error) {
	rules, err := placer.Standard()
	if err == nil && c.RuntimeRules != "" {
		rules, err = rulesOf(c.RuntimeRules)
	}
	if err != nil {
		return nil, err
	}
	return placer.New(rules, placer.Has{
		Commands: wasm.Commands(), Modules: strings.Fields(nanoModules), Builtins: strings.Fields(nanoBuiltins),
	}).Place, nil
}

func rulesOf(file string) (placer.Rules, error) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() >= maxRulesFile {
		return placer.Rules{}, fmt.Errorf("the rules of where commands run, %s, are no file of at most %d bytes that can be read", file, placer.MaxRulesBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return placer.Rules{}, fmt.Errorf("read the rules of where commands run: %w", err)
	}
	rules, err := placer.ParseRules(text)
	if err != nil {
		return rules, fmt.Errorf("%s: %w", file, err)
	}
	return rules, nil
}
