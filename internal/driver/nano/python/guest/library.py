# Packs CPython's library for nano spaces: each module compiled, so that it loads fast, and as text, so that tracebacks show it. The compiled ones are
# stored, the text is packed. Time zones come with it, as the package tzdata, and the licences of all that is inside, in the folder LICENSES. The same input makes the same archive.
import _imp
import importlib._bootstrap_external as external
import os
import sys
import zipfile

library, zones, licenses, target = sys.argv[1:]
HOME = "/usr/lib/python3.13"  # what the modules call their files
# What needs modules that are not built, a terminal, a screen, an installation, or is CPython's own test.
LEFT_OUT = {
    "__phello__", "__pycache__", "curses", "ensurepip", "idlelib", "pydoc_data", "test", "tests", "tkinter", "turtledemo", "venv",
    "__hello__.py", "_aix_support.py", "_android_support.py", "_apple_support.py", "_ios_support.py", "_osx_support.py", "antigravity.py", "turtle.py",
}

files = {
    "_sysconfigdata__wasi_wasm32-wasi.py":
        b"build_time_vars = {'EXT_SUFFIX': '.so', 'SOABI': 'cpython-313-wasm32-wasi', 'VERSION': '3.13', 'py_version_short': '3.13'}\n",
    "tzdata/__init__.py": b"",
}
for folder, names, leaves in os.walk(library):
    names[:] = sorted(set(names) - LEFT_OUT)
    for leaf in sorted(set(leaves) - LEFT_OUT):
        if leaf.endswith(".py"):
            path = os.path.join(folder, leaf)
            with open(path, "rb") as file:
                files[os.path.relpath(path, library)] = file.read()
keys = []
for folder, names, leaves in os.walk(zones):
    names[:] = sorted(set(names) - {"posix", "right"})
    at = os.path.relpath(folder, zones)
    files[os.path.normpath(os.path.join("tzdata/zoneinfo", at, "__init__.py"))] = b""
    for leaf in sorted(leaves):
        with open(os.path.join(folder, leaf), "rb") as file:
            data = file.read()
        if data.startswith(b"TZif"):
            key = os.path.normpath(os.path.join(at, leaf))
            keys.append(key)
            files["tzdata/zoneinfo/" + key] = data
for leaf in sorted(os.listdir(licenses)):
    with open(os.path.join(licenses, leaf), "rb") as file:
        files["LICENSES/" + leaf] = file.read()
files["tzdata/zones"] = "".join(key + "\n" for key in sorted(keys)).encode()


def entry(name):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    info.create_system = 3
    return info


with zipfile.ZipFile(target, "w") as archive:
    for name in sorted(files):
        if name.endswith(".py"):
            code = compile(files[name], f"{HOME}/{name}", "exec", dont_inherit=True, optimize=0)
            digest = _imp.source_hash(external._RAW_MAGIC_NUMBER, files[name])
            archive.writestr(entry(name + "c"), bytes(external._code_to_hash_pyc(code, digest, False)), zipfile.ZIP_STORED)
        archive.writestr(entry(name), files[name], zipfile.ZIP_DEFLATED, 9)
