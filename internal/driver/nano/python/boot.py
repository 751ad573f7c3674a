# The guest's side of the run protocol. It runs once, when the image is made; what it sets up is frozen into the image, and each execution begins with
# prepare(), called from nano.c with a request in a fresh copy. Nothing here may depend on when, where or with which files the image is made.
import _nano
import sys

import _thread, argparse, array, ast, asyncio, atexit, base64, bisect, builtins, calendar, collections, collections.abc, configparser, contextlib, copy, csv
import dataclasses, datetime, decimal, difflib, enum, errno, fnmatch, fractions, functools, gc, glob, hashlib, heapq, hmac, html, importlib.machinery, inspect, io
import itertools, json, linecache, locale, logging, math, numbers, operator, os, os.path, pathlib, pickle, pprint, queue, random, re, runpy, secrets, shlex
import shutil, signal, site, socket, statistics, string, struct, subprocess, tempfile, textwrap, threading, time, traceback, types, typing, unicodedata
import urllib.parse, uuid, warnings, weakref, zipfile, zlib

HOME = "/usr/lib/python3.13/"  # what the library calls its own files
RESERVE = 256 << 10  # kept free so that a program which has used up its memory can still say so
MAX_TEXT = 1 << 20  # of one representation of a value
MAX_ROWS = 1000  # of a table
MAX_SOURCES = 100


# Lacks: what a program asked for that a nano space has not. The host may run it again in a space that has it.

lacks = []


def lack(kind, name):
    name = str(name)[:200]
    if {"kind": kind, "name": name} not in lacks and len(lacks) < 32:
        lacks.append({"kind": kind, "name": name})


def library(name):
    return name.startswith((HOME, "<frozen ", "<nano>"))


def asked_by_program(depth=2):
    """Whether the code that asks is the program's own. The library asks for many things that it can do without."""
    frame = sys._getframe(depth)
    while frame and (frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code.co_filename == HOME + "importlib/__init__.py"):
        frame = frame.f_back
    return bool(frame) and not library(frame.f_code.co_filename)


class Missing:
    """The last of the finders: it notes the modules that no finder has found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is None and asked_by_program():
            lack("module", name)
        return None


sys.meta_path.append(Missing)


def no_threads(*args, **kwargs):
    lack("thread", "threading")
    raise RuntimeError("can't start new thread: a nano space has no threads")


threading._start_joinable_thread = no_threads
_thread.start_joinable_thread = no_threads
_thread.start_new_thread = _thread.start_new = no_threads


# Processes: there are none, but the host runs commands to their end and says what they have printed. So a Popen starts its command when somebody waits for
# it, reads from it, or goes on without it.

class Refused(Exception):
    """The host cannot do this."""


def ask(**request):
    try:
        answer = loads(_nano.call(dumps(request).encode()))
    except NotImplementedError:
        raise Refused from None
    if answer.get("errno"):
        raise OSError(answer["errno"], os.strerror(answer["errno"]), *([request["args"][0]] if request.get("args") else []))
    return answer


def command_of(args, shell, executable):
    if isinstance(args, (str, bytes, os.PathLike)):
        args = [args]
    args = [os.fsdecode(arg) for arg in args]
    if shell:
        args = ["/bin/sh", "-c"] + args
    if executable is not None:
        args = [os.fsdecode(executable)] + args[1:]
    if not args:
        raise IndexError("list index out of range")
    return args


class Feed(io.BytesIO):
    """What a command will read: it is given to it when it starts."""

    def __init__(self, process):
        super().__init__()
        self.process = process

    def close(self):
        if not self.closed:
            self.process._fed = self.getvalue()
            super().close()


class Output(io.BufferedIOBase):
    """What a command has printed. Reading makes it run."""

    def __init__(self, process, name):
        self.process, self.name = process, name

    def _data(self):
        self.process._run()
        return self.process._printed[self.name]

    def readable(self):
        return True

    def read(self, size=-1):
        self._checked()
        return self._data().read(size)

    read1 = read

    def readinto(self, buffer):
        self._checked()
        return self._data().readinto(buffer)

    def readline(self, size=-1):
        self._checked()
        return self._data().readline(size)

    def _checked(self):
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def popen_init(self, args, bufsize=-1, executable=None, stdin=None, stdout=None, stderr=None, preexec_fn=None, close_fds=True, shell=False, cwd=None, env=None,
               universal_newlines=None, startupinfo=None, creationflags=0, restore_signals=True, start_new_session=False, pass_fds=(), *, user=None, group=None,
               extra_groups=None, encoding=None, errors=None, text=None, umask=-1, pipesize=-1, process_group=None):
    if preexec_fn is not None:
        lack("process", "preexec_fn")
        raise OSError(errno.ENOTSUP, "a nano space has no processes: preexec_fn")
    self.args, self.returncode, self.encoding, self.errors = args, None, encoding, errors
    self.text_mode = encoding or errors or text or universal_newlines
    self._command = command_of(args, shell, executable)
    self._cwd = os.path.abspath(os.fsdecode(cwd)) if cwd is not None else os.getcwd()
    self._env = [f"{os.fsdecode(k)}={os.fsdecode(v)}" for k, v in (os.environ if env is None else env).items()]
    if cwd is not None:
        os.stat(self._cwd)
    try:
        self.pid = ask(op="find", args=self._command[:1], cwd=self._cwd, env=self._env)["pid"]
    except Refused:
        lack("process", " ".join(self._command))
        raise OSError(errno.ENOTSUP, f"a nano space has no processes: {self._command[0]}") from None
    self._fed, self._printed, self._limit = None, {}, None
    self._streams = {"stdout": stdout, "stderr": stderr}
    self.stdin = self.stdout = self.stderr = None

    def wrapped(stream, **how):
        return io.TextIOWrapper(stream, encoding=encoding, errors=errors, **how) if self.text_mode else stream

    if stdin == subprocess.PIPE:
        self.stdin = wrapped(Feed(self), write_through=True)
    elif stdin == subprocess.DEVNULL:
        self._fed = b""
    elif stdin is not None:
        number = stdin if isinstance(stdin, int) else stdin.fileno() if not isinstance(getattr(stdin, "buffer", stdin), (Feed, Output)) else None
        if number is None:
            self._fed = getattr(stdin, "buffer", stdin).read()
        elif number != 0:
            self._fed = b"".join(iter(lambda: os.read(number, 65536), b""))
    if stdout == subprocess.PIPE:
        self.stdout = wrapped(Output(self, "stdout"))
    if stderr == subprocess.PIPE:
        self.stderr = wrapped(Output(self, "stderr"))


def popen_run(self):
    if self.returncode is not None:
        return
    if self.stdin is not None and not self.stdin.closed:
        self.stdin.close()
    how = {}
    for name, stream in self._streams.items():
        number = {"stdout": 1, "stderr": 2}[name]
        if stream is None or stream == number:
            how[name] = "inherit"
        elif stream == subprocess.DEVNULL:
            how[name] = "null"
        elif name == "stderr" and (stream == subprocess.STDOUT or stream == 1 and self._streams["stdout"] is None):
            how[name] = "stdout"
        else:
            how[name] = "capture"
    for name, stream in self._streams.items():
        if how[name] == "inherit":
            (sys.stdout if name == "stdout" else sys.stderr).flush()
    fed = None if self._fed is None else base64.b64encode(self._fed).decode()
    answer = ask(op="execute", args=self._command, cwd=self._cwd, env=self._env, stdin=fed, timeout=self._limit, **how)
    for name, stream in self._streams.items():
        if how[name] == "capture":
            data = base64.b64decode(answer[name] or "")
            self._printed[name] = io.BytesIO(data)
            if stream != subprocess.PIPE:
                number = stream if isinstance(stream, int) else stream.fileno()
                while data:
                    data = data[os.write(number, data):]
    self.returncode = answer["code"]
    self._timed_out = answer.get("timed_out", False)


def popen_wait(self, timeout=None):
    self._limit = timeout
    self._run()
    if self._timed_out:
        self._timed_out = False
        raise subprocess.TimeoutExpired(self.args, timeout)
    return self.returncode


def popen_communicate(self, input=None, timeout=None):
    if self.stdin is not None and not self.stdin.closed:
        if input:
            self.stdin.write(input)
        self.stdin.close()
    self._limit = timeout
    self._run()
    texts = [stream.read() if stream is not None and not stream.closed else None for stream in (self.stdout, self.stderr)]
    if self._timed_out:
        self._timed_out = False
        raise subprocess.TimeoutExpired(self.args, timeout, output=texts[0], stderr=texts[1])
    return tuple(texts)


def popen_poll(self):
    self._run()
    return self.returncode


def popen_exit(self, kind, value, traceback):
    for stream in self.stdin, self.stdout, self.stderr:
        if stream is not None and not stream.closed and (stream is self.stdin or self.returncode is not None):
            stream.close()
    self._run()


def popen_signal(self, number=None):
    pass  # it has not begun, or has ended


Popen = subprocess.Popen
Popen.__init__, Popen._run, Popen.wait, Popen.communicate, Popen.poll = popen_init, popen_run, popen_wait, popen_communicate, popen_poll
Popen.__exit__, Popen.send_signal, Popen.terminate, Popen.kill, Popen.__del__ = popen_exit, popen_signal, popen_signal, popen_signal, popen_signal
Popen._timed_out = False


def system(command):
    code = subprocess.call(os.fsdecode(command), shell=True)
    return -code if code < 0 else code << 8


class Piped:
    """What os.popen returns: the stream of a command that waits for it when it is closed."""

    def __init__(self, process, stream):
        self._process, self._stream = process, stream

    def close(self):
        self._stream.close()
        code = self._process.wait()
        return code << 8 if code > 0 else code or None

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def __iter__(self):
        return iter(self._stream)

    def __getattr__(self, name):
        return getattr(self._stream, name)


def popen(cmd, mode="r", buffering=-1):
    if mode not in ("r", "w"):
        raise ValueError("invalid mode %r" % mode)
    process = Popen(cmd, shell=True, text=True, stdout=subprocess.PIPE if mode == "r" else None, stdin=subprocess.PIPE if mode == "w" else None)
    return Piped(process, process.stdout if mode == "r" else process.stdin)


os.system = system
os.popen = popen
os.waitstatus_to_exitcode = lambda status: -(status & 0x7F) if status & 0x7F else status >> 8


class AsyncProcess:
    """What asyncio.create_subprocess_exec returns."""

    def __init__(self, process, limit):
        self._process, self._limit, self.pid = process, limit, process.pid
        self.stdin, self._readers = process.stdin, {}
        if self.stdin is not None:
            self.stdin.drain = self.stdin.wait_closed = drained

    @property
    def returncode(self):
        return self._process.returncode

    def _reader(self, name):
        stream = getattr(self._process, name)
        if stream is not None and name not in self._readers:
            self._readers[name] = asyncio.StreamReader(limit=self._limit)
            self._readers[name].feed_data(stream.read())
            self._readers[name].feed_eof()
        return self._readers.get(name)

    @property
    def stdout(self):
        return self._reader("stdout")

    @property
    def stderr(self):
        return self._reader("stderr")

    async def communicate(self, input=None):
        return self._process.communicate(input)

    async def wait(self):
        return self._process.wait()

    send_signal = terminate = kill = popen_signal


async def drained():
    pass


async def create_subprocess_exec(program, *args, stdin=None, stdout=None, stderr=None, limit=1 << 16, **kwargs):
    return AsyncProcess(Popen([program, *args], stdin=stdin, stdout=stdout, stderr=stderr, **kwargs), limit)


async def create_subprocess_shell(cmd, stdin=None, stdout=None, stderr=None, limit=1 << 16, **kwargs):
    return AsyncProcess(Popen(cmd, shell=True, stdin=stdin, stdout=stdout, stderr=stderr, **kwargs), limit)


asyncio.create_subprocess_exec = asyncio.subprocess.create_subprocess_exec = create_subprocess_exec
asyncio.create_subprocess_shell = asyncio.subprocess.create_subprocess_shell = create_subprocess_shell
asyncio.subprocess.Process = AsyncProcess


def no_network(name):
    def refuse(*args, **kwargs):
        what = args[0] if args and name != "socket.socket" else None
        if isinstance(what, tuple):
            what = what[0] if what else None
        what = str(what or name)
        lack("network", what)
        raise OSError(errno.ENETUNREACH, f"a nano space has no network: {what}")

    return refuse


class NoSocket(socket.socket):
    def __init__(self, *args, **kwargs):
        refuse_socket()

    def __del__(self):
        pass


refuse_socket = no_network("socket.socket")
NoSocket.__name__ = NoSocket.__qualname__ = "socket"
NoSocket.__module__ = "socket"
socket.socket = socket.SocketType = NoSocket
for name in ("create_connection", "create_server", "getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo", "socketpair", "fromfd"):
    setattr(socket, name, no_network(name))

class Secure:
    """The first of the finders: it gives http.client, which leaves HTTPS out where there is no ssl, connections that say what is lacking."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "http.client":
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not Secure else None
            if spec is not None and spec.loader is not None:
                execute = spec.loader.exec_module

                def exec_module(module):
                    execute(module)
                    if not hasattr(module, "HTTPSConnection"):
                        secure(module)

                spec.loader.exec_module = exec_module
                return spec
        return None


def secure(client):
    class HTTPSConnection(client.HTTPConnection):
        default_port = 443

        def __init__(self, host, port=None, *, context=None, **kwargs):
            super().__init__(host, port, **kwargs)

    HTTPSConnection.__module__ = "http.client"
    HTTPSConnection.__qualname__ = "HTTPSConnection"
    client.HTTPSConnection = HTTPSConnection
    client._create_https_context = lambda http_version: None


sys.meta_path.insert(0, Secure)

ABSENT = {
    "os": ("process", {"fork", "forkpty", "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe", "posix_spawn", "posix_spawnp",
                       "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp", "spawnvpe", "wait", "waitpid", "kill", "killpg", "pipe", "dup",
                       "dup2"}),
    "signal": ("signal", {"alarm", "setitimer", "pause", "sigwait", "pthread_kill"}),
}


def absent(module):
    kind, names = ABSENT[module.__name__]

    def __getattr__(name):
        if name in names and asked_by_program():
            lack(kind, f"{module.__name__}.{name}")
        elif kind == "process" and sys._getframe(1).f_code.co_filename.startswith(HOME + "multiprocessing/"):
            lack(kind, "multiprocessing")
            raise OSError(errno.ENOSYS, f"a nano space has no processes: multiprocessing needs {module.__name__}.{name}")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    module.__getattr__ = __getattr__


absent(os)
absent(signal)


# WASI knows no modes of files: they are the host's to set. What is there may be changed where the host has none, so that the library's copying works.

def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    if isinstance(path, int):
        return fchmod(path, mode)
    if dir_fd is not None or not follow_symlinks and os.path.islink(path):
        raise NotImplementedError("chmod: only by the path of a file in a nano space")
    os.stat(path)
    try:
        ask(op="chmod", args=[os.path.join(os.getcwd(), os.fsdecode(path))], mode=mode & 0o7777)
    except Refused:
        pass


def fchmod(fd, mode):
    try:
        ask(op="fchmod", fd=operator.index(fd), mode=mode & 0o7777)
    except Refused:
        pass


def umask(mask):
    try:
        return ask(op="umask", mode=operator.index(mask) & 0o777)["code"]
    except Refused:
        return 0o022


def making(call, mode):
    """Makes what call makes, with a mode. The host takes it for the next that is made; a call that fails may have come to nothing."""
    try:
        ask(op="create", mode=mode & 0o7777)
    except Refused:
        return call()
    try:
        return call()
    except BaseException:
        ask(op="created")
        raise


open_descriptor, make_folder = os.open, os.mkdir


def os_open(path, flags, mode=0o777, *, dir_fd=None):
    call = functools.partial(open_descriptor, path, flags, mode, dir_fd=dir_fd)
    return making(call, mode) if flags & os.O_CREAT else call()


def os_mkdir(path, mode=0o777, *, dir_fd=None):
    call = functools.partial(make_folder, path, mode, dir_fd=dir_fd)
    return making(call, mode) if mode & 0o777 != 0o777 else call()


os_open.__name__, os_mkdir.__name__ = "open", "mkdir"
for known in (os.supports_dir_fd, os.supports_fd):
    known.update(ours for theirs, ours in ((open_descriptor, os_open), (make_folder, os_mkdir)) if theirs in known)
os.open, os.mkdir, os.umask, os.chmod, os.fchmod = os_open, os_mkdir, umask, chmod, fchmod
os.getuid = os.geteuid = os.getgid = os.getegid = lambda: 1000
if not os.cpu_count():
    os.cpu_count = os.process_cpu_count = lambda: 1


def pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
    """What the library has only with OpenSSL."""
    keyed = hmac.new(password, None, hash_name)
    size = keyed.digest_size
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    if dklen is None:
        dklen = size
    if dklen < 1:
        raise ValueError("key length must be greater than 0.")
    key = b""
    for block in range(1, -(-dklen // size) + 1):
        turn = keyed.copy()
        turn.update(salt + block.to_bytes(4, "big"))
        digest = turn.digest()
        mixed = int.from_bytes(digest, "big")
        for _ in range(iterations - 1):
            turn = keyed.copy()
            turn.update(digest)
            digest = turn.digest()
            mixed ^= int.from_bytes(digest, "big")
        key += mixed.to_bytes(size, "big")
    return key[:dklen]


if not hasattr(hashlib, "pbkdf2_hmac"):
    hashlib.pbkdf2_hmac = pbkdf2_hmac


# The event loop: timers on the clock of the space, and nothing else that could happen.

class Timers:
    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("asyncio: every task waits for something that cannot happen in a nano space")
        if timeout > 0:
            time.sleep(timeout)
        return []

    def close(self):
        pass


class EventLoop(asyncio.base_events.BaseEventLoop):
    """An event loop without a selector: a nano space has no sockets, pipes, processes and threads to wait for."""

    def __init__(self, selector=None):
        super().__init__()
        self._selector = Timers()

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass

    def run_in_executor(self, executor, func, *args):
        lack("thread", "run_in_executor")
        raise RuntimeError("can't start new thread: a nano space has no threads to run an executor in")

    async def getaddrinfo(self, host, port, **kwargs):
        return socket.getaddrinfo(host, port)

    async def _make_subprocess_transport(self, protocol, args, shell, stdin, stdout, stderr, bufsize, extra=None, **kwargs):
        lack("process", "asyncio")
        raise OSError(errno.ENOTSUP, "a nano space has no processes: asyncio")


class EventLoopPolicy(asyncio.events.BaseDefaultEventLoopPolicy):
    _loop_factory = EventLoop


asyncio.SelectorEventLoop = asyncio.unix_events.SelectorEventLoop = EventLoop
asyncio.DefaultEventLoopPolicy = asyncio.unix_events.DefaultEventLoopPolicy = EventLoopPolicy
asyncio.set_event_loop_policy(EventLoopPolicy())


# The run protocol.

dumps, loads = functools.partial(json.dumps, separators=(",", ":")), json.loads  # a program may change the module


def tell(report):
    """Leaves the report for the host, if the program has left what is needed for that as it was."""
    try:
        _nano.report(dumps(report).encode())
    except Exception:
        pass


class Exit(BaseException):
    """Ends prepare() with text for stderr and a code."""

    def __init__(self, code, text):
        self.code, self.text = code, text


def say(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        pass


def fresh_main():
    main = types.ModuleType("__main__")
    main.__loader__ = importlib.machinery.BuiltinImporter
    main.__annotations__ = {}
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    return main


def surround(request):
    """Takes over the environment and the folder of an execution."""
    if os.environ:
        os.environ.clear()
    for pair in request.get("env") or []:
        name, separator, value = pair.partition("=")
        if name and separator:
            os.environ[name] = value
    time.tzset()
    try:
        os.chdir(request.get("cwd") or "/")
    except OSError as e:
        raise Exit(2, f"python3: can't enter {request.get('cwd')!r}: {e.strerror}\n")


def forget_folders():
    """Has the finders look at the space's files again, which may have changed. The library's archive has not: to read it anew takes a hundred cells' time."""
    for path, finder in list(sys.path_importer_cache.items()):
        if finder is None or not os.path.isabs(path):
            del sys.path_importer_cache[path]
        elif not path.startswith(LIBRARY) and hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()


def begin(request):
    """What each execution has of its own: chance, environment, folder, arguments, flags."""
    random.seed()
    surround(request)
    sys.argv = list(request["argv"])
    sys.orig_argv = list(request.get("orig_argv") or sys.argv)
    warnings._processoptions(request.get("warnings") or [])
    for option in request.get("xoptions") or []:
        name, separator, value = option.partition("=")
        sys._xoptions[name] = value if separator else True
    if request.get("optimize"):
        importlib._bootstrap_external.SourceLoader.source_to_code.__kwdefaults__["_optimize"] = request["optimize"]
    if request.get("unbuffered"):
        sys.stdout.reconfigure(write_through=True)
        sys.stderr.reconfigure(write_through=True)
    environment = os.environ.get("PYTHONPATH", "") if not request.get("ignore_environment") else ""
    sys.path[0:0] = [os.path.abspath(entry) for entry in environment.split(":") if entry]
    for entry in sys.path[:-1]:
        uncover(entry)


def uncover(folder):
    """Forgets the modules of the image that have the names of a program's own: those come first, as they do where nothing was imported before."""
    try:
        leaves = os.listdir(folder or ".")
    except OSError:
        return
    for leaf in leaves:
        name = leaf.removesuffix(".py")
        if name in COVERING and (leaf != name or os.path.exists(os.path.join(folder, name, "__init__.py"))):
            for loaded in [other for other in sys.modules if other == name or other.startswith(name + ".")]:
                del sys.modules[loaded]


def compiled(source, name, request, register=False):
    code = compile(source, name, "exec", dont_inherit=True, optimize=request.get("optimize", 0))
    if register:
        linecache._register_code(code, source, name)
    return code


def prepare_command(request, main):
    return [compiled(request["source"], "<string>", request, True)]


def prepare_stdin(request, main):
    return [compiled(sys.stdin.buffer.read(), "<stdin>", request)]


def prepare_module(request, main):
    name = request["source"]
    sys.argv[0] = "-m"
    return [functools.partial(runpy._run_module_as_main, name)]


def prepare_file(request, main):
    path = request["source"]
    if os.path.isdir(path) or zipfile_like(path):
        sys.path.insert(0, os.path.abspath(path))
        return [functools.partial(runpy._run_module_as_main, "__main__", False)]
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
        if request.get("skip_first_line"):
            source = b"\n" + source.partition(b"\n")[2]
    except OSError as e:
        raise Exit(2, f"/usr/bin/python3: can't open file {os.path.abspath(path)!r}: [Errno {e.errno}] {e.strerror}\n")
    main.__file__ = os.path.abspath(path)
    main.__cached__ = None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", main.__file__)
    return [compiled(source, main.__file__, request)]


def zipfile_like(path):
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def path0(request):
    kind = request["kind"]
    if request.get("safe_path"):
        return None
    if kind == "file":
        path = request["source"]
        return None if os.path.isdir(path) or zipfile_like(path) else os.path.dirname(os.path.realpath(path))
    if kind == "module":
        return os.getcwd()
    return ""


PREPARE = {"command": prepare_command, "stdin": prepare_stdin, "module": prepare_module, "file": prepare_file}


def prepare(raw):
    """Makes an execution ready. It returns what is to be run, in order, and the globals to run it in."""
    global request, reserve
    lacks.clear()
    if reserve is None:  # an earlier cell has given it up
        reserve = bytearray(RESERVE)
    request = loads(raw.decode())
    if request["kind"] == "cell":
        return prepare_cell(request)
    begin(request)
    main = fresh_main()
    first = path0(request)
    if first is not None:
        sys.path.insert(0, first)
        _nano.path0(first)
        uncover(first)
    return PREPARE[request["kind"]](request, main), main.__dict__


def exit_code(error):
    """The code of a SystemExit, whose text is printed, as CPython does it."""
    code = getattr(error, "code", error)
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code) & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    say(str(code) + "\n")
    return 1


def note_lack(error):
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ModuleNotFoundError) and error.name:
            lack("process" if error.name == "_multiprocessing" else "module", error.name)
        elif isinstance(error, (ImportError, NotImplementedError)) and ("sem_open" in str(error) or "multiprocessing.synchronize" in str(error)):
            lack("process", "multiprocessing")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def trimmed(error, first=None):
    """Takes the frames of this file off the traceback of an exception; with first, all before the file of that name."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == "<nano>":
        trace = trace.tb_next
    below = trace
    while first and below and below.tb_frame.f_code.co_filename != first:
        below = below.tb_next
    error.__traceback__ = below or trace


def printed(error, first=None):
    """Prints an exception through sys.excepthook, as CPython does, and returns the exit code."""
    if isinstance(error, SystemExit):
        if request and request["kind"] == "module" and "No module named" in str(error.code):
            lack("module", request["source"])
        return exit_code(error)
    trimmed(error, first)
    note_lack(error)
    try:
        sys.stdout.flush()
    except Exception:
        pass
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        say("sys.excepthook is missing\n")
        hook = sys.__excepthook__
    try:
        hook(type(error), error, error.__traceback__)
    except SystemExit as e:
        return exit_code(e)
    except MemoryError:
        raise
    except BaseException as e:
        say("Error in sys.excepthook:\n")
        trimmed(e)
        sys.__excepthook__(type(e), e, e.__traceback__)
        say("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    try:
        sys.stderr.flush()
    except Exception:
        pass
    return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def own_modules():
    """The program's own modules, the newest first."""
    BASE["__main__"] = sys.modules.get("__main__")  # which is cleared before the others
    try:
        if sys.modules == BASE:
            return
    except Exception:
        pass  # of something that a program has put there
    for name in reversed(list(sys.modules)):
        module = sys.modules.get(name)
        if BASE.get(name) is not module and isinstance(module, types.ModuleType):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and not library(file) and not file.startswith(LIBRARY):
                yield module


def clear(names):
    for private in True, False:
        for name in list(names):
            if isinstance(name, str) and name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") == private:
                names[name] = None
            name = None


def finalize():
    """What the end of the interpreter does that can be seen: exit functions, destructors of what is left, and the streams."""
    try:
        threading._shutdown()
    except Exception:
        pass
    atexit._run_exitfuncs()
    last = sys.modules.get("__main__")
    own = list(own_modules())
    if isinstance(last, types.ModuleType):
        clear(last.__dict__)
    for module in own:
        clear(module.__dict__)
    del last, own
    gc.collect()


def flushed(code):
    for stream in sys.stdout, sys.stderr:
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException as e:
            say(f"Exception ignored in: {stream!r}\n{type(e).__name__}: {e}\n")
            code = code or 120
    for stream in sys.__stdout__, sys.__stderr__:  # as their destructors do, where a program has put others in their place
        try:
            stream.flush()
        except BaseException:
            pass
    return code


def finish(given):
    """Ends an execution: given holds what it raised, None if it came to its end. Returns the exit code."""
    global reserve
    reserve = None
    error = given.pop()
    if request is None or request["kind"] == "cell":
        return finish_cell(error)
    if isinstance(error, Exit):
        say(error.text)
        code = error.code
    else:
        code = printed(error) if error is not None else 0
        error = None
        try:
            finalize()
        except BaseException as e:
            code = printed(e) or code
        code = flushed(code)
    tell({"lacks": lacks})
    return code


def settle(value):
    """Gets what an evaluated piece has returned: a coroutine where a cell awaits at its top."""
    if inspect.iscoroutine(value):
        asyncio.get_event_loop_policy().get_event_loop().run_until_complete(value)


# Cells: pieces of a program with one namespace, whose last expression's value is told.

cells = None  # the namespace, once there was a cell


def text_of(method, *args):
    try:
        text = method(*args)
    except Exception as e:
        return f"<{type(e).__name__}: {e}>" if method is repr else None
    if isinstance(text, tuple):  # IPython allows (text, metadata)
        text = text[0] if text else None
    return text


def cut(text):
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


def plain(value):
    """A cell of a table: what JSON has, else text."""
    if value is None or isinstance(value, (bool, str)):
        return value if not isinstance(value, str) else cut(value)
    if isinstance(value, int):
        return value if -(1 << 53) < value < 1 << 53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return cut(text_of(repr, value))


def is_record(value):
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def record(row):
    return row if isinstance(row, dict) else {field.name: getattr(row, field.name, None) for field in dataclasses.fields(row)}


def table(value):
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(row, dict) or is_record(row) for row in value):
        return None
    rows = [record(row) for row in value[:MAX_ROWS]]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns or len(columns) > 256 or not all(isinstance(key, str) for key in columns):
        return None
    return {"columns": columns, "rows": [[plain(row.get(key)) for key in columns] for row in rows], "total": len(value)}


def rich(value):
    """All that a value says of itself, by the names that notebooks use for it."""
    result = {"type": type(value).__name__, "text": cut(text_of(repr, value))}
    for key in "html", "svg", "markdown", "latex":
        method = getattr(type(value), f"_repr_{key}_", None)
        if callable(method):
            text = text_of(method, value)
            if isinstance(text, str) and len(text) <= MAX_TEXT:
                result[key] = text
    for key in "png", "jpeg":
        method = getattr(type(value), f"_repr_{key}_", None)
        if callable(method):
            data = text_of(method, value)
            if isinstance(data, bytes):
                data = base64.b64encode(data).decode()
            if isinstance(data, str) and len(data) <= 8 * MAX_TEXT:
                result[key] = data
    if isinstance(value, (bytes, bytearray)) and len(value) <= 6 * MAX_TEXT:
        for key, magic in ("png", b"\x89PNG\r\n"), ("jpeg", b"\xff\xd8\xff"):
            if value.startswith(magic):
                result[key] = base64.b64encode(value).decode()
    method = getattr(type(value), "_repr_json_", None)
    data = text_of(method, value) if callable(method) else value if isinstance(value, (dict, list, tuple)) else None
    if data is not None:
        try:
            text = dumps(data, allow_nan=False)
            if len(text) <= MAX_TEXT:
                result["json"] = loads(text)
        except (TypeError, ValueError, RecursionError):
            pass
    rows = table(value)
    if rows:
        result["table"] = rows
    return result


def present(value, result):
    """Prints a value, and shows all of its forms beside the output."""
    said = rich(value)
    print(said["text"].encode("utf-8", "replace").decode())
    try:
        ask(op="show", value=said, result=result)
    except Refused:
        pass  # who runs the cell shows nothing


def display(*values):
    """Shows values beside the cell's output, each in all of its forms."""
    for value in values:
        present(value, False)


sources = {}  # the names of the cells whose text tracebacks show


def show(value):
    """The hook for the value of a cell's last expression."""
    if value is not None:
        cells["_"] = value
        present(value, True)


def prepare_cell(request):
    global cells
    if cells is None:
        begin(request)
        if not request.get("safe_path"):
            sys.path.insert(0, "")
        cells = fresh_main().__dict__
        builtins.display = display
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    else:
        random.seed()
        surround(request)
        forget_folders()
    sys.displayhook = show
    name, source = request.get("name") or "<cell>", request["source"]
    sources[name] = None
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    if len(sources) > MAX_SOURCES:
        oldest = next(iter(sources))
        del sources[oldest]
        linecache.cache.pop(oldest, None)
    tree = compile(source, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)  # ast.parse would be in the traceback of a SyntaxError
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = tree.body.pop()
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    codes = [compile(tree, name, "exec", flags, dont_inherit=True)] if tree.body else []
    if last is not None:
        codes.append(compile(ast.Interactive([last]), name, "single", flags, dont_inherit=True))
    return codes, cells


def close_files():
    """Closes what a cell has left open: the numbers of its files mean nothing to the next one."""
    try:
        if ask(op="opened", args=["files"])["code"] <= 0:
            return
    except Refused:
        pass
    for kind in io.TextIOBase, io.BufferedIOBase, io.RawIOBase:  # what wraps another first, so that nothing is lost
        for thing in gc.get_objects():
            try:
                if isinstance(thing, kind) and not thing.closed and thing.fileno() > 2:
                    thing.close()
            except io.UnsupportedOperation:
                pass  # in memory
            except Exception as e:
                say(f"Exception ignored in: {thing!r}\n{type(e).__name__}: {e}\n")
    sqlite3 = sys.modules.get("sqlite3")
    if sqlite3:
        for thing in gc.get_objects():
            try:
                if isinstance(thing, sqlite3.Connection) and any(row[2] for row in thing.execute("pragma database_list")):
                    thing.close()
            except Exception:
                pass


def finish_cell(error):
    code, failure = 0, None
    if isinstance(error, Exit):
        say(error.text)
        code = error.code
    elif error is not None:
        if not isinstance(error, SystemExit):
            failure = {"type": type(error).__name__, "message": cut(str(text_of(str, error)))}
        code = printed(error, request.get("name") or "<cell>")
        error = None
    close_files()
    code = flushed(code)
    tell({"lacks": lacks, "error": failure})
    return code


request = None
reserve = bytearray(RESERVE)
LIBRARY = "/usr/lib/python313.zip"
site.setquit()
site.setcopyright()
site.sethelper()
sys.path[:] = [LIBRARY]
sys.dont_write_bytecode = True
os.environ.clear()
BASE = dict(sys.modules)
# Modules that the image has and an interpreter which has just started has not.
COVERING = {name for name in sys.modules if "." not in name} - set(sys.builtin_module_names) - {
    "__main__", "_nano_boot", "_collections_abc", "_frozen_importlib", "_frozen_importlib_external", "_sitebuiltins", "abc", "codecs", "encodings", "genericpath", "io",
    "os", "posixpath", "site", "stat", "zipimport",
}
_nano.entry(prepare, settle, finish)
gc.collect()
gc.freeze()
