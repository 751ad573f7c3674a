package snapshots

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/seal"
	"agentbox/internal/kernel/vault"
)

// A pack is a file of content. It holds records of a hash, a length, the name of a key, the sealed bytes, and a CRC-32C of all that. It is
// written once and never changed. Its name ends in .sealing until it is durable. A daemon that finds such a name when it starts reads the
// whole pack, and cuts it off at the first record with a wrong checksum. Packs of an earlier version, .pack and .new, have records of a
// hash, a length and the plain bytes. They are still read, and no longer written.
const (
	packSuffix    = ".sealed"
	freshSuffix   = ".sealing"
	plainSuffix   = ".pack"
	unsyncedPlain = ".new"
	plainHead     = sha256.Size + 8
	recordHead    = plainHead + seal.KeyBytes
	recordSum     = 4
	writeBuffer   = 256 << 10
)

func castagnoli() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// pack is one file of content.
type pack struct {
	number uint64
	fresh  bool
	plain  bool     // of an earlier version
	size   int64    // of the file
	file   *os.File // while it is in use
}

// place says where content lies.
type place struct {
	pack *pack
	at   int64 // of the bytes
	size int64 // of the content
	key  seal.Key
}

// takes returns the size of its record in bytes.
func (at place) takes() int64 {
	if at.pack == nil || at.pack.plain {
		return plainHead + at.size
	}
	return recordHead + seal.Sealed(at.size) + recordSum
}

// packs are the content of one space's snapshots.
type packs struct {
	dir     string
	keys    vault.Keys
	looks   bool   // nothing may be changed
	last    uint64 // number of the newest
	all     []*pack
	objects map[event.Digest]place
	bytes   int64 // of all packs
	blind   error // why the needed contents are not known
}

// openPacks reads the packs of a folder. If looks is true, it changes nothing there.
func openPacks(ctx context.Context, dir string, keys vault.Keys, looks bool) (*packs, error) {
	p := &packs{dir: dir, keys: keys, looks: looks, objects: map[event.Digest]place{}}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		suffix := filepath.Ext(name.Name())
		k := &pack{fresh: suffix == freshSuffix || suffix == unsyncedPlain, plain: suffix == plainSuffix || suffix == unsyncedPlain}
		if suffix == "" || k.suffix() != suffix {
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(name.Name(), suffix), 10, 64)
		if err != nil {
			continue
		}
		k.number = number
		p.last = max(p.last, number)
		if err := p.load(ctx, k); err != nil {
			p.rest()
			return nil, err
		}
	}
	p.rest()
	return p, nil
}

func (p *packs) path(k *pack) string {
	return filepath.Join(p.dir, fmt.Sprintf("%08d%s", k.number, k.suffix()))
}

func (k *pack) suffix() string {
	switch {
	case k.plain && k.fresh:
		return unsyncedPlain
	case k.plain:
		return plainSuffix
	case k.fresh:
		return freshSuffix
	}
	return packSuffix
}

// load finds the records of a pack. If the pack may not be durable, load reads everything and compares it with the hashes.
func (p *packs) load(ctx context.Context, k *pack) error {
	file, err := p.open(k)
	if err != nil {
		return err
	}
	p.all = append(p.all, k)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var at int64
	head := make([]byte, recordHead)
	if k.plain {
		head = head[:plainHead]
	}
	for at+int64(len(head)) <= info.Size() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := file.ReadAt(head, at); err != nil {
			return err
		}
		digest := event.Digest(head[:sha256.Size])
		found := place{pack: k, at: at + int64(len(head)), size: int64(binary.BigEndian.Uint64(head[sha256.Size:]))}
		if found.size < 0 || found.size > info.Size() || found.takes() > info.Size()-at {
			break
		}
		if !k.plain {
			found.key = seal.ParseKey(head[plainHead:])
		}
		if k.fresh {
			if whole, err := found.whole(ctx, file, at, digest); err != nil {
				return err
			} else if !whole {
				break
			}
		}
		p.objects[digest] = found
		at += found.takes()
	}
	if at < info.Size() && !p.looks {
		if err := file.Truncate(at); err != nil {
			return err
		}
	}
	k.size = at
	p.bytes += at
	return nil
}

// whole reports whether a record that begins at start was written to its end.
func (at place) whole(ctx context.Context, file *os.File, start int64, d event.Digest) (bool, error) {
	if at.pack.plain {
		_, got, err := beneath.CopyHashed(ctx, io.Discard, io.NewSectionReader(file, at.at, at.size), at.size)
		return got == d, err
	}
	sum, length := castagnoli(), at.takes()-recordSum
	if _, err := io.Copy(sum, beneath.ContextReader(ctx, io.NewSectionReader(file, start, length))); err != nil {
		return false, err
	}
	var want [recordSum]byte
	_, err := file.ReadAt(want[:], start+length)
	return binary.BigEndian.Uint32(want[:]) == sum.Sum32(), err
}

// open returns the file of a pack, which stays open until rest.
func (p *packs) open(k *pack) (*os.File, error) {
	if k.file != nil {
		return k.file, nil
	}
	flags := os.O_RDWR
	if p.looks {
		flags = os.O_RDONLY
	}
	file, err := os.OpenFile(p.path(k), flags|beneath.NoFollow, 0)
	if p.looks && k.fresh && errors.Is(err, os.ErrNotExist) { // a daemon has made it durable meanwhile
		k.fresh = false
		file, err = os.OpenFile(p.path(k), flags|beneath.NoFollow, 0)
	}
	if err == nil {
		k.file = file
	}
	return file, err
}

// rest closes the files of all packs until somebody needs them again. No pack may be in the middle of a write.
func (p *packs) rest() {
	for _, k := range p.all {
		if k.file != nil {
			k.file.Close()
			k.file = nil
		}
	}
}

// has reports whether content is there.
func (p *packs) has(d event.Digest) bool {
	_, ok := p.objects[d]
	return ok
}

// content returns the bytes of content, which the caller compares with its hash. It returns vault.ErrForgotten for forgotten content.
func (p *packs) content(d event.Digest, at place) (*io.SectionReader, error) {
	file, err := p.open(at.pack)
	if err != nil || at.pack.plain {
		return io.NewSectionReader(file, at.at, at.size), err
	}
	c, err := seal.Open(p.keys, at.key, d, at.size)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(c.Reader(file, at.at), 0, at.size), nil
}

// read returns content of at most max bytes and compares it with its hash.
func (p *packs) read(d event.Digest, most int64) ([]byte, error) {
	at, ok := p.objects[d]
	if !ok {
		return nil, damaged("content %s is missing", d)
	}
	if at.size > most {
		return nil, damaged("content %s has %d bytes where at most %d belong", d, at.size, most)
	}
	from, err := p.content(d, at)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, at.size)
	if _, err := io.ReadFull(from, raw); err != nil {
		return nil, damaged("content %s cannot be read: %v", d, err)
	}
	if event.DigestOf(raw) != d {
		return nil, damaged("content %s is not what was stored; the disk changed it", d)
	}
	return raw, nil
}

// folder returns the entries of a folder.
func (p *packs) folder(d event.Digest) ([]entry, error) {
	text, err := p.read(d, MaxFolderBytes)
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// copyTo writes the content of a file and compares it with its hash. Long runs of zeros become holes.
func (p *packs) copyTo(ctx context.Context, to *os.File, e entry) error {
	at, ok := p.objects[e.digest]
	if !ok || at.size != e.size {
		return damaged("the content of %+.80q is missing", e.name)
	}
	if at.size <= small {
		raw, err := p.read(e.digest, small)
		if err != nil {
			return err
		}
		if !hollow(raw) {
			_, err = to.Write(raw)
			return err
		}
	}
	from, err := p.content(e.digest, at)
	if err != nil {
		return err
	}
	w := &sparse{file: to}
	_, got, err := beneath.CopyHashed(ctx, w, from, at.size)
	if err != nil && !seal.Broken(err) {
		return err
	}
	if err != nil || got != e.digest {
		return damaged("the content of %+.80q is not what was stored; the disk changed it", e.name)
	}
	return to.Truncate(e.size)
}

// small is the largest content that stays in memory as a whole.
const small = 1 << 20

// pagesize is the size of the smallest hole.
const pagesize = 4096

// hollow reports whether content holds a page of zeros.
func hollow(raw []byte) bool {
	for len(raw) >= pagesize {
		if isZero(raw[:pagesize]) {
			return true
		}
		raw = raw[pagesize:]
	}
	return false
}

func isZero(raw []byte) bool {
	for _, b := range raw {
		if b != 0 {
			return false
		}
	}
	return true
}

// sparse writes a file and leaves holes for pages of zeros. The caller must set the end of the file afterwards.
type sparse struct {
	file *os.File
	at   int64
}

// Write writes the pages that are not zero.
func (s *sparse) Write(raw []byte) (int, error) {
	n := len(raw)
	for len(raw) > 0 {
		page := raw[:min(len(raw), pagesize-int(s.at%pagesize))]
		if !isZero(page) {
			if _, err := s.file.WriteAt(page, s.at); err != nil {
				return 0, err
			}
		}
		s.at += int64(len(page))
		raw = raw[len(page):]
	}
	return n, nil
}

// writer adds content to a new pack. It makes the pack with the first content.
type writer struct {
	p     *packs
	k     *pack
	buf   *bufio.Writer
	sum   hash.Hash32 // of the record that is being written
	added map[event.Digest]place
	limit int64 // bytes that the pack may have
}

func (p *packs) writer(limit int64) *writer {
	return &writer{p: p, added: map[event.Digest]place{}, limit: limit}
}

// has reports whether content is there or will be when the writer is done.
func (w *writer) has(d event.Digest) bool {
	_, ok := w.added[d]
	return ok || w.p.has(d)
}

// begin writes the head of a record, and returns the writer for its bytes.
func (w *writer) begin(d event.Digest, size int64, key seal.Key) (io.Writer, error) {
	if w.k == nil {
		w.k = &pack{number: w.p.last + 1, fresh: true}
		w.p.last++
		file, err := os.OpenFile(w.p.path(w.k), os.O_RDWR|os.O_CREATE|os.O_EXCL|beneath.NoFollow, 0o600)
		if err != nil {
			w.k = nil
			return nil, err
		}
		w.k.file, w.buf = file, bufio.NewWriterSize(file, writeBuffer)
	}
	at := place{pack: w.k, at: w.k.size + recordHead, size: size, key: key}
	if w.k.size+at.takes() > w.limit {
		return nil, errLimit
	}
	w.sum = castagnoli()
	to := io.MultiWriter(w.buf, w.sum)
	if _, err := to.Write(key.Append(binary.BigEndian.AppendUint64(bytes.Clone(d[:]), uint64(size)))); err != nil {
		return nil, err
	}
	w.added[d] = at
	w.k.size += at.takes()
	return to, nil
}

// end writes the checksum of a record.
func (w *writer) end() error {
	_, err := w.buf.Write(binary.BigEndian.AppendUint32(nil, w.sum.Sum32()))
	return err
}

// errLimit ends the writing of a pack that would exceed its limit.
var errLimit = fault.New(fault.Exhausted, space.ErrSnapshotTooLarge.Code, "the pack is full")

// add adds content unless it is there; its hash is d.
func (w *writer) add(d event.Digest, raw []byte) error {
	if w.has(d) {
		return nil
	}
	key, c, err := seal.Fresh(w.p.keys, d, int64(len(raw)))
	if err != nil {
		return err
	}
	to, err := w.begin(d, int64(len(raw)), key)
	if err != nil {
		return err
	}
	return errors.Join(c.Seal(to, raw), w.end())
}

// stream adds content from r, which must have the hash; otherwise it returns space.ErrFileChanged. Forgotten content counts as present
// while a snapshot names it, so the next snapshot does not bring it back.
func (w *writer) stream(ctx context.Context, d event.Digest, r io.Reader, size int64) error {
	if w.has(d) {
		return nil
	}
	return w.fresh(ctx, d, r, size)
}

// fresh seals content and adds it.
func (w *writer) fresh(ctx context.Context, d event.Digest, r io.Reader, size int64) error {
	key, c, err := seal.Fresh(w.p.keys, d, size)
	if err != nil {
		return err
	}
	to, err := w.begin(d, size, key)
	if err != nil {
		return err
	}
	n, got, err := c.Copy(to, beneath.ContextReader(ctx, r))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && (n != size || got != d) {
		return space.ErrFileChanged
	}
	return errors.Join(err, w.end())
}

// done makes the added content part of the packs.
func (w *writer) done() error {
	if w.k == nil {
		return nil
	}
	if err := w.buf.Flush(); err != nil {
		return errors.Join(err, w.drop())
	}
	for d, at := range w.added {
		w.p.objects[d] = at
	}
	w.p.all = append(w.p.all, w.k)
	w.p.bytes += w.k.size
	w.k = nil
	return nil
}

// drop discards the added content.
func (w *writer) drop() error {
	if w.k == nil {
		return nil
	}
	err := errors.Join(w.k.file.Close(), os.Remove(w.p.path(w.k)))
	w.k = nil
	return err
}

// sync makes every pack durable.
func (p *packs) sync() error {
	fresh := p.unsynced()
	if err := syncAll(fresh); err != nil {
		return err
	}
	return p.synced(fresh)
}

// unsynced returns the packs that may not be durable, by their paths.
func (p *packs) unsynced() map[*pack]string {
	fresh := map[*pack]string{}
	for _, k := range p.all {
		if k.fresh {
			fresh[k] = p.path(k)
		}
	}
	return fresh
}

// syncAll makes packs durable. It needs only their paths. It skips a pack that was removed meanwhile.
func syncAll(fresh map[*pack]string) error {
	for _, path := range fresh {
		file, err := os.OpenFile(path, beneath.ForSync, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = beneath.SyncData(file)
		file.Close()
		if err != nil {
			return fmt.Errorf("make a snapshot durable: %w", err)
		}
	}
	return nil
}

// synced renames packs that are durable now.
func (p *packs) synced(done map[*pack]string) error {
	changed := false
	for _, k := range p.all {
		before, ok := done[k]
		if !ok {
			continue
		}
		k.fresh = false
		if err := os.Rename(before, p.path(k)); err != nil {
			k.fresh = true
			return err
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return beneath.SyncPath(p.dir)
}

// remove removes packs and forgets their content. If other packs hold the same content, objects must already point to those.
func (p *packs) remove(gone []*pack) error {
	var all error
	for _, k := range gone {
		if k.file != nil {
			all = errors.Join(all, k.file.Close())
		}
		all = errors.Join(all, os.Remove(p.path(k)))
		p.bytes -= k.size
	}
	p.all = slices.DeleteFunc(p.all, func(k *pack) bool { return slices.Contains(gone, k) })
	for d, at := range p.objects {
		if slices.Contains(gone, at.pack) {
			delete(p.objects, d)
		}
	}
	return all
}
