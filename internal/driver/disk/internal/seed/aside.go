package seed

import (
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// Aside says which entries of a seed are kept from code, and where they go. The zero value keeps none.
type Aside struct {
	Held func(path string) bool
	Open func() (*beneath.Folder, error) // folder of withheld files, which the caller makes when it is first needed
}

// apart is a sower's knowledge of withheld files.
type apart struct {
	Aside
	root   *beneath.Folder // of withheld files, once there is one
	inside bool            // the sower is writing there
	files  int

	also   map[string]bool     // paths whose file has another name that is withheld
	inodes map[[2]uint64]bool  // of a host's folder: files with several names of which one is withheld
	first  map[string]string   // of an archive: the first name of a file that has several
	names  map[string][]string // all names of it that code sees, by the first
}

func (a *apart) close() {
	if a.root != nil {
		a.root.Close()
	}
}

// join remembers that two paths name one file.
func (a *apart) join(path, target string) {
	if a.inside {
		return
	}
	first, known := a.first[target]
	if !known {
		first = target
		a.first[target], a.names[first] = first, []string{target}
	}
	a.first[path] = first
	a.names[first] = append(a.names[first], path)
}

func (s *sower) sown() space.Sown { return space.Sown{Files: s.files, Withheld: s.apart.files} }

// held reports whether a path is to be made aside.
func (s *sower) held(path string) bool {
	return s.apart.Held != nil && !s.apart.inside && (s.apart.also[path] || s.apart.Held(path))
}

// holdsLink reports whether a file of two names is withheld by one of them.
func (s *sower) holdsLink(path, target string) bool { return s.held(path) || s.held(target) }

// aside makes an entry among the withheld files, for the daemon's own user.
func (s *sower) aside(make func() error) error {
	if s.apart.root == nil {
		root, err := s.apart.Open()
		if err != nil {
			return err
		}
		s.apart.root = root
	}
	root, uid, files := s.root, s.uid, s.files
	s.root, s.uid, s.apart.inside = s.apart.root, 0, true
	defer func() {
		s.apart.files += s.files - files
		s.root, s.uid, s.files, s.apart.inside = root, uid, files, false
	}()
	return make()
}

// moveAside withholds a file that was made before, under all its names, for it has another one that is withheld.
func (s *sower) moveAside(target string) error {
	if s.held(target) {
		return nil
	}
	names := []string{target}
	if first, known := s.apart.first[target]; known {
		names = s.apart.names[first]
	}
	view := s.root
	for _, name := range names {
		s.apart.also[name] = true
		err := s.aside(func() error {
			folder, last := beneath.Split(name)
			from, err := beneath.Dir(view, folder)
			if err != nil {
				return err
			}
			defer from.Close()
			to, err := s.dir(folder)
			if err != nil {
				return err
			}
			defer to.Close()
			return beneath.RenameNew(from, last, to, last)
		})
		if err != nil {
			return err
		}
	}
	s.files, s.apart.files = s.files-1, s.apart.files+1
	return nil
}

// scan finds the files of a host's folder that have a withheld name beside others.
func (s *sower) scan(from *beneath.Folder) error {
	if s.apart.Held == nil {
		return nil
	}
	s.apart.inodes = map[[2]uint64]bool{}
	return beneath.Walk(s.ctx, from, ".", beneath.MaxDepth, MaxSeedEntries+1, func(_ *beneath.Folder, rel, _ string, st beneath.Stat) error {
		if st.Nlink > 1 && st.Mode&beneath.TypeBits == beneath.TypeFile && s.apart.Held(rel) {
			s.apart.inodes[[2]uint64{uint64(st.Dev), st.Ino}] = true
		}
		return s.ctx.Err()
	})
}
