package javascript

import (
	"encoding/json"
	"path"
	"time"

	//nolint:staticcheck // programs ask for it by name

	"agentbox/internal/userland/vfs"
)

// stat describes a file by its path; with follow 0 a link itself.
func (fl filesystem) stat(a *arguments) (any, error) {
	name := a.text()
	info, err := fl.run.p.FS.Stat(fl.run.p.At(), name, a.int() != 0)
	if err != nil {
		return nil, err
	}
	return stated(info)
}

func statOf(h *vfs.Handle, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return stated(h.Info())
}

func stated(i vfs.Info) (any, error) {
	raw, err := json.Marshal([]any{
		kindNumber(i.Kind), i.Mode, i.Size, i.Links, i.ID, i.Device, float64(i.Accessed.UnixNano()) / 1e6, float64(i.Modified.UnixNano()) / 1e6,
		float64(i.Changed.UnixNano()) / 1e6,
	})
	return string(raw), err
}

// kindNumber returns the bits by which POSIX knows a kind.
func kindNumber(k vfs.Kind) int {
	switch k {
	case vfs.Regular:
		return 0o100000
	case vfs.Directory:
		return 0o040000
	case vfs.Symlink:
		return 0o120000
	case vfs.Pipe:
		return 0o010000
	}
	return 0o020000
}

func (fl filesystem) readdir(a *arguments) (any, error) {
	entries, err := fl.run.p.FS.List(fl.run.p.At(), a.text())
	if err != nil {
		return nil, err
	}
	fl.run.p.Charge(50 * len(entries))
	list := make([]any, 0, 2*len(entries))
	for _, e := range entries {
		list = append(list, e.Name, kindNumber(e.Node.Kind()))
	}
	raw, err := json.Marshal(list)
	return string(raw), err
}

func (fl filesystem) utimes(a *arguments) (any, error) {
	name, accessed, modified, follow := a.text(), a.number(), a.number(), a.int() != 0
	at := func(ms float64) time.Time { return time.Unix(0, int64(ms*1e6)) }
	return nil, fl.run.p.FS.Utimes(fl.run.p.At(), name, follow, at(accessed), at(modified))
}

// realpath resolves all links of a path.
func (fl filesystem) realpath(a *arguments) (any, error) {
	name := a.text()
	n, err := fl.run.p.FS.Lookup(fl.run.p.At(), name, true)
	if err != nil {
		return nil, err
	}
	if n.Kind() == vfs.Directory {
		return str(n.Path())
	}
	for range vfs.MaxSymlinks {
		info, err := fl.run.p.FS.Stat(fl.run.p.At(), name, false)
		if err != nil {
			return nil, err
		}
		folder := path.Dir(name)
		if info.Kind != vfs.Symlink {
			above, err := fl.run.p.FS.Lookup(fl.run.p.At(), folder, true)
			if err != nil {
				return nil, err
			}
			whole, err := above.Path()
			return path.Join(whole, path.Base(name)), err
		}
		target, err := fl.run.p.FS.Readlink(fl.run.p.At(), name)
		if err != nil {
			return nil, err
		}
		if name = target; !path.IsAbs(name) {
			name = path.Join(folder, name)
		}
	}
	return nil, vfs.ELOOP
}
