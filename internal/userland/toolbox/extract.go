package toolbox

import (
	"archive/tar"
	"errors"
	"io"
	"path"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// extract writes a member to its place. It refuses a member that would leave the folder, by its name or through a link.
func (s *packer) extract(r io.Reader, h *tar.Header) error {
	name := h.Name
	if strings.HasPrefix(name, "/") {
		if !s.told {
			s.p.Errorf("Removing leading `/' from member names")
			s.told = true
		}
		name = strings.TrimLeft(name, "/")
	}
	if !gnu.SafeName(name) {
		s.messages.Flush()
		s.p.Errorf("%s: Member name contains '..'", h.Name)
		s.code = 2
		return nil
	}
	name = path.Clean(name)
	for range s.strip {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return nil
		}
		name = rest
	}
	if s.toStdout {
		if h.Typeflag == tar.TypeReg {
			if _, err := io.Copy(s.out, r); err != nil {
				return errors.New("Unexpected EOF in archive")
			}
		}
		return nil
	}
	if s.verbose > 0 {
		s.messages.WriteString(s.line(h) + "\n")
	}
	fail := func(err error) error {
		s.p.Charge(0)
		s.messages.Flush()
		s.p.Errorf("%s: Cannot open: %s", name, program.Message(err))
		s.code = 2
		return nil
	}
	if err := s.parents(name); err != nil {
		return fail(err)
	}
	fs := s.p.FS
	mode := uint32(h.Mode) & 0o777 &^ s.p.Umask
	switch h.Typeflag {
	case tar.TypeDir:
		if err := fs.Mkdir(s.at, name, 0o700); err != nil && !errors.Is(err, vfs.EEXIST) {
			return fail(err)
		}
		s.dirs = append(s.dirs, dirTime{name, h})
		return nil
	case tar.TypeSymlink:
		_ = fs.Unlink(s.at, name)
		if err := fs.Symlink(h.Linkname, s.at, name); err != nil {
			return fail(err)
		}
		if !s.noTime {
			_ = fs.Utimes(s.at, name, false, h.ModTime, h.ModTime)
		}
		return nil
	case tar.TypeLink:
		if !gnu.SafeName(h.Linkname) {
			s.p.Errorf("%s: Member name contains '..'", h.Linkname)
			s.code = 2
			return nil
		}
		_ = fs.Unlink(s.at, name)
		if err := s.through(h.Linkname); err != nil {
			return fail(err)
		}
		if err := fs.Link(s.at, h.Linkname, false, s.at, name); err != nil {
			return fail(err)
		}
		return nil
	case tar.TypeReg:
	default:
		return nil
	}
	if s.keep {
		if _, err := fs.Stat(s.at, name, false); err == nil {
			s.p.Errorf("%s: Cannot open: %s", name, vfs.EEXIST.Error())
			s.code = 2
			return nil
		}
	}
	if err := fs.Unlink(s.at, name); err != nil && !errors.Is(err, vfs.ENOENT) {
		return fail(err)
	}
	f, err := fs.Open(s.at, name, vfs.Write|vfs.Create|vfs.Exclusive, 0o600)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }()
	if err := s.copy(f, r, name); err != nil {
		return err
	}
	_ = f.Node().Chmod(mode)
	if !s.noTime {
		_ = f.Node().Utimes(h.ModTime, h.ModTime)
	}
	return nil
}

// copy writes a member's bytes.
func (s *packer) copy(f *vfs.Handle, r io.Reader, name string) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := f.Write(buf[:n]); werr != nil {
				s.p.Charge(0)
				return errors.New(name + ": Cannot write: " + program.Message(werr))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("Unexpected EOF in archive")
		}
	}
}

// parents makes the folders above a name, and refuses to go through a link.
func (s *packer) parents(name string) error {
	for i := range name {
		if name[i] != '/' {
			continue
		}
		dir := name[:i]
		info, err := s.p.FS.Stat(s.at, dir, false)
		switch {
		case errors.Is(err, vfs.ENOENT):
			if err := s.p.FS.Mkdir(s.at, dir, 0o777&^s.p.Umask); err != nil {
				return err
			}
		case err != nil:
			return err
		case info.Kind != vfs.Directory:
			return vfs.ENOTDIR
		}
	}
	return nil
}

// through refuses a path that goes through a link.
func (s *packer) through(name string) error {
	for i := range name {
		if name[i] == '/' {
			if info, err := s.p.FS.Stat(s.at, name[:i], false); err != nil || info.Kind != vfs.Directory {
				return vfs.ENOTDIR
			}
		}
	}
	return nil
}
