//go:build linux

package namespace

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

// compiled are modules of Python that are no files where Debian builds it: they are in the interpreter itself.
const compiled = `_abc _ast _codecs _collections _functools _imp _io _locale _operator _signal _sre _stat _string _symtable _thread
	_tokenize
	_tracemalloc _warnings _weakref array atexit binascii builtins cmath errno faulthandler fcntl gc grp itertools marshal math posix
	pwd pyexpat select sys syslog time unicodedata zlib`

// builtins are the modules of Node's own library; its program holds them.
const builtins = `assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events fs
	http http2
	https inspector module net os path perf_hooks process punycode querystring readline repl stream string_decoder sys timers tls
	trace_events tty url util v8 vm wasi worker_threads zlib`

// maxHops bounds how many symbolic links of a root are followed for one name.
const maxHops = 40

// offer lists the content of the root: the programs that a shell finds, and the modules that Python imports. It starts nothing.
func (r *root) offer() space.Offer {
	o := space.Offer{Tier: Name, Root: r.name, Programs: []string{}, Modules: []string{}, Packages: []string{}, Node: []string{}}
	o.Lacks = lacks()
	seen := map[string]bool{}
	for _, dir := range []string{"usr/bin", "bin", "usr/sbin", "sbin"} {
		at := r.find(dir)
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, e := range r.list(dir) {
			if r.runs(dir, e) {
				o.Programs = append(o.Programs, e.Name())
			}
		}
	}
	o.Programs = sorted(o.Programs)
	if o.Known() {
		for _, name := range []string{"node", "bun"} {
			if o.Program(name) {
				o.Node = sorted(strings.Fields(builtins))
			}
		}
		if o.Program("python3") {
			o.Modules, o.Packages = r.python(path.Base(r.find("usr/bin/python3")))
		}
	}
	return o
}

// runs reports whether an entry of a folder is a program, or a link to one.
func (r *root) runs(dir string, e fs.DirEntry) bool {
	info, err := e.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = os.Lstat(r.find(path.Join(dir, e.Name())))
	}
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// python reads what a Python of some version, as in python3.11, imports, and what its pip says is installed.
func (r *root) python(version string) (modules, packages []string) {
	modules, packages = strings.Fields(compiled), []string{}
	for _, lib := range []string{"usr/lib", "usr/lib64", "usr/local/lib"} {
		for _, dir := range []string{
			version, version + "/lib-dynload", version + "/site-packages", version + "/dist-packages", "python3/dist-packages",
		} {
			for _, e := range r.list(path.Join(lib, dir)) {
				name, ending, _ := strings.Cut(e.Name(), ".")
				switch {
				case strings.HasSuffix(e.Name(), ".dist-info"), strings.HasSuffix(e.Name(), ".egg-info"):
					installed, _, _ := strings.Cut(e.Name(), "-")
					packages = append(packages, space.PackageName(strings.TrimSuffix(strings.TrimSuffix(installed, ".dist"), ".egg")))
				case strings.ContainsAny(name, "-") || name == "__pycache__":
				case e.IsDir() && ending == "" && r.imports(path.Join(lib, dir, name)):
					modules = append(modules, name)
				case !e.IsDir() && (ending == "py" || ending == "so" || strings.HasSuffix(ending, ".so")):
					modules = append(modules, name)
				}
			}
		}
	}
	return sorted(modules), sorted(packages)
}

// imports reports whether a folder holds what Python imports, at once or in folders of it.
func (r *root) imports(dir string) bool {
	return slices.ContainsFunc(r.list(dir), func(e fs.DirEntry) bool {
		return e.IsDir() && e.Name() != "__pycache__" || strings.HasSuffix(e.Name(), ".py") || strings.HasSuffix(e.Name(), ".so")
	})
}

// list returns what lies in a folder of the root; nothing where it is none, or cannot be read.
func (r *root) list(dir string) []fs.DirEntry {
	at := r.find(dir)
	if at == "" {
		return nil
	}
	found, err := os.ReadDir(at)
	if err != nil {
		return nil
	}
	return found
}

// find returns where on the host a file or folder of the root lies, by its path in a space without the slash before it. Links are
// followed as a space would, below the root; "" for a path that no space sees.
func (r *root) find(name string) string {
	at := "" // the resolved part so far, in the space
	rest := strings.Split(path.Clean("/" + name)[1:], "/")
	for hops := 0; len(rest) > 0; {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		target := ""
		if i := slices.IndexFunc(r.links, func(l spaceinit.Link) bool { return l.Path == next }); i >= 0 {
			target = r.links[i].Target
		} else if host := r.host(next); host != "" {
			target, _ = os.Readlink(host) // a file that is no link is its own target
		}
		if target == "" {
			at = next
			continue
		}
		if hops++; hops > maxHops {
			return ""
		}
		if !path.IsAbs(target) {
			target = path.Join(at, target)
		}
		rest = append(strings.Split(path.Clean("/" + target)[1:], "/"), rest...)
		at = ""
	}
	return r.host(at)
}

// host returns where on the host a place of the root lies, without following links; "" where nothing shows it.
func (r *root) host(name string) string {
	for _, mask := range r.masks {
		if name == mask || strings.HasPrefix(name, mask+"/") {
			return ""
		}
	}
	for _, b := range r.binds {
		if name == b.target {
			return b.source
		}
		if rest, ok := strings.CutPrefix(name, b.target+"/"); ok && !b.file {
			return filepath.Join(b.source, rest)
		}
	}
	return ""
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
