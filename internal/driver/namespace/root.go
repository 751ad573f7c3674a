//go:build linux

package namespace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"agentbox/internal/domain/fault"
	"agentbox/internal/spaceinit"
)

// HostRoot is the name of the root file system that is the host's own programs, read-only: a fallback that needs no preparation and shows
// the space every file of the host's usr folder.
const HostRoot = "host"

// rootMark is the file that the script which makes root file systems writes last. It holds a line for each program.
const rootMark = "agentbox-rootfs"

// root is the read-only system of every space.
type root struct {
	name  string // HostRoot or the folder's own name
	dir   string // "" for the host's
	binds []bind
	links []spaceinit.Link
	masks []string
	dirs  []string
}

// bind shows a host folder or file in the space, read-only.
type bind struct {
	source, target string
	file           bool
}

// openRoot looks at the folder that a script made, or at the host's own system.
func openRoot(dir string) (*root, error) {
	if dir == HostRoot {
		return hostRoot("/")
	}
	if _, err := os.Stat(filepath.Join(dir, rootMark)); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "rootfs_missing",
			"the root file system for spaces is missing or incomplete; make it with `scripts/rootfs`, or use the host's own programs with the "+
				"name %q",
			HostRoot)
	}
	r := &root{name: filepath.Base(dir), dir: dir, binds: []bind{{source: filepath.Join(dir, "usr"), target: "usr"}}}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if _, err := os.Stat(filepath.Join(dir, "usr", name)); err == nil {
			r.links = append(r.links, spaceinit.Link{Path: name, Target: "usr/" + name})
		}
	}
	// The script keeps the few folders of etc that programs read where one mount shows them.
	for _, name := range []string{"ssl", "alternatives", "matplotlibrc", "mime.types", "pip.conf", "uv"} {
		if _, err := os.Lstat(filepath.Join(dir, "usr/share/agentbox/etc", name)); err == nil {
			r.links = append(r.links, spaceinit.Link{Path: "etc/" + name, Target: "/usr/share/agentbox/etc/" + name})
		}
	}
	return r, nil
}

// hostRoot is the host's own system below top, which is / except in tests: the files of its distribution without those that people added.
func hostRoot(top string) (*root, error) {
	r := &root{name: HostRoot, binds: []bind{{source: filepath.Join(top, "usr"), target: "usr"}}}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		path := filepath.Join(top, name)
		st, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return nil, err
			}
			r.links = append(r.links, spaceinit.Link{Path: name, Target: target})
		case st.IsDir():
			r.binds = append(r.binds, bind{source: path, target: name})
		}
	}
	if _, err := os.Stat(filepath.Join(top, "usr/local")); err == nil {
		r.masks = append(r.masks, "usr/local")
	}
	for _, name := range []string{"etc/alternatives", "etc/ssl/certs", "etc/ld.so.cache"} {
		path := filepath.Join(top, name)
		if st, err := os.Stat(path); err == nil {
			r.binds = append(r.binds, bind{source: path, target: name, file: !st.IsDir()})
		}
	}
	r.dirs = []string{"etc/ssl"}
	return r, nil
}
