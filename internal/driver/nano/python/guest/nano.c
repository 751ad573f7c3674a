// The entry of the Python guest: CPython as a WASI reactor, which a host initialises once, freezes, and then thaws for each execution.
// `scripts/nano` links it in place of CPython's own main program. All memory that crosses the boundary was got from nano_alloc.
#include "Python.h"
#include "internal/pycore_interp.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <wasi/api.h>

// The door to the host: call gives it a request and returns how long its answer is, take copies the answer, once. Below zero the host has none.
__attribute__((import_module("nano"), import_name("call"))) extern int32_t host_call(const char *request, uint32_t len);
__attribute__((import_module("nano"), import_name("take"))) extern void host_take(char *answer);

// What WASI does not tell of a file is its mode. Our host puts it into bytes of the reply that have no meaning: the permission bits, with 1 << 16 to say that
// they are there. These two functions take the place of those of the C library, from which all of its others get what they tell of a file.
static void
to_stat(const __wasi_filestat_t *from, struct stat *to)
{
    uint32_t mode;
    memcpy(&mode, (const char *)from + offsetof(__wasi_filestat_t, filetype) + 4, sizeof mode);
    int known = mode >> 16 == 1;
    *to = (struct stat){
        .st_dev = from->dev,
        .st_ino = from->ino,
        .st_nlink = from->nlink,
        .st_size = from->size,
        .st_blksize = 4096,
        .st_blocks = (from->size + 511) / 512,
        .st_atim = {from->atim / 1000000000, from->atim % 1000000000},
        .st_mtim = {from->mtim / 1000000000, from->mtim % 1000000000},
        .st_ctim = {from->ctim / 1000000000, from->ctim % 1000000000},
    };
    switch (from->filetype) {
    case __WASI_FILETYPE_BLOCK_DEVICE:
        to->st_mode = S_IFBLK | 0600;
        break;
    case __WASI_FILETYPE_CHARACTER_DEVICE:
        to->st_mode = S_IFCHR | 0666;
        break;
    case __WASI_FILETYPE_DIRECTORY:
        to->st_mode = S_IFDIR | 0755;
        break;
    case __WASI_FILETYPE_REGULAR_FILE:
        to->st_mode = S_IFREG | 0644;
        break;
    case __WASI_FILETYPE_SOCKET_DGRAM:
    case __WASI_FILETYPE_SOCKET_STREAM:
        to->st_mode = S_IFIFO | 0600; // pipes are told so
        break;
    case __WASI_FILETYPE_SYMBOLIC_LINK:
        to->st_mode = S_IFLNK | 0777;
        break;
    }
    if (known) {
        to->st_mode = (to->st_mode & ~07777) | (mode & 07777);
    }
}

int
fstat(int fd, struct stat *to)
{
    __wasi_filestat_t from;
    __wasi_errno_t error = __wasi_fd_filestat_get(fd, &from);
    if (error) {
        errno = error == ENOTCAPABLE ? EBADF : error;
        return -1;
    }
    to_stat(&from, to);
    return 0;
}

int
__wasilibc_nocwd_fstatat(int fd, const char *restrict path, struct stat *restrict to, int flags)
{
    __wasi_filestat_t from;
    __wasi_lookupflags_t lookup = flags & AT_SYMLINK_NOFOLLOW ? 0 : __WASI_LOOKUPFLAGS_SYMLINK_FOLLOW;
    __wasi_errno_t error = __wasi_path_filestat_get(fd, lookup, path, &from);
    if (error) {
        errno = error;
        return -1;
    }
    to_stat(&from, to);
    return 0;
}

#define EXPORT(name) __attribute__((export_name(#name), visibility("default"))) name

// A clean end is this number with the exit code in its low byte: whatever else nano_run returns is a crash.
#define NANO_CLEAN 0x6e616e00

static PyObject *prepare, *settle, *finish; // what the boot script has given to _nano.entry
static char *report;     // what the last call of _nano.report said
static size_t report_len;

static PyObject *
nano_set_report(PyObject *Py_UNUSED(self), PyObject *arg)
{
    char *bytes;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(arg, &bytes, &len) < 0) {
        return NULL;
    }
    char *copy = realloc(report, len > 0 ? len : 1);
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(copy, bytes, len);
    report = copy;
    report_len = len;
    Py_RETURN_NONE;
}

static PyObject *
nano_set_entry(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *functions[3];
    if (!PyArg_UnpackTuple(args, "entry", 3, 3, &functions[0], &functions[1], &functions[2])) {
        return NULL;
    }
    Py_XSETREF(prepare, Py_NewRef(functions[0]));
    Py_XSETREF(settle, Py_NewRef(functions[1]));
    Py_XSETREF(finish, Py_NewRef(functions[2]));
    Py_RETURN_NONE;
}

static PyObject *
nano_call(PyObject *Py_UNUSED(self), PyObject *arg)
{
    char *request;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(arg, &request, &len) < 0) {
        return NULL;
    }
    int32_t n = host_call(request, len);
    if (n < 0) {
        PyErr_SetString(PyExc_NotImplementedError, "the host has no answer");
        return NULL;
    }
    PyObject *answer = PyBytes_FromStringAndSize(NULL, n);
    if (answer) {
        host_take(PyBytes_AS_STRING(answer));
    }
    return answer;
}

// nano_set_path0 tells the interpreter what the program's own folder is, which its hints on modules with the library's names need.
static PyObject *
nano_set_path0(PyObject *Py_UNUSED(self), PyObject *arg)
{
    wchar_t *path = PyUnicode_AsWideCharString(arg, NULL);
    if (path == NULL) {
        return NULL;
    }
    PyConfig *config = (PyConfig *)_PyInterpreterState_GetConfig(PyInterpreterState_Get());
    PyMem_RawFree(config->sys_path_0);
    config->sys_path_0 = _PyMem_RawWcsdup(path);
    PyMem_Free(path);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"call", nano_call, METH_O, "call(bytes): what the host answers."},
    {"path0", nano_set_path0, METH_O, "path0(str): the folder of the program."},
    {"report", nano_set_report, METH_O, "report(bytes): what the host reads after the call, in place of what was said before."},
    {"entry", nano_set_entry, METH_VARARGS, "entry(prepare, settle, finish): what runs before, between and after the pieces of an execution."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_nano", NULL, -1, methods};

static PyObject *
init_module(void)
{
    return PyModule_Create(&module);
}

// nano_alloc returns room for n bytes of the host's, or 0.
char *
EXPORT(nano_alloc)(uint32_t n)
{
    return malloc(n > 0 ? n : 1);
}

// nano_init starts the interpreter and runs the boot script, which calls _nano.entry. It returns 0, or a step that failed.
int
EXPORT(nano_init)(const char *script, uint32_t len)
{
    if (PyImport_AppendInittab("_nano", init_module) < 0) {
        return 1;
    }
    PyPreConfig preconfig;
    PyPreConfig_InitIsolatedConfig(&preconfig);
    preconfig.utf8_mode = 1;
    if (PyStatus_Exception(Py_PreInitialize(&preconfig))) {
        return 2;
    }
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.isolated = 0; // what it implies is set, but it would be seen in sys.flags
    config.site_import = 0;
    config.use_hash_seed = 1;
    config.hash_seed = 0;
    config.write_bytecode = 0;
    config.safe_path = 0; // the boot script sets the path
    config.module_search_paths_set = 1;
    static const struct {
        size_t offset;
        const wchar_t *value;
    } strings[] = {
        {offsetof(PyConfig, program_name), L"python3"},
        {offsetof(PyConfig, executable), L"/usr/bin/python3"},
        {offsetof(PyConfig, base_executable), L"/usr/bin/python3"},
        {offsetof(PyConfig, prefix), L"/usr"},
        {offsetof(PyConfig, base_prefix), L"/usr"},
        {offsetof(PyConfig, exec_prefix), L"/usr"},
        {offsetof(PyConfig, base_exec_prefix), L"/usr"},
        {offsetof(PyConfig, stdlib_dir), L"/usr/lib/python3.13"},
    };
    PyStatus status = PyWideStringList_Append(&config.module_search_paths, L"/usr/lib/python313.zip");
    for (size_t i = 0; i < sizeof strings / sizeof *strings && !PyStatus_Exception(status); i++) {
        status = PyConfig_SetString(&config, (wchar_t **)((char *)&config + strings[i].offset), strings[i].value);
    }
    if (!PyStatus_Exception(status)) {
        status = Py_InitializeFromConfig(&config);
    }
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        fprintf(stderr, "%s: %s\n", status.func ? status.func : "python", status.err_msg ? status.err_msg : "");
        return 3;
    }

    PyObject *text = PyUnicode_DecodeUTF8(script, len, "strict");
    PyObject *module = text ? PyImport_AddModuleRef("_nano_boot") : NULL;
    PyObject *code = module ? Py_CompileString(PyUnicode_AsUTF8(text), "<nano>", Py_file_input) : NULL;
    PyObject *done = NULL;
    if (code) {
        PyObject *names = PyModule_GetDict(module);
        if (PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) == 0) {
            done = PyEval_EvalCode(code, names, names);
        }
    }
    if (!done || !finish) {
        PyErr_Print();
        return 4;
    }
    Py_DECREF(done);
    Py_DECREF(code);
    Py_DECREF(module);
    Py_DECREF(text);
    return 0;
}

// evaluate runs what prepare has returned: a list of code objects and callables, and the globals. No frame of the boot script lies below them, so what
// they see of the stack is what they would see in a CPython of their own. It returns 0, or -1 with an exception set.
static int
evaluate(PyObject *prepared)
{
    PyObject *pieces, *globals;
    if (!PyArg_ParseTuple(prepared, "O!O!", &PyList_Type, &pieces, &PyDict_Type, &globals)) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pieces); i++) {
        PyObject *piece = PyList_GET_ITEM(pieces, i);
        PyObject *value = PyCode_Check(piece) ? PyEval_EvalCode(piece, globals, globals) : PyObject_CallNoArgs(piece);
        if (value && value != Py_None) {
            Py_SETREF(value, PyObject_CallOneArg(settle, value));
        }
        if (!value) {
            return -1;
        }
        Py_DECREF(value);
    }
    return 0;
}

// nano_run executes a request, which it frees, and returns NANO_CLEAN with the exit code.
int
EXPORT(nano_run)(char *request, uint32_t len)
{
    report_len = 0;
    if (!finish) {
        return 0;
    }
    PyObject *prepared = PyObject_CallFunction(prepare, "y#", request, (Py_ssize_t)len);
    free(request);
    int failed = !prepared || evaluate(prepared) < 0;
    PyObject *error = failed ? PyErr_GetRaisedException() : Py_NewRef(Py_None);
    Py_XDECREF(prepared);
    PyObject *given = PyList_New(1); // finish takes the error out of it, so that nothing else keeps what the traceback holds
    if (!given) {
        return 1;
    }
    PyList_SET_ITEM(given, 0, error);
    PyObject *result = PyObject_CallOneArg(finish, given);
    Py_DECREF(given);
    if (!result) {
        PyErr_Clear();
        return 1;
    }
    long code = PyLong_Check(result) ? PyLong_AsLong(result) : -1;
    Py_DECREF(result);
    if (code < 0 || code > 255) {
        PyErr_Clear();
        return 2;
    }
    return NANO_CLEAN | (int)code;
}

// nano_report returns where the report lies: its address in the high half, its length in the low one.
uint64_t
EXPORT(nano_report)(void)
{
    return (uint64_t)(uintptr_t)report << 32 | report_len;
}
