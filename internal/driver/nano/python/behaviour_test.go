package python_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// expect runs code and compares what it prints and its exit code; a want that ends in … is a beginning.
func expect(t *testing.T, w *world, code, stdout, stderr string, exit int) {
	t.Helper()
	w.python(t, "-c", code)
	match := func(name, got, want string) {
		if begin, ok := strings.CutSuffix(want, "…"); ok && strings.HasPrefix(got, begin) || got == want {
			return
		}
		t.Errorf("%s: %q, want %q", name, got, want)
	}
	match("stdout", w.stdout.String(), stdout)
	match("stderr", w.stderr.String(), stderr)
	if got := w.status.Exit(); got != exit {
		t.Errorf("it exited with %d, want %d; stderr:\n%s", got, exit, w.stderr.String())
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name, code, stdout, stderr string
		exit                       int
	}{
		{"os._exit does not flush", "import os; print('lost'); os._exit(7)", "", "", 7},
		{"streams that were replaced", "import io, sys; sys.stdout = io.StringIO(); print('unseen'); print('seen', file=sys.__stdout__)",
			"seen\n", "", 0},
		{"abort", "import os; os.abort()", "", "Fatal Python error: the interpreter crashed: unreachable\n", 134},
		{"interrupt", "raise KeyboardInterrupt", "", "Traceback…", 130},
		{"bytes", "import sys; sys.stdout.buffer.write(b'\\xff\\x00')", "\xff\x00", "", 0},
		{"nobody waits for input", "input()", "", "Traceback…", 1},
		{"exit function", "import atexit, sys; atexit.register(print, 'last'); sys.exit(4)", "last\n", "", 4},
		{"no terminal", "import sys; print(sys.stdin.isatty(), sys.stdout.isatty())", "False False\n", "", 0},
		{"platform", "import sys, os; print(sys.platform, os.name, sys.version_info[:2], sys.executable, os.cpu_count())",
			"wasi posix (3, 13) /usr/bin/python3 1\n", "", 0},
		{"flags", "import sys; f = sys.flags; print(f.isolated, f.safe_path, f.optimize, f.utf8_mode)", "0 False 0 1\n", "", 0},
		{"virtual clock", "import time; a = time.time(); time.sleep(3600); print(round(time.time() - a))", "3600\n", "", 0},
		{"monotonic", "import time; a = time.monotonic(); time.sleep(2.5); print(round(time.monotonic() - a, 2))", "2.5\n", "", 0},
		{"event loop sleeps on it", "import asyncio, time; a = time.time(); asyncio.run(asyncio.sleep(600)); print(round(time.time() - a))",
			"600\n", "", 0},
		{"event loop waits for nothing", "import asyncio\nasync def f(): await asyncio.Event().wait()\nasyncio.run(f())", "", "Traceback…", 1},
		{"date", "import datetime; print(datetime.datetime.now(datetime.UTC).date())", "2026-01-02\n", "", 0},
		{"modes", "import os; open('a', 'w').close(); os.chmod('a', 0o751); print(oct(os.stat('a').st_mode)); os.mkdir('d'); " +
			"print(oct(os.stat('d').st_mode))",
			"0o100751\n0o40755\n", "", 0},
		{"uuid", "import uuid; print(len(str(uuid.uuid4())), uuid.uuid5(uuid.NAMESPACE_DNS, 'a'))", "36 4f3f2898-69e3-5a0d-820a-c4e87987dbce\n",
			"", 0},
		{"secrets", "import secrets, os; print(len(secrets.token_hex(8)), len(os.urandom(9)))", "16 9\n", "", 0},
		{"temporary files", "import tempfile, os\nwith tempfile.TemporaryDirectory() as d: print(os.path.dirname(d))", "/tmp\n", "", 0},
		{"nothing outside", "open('/etc/shadow')", "", "Traceback…", 1},
		{"library is read-only", "open('/usr/lib/python313.zip', 'r+b')", "", "Traceback…", 1},
		{"lock", "import threading; l = threading.RLock(); l.acquire(); l.acquire(); print(threading.active_count())", "1\n", "", 0},
		{"devices", "open('/dev/null', 'w').write('x'); print(repr(open('/dev/null').read()))", "''\n", "", 0},
		{"standard streams by name", "open('/dev/stdout', 'w').write('a\\n'); open('/dev/stderr', 'w').write('b\\n')", "a\n", "b\n", 0},
		{"key of a password", "import hashlib; print(hashlib.pbkdf2_hmac('sha256', b'a', b'b', 1000, 40).hex())",
			"a9ad83929ae9ec538bc0f44e36ada66fedb00425310583960ad798a416eec3aa7a246050251cac3b\n", "", 0},
		{"no bytecode is written", "open('m.py', 'w').close(); import m, os; print(os.listdir())", "['m.py']\n", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, &world{}, c.code, c.stdout, c.stderr, c.exit) })
	}
}

// TestSourcesHaveDebiansPatches tries what Debian's security fixes change and the release of CPython does not have.
func TestSourcesHaveDebiansPatches(t *testing.T) {
	expect(t, &world{}, "import sys; print(sys.version.split()[0])", "3.13.5\n", "", 0)
	expect(t, &world{}, "import configparser, io\nc = configparser.ConfigParser()\nc['a'] = {'k': 'x\\ry', 'l': 'x\\r\\ny'}\nb = "+
		"io.StringIO(newline='')\n"+
		"c.write(b)\nprint(repr(b.getvalue()))", "'[a]\\nk = x\\n\\ty\\nl = x\\n\\ty\\n\\n'\n", "", 0) // CVE-2026-0864
}

func TestCompressorsOfTheLibrary(t *testing.T) {
	for _, c := range []struct{ name, code, stdout string }{
		{"bz2", "import bz2; d = bytes(range(256)) * 4000; p = bz2.compress(d); print(p[:3], len(p) < 20000, bz2.decompress(p) == d)",
			"b'BZh' True True\n"},
		{"a text that bzip2 packed",
			"import bz2; " +
				"print(bz2.decompress(bytes.fromhex('425a6839314159265359691b1a33" +
				"000002d180001040002a68dc0020003100d0010001a0b05cf3935685903878bb9229c2848348d8d198')))", "b'as others pack " +
				"it\\n'\n"},
		{"lzma", "import lzma; d = bytes(range(256)) * 4000; p = lzma.compress(d); print(p[:6], len(p) < 2000, lzma.decompress(p) == d)",
			"b'\\xfd7zXZ\\x00' True True\n"},
		{"lzma of old", "import lzma; d = b'ab' * 9999; print(lzma.decompress(lzma.compress(d, format=lzma.FORMAT_ALONE)) == d)", "True\n"},
		{"checks", "import lzma; print([lzma.is_check_supported(c) for c in (lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_CRC64, " +
			"lzma.CHECK_SHA256)])",
			"[True, True, True, True]\n"},
		{"filters", "import lzma; d = bytes(5000)\nfor f in 'X86 POWERPC IA64 ARM ARMTHUMB SPARC'.split():\n" +
			"  fs = [{'id': lzma.FILTER_DELTA, 'dist': 4}, {'id': getattr(lzma, 'FILTER_' + f)}, {'id': lzma.FILTER_LZMA2, 'preset': 1}]\n" +
			"  assert lzma.decompress(lzma.compress(d, filters=fs)) == d\nprint('all')", "all\n"},
		{"damaged", "import bz2, lzma\ntry: bz2.decompress(b'BZh9' + bytes(20))\nexcept OSError as e: print(e)\n" +
			"try: lzma.decompress(lzma.compress(b'abc')[:-9] + bytes(9))\nexcept lzma.LZMAError as e: print(e)",
			"Invalid data stream\nCorrupt input data\n"},
		{"archives", "import tarfile, zipfile, io\nfor m in ('bz2', 'xz'):\n  b = io.BytesIO()\n  with tarfile.open(fileobj=b, mode='w:' + m) " +
			"as t:\n" +
			"    i = tarfile.TarInfo('f'); i.size = 3; t.addfile(i, io.BytesIO(b'abc'))\n  b.seek(0)\n  " +
			"print(tarfile.open(fileobj=b).extractfile('f').read())\n" +
			"for m in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):\n  b = io.BytesIO()\n  with zipfile.ZipFile(b, 'w', m) as z: z.writestr('f', 'abc' * " +
			"99)\n" +
			"  print(len(zipfile.ZipFile(b).read('f')))", "b'abc'\nb'abc'\n297\n297\n"},
		{"_pyio", "import _pyio\nwith _pyio.open('f', 'w') as f: f.write('é\\n')\nwith _pyio.open('f', 'rb') as f: print(f.read())\n" +
			"print(_pyio.open('f').read(), end='')", "b'\\xc3\\xa9\\n'\né\n"},
		{"licences", "import zipfile; z = zipfile.ZipFile('/usr/lib/python313.zip'); print(sorted(n[9:] for n in z.namelist() if " +
			"n.startswith('LICENSES/')))",
			"['CPython-incorporated.rst', 'CPython.txt', 'SQLite.txt', 'bzip2.txt', 'liblzma.txt', 'tzdata.txt', 'wasi-libc.txt', 'zlib.txt']\n"},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, &world{}, c.code, c.stdout, "", 0) })
	}
}

// TestFileThatIsTooLargeIsNotTriedAgain is about numbers: Linux's of EFBIG is WASI's of EINTR, after which CPython's C code writes again.
func TestFileThatIsTooLargeIsNotTriedAgain(t *testing.T) {
	for name, mode := range map[string]string{"buffered": "'wb'", "raw": "'wb', 0", "text": "'w', encoding='latin-1'"} {
		t.Run(name, func(t *testing.T) {
			data := "b'x'"
			if name == "text" {
				data = "'x'"
			}
			w := &world{limits: limits}
			w.limits.FileBytes, w.limits.Gas = 1<<20, 2_000_000_000
			expect(t, w, "import errno\nf = open('f', "+mode+")\ntry:\n  while True: f.write("+data+" * 300000); f.flush()\n"+
				"except OSError as e: print(e.errno == errno.EFBIG, e.strerror)\n", "True File too large\n", "", 0)
		})
	}
}

func TestRecursionThroughCIsAnExceptionAndNoCrash(t *testing.T) {
	for name, code := range map[string]string{
		"cached":   "@functools.lru_cache(None)\ndef f(n): return f(n + 1)\ncall = lambda: f(0)",
		"getattr":  "class A:\n  def __getattr__(s, n): return getattr(s, n)\ncall = lambda: A().x",
		"sorted":   "def f(x): return sorted([1, 2], key=f)\ncall = lambda: f(0)",
		"eval":     "def f(): return eval('f()')\ncall = f",
		"repr":     "class A:\n  def __repr__(s): return '%r' % s\ncall = lambda: repr(A())",
		"map":      "def f(x): return list(map(f, [x]))\ncall = lambda: f(1)",
		"new":      "class A:\n  def __new__(c): return A()\ncall = A",
		"compare":  "class A:\n  def __eq__(s, o): return [s] == [o]\ncall = lambda: A() == A()",
		"list":     "l = []\nfor i in range(10**5): l = [l]\ncall = lambda: repr(l)",
		"json":     "call = lambda: json.loads('[' * 10**5)",
		"pickle":   "l = []\nfor i in range(10**5): l = [l]\ncall = lambda: pickle.dumps(l)",
		"copy":     "l = []\nfor i in range(10**5): l = [l]\ncall = lambda: copy.deepcopy(l)",
		"import":   "call = lambda: importlib.import_module('m')",
		"property": "class A:\n  x = property(lambda s: s.x)\ncall = lambda: A().x",
		"with":     "class A:\n  def __enter__(s):\n    with s: pass\n  def __exit__(s, *a): pass\ndef call():\n  with A(): pass",
		"re":       "call = lambda: re.compile('(' * 5000 + ')' * 5000)",
		"ast":      "call = lambda: eval('-' * 10**5 + '1')",
		"nested":   "call = lambda: ast.literal_eval('[' * 10**4 + ']' * 10**4)",
		"sum":      "class A:\n  def __add__(s, o): return sum([s], o)\ncall = lambda: A() + A()",
		"generator": "def g(n):\n  yield from g(n + 1)\n" +
			"call = lambda: list(g(0))",
	} {
		for _, limit := range []string{"", "sys.setrecursionlimit(10**5)\n"} {
			t.Run(name+strings.Repeat(" with a high limit", len(limit)/len("sys.setrecursionlimit(10**5)\n")), func(t *testing.T) {
				code := "import ast, copy, functools, importlib, json, pickle, re, sys\n" + limit + code +
					"\ntry: call()\nexcept (RecursionError, MemoryError, SyntaxError): pass\nprint('goes on')"
				w := &world{files: map[string]string{"m.py": "import importlib, sys\ndel sys.modules['m']\nimportlib.import_module('m')\n"}}
				expect(t, w, code, "goes on\n", "", 0)
			})
		}
	}
}

func TestEndlessRecursionWithoutALimitIsNoSuccess(t *testing.T) {
	w := &world{}
	w.limits = limits
	w.limits.MemoryBytes = 32 << 20
	expect(t, w, "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()", "", "…", 1)
	if s := w.stderr.String(); !strings.Contains(s, "Error") { // MemoryError, or what CPython makes of it
		t.Errorf("stderr is %q", s)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	for name, code := range map[string]string{
		"at once": "try: bytearray(10**8)\nexcept MemoryError: print('refused')",
		"growing": "l = []\ntry:\n  while True: l.append(bytearray(10**6))\nexcept MemoryError: n = len(l); l.clear(); print('refused')\n" +
			"assert 40 < n < 64, n",
		"small": "l = []\ntry:\n  while True: l.append([0] * 10)\nexcept MemoryError: l.clear(); print('refused')",
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{limits: limits}
			w.limits.MemoryBytes = 64 << 20
			expect(t, w, code, "refused\n", "", 0)
			if hit := w.account.WasHit(); hit != bound.Memory {
				t.Errorf("the bound that was hit is %q", hit)
			}
			if now, _ := w.account.Memory(); now != 0 {
				t.Errorf("%d bytes are held at the end", now)
			}
		})
	}
	w := &world{limits: limits}
	w.limits.MemoryBytes = 64 << 20
	expect(t, w, "l = []\nwhile True: l.append([0] * 10)", "", "Traceback…", 1)
	if !strings.HasSuffix(w.stderr.String(), "MemoryError\n") {
		t.Errorf("stderr is %q", w.stderr.String())
	}
	w = &world{limits: limits}
	w.limits.MemoryBytes = 1 << 20
	expect(t, w, "print(1)", "", "python3: not enough memory for the interpreter\n", 137)
}

func TestWorkAndTimeAndOutputAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		limit func(*bound.Limits)
		code  string
		want  bound.Stopped
	}{
		"gas": {func(l *bound.Limits) { l.Gas = 200_000_000 }, "while True: pass", bound.Stopped{Limit: bound.Gas}},
		"gas, caught": {func(l *bound.Limits) { l.Gas = 200_000_000 },
			"while True:\n  try:\n    while True: pass\n  except BaseException: pass", bound.Stopped{Limit: bound.Gas}},
		"gas in C": {func(l *bound.Limits) { l.Gas = 200_000_000 }, "import itertools; sum(itertools.repeat(1))",
			bound.Stopped{Limit: bound.Gas}},
		"gas of a pattern": {func(l *bound.Limits) { l.Gas = 200_000_000 }, "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
			bound.Stopped{Limit: bound.Gas}},
		"gas of numbers": {func(l *bound.Limits) { l.Gas = 200_000_000 }, "print(len(str(7 ** 10**7)))", bound.Stopped{Limit: bound.Gas}},
		"sleep":          {func(l *bound.Limits) { l.Time = time.Minute }, "import time; time.sleep(61)", bound.Stopped{TimedOut: true}},
		"output":         {func(l *bound.Limits) { l.OutputBytes = 1000 }, "while True: print('x' * 100)", bound.Stopped{Limit: bound.Output}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{limits: limits}
			c.limit(&w.limits)
			if w.python(t, "-c", c.code); w.stopped == nil || *w.stopped != c.want {
				t.Errorf("it was stopped by %+v, want %+v; stderr:\n%s", w.stopped, c.want, w.stderr.String())
			}
		})
	}
}

func TestAStopEndsWhatRuns(t *testing.T) {
	w := &world{during: func(w *world, p *program.Process) { w.account.Stop(&bound.Stopped{Canceled: true}) }}
	if w.python(t, "-c", "while True: pass"); w.stopped == nil || !w.stopped.Canceled {
		t.Errorf("it was stopped by %+v", w.stopped)
	}
}

func TestADeadlineEndsTheProgramAndNotTheExecution(t *testing.T) {
	for name, code := range map[string]string{
		"computing": "print('begins', flush=True)\nwhile True: pass",
		"sleeping":  "import time\nprint('begins', flush=True)\ntime.sleep(100)\nprint('late', flush=True)",
		"both":      "import time\nprint('begins', flush=True)\nwhile True: time.sleep(0.1)",
	} {
		w := &world{during: func(_ *world, p *program.Process) { p.Deadline = p.Now().Add(2 * time.Second) }}
		if w.python(t, "-c", code); w.status.Signal != program.SIGTERM || w.stdout.String() != "begins\n" || w.stopped != nil {
			t.Errorf("%s: it ended with %+v and printed %q; stopped: %v", name, w.status, w.stdout.String(), w.stopped)
		}
		if past := w.account.Now().Sub(epoch.Add(2 * time.Second)); past < 0 || past > 10*time.Millisecond {
			t.Errorf("%s: it ended %s after its deadline", name, past)
		}
	}
}

func TestLacks(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"module", "import numpy", "module numpy"},
		{"module of a package", "import pandas.core", "module pandas"},
		{"from a module", "from requests import get", "module requests"},
		{"caught", "try: import numpy\nexcept ImportError: raise SystemExit('install numpy')", "module numpy"},
		{"by name", "import importlib; importlib.import_module('yaml')", "module yaml"},
		{"in a function", "def f():\n  import torch\nf()", "module torch"},
		{"in C", "import ctypes", "module _ctypes"},
		{"thread", "import threading; threading.Thread(target=print).start()", "thread threading"},
		{"pool", "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as p: p.submit(print)", "thread threading"},
		{"executor", "import asyncio\nasync def f(): await asyncio.to_thread(print)\nasyncio.run(f())", "thread run_in_executor"},
		{"socket", "import socket; socket.socket()", "network socket.socket"},
		{"host", "import urllib.request; urllib.request.urlopen('http://example.com/x')", "network example.com"},
		{"a pool of processes", "import multiprocessing as m; m.Pool(2)", "process multiprocessing"},
		{"a process", "import multiprocessing as m; m.Process(target=print).start()", "process multiprocessing"},
		{"an executor of processes", "import concurrent.futures as c; c.ProcessPoolExecutor()", "process multiprocessing"},
		{"a queue of processes", "import multiprocessing as m; m.Queue()", "process _multiprocessing"},
		{"https by urllib", "import urllib.request as u; u.urlopen('https://example.com')", "network example.com"},
		{"https by http.client", "import http.client as h; h.HTTPSConnection('example.com').request('GET', '/')", "network example.com"},
		{"connection", "import socket; socket.create_connection(('10.0.0.1', 80))", "network 10.0.0.1"},
		{"asyncio host", "import asyncio; asyncio.run(asyncio.open_connection('example.org', 80))", "network example.org"},
		{"fork", "import os; os.fork()", "process os.fork"},
		{"from os", "from os import execv", "process os.execv"},
		{"alarm", "import signal; signal.alarm(1)", "signal signal.alarm"},
		{"command", "import subprocess; subprocess.run(['cc', 'x.c'])", "command cc "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{}
			w.python(t, "-c", c.code)
			kind, name, _ := strings.Cut(c.want, " ")
			want := program.Lack{Kind: program.LackFeature, Name: "python3", Detail: c.want}
			if kind == program.LackCommand {
				want = program.Lack{Kind: kind, Name: strings.TrimSpace(name)}
			}
			if w.status.Exit() == 0 || len(w.lacks) == 0 || w.lacks[0] != want {
				t.Errorf("it exited with %d and lacks %+v, want %+v; stderr:\n%s", w.status.Exit(), w.lacks, want, w.stderr.String())
			}
		})
	}
	for name, code := range map[string]string{
		"what is caught and does not matter": "try: import numpy\nexcept ImportError: print('slow')",
		"a mistake of its own":               "import json; json.loads('{')",
		"a module of its own that is wrong":  "import own",
		"what the library can do without":    "import shutil, logging, socketserver, multiprocessing.process; 1 / 0",
	} {
		w := &world{files: map[string]string{"own.py": "from os import nothing"}}
		if w.python(t, "-c", code); len(w.lacks) > 0 {
			t.Errorf("%s: it lacks %+v", name, w.lacks)
		}
	}
}

func TestCommands(t *testing.T) {
	for _, c := range []struct{ name, code, stdout, stderr string }{
		{"inherits", "import subprocess; print('a'); print(subprocess.run(['echo', 'hi']).returncode)", "a\nhi\n0\n", ""},
		{"captures", "import subprocess; print(subprocess.check_output(['echo', 'hi'], text=True))", "hi\n\n", ""},
		{"input", "import subprocess; print(subprocess.run(['upper'], input=b'abc', capture_output=True))",
			"CompletedProcess(args=['upper'], returncode=0, stdout=b'ABC', stderr=b'')\n", ""},
		{"fails", "import subprocess\ntry: subprocess.run(['fail'], check=True)\nexcept subprocess.CalledProcessError as e: print(e)",
			"Command '['fail']' returned non-zero exit status 3.\n", "it failed\n"},
		{"errors to output", "import subprocess; print(subprocess.run('fail', shell=True, stdout=-1, stderr=-2).stdout)", "b'it failed\\n'\n",
			""},
		{"system", "import os; print(os.waitstatus_to_exitcode(os.system('fail')))", "3\n", "it failed\n"},
		{"popen", "import os; print(os.popen('echo x').read())", "x\n\n", ""},
		{"missing", "import subprocess\ntry: subprocess.run(['nope'])\nexcept FileNotFoundError as e: print(e)",
			"[Errno 2] No such file or directory: 'nope'\n", ""},
		{"to a file", "import subprocess\nwith open('o', 'w') as f: subprocess.run(['echo', 'y'], stdout=f)\nprint(open('o').read())", "y\n\n",
			""},
		{"from a file", "import subprocess\nopen('i', 'w').write('z')\nwith open('i') as f: print(subprocess.run(['upper'], stdin=f, " +
			"stdout=-1).stdout)", "b'Z'\n", ""},
		{"stream", "import subprocess\np = subprocess.Popen(['upper'], stdin=-1, stdout=-1, text=True)\np.stdin.write('q\\nr\\n'); " +
			"p.stdin.close()\n" +
			"print([l for l in p.stdout], p.wait())", "['Q\\n', 'R\\n'] 0\n", ""},
		{"timeout", "import subprocess\ntry: subprocess.run(['sleep'], timeout=2)\nexcept subprocess.TimeoutExpired as e: print(e)",
			"Command '['sleep']' timed out after 2 seconds\n", ""},
		{"asyncio", "import asyncio\nasync def f():\n  p = await asyncio.create_subprocess_exec('upper', stdin=-1, stdout=-1)\n  print(await " +
			"p.communicate(b'k'), p.returncode)\nasyncio.run(f())",
			"(b'K', None) 0\n", ""},
		{"shell of asyncio", "import asyncio\nasync def f():\n  p = await asyncio.create_subprocess_shell('echo a', stdout=-1)\n  print(await " +
			"p.stdout.readline(), await p.wait())\nasyncio.run(f())",
			"b'a\\n' 0\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, &world{}, c.code, c.stdout, c.stderr, 0) })
	}
}

// pollution changes whatever can be changed of an interpreter.
const pollution = `
import builtins, sys, os, json, random, gc
for name, module in list(sys.modules.items()):
    try: module.SECRET = 'secret'
    except Exception: pass
builtins.print = None; json.dumps = None
os.environ['SECRET'] = 'secret'
sys.path.append('/secret'); sys.argv.append('secret'); sys.setrecursionlimit(77)
secrets = ['secret %d' % i for i in range(200000)]
random.seed(1); gc.disable()
open('/proj/secret', 'w').write('secret'); open('/tmp/secret', 'w').write('secret')
`

func TestNothingIsLeftForTheNext(t *testing.T) {
	const probe = `
import builtins, sys, os, json, gc
print([n for n, m in sys.modules.items() if hasattr(m, 'SECRET')], hasattr(builtins, 'SECRET'), json.dumps([1]), sorted(os.environ), sys.path, sys.argv,
      sys.getrecursionlimit(), gc.isenabled(), os.listdir('/proj'), os.listdir('/tmp'))
`
	fresh := (&world{}).python(t, "-c", probe)
	for range 5 {
		if w := (&world{}).python(t, "-c", pollution); w.status.Exit() != 0 {
			t.Fatal(w.stderr.String())
		}
		if w := (&world{}).python(t, "-c", probe); w.stdout.String() != fresh.stdout.String() || w.account.Used() != fresh.account.Used() {
			t.Fatalf("after another execution it prints\n%s, with %d gas; before\n%s, with %d", w.stdout.String(), w.account.Used(),
				fresh.stdout.String(), fresh.account.Used())
		}
	}
	if got := fresh.stdout.String(); !strings.Contains(got, "[] False") {
		t.Error(got)
	}
}

const chance = `
import random, uuid, os, time, hashlib, tempfile, json
d = {str(random.random()): random.randint(0, 10**9) for i in range(500)}
s = {str(i) for i in range(50)}
print(hashlib.sha256(json.dumps([d, list(s), str(uuid.uuid4()), os.urandom(8).hex(), time.time(), id(d), hash('x')]).encode()).hexdigest())
with open('out', 'w') as f: f.write(repr(d))
print(tempfile.mktemp(), object())
`

func TestTheSeedDecidesEverything(t *testing.T) {
	type run struct {
		out  string
		gas  int64
		file string
	}
	with := func(seed byte) run {
		w := &world{seed: seed}
		if w.python(t, "-c", chance); w.status.Exit() != 0 {
			t.Fatal(w.stderr.String())
		}
		r := run{out: w.stdout.String(), gas: w.account.Used()}
		for _, c := range w.changes {
			if c.Op == vfs.WriteFile {
				r.file += c.Path + string(bytes.Join(c.Content, nil))
			}
		}
		return r
	}
	first, again, other := with(1), with(1), with(2)
	if first != again {
		t.Errorf("the same seed gives\n%+v and\n%+v", first, again)
	}
	if first.out == other.out || first.file == other.file || first.file == "" {
		t.Errorf("another seed gives the same: %+v", other)
	}
}

func TestTheImageIsAlwaysTheSame(t *testing.T) {
	g := guest(t)
	one, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := start(load(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := again.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if string(one) != string(two) {
		t.Error("two images that were made of the same are different")
	}
}
