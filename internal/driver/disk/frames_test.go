package disk_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/frames"
	"agentbox/internal/kernel/livestream"
)

const aRun id.Run = "run_01ARZ3NDEKTSV4RRFFQ69G5FAV"

func runID(i int) id.Run { return id.Run(fmt.Sprintf("run_01ARZ3NDEKTSV4RRFFQ6%06d", i)) }

func say(t testing.TB, s *frames.Store, run id.Run, text string) uint64 {
	t.Helper()
	n, err := s.Append(t.Context(), run, livestream.Frame{Kind: livestream.Stdout, Operation: "op", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func heard(t testing.TB, s *frames.Store, run id.Run, from uint64) []livestream.Frame {
	t.Helper()
	var all []livestream.Frame
	for {
		frames, err := s.Read(t.Context(), run, from, livestream.MaxRead)
		if err != nil {
			t.Fatal(err)
		}
		if len(frames) == 0 {
			return all
		}
		all = append(all, frames...)
		from = frames[len(frames)-1].N + 1
	}
}

func framesFile(dir string, run id.Run) string { return filepath.Join(dir, string(run)+".frames") }

// TestFramesOfAnEarlierLayout reads and goes on with a file where earlier versions made it.
func TestFramesOfAnEarlierLayout(t *testing.T) {
	dir := quickDir(t)
	s := openFrames(t, dir, clock{}, 0)
	say(t, s, aRun, "before")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	earlier := filepath.Join(dir, string(aRun), "frames")
	if err := errors.Join(os.Mkdir(filepath.Dir(earlier), 0o700), os.Rename(framesFile(dir, aRun), earlier)); err != nil {
		t.Fatal(err)
	}
	s = openFrames(t, dir, clock{}, 0)
	say(t, s, aRun, "after")
	if err := s.Sync(t.Context(), aRun); err != nil {
		t.Fatal(err)
	}
	if got := heard(t, s, aRun, 1); len(got) != 2 || string(got[0].Data) != "before" || string(got[1].Data) != "after" {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(framesFile(dir, aRun)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a second file: %v", err)
	}
}

// TestFramesAfterACrash cuts the file at every byte, as a crash may. Whole frames are there, the rest is gone, and numbers go on.
func TestFramesAfterACrash(t *testing.T) {
	dir := quickDir(t)
	s := openFrames(t, dir, clock{}, 0)
	var ends []int64
	for i := range 4 {
		say(t, s, aRun, strings.Repeat("x", 10*i))
		info, err := os.Stat(framesFile(dir, aRun))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	whole, err := os.ReadFile(framesFile(dir, aRun))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		for _, tail := range [][]byte{nil, {0}, bytes.Repeat([]byte{0xff}, 100)} {
			if len(tail) > 0 && tail[0] == whole[cut] {
				continue // by chance the byte that was there: the file is torn further behind
			}
			torn := quickDir(t)
			if err := os.WriteFile(framesFile(torn, aRun), append(whole[:cut:cut], tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			want := 0
			for _, end := range ends {
				if int64(cut) >= end {
					want++
				}
			}
			s, err := frames.Open(torn, keys(t), rand.Reader, clock{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := heard(t, s, aRun, 1); len(got) != want {
				t.Fatalf("cut at %d: %d frames, want %d", cut, len(got), want)
			}
			if n := say(t, s, aRun, "after"); n != uint64(want)+1 {
				t.Fatalf("cut at %d: the next frame has number %d, want %d", cut, n, want+1)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = frames.Open(torn, keys(t), rand.Reader, clock{}, 0); err != nil {
				t.Fatal(err)
			}
			if got := heard(t, s, aRun, uint64(want)+1); len(got) != 1 || string(got[0].Data) != "after" {
				t.Fatalf("cut at %d: then %+v", cut, got)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// heardOrDamaged reads all frames, or those before what cannot be read.
func heardOrDamaged(t testing.TB, s *frames.Store) (all []livestream.Frame, err error) {
	t.Helper()
	for {
		some, err := s.Read(t.Context(), aRun, uint64(len(all))+1, livestream.MaxRead)
		if all = append(all, some...); err != nil || len(some) == 0 {
			return all, err
		}
	}
}

// TestFramesFlipped flips each bit of a file: no frame is ever read that was not written, and what lies behind the flipped one is not
// thrown away: unless the length of a frame itself was changed, the output is refused and the file stays as it is.
func TestFramesFlipped(t *testing.T) {
	dir := quickDir(t)
	s := openFrames(t, dir, clock{}, 0)
	for i := range 3 {
		say(t, s, aRun, fmt.Sprint("text ", i))
	}
	if err := s.Sync(t.Context(), aRun); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(framesFile(dir, aRun))
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for bit := range 8 * len(whole) {
		changed := bytes.Clone(whole)
		changed[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(framesFile(dir, aRun), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := frames.Open(dir, keys(t), rand.Reader, clock{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		all, err := heardOrDamaged(t, s)
		if err != nil {
			damaged++
			if left, readErr := os.ReadFile(framesFile(dir, aRun)); fault.CodeOf(err) != "stream_damaged" || readErr != nil || !bytes.Equal(left,
				changed) {
				t.Fatalf("bit %d: %v; the file is left as it was: %t, %v", bit, err, bytes.Equal(left, changed), readErr)
			}
		}
		for i, f := range all {
			if f.N != uint64(i)+1 || string(f.Data) != fmt.Sprint("text ", i) || f.Kind != livestream.Stdout || f.Operation != "op" ||
				!f.At.Equal(livestream.Stamp(time.Time{})) {
				t.Fatalf("bit %d: read %+v", bit, f)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first, mark := len("agentbox frames 1\n"), 12
	frame := (len(whole) - first - mark) / 3
	if want := 8 * (first + 2*(frame-4)); damaged != want {
		t.Errorf("%d bits were found, want %d: all of the first line, and all of two of the three frames but their lengths", damaged, want)
	}
}

// TestFramesTornByAPowerCut loses parts of the bytes that the disk was not yet told to keep, with whole frames behind them. The bytes
// before are there, and numbers go on. Synced bytes are never cut off, nor is anything where the mark that tells the two apart is lost.
func TestFramesTornByAPowerCut(t *testing.T) {
	dir := quickDir(t)
	s := openFrames(t, dir, clock{}, 0)
	var ends []int
	for i := range 6 {
		say(t, s, aRun, fmt.Sprint("text ", i))
		info, err := os.Stat(framesFile(dir, aRun))
		if err != nil {
			t.Fatal(err)
		}
		if ends = append(ends, int(info.Size())); i == 2 {
			if err := s.Sync(t.Context(), aRun); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole, err := os.ReadFile(framesFile(dir, aRun))
	if err != nil {
		t.Fatal(err)
	}
	open := func(raw []byte) (*frames.Store, []livestream.Frame, error) {
		dir := quickDir(t)
		if err := os.WriteFile(framesFile(dir, aRun), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := frames.Open(dir, keys(t), rand.Reader, clock{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		all, err := heardOrDamaged(t, s)
		return s, all, err
	}
	for at := ends[0]; at < ends[4]; at++ { // the last frame is whole, and so is the first
		lost := bytes.Clone(whole)
		clear(lost[at:min(at+20, ends[4])])
		intact := 0
		for ends[intact] <= at {
			intact++
		}
		s, all, err := open(lost)
		switch {
		case bytes.Equal(lost, whole): // there was nothing but zeros
		case at >= ends[2]:
			if err != nil || len(all) != intact {
				t.Fatalf("lost at %d: %d frames, %v; want the %d before", at, len(all), err, intact)
			}
			if n := say(t, s, aRun, "after"); n != uint64(intact)+1 {
				t.Fatalf("lost at %d: the next frame has number %d, want %d", at, n, intact+1)
			}
		case at >= ends[0]+4 && at < ends[1]-20, at >= ends[1]+4 && at < ends[2]-20: // within one frame, and its length is there
			if fault.CodeOf(err) != "stream_damaged" {
				t.Fatalf("lost at %d: %d frames, %v; want stream_damaged", at, len(all), err)
			}
		}
	}
	unmarked := bytes.Clone(whole)
	unmarked[len("agentbox frames 4\n")] ^= 1
	if _, all, err := open(unmarked); err != nil || len(all) != 6 {
		t.Errorf("without its mark: %d frames, %v", len(all), err)
	}
	clear(unmarked[ends[3]+10 : ends[3]+30])
	if _, _, err := open(unmarked); fault.CodeOf(err) != "stream_damaged" {
		t.Errorf("torn and without its mark: %v, want stream_damaged", err)
	}
	earlier := append([]byte("agentbox frames 2\n"), whole[len("agentbox frames 4\n")+12:]...)
	s, all, err := open(earlier)
	if err != nil || len(all) != 6 {
		t.Fatalf("of an earlier version: %d frames, %v", len(all), err)
	}
	say(t, s, aRun, "on")
	if err := s.Sync(t.Context(), aRun); err != nil {
		t.Error(err)
	}
	if got := heard(t, s, aRun, 7); len(got) != 1 || string(got[0].Data) != "on" {
		t.Errorf("of an earlier version, then %+v", got)
	}
}

func TestFramesAreCutAtTheirBound(t *testing.T) {
	dir := t.TempDir()
	s := openFrames(t, dir, clock{}, 100)
	say(t, s, aRun, strings.Repeat("x", 60))
	say(t, s, aRun, strings.Repeat("x", 40))
	for range 2 { // the frame that says so comes once
		if n := say(t, s, aRun, "x"); n != 3 {
			t.Errorf("output beyond the bound got number %d, want 3", n)
		}
	}
	if n, err := s.Append(t.Context(), aRun, livestream.Frame{Kind: livestream.Result, Data: make([]byte, 1000)}); n != 4 || err != nil {
		t.Errorf("a result beyond the bound: %d, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openFrames(t, dir, clock{}, 100)
	if n := say(t, s, aRun, "x"); n != 3 {
		t.Errorf("output after a restart got number %d, want 3", n)
	}
	if n, err := s.Append(t.Context(), aRun, livestream.Frame{Kind: livestream.Complete}); n != 5 || err != nil {
		t.Errorf("the last frame: %d, %v", n, err)
	}
	got := heard(t, s, aRun, 1)
	if len(got) != 5 || got[2].Kind != livestream.Cut || !strings.Contains(string(got[2].Data), `"max_bytes":100`) ||
		got[2].Operation != "op" {
		t.Errorf("the frames are %+v", got)
	}
}

// TestFramesOfManyRuns uses more runs than are held open, with readers waiting in some of them.
func TestFramesOfManyRuns(t *testing.T) {
	s := openFrames(t, quickDir(t), clock{}, 0)
	const runs = 300
	before := descriptors(t)
	var readers sync.WaitGroup
	for i := range 10 {
		readers.Go(func() {
			if err := s.Wait(t.Context(), runID(i), 2); err != nil {
				t.Error(err)
			}
		})
	}
	for round := range 3 {
		for i := range runs {
			if n := say(t, s, runID(i), fmt.Sprint(i, round)); n != uint64(round)+1 {
				t.Fatalf("run %d: frame %d, want %d", i, n, round+1)
			}
			if err := s.Sync(t.Context(), runID(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	readers.Wait()
	if n := descriptors(t) - before; n > 64 {
		t.Errorf("%d files are held open, want at most 64", n)
	}
	for i := range runs {
		if got := heard(t, s, runID(i), 3); len(got) != 1 || string(got[0].Data) != fmt.Sprint(i, 2) {
			t.Fatalf("run %d: %+v", i, got)
		}
	}
}

func TestFramesResumeInALongRun(t *testing.T) {
	s := openFrames(t, quickDir(t), clock{}, 0)
	const n = 1000
	for i := range n {
		say(t, s, aRun, fmt.Sprint(i+1))
	}
	for _, from := range []uint64{1, 2, 63, 64, 65, 66, 127, 128, 129, 500, 999, 1000} {
		frames, err := s.Read(t.Context(), aRun, from, 3)
		if err != nil || len(frames) != int(min(3, n+1-from)) || frames[0].N != from || string(frames[0].Data) != fmt.Sprint(from) {
			t.Errorf("from %d: %+v, %v", from, frames, err)
		}
	}
}

func TestFramesNameARun(t *testing.T) {
	s := openFrames(t, t.TempDir(), clock{}, 0)
	for _, run := range []id.Run{"", "..", "../x", "run_", "run_/etc"} {
		if _, err := s.Append(t.Context(), run, livestream.Frame{Kind: livestream.Stdout}); err == nil {
			t.Errorf("run %q was taken", run)
		}
		if _, err := s.Read(t.Context(), run, 1, 1); err == nil {
			t.Errorf("run %q was read", run)
		}
	}
}

// TestFramesOnAFullDisk: what could not be written whole is not there, and the run goes on when there is room again.
func TestFramesOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting takes root")
	}
	dir := t.TempDir()
	inMountNamespace(t, func() error {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
			return err
		}
		s := openFrames(t, dir, clock{}, 0)
		var n uint64
		var err error
		for err == nil {
			var got uint64
			if got, err = s.Append(t.Context(), aRun, livestream.Frame{Kind: livestream.Stdout, Data: make([]byte, 5000)}); err == nil {
				n = got
			}
		}
		if !errors.Is(err, space.ErrDiskFull) || !strings.Contains(err.Error(), "the disk that holds "+dir) || n < 5 {
			t.Errorf("after %d frames: %v", n, err)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=1m"); err != nil {
			return err
		}
		if next := say(t, s, aRun, "on"); next != n+1 {
			t.Errorf("the next frame has number %d, want %d", next, n+1)
		}
		if got := heard(t, s, aRun, n+1); len(got) != 1 || string(got[0].Data) != "on" {
			t.Errorf("read %+v", got)
		}
		return s.Close()
	})
}

// FuzzFrames opens a file of any bytes. Frames that are appended afterwards can be read.
func FuzzFrames(f *testing.F) {
	dir := f.TempDir()
	s := openFrames(f, dir, clock{}, 0)
	say(f, s, aRun, "one")
	say(f, s, aRun, "two")
	whole, err := os.ReadFile(framesFile(dir, aRun))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{})
	f.Add(append(bytes.Clone(whole), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := quickDir(t)
		if err := os.WriteFile(framesFile(dir, aRun), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := frames.Open(dir, keys(t), rand.Reader, clock{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all, damage := heardOrDamaged(t, s)
		if fault.CodeOf(damage) == "stream_damaged" {
			return
		}
		n := len(all)
		got, err := s.Append(t.Context(), aRun, livestream.Frame{Kind: livestream.Result, Data: []byte("{}")})
		if errors.Is(err, livestream.ErrComplete) {
			return
		}
		if err != nil || got != uint64(n)+1 {
			t.Fatalf("after %d frames: number %d, %v", n, got, err)
		}
		if after := heard(t, s, aRun, got); len(after) != 1 || string(after[0].Data) != "{}" {
			t.Fatalf("read %+v", after)
		}
	})
}

// TestFramesThatWereForgotten looks for what was said in the file, and in a copy of it that was made before it was forgotten.
func TestFramesThatWereForgotten(t *testing.T) {
	dir := quickDir(t)
	secret, other := strings.Repeat("a secret ", 20), "what another operation said"
	write := func(s *frames.Store) {
		for _, f := range []livestream.Frame{
			{Kind: livestream.Operation, Operation: "op", Data: []byte(`{"command":"` + secret + `"}`)},
			{Kind: livestream.Stdout, Operation: "op", Data: []byte(secret)},
			{Kind: livestream.Stdout, Operation: "other", Data: []byte(other)},
		} {
			if _, err := s.Append(t.Context(), aRun, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	shows := func(s *frames.Store, want ...string) {
		t.Helper()
		got := heard(t, s, aRun, 1)
		if len(got) != len(want) {
			t.Fatalf("heard %d frames, want %d", len(got), len(want))
		}
		for i, f := range got {
			if string(f.Data) != want[i] || f.N != uint64(i)+1 {
				t.Errorf("frame %d holds %q, want %q", f.N, f.Data, want[i])
			}
		}
	}
	ring := keys(t)
	open := func(dir string) *frames.Store {
		s, err := frames.Open(dir, ring, rand.Reader, clock{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open(dir)
	write(s)
	raw, err := os.ReadFile(framesFile(dir, aRun))
	if err != nil || bytes.Contains(raw, []byte("secret")) || bytes.Contains(raw, []byte("another operation")) {
		t.Fatalf("the file shows what was said: %v", err)
	}
	copied := quickDir(t)
	if err := os.MkdirAll(filepath.Dir(framesFile(copied, aRun)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(framesFile(copied, aRun), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	shows(s, `{"command":"`+secret+`"}`, secret, other)
	if err := s.Forget(aRun, "op"); err != nil {
		t.Fatal(err)
	}
	shows(s, `{"redacted":true}`, "", other)
	shows(open(copied), `{"redacted":true}`, "", other)
	if err := s.Forget(runID(7), "op"); err != nil {
		t.Errorf("a run without frames: %v", err)
	}
}

// TestFramesOfAnEarlierVersion reads a file that holds its frames as they are, goes on with it, and forgets a part of it.
func TestFramesOfAnEarlierVersion(t *testing.T) {
	dir := quickDir(t)
	s := openFrames(t, dir, clock{}, 0)
	say(t, s, aRun, "x")
	// "agentbox frames 1", then one frame of stdout by "op": number 1, time 0, and 6 bytes.
	body := append([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6}, "stdout\x00\x02opsecret"...)
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	old := quickDir(t)
	if err := os.MkdirAll(filepath.Dir(framesFile(old, aRun)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(framesFile(old, aRun), append(append([]byte("agentbox frames 1\n"), head...), body...), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openFrames(t, old, clock{}, 0)
	if n, err := s.Append(t.Context(), aRun, livestream.Frame{Kind: livestream.Stdout, Operation: "other",
		Data: []byte("goes on")}); err != nil || n != 2 {
		t.Fatalf("the next frame: %d, %v", n, err)
	}
	if err := s.Forget(aRun, "op"); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(framesFile(old, aRun)); err != nil || bytes.Contains(raw, []byte("secret")) {
		t.Errorf("the file holds it still: %q, %v", raw, err)
	}
	if n := say(t, s, aRun, "and on"); n != 3 {
		t.Errorf("the frame after it is %d, want 3", n)
	}
	if got := heard(t, s, aRun, 1); len(got) != 3 || len(got[0].Data) != 0 || string(got[1].Data) != "goes on" ||
		string(got[2].Data) != "and on" {
		t.Errorf("heard %+v", got)
	}
}
