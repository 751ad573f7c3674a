# Runs the cells of one interpreter context of Python, one after the other, for the daemon.
#
# A message is four bytes with its length, big-endian, and JSON. Messages to the daemon go to descriptor 3, those of the daemon come on 4.
# The standard streams belong to the cells. The daemon believes nothing of what comes from here but what a cell may say about itself.
import ast, asyncio, base64, builtins, dataclasses, gc, html, importlib.machinery, inspect, io, json, linecache, math, os, random, signal, struct, sys, traceback, types

NAME = sys.argv[1]
FILE = "/workspace/.agentbox/contexts/" + NAME + ".py"
MAX_TEXT, MAX_BYTES, MAX_FORMS, MAX_ALL, MAX_ROWS, MAX_SOURCES = 1 << 20, 4 << 20, 64, 8 << 20, 1000, 1000
MAGIC = b"agentbox context 1\npy\0\0"


def private(fd):
    """Moves a descriptor away from the numbers that the code of cells may take for its own; no program that a cell starts has it."""
    import fcntl

    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(fd)
    return high


class Talk:
    """The messages of this program."""

    def __init__(self):
        self.input, self.output, self.pid = private(4), private(3), os.getpid()

    def read(self, size):
        data = b""
        while len(data) < size:
            piece = os.read(self.input, size - len(data))
            if not piece:
                os._exit(0)
            data += piece
        return data

    def next(self):
        return json.loads(self.read(struct.unpack(">I", self.read(4))[0]))

    def say(self, **message):
        if os.getpid() != self.pid:
            return  # a process that a cell has forked
        raw = json.dumps(message).encode()
        raw = struct.pack(">I", len(raw)) + raw
        while raw:
            raw = raw[os.write(self.output, raw):]


def text_of(method, *args):
    try:
        text = method(*args)
    except Exception as e:
        return f"<{type(e).__name__}: {e}>" if method is repr else None
    if isinstance(text, tuple):  # IPython allows (text, metadata)
        text = text[0] if text else None
    return text


def cut(text):
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


def is_record(value):
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def table(value):
    """The rows of a list of records in HTML, and how many rows and columns there are."""
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(row, dict) or is_record(row) for row in value):
        return None
    rows = [row if isinstance(row, dict) else {f.name: getattr(row, f.name, None) for f in dataclasses.fields(row)} for row in value[:MAX_ROWS]]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns or len(columns) > 256 or not all(isinstance(key, str) for key in columns):
        return None
    line = lambda tag, cells: "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"
    said = lambda v: "" if v is None else v if isinstance(v, str) else cut(str(text_of(repr, v)))
    body = "\n".join(line("td", [said(row.get(key)) for key in columns]) for row in rows)
    caption = f"<caption>{len(rows)} of {len(value)} rows</caption>\n" if len(rows) < len(value) else ""
    return f"<table>\n<thead>{line('th', columns)}</thead>\n<tbody>\n{body}\n</tbody>\n{caption}</table>\n", len(value), len(columns)


TEXTS = {"html": "text/html", "svg": "image/svg+xml", "markdown": "text/markdown", "latex": "text/latex"}
PICTURES = {"png": "image/png", "jpeg": "image/jpeg"}
JSON, CHART = "application/json", "application/vnd.agentbox.chart+json"
MEDIA = {*TEXTS.values(), *PICTURES.values(), JSON, "text/plain"}


def bundle(value):
    """The forms that a value names itself, by their media types."""
    method = getattr(type(value), "_repr_mimebundle_", None)
    found = text_of(method, value) if callable(method) else None
    return {media: data for media, data in found.items() if media in MEDIA} if isinstance(found, dict) else {}


def rich(value):
    """All forms of a value, by their media types. Pictures are in base64."""
    forms = {"text/plain": cut(str(text_of(repr, value)))}
    size = (0, 0)
    for key, media in TEXTS.items():
        method = getattr(type(value), f"_repr_{key}_", None)
        text = text_of(method, value) if callable(method) else None
        if isinstance(text, str):
            forms[media] = text
    for key, media in PICTURES.items():
        method = getattr(type(value), f"_repr_{key}_", None)
        data = text_of(method, value) if callable(method) else None
        if isinstance(data, (bytes, bytearray)):
            data = base64.b64encode(data).decode()
        if isinstance(data, str):
            forms[media] = data
    if isinstance(value, (bytes, bytearray)):
        for key, magic in ("png", b"\x89PNG\r\n"), ("jpeg", b"\xff\xd8\xff"):
            if value.startswith(magic):
                forms[PICTURES[key]] = base64.b64encode(value).decode()
    forms.update(bundle(value))
    method = getattr(type(value), "_repr_json_", None)
    data = text_of(method, value) if callable(method) else value if isinstance(value, (dict, list, tuple)) else None
    if data is not None:
        try:
            forms[JSON] = json.loads(json.dumps(data, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            pass
    if JSON in forms:
        forms[JSON] = json.dumps(forms[JSON], ensure_ascii=False)
    shape = getattr(value, "shape", None)
    if "text/html" in forms and isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(n, int) for n in shape):
        size = shape
    rows = table(value)
    if rows and "text/html" not in forms:
        forms["text/html"], *size = rows
    if type(value).__name__ == "Figure" and type(value).__module__ == "matplotlib.figure":
        forms.update(figure(value))
    return forms, size


def figure(fig):
    """A picture of a figure of matplotlib, and what is drawn in it."""
    forms = {}
    picture = io.BytesIO()
    try:
        fig.savefig(picture, format="png", bbox_inches="tight")
        forms["image/png"] = base64.b64encode(picture.getvalue()).decode()
    except Exception as e:
        print(f"agentbox: the figure can not be drawn: {type(e).__name__}: {e}", file=sys.stderr)
    try:
        found = chart(fig)
        if found:
            forms[CHART] = json.dumps(found, allow_nan=False)
    except Exception:
        pass  # who has drawn the figure by other means has its picture
    return forms


def point(v):
    """A value of an axis in JSON."""
    item = getattr(v, "item", None)
    if callable(item):
        v = item()
    if hasattr(v, "isoformat"):
        return v.isoformat()
    if isinstance(v, (bool, int, str)) or v is None:
        return v
    if isinstance(v, float):
        return v if math.isfinite(v) else None
    return str(v)


def unit(label):
    """The unit that a label names in its last brackets."""
    for opening, closing in "()", "[]":
        if label.rstrip().endswith(closing) and opening in label:
            return label.rstrip()[label.rindex(opening) + 1:-1] or None
    return None


def axis(ax, name):
    """The ticks of one axis, and how to tell a value of it."""
    import matplotlib.category, matplotlib.dates

    one = getattr(ax, name + "axis")
    kind = one.get_scale()
    tell = point
    if isinstance(getattr(one, "converter", None) or getattr(one, "_converter", None), matplotlib.category.StrCategoryConverter):
        kind = "categorical"
        names = {number: text for text, number in getattr(one.units, "_mapping", {}).items()}
        tell = lambda v: names.get(v, point(v))
    elif isinstance(one.get_major_locator(), matplotlib.dates.DateLocator):
        kind = "datetime"
        tell = lambda v: matplotlib.dates.num2date(v).isoformat() if isinstance(point(v), (int, float)) else point(v)
    ticks = [tell(v) for v in one.get_ticklocs()]
    return {name + "_ticks": ticks, name + "_tick_labels": [t.get_text() for t in one.get_ticklabels()], name + "_scale": kind}, tell


def chart_of(ax):
    """What one part of a figure shows."""
    import matplotlib.collections, matplotlib.container, matplotlib.patches

    base = {"title": ax.get_title(), "elements": []}
    wedges = [p for p in ax.patches if isinstance(p, matplotlib.patches.Wedge)]
    if wedges:
        texts = [t.get_text() for t in ax.texts]
        step = max(len(texts) // len(wedges), 1)  # with percentages there are two texts of each
        for i, w in enumerate(wedges):
            label = w.get_label() if not w.get_label().startswith("_") else ""
            label = label or (texts[i * step] if i * step < len(texts) else "")
            base["elements"].append({"label": label, "angle": float(w.theta2 - w.theta1), "radius": float(w.r)})
        return {"type": "pie", **base}
    base.update({"x_label": ax.get_xlabel(), "y_label": ax.get_ylabel(), "x_unit": unit(ax.get_xlabel()), "y_unit": unit(ax.get_ylabel())})
    boxes = boxes_of(ax)
    if boxes:
        return {"type": "box_and_whisker", **base, "elements": boxes}
    bars = [c for c in ax.containers if isinstance(c, matplotlib.container.BarContainer)]
    if bars:
        flat = all(getattr(c, "orientation", "vertical") == "horizontal" for c in bars)
        ticks, tell = axis(ax, "y" if flat else "x")
        labels = dict(zip((ax.yaxis if flat else ax.xaxis).get_ticklocs(), ticks["y_tick_labels" if flat else "x_tick_labels"]))
        for n, c in enumerate(bars):
            group = c.get_label() if c.get_label() and not c.get_label().startswith("_") else f"group_{n}" if len(bars) > 1 else ""
            for p in c.patches:
                middle = p.get_y() + p.get_height() / 2 if flat else p.get_x() + p.get_width() / 2
                near = min(labels, key=lambda at: abs(at - middle), default=None)
                label = labels[near] if near is not None and labels[near] and abs(near - middle) < 1e-6 else tell(middle)
                base["elements"].append({"label": str(label), "group": group, "value": point(p.get_width() if flat else p.get_height())})
        return {"type": "bar", **base}
    lines = [line for line in ax.lines if len(line.get_xdata())]
    dots = [c for c in ax.collections if isinstance(c, matplotlib.collections.PathCollection) and len(c.get_offsets())]
    if not lines and not dots:
        return None
    (x, tell_x), (y, tell_y) = axis(ax, "x"), axis(ax, "y")
    base.update(x)
    base.update(y)
    for n, drawn in enumerate(lines or dots):
        label = drawn.get_label() if not str(drawn.get_label()).startswith("_") else f"{'line' if lines else 'dataset'}_{n}"
        pairs = zip(drawn.get_xdata(), drawn.get_ydata()) if lines else drawn.get_offsets().tolist()
        base["elements"].append({"label": label, "points": [[tell_x(a), tell_y(b)] for a, b in pairs]})
    return {"type": "line" if lines else "scatter", **base}


def boxes_of(ax):
    """The boxes of a box plot, from its lines or patches. A box has five lines: two whiskers, two caps and the median; and its outliers."""
    import matplotlib.patches

    kept = drawn.get(ax)
    if not kept:
        return []
    labels = [t.get_text() for t in ax.xaxis.get_ticklabels()]
    found = []
    for i, s in enumerate(kept):
        label = s.get("label") or (labels[i] if i < len(labels) else "")
        found.append({"label": str(label), "min": point(s["whislo"]), "first_quartile": point(s["q1"]), "median": point(s["med"]),
                      "third_quartile": point(s["q3"]), "max": point(s["whishi"]), "outliers": [point(v) for v in s.get("fliers", [])]})
    return found


import weakref

drawn = weakref.WeakKeyDictionary()  # the statistics of box plots, which matplotlib does not keep


def watch_boxes(axes):
    """Notes the statistics with which box plots are drawn."""
    bxp = axes.bxp

    def noted(self, bxpstats, *args, **kwargs):
        drawn.setdefault(self, []).extend(bxpstats)
        return bxp(self, bxpstats, *args, **kwargs)

    noted.__doc__, noted.__name__, noted.__wrapped__ = bxp.__doc__, "bxp", bxp
    axes.bxp = noted


def chart(fig):
    """What a figure shows, in the words of E2B's charts."""
    parts = [c for c in map(chart_of, fig.axes) if c]
    title = fig._suptitle.get_text() if getattr(fig, "_suptitle", None) else ""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return {"type": "unknown", "title": title, "elements": []}
    return {"type": "superchart", "title": title, "elements": parts}


BACKEND = """
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas, FigureManagerBase as FigureManager
import builtins as _b
def show(*args, **kwargs):
    _b.__agentbox_figures()
"""


class Backend:
    """The backend of matplotlib: figures are shown beside the output, by show or at the end of the cell."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "agentbox_figures":
            return importlib.machinery.ModuleSpec(name, Backend)
        if name == "matplotlib.axes" and path is not None:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec and spec.loader:
                run = spec.loader.exec_module

                def exec_module(module):
                    run(module)
                    watch_boxes(module.Axes)

                spec.loader.exec_module = exec_module
            return spec
        return None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        exec(BACKEND, module.__dict__)


def figures():
    """Shows the figures that are open, and closes them."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return
    for number in plt.get_fignums():
        present(plt.figure(number), False)
    plt.close("all")


class Shown:
    """What the cell under way has shown."""

    def __init__(self):
        self.values = self.forms = self.bytes = self.left = 0


shown = Shown()


def present(value, result):
    """Prints a value, and shows all of its forms beside the output."""
    forms, size = rich(value)
    print(forms["text/plain"])
    shown.values += 1
    fitting = {}
    for media, data in forms.items():
        raw = len(data) * 3 // 4 if media in PICTURES.values() else len(data.encode("utf-8", "replace"))
        if shown.forms >= MAX_FORMS or raw > MAX_BYTES or shown.bytes + raw > MAX_ALL:
            shown.left += 1
            continue
        shown.forms += 1
        shown.bytes += raw
        fitting[media] = data
    if fitting:
        talk.say(kind="shown", value=shown.values, result=result, type=type(value).__name__[:100], forms=fitting, rows=size[0], columns=size[1])


def display(*values, **options):
    """Shows values beside the cell's output, each in all of its forms."""
    for value in values:
        present(value, False)


def last_value(value):
    """The hook for the value of a cell's last expression."""
    if value is not None:
        cells["_"] = value
        if type(value).__name__ == "Figure" and "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close(value)  # it is shown once
        present(value, True)


given = {}  # the environment that the daemon has given last
folder = None


def surround(request):
    """Sets the environment and the folder of a cell, and leaves what cells have set themselves."""
    global folder
    for name in given.keys() - request["env"].keys():
        if os.environ.get(name) == given[name]:
            os.environ.pop(name, None)
    for name, value in request["env"].items():
        if given.get(name) != value:
            os.environ[name] = value
    given.clear()
    given.update(request["env"])
    os.environ.setdefault("MPLBACKEND", "module://agentbox_figures")
    if folder != request["cwd"]:
        os.chdir(request["cwd"])
        folder = request["cwd"]


written = None  # what this program has written last


def stands():
    """Reports whether the file of the context is as this program has left it: not removed, and not taken back to an earlier state."""
    try:
        with open(FILE, "rb") as f:
            return f.read(4096) == written
    except OSError:
        return written is None


def note(count, token):
    """Writes the file of the context, by which it is listed and deleted."""
    global written
    content = MAGIC + struct.pack("<QI", count, 0) + f"live {token}\n".encode()
    try:
        os.makedirs(os.path.dirname(FILE), exist_ok=True)
        with open(FILE + ".new", "wb") as f:
            f.write(content)
        os.rename(FILE + ".new", FILE)
        written = content
    except OSError as e:
        print(f"agentbox: the context is not listed: {e}", file=sys.stderr)


def fresh():
    """Makes the module in which the cells run."""
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    return main.__dict__


sources = {}


def code_of(source, name):
    sources[name] = None
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    if len(sources) > MAX_SOURCES:
        oldest = next(iter(sources))
        del sources[oldest]
        linecache.cache.pop(oldest, None)
    tree = compile(source, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = tree.body.pop()
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    codes = [compile(tree, name, "exec", flags, dont_inherit=True)] if tree.body else []
    if last is not None:
        codes.append(compile(ast.Interactive([last]), name, "single", flags, dont_inherit=True))
    return codes


def execute(code):
    value = eval(code, cells)
    if inspect.iscoroutine(value):
        loop.run_until_complete(value)


def complain(error):
    """Prints the trace of an error without the frames of this program, and returns the exit code."""
    if isinstance(error, SystemExit):
        code = error.code
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
        return 0 if code is None else code & 255 if isinstance(code, int) else 1
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.stdout.flush()
    if sys.excepthook in (sys.__excepthook__, None):
        traceback.print_exception(type(error), error, trace)
    else:
        sys.excepthook(type(error), error, trace)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def flush():
    for stream in sys.stdout, sys.stderr:
        try:
            stream.flush()
        except Exception:
            pass


def mark(marker):
    """Tells the daemon where the output of the cell ends."""
    raw = marker.encode()
    for fd in 1, 2:
        rest = raw
        try:
            while rest:
                rest = rest[os.write(fd, rest):]
        except OSError:
            pass  # the cell has closed it


def cell(request):
    """Runs one cell and returns its exit code."""
    global shown
    shown = Shown()
    code = 0
    try:
        surround(request)
        source = request["code"]
        if request.get("file"):
            with open(request["file"], encoding="utf-8") as f:
                source = f.read()
        for piece in code_of(source, request.get("file") or f"<cell {request['count']}>"):
            execute(piece)
        figures()
    except BaseException as e:
        code = complain(e)
        e = None
    if shown.left:
        print(f"agentbox: {shown.left} of the forms of what the cell shows are left out: there is room for {MAX_FORMS} of {MAX_BYTES} bytes "
              f"each, {MAX_ALL} together; write what is more to files", file=sys.stderr)
    return code


def ready():
    """Lets an interrupt end what is under way."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def deaf():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


talk = Talk()
deaf()
cells = fresh()
builtins.display = display
builtins.__agentbox_figures = figures
sys.displayhook = last_value
sys.meta_path.insert(0, Backend)
sys.argv = [""]
sys.path[0] = ""
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
sys.stdout.reconfigure(line_buffering=True)
count = 0
while True:
    request = talk.next()
    if not stands():
        if count > 0:
            talk.say(kind="stale")
            continue
        print(f"agentbox: the context {NAME} begins anew. Its variables lived in a process that has ended, or in another space or tier.",
              file=sys.stderr, flush=True)
    request["count"] = count + 1
    code = 1
    try:
        ready()
        code = cell(request)
    except KeyboardInterrupt:
        code = 130  # in the moment between the cell and its end
    finally:
        deaf()
    count += 1
    note(count, request["token"])
    flush()
    mark(request["marker"])
    talk.say(kind="end", code=code, count=count)
