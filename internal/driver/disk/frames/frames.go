// Package frames keeps the output of runs in files of numbered, checksummed frames.
package frames

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/freespace"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/vault"
)

// Limits of the kept output of runs.
const (
	// MaxRunBytes is how many bytes of one run's stdout and stderr are kept by default. A frame of kind livestream.Cut marks the end.
	// Operations, results and the last frame are kept beyond it.
	MaxRunBytes = 64 << 20
	// openRuns is how many runs' files are held open while nobody uses them.
	openRuns = 64
	// indexEvery is how many frames lie between two whose places are held in memory.
	indexEvery = 64
)

// Store is a livestream.Store in a folder: `<dir>/<run>.frames`, or of earlier versions `<dir>/<run>/frames`. Memory holds the place of
// every 64th frame of the runs in use.
type Store struct {
	dir     string
	keys    vault.Keys
	entropy io.Reader
	clock   event.Clock
	max     int64

	mu    sync.Mutex // guards runs, round, and users and last of each run
	runs  map[id.Run]*output
	round uint64
}

var _ livestream.Store = (*Store)(nil)

// Open opens the folder of the runs' output and makes it if needed. It keeps at most max bytes of a run's stdout and stderr, or
// MaxRunBytes if max is 0. It seals the content under keys; nonces are drawn from entropy, which must be safe for concurrent use.
func Open(dir string, keys vault.Keys, entropy io.Reader, clock event.Clock, max int64) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the runs' output: %w", err)
	}
	if err := beneath.SyncPath(filepath.Dir(dir)); err != nil {
		return nil, fmt.Errorf("make the folder of the runs' output durable: %w", err)
	}
	if max == 0 {
		max = MaxRunBytes
	}
	return &Store{dir: dir, keys: keys, entropy: entropy, clock: clock, max: max, runs: map[id.Run]*output{}}, nil
}

// output is the output of one run.
type output struct {
	users int    // who is in a method now
	last  uint64 // round of the last use

	mu       sync.Mutex // guards the fields below
	path     string
	earlier  string   // its path where an earlier version made it
	file     *os.File // nil before the first frame
	size     int64    // of its whole frames
	head     uint64   // number of the last frame
	index    []int64  // where frames 1, 65, 129... begin
	kept     int64    // bytes of stdout and stderr kept
	cut      uint64   // number of the frame that says so, once they are too many
	complete bool
	plain    bool          // of the first version
	marked   bool          // of this one
	dirty    bool          // written since the last Sync
	unnamed  bool          // it was made since
	grown    chan struct{} // closed and replaced when a frame is added
	failed   error         // a write failed; the file's content beyond size is unknown until it is opened again
}

// Append implements livestream.Store. Output beyond the bound is not kept; it gets the number of the frame that says so.
func (s *Store) Append(ctx context.Context, run id.Run, f livestream.Frame) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	f, err := livestream.Check(run, f)
	if err != nil {
		return 0, err
	}
	r, release, err := s.use(run)
	if err != nil {
		return 0, err
	}
	defer release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.At.IsZero() {
		f.At = s.clock.Now()
	}
	f.At = livestream.Stamp(f.At)
	switch {
	case r.failed != nil:
		return 0, r.failed
	case r.complete:
		return 0, livestream.ErrComplete
	case f.Kind == livestream.Stdout || f.Kind == livestream.Stderr || f.Kind == livestream.Delta:
		if r.cut != 0 {
			return r.cut, nil
		}
		if r.kept+int64(len(f.Data)) > s.max {
			f.Kind, f.Data = livestream.Cut, fmt.Appendf(nil, `{"limit":"output_bytes","kept_bytes":%d,"max_bytes":%d}`, r.kept, s.max)
		}
	}
	if err := s.add(r, run, f); err != nil {
		return 0, broken(err)
	}
	return r.head, nil
}

// Read implements livestream.Store.
func (s *Store) Read(ctx context.Context, run id.Run, from uint64, limit int) ([]livestream.Frame, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := livestream.CheckRead(limit); err != nil {
		return nil, err
	}
	r, release, err := s.use(run)
	if err != nil {
		return nil, err
	}
	defer release()
	r.mu.Lock()
	file, size, head, failed, plain := r.file, r.size, r.head, r.failed, r.plain
	from = max(from, 1)
	var at int64
	slot := (from - 1) / indexEvery
	if from <= head {
		at = r.index[slot]
	}
	r.mu.Unlock()
	found := []livestream.Frame{}
	if from > head {
		if errors.Is(failed, errDamaged) {
			return nil, failed // a reader gets the frames before the damage, and does not take that for the end
		}
		return found, nil
	}
	// Whole frames never change, so no lock is needed to read them.
	in := bufio.NewReaderSize(io.NewSectionReader(file, at, size-at), 64<<10)
	var bytes int
	for n := slot*indexEvery + 1; n <= head && len(found) < limit && bytes <= livestream.MaxJSONBytes; n++ {
		f, length, err := readFrame(in, size-at, n)
		if err != nil {
			return nil, broken(fmt.Errorf("read frame %d: %w", n, err))
		}
		if at += length; n >= from {
			if !plain {
				if f, err = s.unseal(run, f); err != nil {
					return nil, broken(err)
				}
			}
			found = append(found, f)
			bytes += len(f.Data)
		}
	}
	return found, nil
}

// Wait implements livestream.Store.
func (s *Store) Wait(ctx context.Context, run id.Run, after uint64) error {
	r, release, err := s.use(run)
	if err != nil {
		return err
	}
	defer release()
	for {
		r.mu.Lock()
		head, grown := r.head, r.grown
		r.mu.Unlock()
		if head > after {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Sync implements livestream.Store.
func (s *Store) Sync(ctx context.Context, run id.Run) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, release, err := s.use(run)
	if err != nil {
		return err
	}
	defer release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return r.failed
	}
	if !r.dirty {
		return nil
	}
	if r.marked {
		if _, err := r.file.WriteAt(markOf(r.size), int64(len(frameMagic))); err != nil {
			return broken(fmt.Errorf("make the output durable: %w", err))
		}
	}
	if err := beneath.SyncData(r.file); err != nil {
		r.failed = broken(fmt.Errorf("make the output durable: %w", err))
		return r.failed
	}
	if r.unnamed {
		folder := filepath.Dir(r.path)
		err := beneath.SyncPath(folder)
		if r.path == r.earlier {
			err = errors.Join(err, beneath.SyncPath(filepath.Dir(folder)))
		}
		if err != nil {
			r.failed = broken(fmt.Errorf("make the name of the output durable: %w", err))
			return r.failed
		}
	}
	r.dirty, r.unnamed = false, false
	return nil
}

// Close closes every file. Nobody may be in another method.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for run, r := range s.runs {
		errs = append(errs, r.close())
		delete(s.runs, run)
	}
	return errors.Join(errs...)
}

// use returns a run's frames, opened if they are not, and a function that lets them go.
func (s *Store) use(run id.Run) (*output, func(), error) {
	if _, err := id.Parse[id.Run](string(run)); err != nil {
		return nil, nil, fault.Wrap(err, fault.Invalid, "frame_invalid", "that is not a run")
	}
	s.mu.Lock()
	s.round++
	r := s.runs[run]
	known := r != nil
	if !known {
		r = &output{path: filepath.Join(s.dir, string(run)+".frames"), earlier: filepath.Join(s.dir, string(run), "frames"),
			grown: make(chan struct{})}
		r.mu.Lock() // until the file was read; a second caller waits for that
		s.runs[run] = r
	}
	r.users++
	r.last = s.round
	s.closeIdle()
	s.mu.Unlock()
	if !known {
		if err := r.open(); err != nil {
			r.failed = broken(err)
		}
		r.mu.Unlock()
	}
	return r, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.users--; r.users > 0 {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.failed != nil && s.runs[run] == r {
			delete(s.runs, run) // who comes next has it read again
			_ = r.close()
		}
	}, nil
}

// closeIdle closes the least recently used runs, down to openRuns. The next request for one reads it again.
func (s *Store) closeIdle() {
	for len(s.runs) > openRuns {
		var oldest id.Run
		for run, r := range s.runs {
			if r.users == 0 && r != s.runs[oldest] && (oldest == "" || r.last < s.runs[oldest].last) {
				oldest = run
			}
		}
		if oldest == "" {
			return
		}
		r := s.runs[oldest]
		delete(s.runs, oldest)
		_ = r.close() // the durable part has been synced
	}
}

// errDamaged is about a file that the disk or somebody has changed. It is left as it is: what lies behind the damage may still be whole.
var errDamaged = fault.New(fault.Internal, "stream_damaged",
	"the kept output of the run was changed on the disk; its results are in the log")

// open reads the file, if there is one, and cuts off what is not a whole frame at its end: it was being written when an earlier daemon
// ended. But what has the next whole frame behind it was whole once: that is errDamaged, unless the mark says that the disk was never
// told to keep it. After a power cut it may have kept any part of that.
func (r *output) open() error {
	file, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		if file, err = os.OpenFile(r.earlier, os.O_RDWR, 0); err == nil {
			r.path = r.earlier
		}
	}
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	r.file, r.dirty, r.unnamed = file, true, true // for all that is known
	info, err := file.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, len(frameMagic)+markBytes)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(torn(err), errTorn) {
		return err
	}
	magic, mark := string(head[:min(n, len(frameMagic))]), head[min(n, len(frameMagic)):n]
	r.marked, r.plain = magic == frameMagic && len(mark) == markBytes, magic == plainMagic
	if !r.marked && !r.plain && magic != unmarkedMagic {
		if r.whole(int64(len(frameMagic)+markBytes), info.Size(), 1) || r.whole(int64(len(frameMagic)), info.Size(), 1) {
			return errDamaged
		}
		return r.begin()
	}
	kept, known := readMark(mark)
	known = known && r.marked
	r.size = int64(len(frameMagic))
	if r.marked {
		r.size += markBytes
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, r.size, info.Size()-r.size), 256<<10)
	for {
		f, length, err := readFrame(in, info.Size()-r.size, r.head+1)
		if errors.Is(err, errTorn) {
			break
		}
		if err != nil {
			return err
		}
		r.took(f, length)
	}
	if r.size == info.Size() {
		return nil
	}
	var next [frameHead]byte
	if _, err := file.ReadAt(next[:], r.size); err == nil && !(known && kept <= r.size) {
		if at := r.size + frameHead + int64(binary.BigEndian.Uint32(next[:])); r.whole(at, info.Size(), r.head+2) {
			return errDamaged
		}
	}
	return errors.Join(file.Truncate(r.size), file.Sync())
}

// whole reports whether a whole frame of a number begins at a place of the file.
func (r *output) whole(at, size int64, number uint64) bool {
	if at > size {
		return false
	}
	_, _, err := readFrame(io.NewSectionReader(r.file, at, size-at), size-at, number)
	return err == nil
}

// begin empties the file, except for its first line and its mark.
func (r *output) begin() error {
	if err := r.file.Truncate(0); err != nil {
		return err
	}
	r.marked, r.size = true, int64(len(frameMagic)+markBytes)
	_, err := r.file.WriteAt(append([]byte(frameMagic), markOf(r.size)...), 0)
	return err
}

// make makes the file. Its names are durable after the first Sync, which has to wait for the disk anyway.
func (r *output) make() error {
	file, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	r.file, r.unnamed = file, true
	return r.begin()
}

// add writes a frame with the next number.
func (s *Store) add(r *output, run id.Run, f livestream.Frame) error {
	if r.file == nil {
		if err := r.make(); err != nil {
			r.failed = broken(err)
			return err
		}
	}
	f.N = r.head + 1
	if !r.plain {
		var err error
		if f, err = s.seal(run, f); err != nil {
			return err
		}
	}
	raw := appendFrame(nil, f)
	if _, err := r.file.WriteAt(raw, r.size); err != nil {
		if cut := r.file.Truncate(r.size); cut != nil {
			r.failed = broken(errors.Join(err, cut))
		}
		return err
	}
	r.took(f, int64(len(raw)))
	r.dirty = true
	close(r.grown)
	r.grown = make(chan struct{})
	return nil
}

// took notes a frame that lies at the end of the file.
func (r *output) took(f livestream.Frame, length int64) {
	if r.head%indexEvery == 0 {
		r.index = append(r.index, r.size)
	}
	r.head++
	r.size += length
	switch f.Kind {
	case livestream.Stdout, livestream.Stderr, livestream.Delta:
		r.kept += int64(len(f.Data))
		if !r.plain {
			r.kept -= sealedMore
		}
	case livestream.Cut:
		r.cut = r.head
	case livestream.Complete:
		r.complete = true
	}
}

// blank takes the content out of the frames of operations, in a file of an earlier version: a new one takes its place.
func (r *output) blank(operations []string) error {
	in := bufio.NewReaderSize(io.NewSectionReader(r.file, int64(len(plainMagic)), r.size-int64(len(plainMagic))), 256<<10)
	file, err := os.OpenFile(r.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	next := &output{path: r.path, file: file, plain: true, size: int64(len(plainMagic)), grown: r.grown}
	out := bufio.NewWriterSize(file, 256<<10)
	_, err = out.WriteString(plainMagic)
	for at := int64(len(plainMagic)); err == nil && at < r.size; {
		f, length, bad := readFrame(in, r.size-at, next.head+1)
		if bad != nil {
			err = bad
			break
		}
		at += length
		if slices.Contains(operations, f.Operation) {
			f = livestream.Forgotten(f)
		}
		raw := appendFrame(nil, f)
		_, err = out.Write(raw)
		next.took(f, int64(len(raw)))
	}
	err = errors.Join(err, out.Flush())
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(r.path+".new", r.path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	old := r.file
	r.file, r.size, r.index, r.kept = next.file, next.size, next.index, next.kept
	return errors.Join(old.Close(), beneath.SyncPath(filepath.Dir(r.path)))
}

func (r *output) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// broken turns a file system's error into a fault.
func broken(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return freespace.Refused(err, "; the run's output cannot be kept")
	}
	return fault.Wrap(err, fault.Internal, "stream_error", "the run's output cannot be accessed")
}
