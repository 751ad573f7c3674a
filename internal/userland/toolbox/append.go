package toolbox

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
	"time"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// An archive consists of blocks, and its length is a whole number of records.
const (
	tarBlock  = 512
	tarRecord = 20 * tarBlock
)

// counted counts what is read through it.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// counting counts what is written through it.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// placed is a member of an archive and where it lies, with all of its headers.
type placed struct {
	name     string
	modified time.Time
	from, to int64
}

// members lists what an archive has, which is plain and a file.
func (s *packer) members(file string, h *vfs.Handle) (program.List[placed], error) {
	var all program.List[placed]
	in := &counted{r: s.p.Reader(h)}
	t := tar.NewReader(in)
	end := int64(0)
	for {
		s.p.Charge(500)
		m, err := t.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			s.p.Charge(0)
			if all.Len() == 0 {
				return all, errors.New(file + ": This does not look like a tar archive")
			}
			return all, errors.New("Unexpected EOF in archive")
		}
		from := end
		end = in.n + (m.Size+tarBlock-1)/tarBlock*tarBlock
		if m.Typeflag == tar.TypeGNUSparse {
			return all, errors.New(m.Name + ": members with holes are not supported here")
		}
		s.p.Hold(len(m.Name) + 64)
		all.Append(placed{strings.TrimSuffix(m.Name, "/"), m.ModTime, from, end})
	}
}

// openArchive opens an archive that is to be changed.
func (s *packer) openArchive(file string, packing byte, flags vfs.Flags) (*vfs.Handle, error) {
	if packing != 0 {
		s.p.Errorf("Cannot update compressed archives")
		s.p.Stderrf("Try 'tar --help' or 'tar --usage' for more information.\n")
		s.p.Exit(2)
	}
	if file == "-" {
		s.p.Lack(program.LackOption, "-"+s.mode+" of the standard input")
		return nil, errors.New("an archive that is a stream cannot be changed here: name a file with -f")
	}
	h, err := s.p.Open(file, vfs.Read|vfs.Write|flags)
	if err != nil {
		return nil, errors.New(file + ": Cannot open: " + program.Message(err))
	}
	if h.Kind() != vfs.Regular {
		return nil, errors.New(file + ": Cannot open: Illegal seek")
	}
	return h, nil
}

// behind returns where new members of an archive begin. For -u it notes how new those are that it has.
func (s *packer) behind(file string, h *vfs.Handle) (int64, error) {
	all, err := s.members(file, h)
	if err != nil || all.Len() == 0 {
		return 0, err
	}
	if s.mode == "u" {
		s.newest = map[string]time.Time{}
		for _, block := range all.Blocks() {
			for _, m := range block {
				s.p.Hold(48)
				s.newest[m.name] = m.modified
			}
		}
	}
	return all.At(all.Len() - 1).to, nil
}

// delete takes members out of an archive: what is kept moves to the front.
func (s *packer) delete(file string, packing byte, names []string) error {
	h, err := s.openArchive(file, packing, vfs.Create)
	if err != nil {
		return err
	}
	all, err := s.members(file, h)
	if err != nil {
		return err
	}
	end := int64(0)
	buf := make([]byte, 32<<10)
	for _, block := range all.Blocks() {
		for _, m := range block {
			if len(names) > 0 && s.selected(m.name, names) {
				continue
			}
			for at := m.from; at < m.to && end != m.from; {
				part := buf[:min(int64(len(buf)), m.to-at)]
				s.p.Charge(len(part) / 4)
				if _, err := h.ReadAt(part, at); err != nil {
					return errors.New("Unexpected EOF in archive")
				}
				if _, err := h.WriteAt(part, end+at-m.from); err != nil {
					s.p.Check(err)
					return errors.New(file + ": Cannot write: " + program.Message(err))
				}
				at += int64(len(part))
			}
			end += m.to - m.from
		}
	}
	s.missing(names)
	return s.close(file, h, end)
}

// close writes what ends an archive that is a file, behind its members.
func (s *packer) close(file string, h *vfs.Handle, end int64) error {
	last := (end + 2*tarBlock + tarRecord - 1) / tarRecord * tarRecord
	for _, size := range []int64{end, last} { // what is cut off is zero when it comes again
		if err := h.Truncate(size); err != nil {
			s.p.Check(err)
			return errors.New(file + ": Cannot write: " + program.Message(err))
		}
	}
	return nil
}

// missing tells which of the names that were asked for the archive does not have.
func (s *packer) missing(names []string) {
	for _, n := range names {
		if !s.matched[n] {
			s.messages.Flush()
			s.p.Errorf("%s: Not found in archive", n)
			s.code = 2
		}
	}
}
