package snapshots

import (
	"context"
	"errors"
	"io"
	"slices"
	"syscall"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// The bounds of a snapshot's files.
const (
	// MaxEntries is how many files, folders and links a snapshot may have.
	MaxEntries = 200_000
	// fresh is the time after its last change in which the scan reads a file again, even if nothing about it seems to have changed. Until
	// then the file system's clock, which may stand still for 10 ms, need not tell two changes apart.
	fresh = 20_000_000 // ns
	// batch is how many names are read from a folder at a time.
	batch = 1024
	// attempts is how often the scan reads a file again that changes during the read.
	attempts = 8
	// MaxDepth is how deep folders may be nested. A scan holds one descriptor for each level.
	MaxDepth = 256
)

// seen is the state of a file at its scan. Code inside can set the times of a file but not its ctime.
type seen struct {
	inode uint64
	size  int64
	ctime int64 // ns
	mode  uint32
}

func look(st beneath.Stat) seen {
	return seen{inode: st.Ino, size: st.Size, ctime: st.Ctim.Nano(), mode: st.Mode}
}

// node is the state of a folder at its scan.
type node struct {
	leaves  map[string]leaf // files and links
	folders map[string]*node
	mode    uint32
	owner   uint32
	digest  event.Digest
	special []string // names of entries that are neither file nor folder nor link
	sum     sum      // of everything below
}

// leaf is a file or a link.
type leaf struct {
	seen
	owner  uint32 // a shared file has another owner in each space; a change of owner changes the ctime too
	digest event.Digest
	target string
}

// sum counts what lies below a folder.
type sum struct {
	entries, files, bytes, omitted int64
	foreign                        int64 // what belongs to another user than the space's
}

func (n *node) snapshot() space.Snapshot {
	return space.Snapshot{Root: n.digest, Files: n.sum.files, Bytes: n.sum.bytes, Omitted: n.sum.omitted}
}

// scan looks at a tree of files and stores its new contents.
type scan struct {
	ctx   context.Context
	root  *beneath.Folder
	uid   uint32 // expected owner of everything
	w     sink
	now   int64 // of the file system's clock, before the scan
	bytes int64 // the most content
	left  int   // entries that may still come
	read  int64 // bytes of content so far
	only  map[string]bool
	known map[uint64]event.Digest // by inode: content that was written a moment ago, out of the space's sight

	watch  *watch // of every scanned folder; nil for none, and set to nil when watching fails
	linked bool   // a scanned file has another name
	looked int    // scanned entries
}

// sink takes scanned content.
type sink interface {
	has(d event.Digest) bool
	add(d event.Digest, raw []byte) error
	stream(ctx context.Context, d event.Digest, r io.Reader, size int64) error
}

var (
	_ sink = (*writer)(nil)
	_ sink = nowhere{}
)

// nowhere is where content goes that is only looked at.
type nowhere struct{}

func (nowhere) has(event.Digest) bool                                        { return true }
func (nowhere) add(event.Digest, []byte) error                               { return nil }
func (nowhere) stream(context.Context, event.Digest, io.Reader, int64) error { return nil }

// folder looks at the folder rel, which is below anchor and nested depth deep; old is what it was before, or nil. With s.only set, folders
// that are not in it count as unchanged.
func (s *scan) folder(anchor *beneath.Folder, at, rel string, is beneath.Stat, depth int, old *node) (*node, error) {
	if s.only != nil && old != nil && !s.only[rel] {
		kept := *old
		kept.mode, kept.owner = is.Mode&modeBits, is.Uid
		s.left -= int(old.sum.entries)
		s.read += old.sum.bytes
		return &kept, nil
	}
	if depth > MaxDepth {
		return nil, fault.New(fault.Exhausted, space.ErrTreeTooDeep.Code, "folders are nested more than %d deep; no snapshot of them can be made",
			MaxDepth)
	}
	dir, err := beneath.Dir(anchor, at)
	if err != nil {
		return nil, beneath.Refusal(err, rel)
	}
	defer dir.Close()
	if s.watch != nil && !s.watch.add(dir, rel) {
		s.watch = nil
	}
	n := &node{leaves: map[string]leaf{}, mode: is.Mode & modeBits, owner: is.Uid}
	if old != nil {
		n.leaves = make(map[string]leaf, len(old.leaves))
	}
	below, err := s.names(dir, rel, n, old)
	if err != nil {
		return nil, err
	}
	for name, is := range below {
		var was *node
		if old != nil {
			was = old.folders[name]
		}
		inner, err := s.folder(dir, name, beneath.Join(rel, name), is, depth+1, was)
		if err != nil {
			return nil, err
		}
		if n.folders == nil {
			n.folders = map[string]*node{}
		}
		n.folders[name] = inner
	}
	return n, s.close(n, rel, old)
}

// names looks at everything in a folder and returns the folders in it.
func (s *scan) names(dir *beneath.Folder, rel string, n, old *node) (map[string]beneath.Stat, error) {
	below := map[string]beneath.Stat{}
	for {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			s.looked++
			st, err := beneath.Lstat(dir, name)
			if errors.Is(err, syscall.ENOENT) {
				continue // gone meanwhile
			}
			if err != nil {
				return nil, beneath.Refusal(err, beneath.Join(rel, name))
			}
			if s.left--; s.left < 0 {
				return nil, tooLarge("it has more than %d files, folders and links", MaxEntries)
			}
			switch st.Mode & beneath.TypeBits {
			case beneath.TypeFolder:
				below[name] = st
			case beneath.TypeFile, beneath.TypeLink:
				if err := s.leaf(dir, rel, name, st, n, old); err != nil {
					return nil, err
				}
			default:
				n.special = append(n.special, name)
			}
		}
		if errors.Is(err, io.EOF) {
			return below, nil
		}
		if err != nil {
			return nil, beneath.Refusal(err, rel)
		}
	}
}

// leaf looks at a file or a link and stores its content unless it is the one that was stored before.
func (s *scan) leaf(dir *beneath.Folder, rel, name string, st beneath.Stat, n, old *node) error {
	now := look(st)
	s.linked = s.linked || st.Nlink > 1
	if old != nil {
		if was, ok := old.leaves[name]; ok && was.seen == now && now.ctime < s.now-fresh {
			was.owner = st.Uid
			n.leaves[name] = was
			return s.count(now.size)
		}
	}
	if st.Mode&beneath.TypeBits == beneath.TypeLink {
		target, err := beneath.Readlink(dir, name)
		if err == nil {
			n.leaves[name] = leaf{seen: now, owner: st.Uid, target: target}
			return nil
		}
		return gone(err, rel, name)
	}
	if digest, ok := s.known[st.Ino]; ok {
		n.leaves[name] = leaf{seen: now, owner: st.Uid, digest: digest}
		return s.count(now.size)
	}
	for range attempts {
		content, err := s.content(dir, name)
		if err == nil {
			n.leaves[name] = content
			return s.count(content.size)
		}
		if !errors.Is(err, space.ErrFileChanged) {
			return gone(err, rel, name)
		}
	}
	return fault.New(fault.Conflict, space.ErrFileChanged.Code, "%+q keeps changing while a snapshot is made", beneath.Join(rel, name))
}

// gone passes over an entry that went away, or changed its kind, after its name was read.
func gone(err error, rel, name string) error {
	if beneath.Vanished(err) || errors.Is(err, space.ErrNotAFile) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return beneath.Refusal(err, beneath.Join(rel, name))
}

func (s *scan) count(size int64) error {
	if s.read += size; s.read > s.bytes {
		return tooLarge("its files have more than %d bytes, holes included", s.bytes)
	}
	return nil
}

// content reads a file and stores it. A large one is read twice: first for its hash, by which it may be known already.
func (s *scan) content(dir *beneath.Folder, name string) (leaf, error) {
	file, st, err := beneath.Regular(dir, name)
	if err != nil {
		return leaf{}, err
	}
	defer file.Close()
	now := look(st)
	if s.read+st.Size > s.bytes {
		return leaf{}, s.count(st.Size)
	}
	var digest event.Digest
	if st.Size <= small {
		raw := make([]byte, st.Size)
		if _, err := io.ReadFull(file, raw); err != nil {
			return leaf{}, short(err)
		}
		digest = event.DigestOf(raw)
		if err := s.w.add(digest, raw); err != nil {
			return leaf{}, err
		}
	} else {
		var n int64
		n, digest, err = beneath.CopyHashed(s.ctx, io.Discard, io.NewSectionReader(file, 0, st.Size), st.Size)
		if err == nil && n < st.Size {
			err = space.ErrFileChanged
		}
		if err == nil {
			err = s.w.stream(s.ctx, digest, io.NewSectionReader(file, 0, st.Size), st.Size)
		}
		if err != nil {
			return leaf{}, err
		}
	}
	if err := beneath.Fstat(file, &st); err != nil {
		return leaf{}, err
	}
	if look(st) != now {
		return leaf{}, space.ErrFileChanged
	}
	return leaf{seen: now, owner: st.Uid, digest: digest}, nil
}

func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return space.ErrFileChanged
	}
	return err
}

// close computes the text of a folder once all its entries are known.
func (s *scan) close(n *node, rel string, old *node) error {
	n.sum.omitted = int64(len(n.special))
	same := old != nil && len(n.leaves) == len(old.leaves) && len(n.folders) == len(old.folders)
	for name, l := range n.leaves {
		n.sum.entries++
		if l.owner != s.uid {
			n.sum.foreign++
		}
		if l.mode&beneath.TypeBits == beneath.TypeFile {
			n.sum.files++
			n.sum.bytes += l.size
		}
		if same {
			was := old.leaves[name]
			same = was.digest == l.digest && was.target == l.target && was.mode == l.mode && was.size == l.size
		}
	}
	for name, f := range n.folders {
		n.sum.entries += 1 + f.sum.entries
		n.sum.files += f.sum.files
		n.sum.bytes += f.sum.bytes
		n.sum.omitted += f.sum.omitted
		n.sum.foreign += f.sum.foreign
		if f.owner != s.uid {
			n.sum.foreign++
		}
		if same {
			was := old.folders[name]
			same = was != nil && was.digest == f.digest && was.mode == f.mode
		}
	}
	if same && s.w.has(old.digest) {
		n.digest = old.digest
		return nil
	}
	text := encode(n.entries())
	if len(text) > MaxFolderBytes {
		return tooLarge("the folder %+.80q takes more than %d bytes to describe", rel, MaxFolderBytes)
	}
	n.digest = event.DigestOf(text)
	return s.w.add(n.digest, text)
}

// entries returns the entries in the text of a folder.
func (n *node) entries() []entry {
	found := make([]entry, 0, len(n.leaves)+len(n.folders))
	for name, l := range n.leaves {
		if l.mode&beneath.TypeBits == beneath.TypeLink {
			found = append(found, entry{kind: isLink, name: name, target: l.target})
		} else {
			found = append(found, entry{kind: isFile, name: name, mode: l.mode & modeBits, digest: l.digest, size: l.size})
		}
	}
	for name, f := range n.folders {
		found = append(found, entry{kind: isFolder, name: name, mode: f.mode, digest: f.digest})
	}
	slices.SortFunc(found, byName)
	return found
}

func tooLarge(format string, args ...any) error {
	return fault.New(fault.Exhausted, space.ErrSnapshotTooLarge.Code, "no snapshot of the files can be made: "+format, args...).
		With("delete files that are no longer needed")
}
