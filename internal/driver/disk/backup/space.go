package backup

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/overlay"
)

// shared reports whether a path is of what spaces share files with: in a backup each space has all its files, so that it is restored on
// any host.
func shared(below string) bool {
	if below == path.Join(spacesFolder, overlay.Frozen) {
		return true
	}
	rest, ok := strings.CutPrefix(below, spacesFolder+"/")
	home, name := path.Split(rest)
	return ok && strings.Count(home, "/") == 1 && overlay.Own(name)
}

// space writes the home of a space. Files that it shares with others are written as those of its own, as it shows them.
func (w *writer) space(home *beneath.Folder, below string) error {
	at := filepath.Join(w.dir, filepath.FromSlash(below))
	over, shares, err := overlay.Find(at)
	if err != nil {
		return err
	}
	if !shares {
		if err := w.folder(home, below); err != nil {
			return err
		}
		// The first fork of the space may have been made meanwhile.
		if over, shares, err = overlay.Find(at); err != nil || !shares || w.has(path.Join(below, overlay.Files)) {
			return err
		}
		return w.view(at, below, over, overlay.Files)
	}
	if err := w.folder(home, below); err != nil {
		return err
	}
	return w.view(at, below, over, overlay.Files, overlay.Staging)
}

// view writes folders of an overlay as if they were in the home of its space.
func (w *writer) view(at, below string, over overlay.Below, names ...string) error {
	layers, err := over.Layers(at)
	if err != nil {
		return err
	}
	view, err := overlay.View(layers)
	if err != nil {
		return err
	}
	defer view.Close()
	top, err := beneath.Dir(view, ".")
	if err != nil {
		return err
	}
	defer top.Close()
	for _, name := range names {
		if w.has(path.Join(below, name)) {
			continue
		}
		if err := w.entry(top, name, path.Join(below, name)); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether a folder was written.
func (w *writer) has(below string) bool {
	return slices.ContainsFunc(w.manifest, func(e Entry) bool { return e.Path == below && e.Type == typeFolder })
}
