//go:build linux

package namespace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
)

// plant makes a root file system: a path that ends in / is a folder, one with -> a link, one with * a program, and any other a plain file.
func plant(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		name, target, link := strings.Cut(f, " -> ")
		program := name[len(name)-1] == '*'
		if program {
			name = name[:len(name)-1]
		}
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if program {
			mode = 0o755
		}
		var err error
		switch {
		case link:
			err = os.Symlink(target, at)
		case name[len(name)-1] == '/':
			err = os.MkdirAll(at, 0o755)
		default:
			err = os.WriteFile(at, []byte("x"), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheOfferIsWhatTheRootHas(t *testing.T) {
	small := []string{
		"agentbox-rootfs", "usr/bin/bash*", "usr/bin/python3.11*", "usr/bin/python3 -> python3.11", "usr/bin/node*",
		"usr/lib/python3.11/json/__init__.py", "usr/lib/python3.11/os.py",
		"usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so", "usr/lib/python3.11/__pycache__/os.pyc", "usr/bin/notes.txt",
		"usr/bin/gone -> /etc/alternatives/gone",
		"usr/bin/awk -> /etc/alternatives/awk", "usr/share/agentbox/etc/alternatives/awk -> /usr/bin/mawk", "usr/bin/mawk*",
		"usr/bin/loop -> loop", "usr/bin/out -> ../../../../../bin/mawk",
	}
	full := append(slices.Clone(small),
		"usr/bin/pip*", "usr/lib/python3/dist-packages/numpy/__init__.py", "usr/lib/python3/dist-packages/numpy-1.24.2.egg-info",
		"usr/lib/python3/dist-packages/scikit_learn-1.2.1.egg-info/x",
		"usr/lib/python3/dist-packages/sklearn/linear/model.py", "usr/lib/python3/dist-packages/six.py", "usr/lib/python3/dist-packages/empty/",
	)
	for _, c := range []struct {
		name         string
		files        []string
		has, hasNot  []string
		module, none []string
		packages     []string
		node         bool
	}{
		{
			"the small one", small, []string{"bash", "python3", "node", "awk", "mawk", "out"}, []string{"pip", "gone", "loop", "notes.txt", "gcc"},
			[]string{"json", "json.tool", "os", "sys", "_ctypes", "math"}, []string{"numpy", "requests", "__pycache__"}, []string{}, true,
		},
		{
			"the full one", full, []string{"bash", "pip"}, []string{"gcc"}, []string{"numpy", "numpy.linalg", "sklearn", "six", "os"},
			[]string{"pandas", "scikit_learn", "empty"},
			[]string{"numpy", "scikit-learn"}, true,
		},
		{"without Python", []string{"agentbox-rootfs", "usr/bin/sh*"}, []string{"sh"}, []string{"python3"}, nil, []string{"os", "sys"},
			[]string{}, false},
	} {
		r, err := openRoot(plant(t, c.files...))
		if err != nil {
			t.Fatal(err)
		}
		o := r.offer()
		for _, name := range c.has {
			if !o.Program(name) {
				t.Errorf("%s: it has not the program %s, of %q", c.name, name, o.Programs)
			}
		}
		for _, name := range c.hasNot {
			if o.Program(name) {
				t.Errorf("%s: it has the program %s", c.name, name)
			}
		}
		for _, name := range c.module {
			if !o.Module(name) {
				t.Errorf("%s: it has not the module %s, of %q", c.name, name, o.Modules)
			}
		}
		for _, name := range c.none {
			if o.Module(name) {
				t.Errorf("%s: it has the module %s", c.name, name)
			}
		}
		if !slices.Equal(o.Packages, c.packages) || o.Builtin("node:fs") != c.node || o.Network || o.Tier != Name {
			t.Errorf("%s: got %+v", c.name, o)
		}
		for _, list := range [][]string{o.Programs, o.Modules, o.Packages, o.Node} {
			if !slices.IsSorted(list) || list == nil {
				t.Errorf("%s: a list is not in order, or none: %q", c.name, list)
			}
		}
	}
}

// The host's own programs are those below /usr, as a space sees them: not what people added.
func TestTheOfferOfTheHostsOwnPrograms(t *testing.T) {
	top := plant(t, "usr/bin/env*", "usr/local/bin/own*", "usr/bin/mine -> /usr/local/bin/own", "usr/bin/vi -> /etc/alternatives/vi",
		"usr/bin/vim.tiny*", "etc/alternatives/vi -> /usr/bin/vim.tiny",
		"bin -> usr/bin", "opt/bin/other*", "usr/bin/other -> /opt/bin/other")
	r, err := hostRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.offer().Programs, []string{"env", "vi", "vim.tiny"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	real, err := hostRoot("/")
	if err != nil {
		t.Fatal(err)
	}
	if o := real.offer(); !o.Known() || !o.Program("sh") || o.Has(space.Need{Kind: space.LackNetwork, Name: "example.com"}) ||
		o.Root != HostRoot {
		t.Errorf("of this host: got %d programs of %q", len(o.Programs), o.Root)
	}
}

func BenchmarkOffer(b *testing.B) {
	r, err := hostRoot("/")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.offer()
	}
}
