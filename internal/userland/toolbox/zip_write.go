package toolbox

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// limited is a writer that takes so much and no more.
type limited struct {
	w *bytes.Buffer
	n int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.w.Len()+len(b) > l.n {
		return 0, io.ErrShortWrite
	}
	return l.w.Write(b)
}

// parse reads the arguments. It returns false after a message when they cannot be followed.
func (z *zipper) parse(args []string) (file string, names []string, ok bool) {
	var into *[]string
	for _, a := range args {
		switch {
		case a == "-x", a == "--exclude":
			into = &z.exclude
		case a == "-i":
			into = &z.include
		case len(a) > 1 && a[0] == '-':
			into = nil
			for _, c := range a[1:] {
				switch c {
				case 'r':
					z.recursive = true
				case 'j':
					z.flat = true
				case 'q':
					z.quiet = true
				case 'y':
					z.links = true
				case '0':
					z.method = zip.Store
				case '1', '2', '3', '4', '5', '6', '7', '8', '9', 'X', 'D', 'o', 'u', 'v', 'k':
				default:
					z.p.Lack(program.LackOption, "-"+string(c))
					z.p.Errorf("error: Invalid command arguments (short option '%c' not supported)", c)
					return "", nil, false
				}
			}
		case into != nil:
			*into = append(*into, a)
		case file == "":
			file = a
		default:
			names = append(names, a)
		}
	}
	return file, names, true
}

// zipCommand packs files into an archive.
func zipCommand(p *program.Process) int {
	z := &zipper{p: p, method: zip.Deflate, verb: "  adding", done: map[string]bool{}}
	file, names, ok := z.parse(p.Args[1:])
	if !ok {
		return 16
	}
	if file == "" || len(names) == 0 {
		p.Errorf("error: Nothing to do! (%s)", file)
		return 12
	}
	if !strings.Contains(gnu.LastName(file), ".") && file != "-" {
		file += ".zip"
	}
	out := p.Out()
	z.quiet = z.quiet || file == "-"
	var buf bytes.Buffer
	z.w = zip.NewWriter(&charger{p: p, w: &held2{p: p, b: &buf}, n: 1})
	var old *zip.Reader
	if file != "-" {
		if data, err := gnu.ReadWhole(p, file); err == nil {
			if old, err = zip.NewReader(bytes.NewReader(data), int64(len(data))); err != nil {
				p.Errorf("error: Zip file structure invalid (%s)", file)
				return 3
			}
			z.old = map[string]bool{}
			for _, f := range old.File {
				z.old[f.Name] = true
			}
		}
	}
	for _, n := range names {
		node, err := p.FS.Lookup(p.At(), n, !z.links)
		if err != nil {
			p.Charge(0)
			out.Printf("\tzip warning: name not matched: %s\n", n)
			continue
		}
		name := strings.TrimLeft(path.Clean(n), "/")
		if path.Clean(n) == "." {
			name = ""
		}
		for strings.HasPrefix(name, "../") {
			name = name[3:]
		}
		if err := z.add(name, node, 0); err != nil {
			p.Errorf("error: %s", program.Message(err))
			return 14
		}
	}
	if z.count == 0 {
		hint := file
		if z.recursive {
			hint = "try: zip -r " + strings.TrimSuffix(file, ".zip") + " . -i " + strings.Join(names, " ")
		}
		out.Printf("\nzip error: Nothing to do! (%s)\n", hint)
		return 12
	}
	if old != nil {
		for _, f := range old.File {
			if !z.done[f.Name] {
				if err := z.w.Copy(f); err != nil {
					p.Errorf("error: %s", program.Message(err))
					return 14
				}
			}
		}
	}
	if err := z.w.Close(); err != nil {
		p.Errorf("error: %s", program.Message(err))
		return 14
	}
	if file == "-" {
		_, _ = out.Write(buf.Bytes())
		return 0
	}
	_, w, err := gnu.Create(p, file)
	if err != nil {
		p.Errorf("I/O error: %s", program.Message(err))
		p.Errorf("error: Could not create output file (%s)", file)
		return 15
	}
	_, _ = w.Write(buf.Bytes())
	w.Flush()
	return 0
}

// held2 counts what is written into a buffer.
type held2 struct {
	p *program.Process
	b *bytes.Buffer
}

func (h *held2) Write(b []byte) (int, error) {
	h.p.Hold(len(b))
	return h.b.Write(b)
}

// zipper packs files.
type zipper struct {
	p                             *program.Process
	w                             *zip.Writer
	method                        uint16
	recursive, flat, quiet, links bool
	exclude, include              []string
	verb                          string
	old, done                     map[string]bool
	count                         int
}

func (z *zipper) wanted(name string) bool {
	for _, x := range z.exclude {
		if gnu.Glob(x, name, false) || gnu.Glob(x, strings.TrimSuffix(name, "/"), false) {
			return false
		}
	}
	for _, x := range z.include {
		if gnu.Glob(x, name, false) {
			return true
		}
	}
	return len(z.include) == 0
}

func (z *zipper) add(name string, node *vfs.Node, depth int) error {
	if depth > vfs.MaxDepth {
		return vfs.ELOOP
	}
	i := node.Info()
	stored := name
	if z.flat {
		stored = path.Base(name)
	}
	h := &zip.FileHeader{Name: stored, Method: z.method, Modified: i.Modified.UTC().Truncate(time.Second)}
	verb := z.verb
	if z.old[stored] {
		verb = "updating"
	}
	switch i.Kind {
	case vfs.Directory:
		if name != "" && !z.flat && z.wanted(name+"/") {
			h.Name += "/"
			h.Method = zip.Store
			h.SetMode(fs.ModeDir | fs.FileMode(i.Mode))
			if _, err := z.w.CreateHeader(h); err != nil {
				return err
			}
			z.done[h.Name] = true
			z.count++
			z.say("%s: %s (stored 0%%)\n", verb, h.Name)
		}
		if !z.recursive {
			return nil
		}
		entries, err := node.List()
		if err != nil {
			return err
		}
		for _, e := range entries {
			child := e.Node
			if child.Kind() == vfs.Symlink && !z.links {
				n, err := z.p.FS.Lookup(vfs.At{Dir: node}, e.Name, true)
				if err != nil {
					continue
				}
				child = n
			}
			sub := e.Name
			if name != "" {
				sub = name + "/" + e.Name
			}
			if err := z.add(sub, child, depth+1); err != nil {
				return err
			}
		}
		return nil
	case vfs.Symlink:
		if !z.wanted(name) {
			return nil
		}
		h.SetMode(fs.ModeSymlink | 0o777)
		h.Method = zip.Store
		w, err := z.w.CreateHeader(h)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, node.Target())
		z.done[h.Name] = true
		z.count++
		z.say("%s: %s (stored 0%%)\n", verb, h.Name)
		return err
	case vfs.Regular:
	default:
		return nil
	}
	if !z.wanted(name) {
		return nil
	}
	h.SetMode(fs.FileMode(i.Mode & 0o777))
	if i.Size == 0 {
		h.Method = zip.Store
	}
	w, err := z.w.CreateHeader(h)
	if err != nil {
		return err
	}
	f, err := z.p.FS.OpenNode(node, vfs.Read)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(w, &charger{p: z.p, r: f, n: 2 * gasPerPacked}); err != nil {
		return err
	}
	if err := z.w.Flush(); err != nil {
		return err
	}
	z.done[h.Name] = true
	z.count++
	if h.Method == zip.Store {
		z.say("%s: %s (stored 0%%)\n", verb, h.Name)
	} else {
		z.say("%s: %s (deflated)\n", verb, h.Name)
	}
	return nil
}

func (z *zipper) say(format string, args ...any) {
	if !z.quiet {
		z.p.Out().Printf(format, args...)
	}
}
