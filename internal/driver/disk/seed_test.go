package disk_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
)

// sow makes a space from an archive and returns its folder.
func sow(t testing.TB, s filestest.Subject, archive []byte, limits space.Limits) (string, int, error) {
	t.Helper()
	a := policy.Action{Type: policy.SpaceCreate, Space: filestest.One, Content: event.DigestOf(archive)}
	n, err := s.Store.Create(t.Context(), s.Issue(a), s.UID, limits, space.Seed{Archive: bytes.NewReader(archive)})
	if err != nil {
		if left, listed := s.Store.List(t.Context()); len(left) != 0 || listed != nil {
			t.Errorf("a refused seed left %v, %v", left, listed)
		}
		return "", n.Files, err
	}
	_, dir, err := s.Store.Open(filestest.One, s.UID, limits)
	return dir, n.Files, err
}

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
	for _, h := range headers {
		content := h.PAXRecords["content"]
		h.PAXRecords = nil
		h.Size = int64(len(content))
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

func tarFile(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"content": content}}
}

func gzipped(t testing.TB, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type zipEntry struct {
	name, content string
	mode          os.FileMode
}

func zipOf(t testing.TB, entries ...zipEntry) []byte {
	t.Helper()
	var raw bytes.Buffer
	w := zip.NewWriter(&raw)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

func TestSeedFromArchive(t *testing.T) {
	files := tarOf(t,
		tarFile("./a/f.txt", "hello"),
		tar.Header{Name: "a/run.sh", Typeflag: tar.TypeReg, Mode: 0o755, PAXRecords: map[string]string{"content": "#!/bin/sh\n"}},
		tar.Header{Name: "b/", Typeflag: tar.TypeDir, Mode: 0o700},
		tar.Header{Name: "b/link", Typeflag: tar.TypeSymlink, Linkname: "../a/f.txt"},
		tar.Header{Name: "b/twin", Typeflag: tar.TypeLink, Linkname: "a/f.txt"},
	)
	zipped := zipOf(t,
		zipEntry{"a/f.txt", "hello", 0}, zipEntry{"a/run.sh", "#!/bin/sh\n", 0o111}, zipEntry{"b/", "", os.ModeDir},
		zipEntry{"b/link", "../a/f.txt", os.ModeSymlink}, zipEntry{"b/twin", "hello", 0},
	)
	for name, archive := range map[string][]byte{"tar": files, "tar.gz": gzipped(t, files), "zip": zipped} {
		t.Run(name, func(t *testing.T) {
			s := openSpaces(t)
			dir, n, err := sow(t, s, archive, filestest.Limits)
			if err != nil || n < 2 || n > 3 {
				t.Fatalf("%d files, %v", n, err)
			}
			for path, want := range map[string]string{"a/f.txt": "-rw-r--r-- hello", "a/run.sh": "-rwxr-xr-x #!/bin/sh\n",
				"b/twin": "-rw-r--r-- hello"} {
				text, err := os.ReadFile(filepath.Join(dir, path))
				info, _ := os.Lstat(filepath.Join(dir, path))
				if got := fmt.Sprintf("%v %s", info.Mode(), text); err != nil || got != want {
					t.Errorf("%s is %q, %v, want %q", path, got, err, want)
				}
			}
			if target, err := os.Readlink(filepath.Join(dir, "b/link")); target != "../a/f.txt" || err != nil {
				t.Errorf("b/link points to %q, %v", target, err)
			}
			err = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
				if uid := owner(info); err == nil && s.UID != 0 && uid != s.UID {
					t.Errorf("%s belongs to %d, want %d", path, uid, s.UID)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestThreat18ArchivesThatReachOut(t *testing.T) {
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	for name, archive := range map[string][]byte{
		"parent":               tarOf(t, tarFile("../f", "x")),
		"parent inside":        tarOf(t, tarFile("a/../../f", "x")),
		"absolute":             tarOf(t, tarFile("/f", "x")),
		"backslash":            tarOf(t, tarFile(`..\f`, "x")),
		"control character":    tarOf(t, tarFile("a\x1bf", "x")),
		"not UTF-8":            tarOf(t, tarFile("a\xff", "x")),
		"long name":            tarOf(t, tarFile(strings.Repeat("a", 256), "x")),
		"deep":                 tarOf(t, tarFile(strings.Repeat("a/", 128)+"f", "x")),
		"the folder itself":    tarOf(t, tarFile(".", "x")),
		"device":               tarOf(t, tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}),
		"block device":         tarOf(t, tar.Header{Name: "disk", Typeflag: tar.TypeBlock}),
		"pipe":                 tarOf(t, tar.Header{Name: "pipe", Typeflag: tar.TypeFifo}),
		"absolute link":        tarOf(t, link("l", "/etc")),
		"link up":              tarOf(t, link("l", "..")),
		"link up from within":  tarOf(t, link("a/l", "../..")),
		"link through a link":  tarOf(t, link("a/b/here", "."), link("a/b/l", "here/../../..")),
		"through a link":       tarOf(t, tarFile("real/f", "x"), link("l", "real"), tarFile("l/g", "x")),
		"over a link":          tarOf(t, link("l", "f"), tarFile("l", "x")),
		"hard link outside":    tarOf(t, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "../../staging"}),
		"hard link absolute":   tarOf(t, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}),
		"hard link to nothing": tarOf(t, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "f"}),
		"hard link by a link": tarOf(t, tarFile("real/f", "x"), link("l", "real"), tar.Header{Name: "h", Typeflag: tar.TypeLink,
			Linkname: "l/f"}),
		"twice":              tarOf(t, tarFile("f", "x"), tarFile("f", "y")),
		"a file as a folder": tarOf(t, tarFile("f", "x"), tarFile("f/g", "y")),
		"cut off":            tarOf(t, tarFile("f", strings.Repeat("x", 5000)))[:2000],
		"no archive":         []byte(strings.Repeat("no archive ", 100)),
		"nothing":            {},
		"gzip of nothing":    []byte("\x1f\x8b"),
		"zip of nothing":     []byte("PK\x03\x04 and so on"),
		"zip parent":         zipOf(t, zipEntry{"../f", "x", 0}),
		"zip absolute":       zipOf(t, zipEntry{"/f", "x", 0}),
		"zip backslash":      zipOf(t, zipEntry{`..\f`, "x", 0}),
		"zip link":           zipOf(t, zipEntry{"l", "/etc", os.ModeSymlink}),
		"zip pipe":           zipOf(t, zipEntry{"p", "", os.ModeNamedPipe}),
		"zip device":         zipOf(t, zipEntry{"d", "", os.ModeDevice | os.ModeCharDevice}),
		"zip twice":          zipOf(t, zipEntry{"f", "x", 0}, zipEntry{"f", "y", 0}),
	} {
		_, _, err := sow(t, openSpacesIn(t, quickDir(t)), archive, filestest.Limits)
		if !errors.Is(err, space.ErrArchiveInvalid) {
			t.Errorf("%s: %v, want %v", name, err, space.ErrArchiveInvalid)
		}
	}
}

// TestThreat33Bombs: an archive that unpacks to far more than it is gets refused before much of it was read, kept or held in memory.
func TestThreat33Bombs(t *testing.T) {
	wide := space.Limits{DiskBytes: 1 << 40, FileBytes: 1 << 40} // so that only the ratio is in the way
	zeros := gzipped(t, make([]byte, 1<<20))
	header := tarOf(t, tarFile("zeros", ""))[:512]
	copy(header[124:], fmt.Sprintf("%011o\x00", 8<<30-1)) // the most that this field holds
	copy(header[148:], tarChecksum(header))
	var deflated bytes.Buffer
	w, _ := flate.NewWriter(&deflated, flate.BestCompression)
	_, _ = w.Write(make([]byte, 16<<20))
	_ = w.Close()
	for name, c := range map[string]struct {
		archive []byte
		limits  space.Limits
		code    string
		says    string
	}{
		"10 GB of zeros, tar.gz": {append(gzipped(t, header), bytes.Repeat(zeros, 10)...), wide, "archive_too_large", "200 times"},
		"10 GB of zeros beyond the disk": {append(gzipped(t, header), bytes.Repeat(zeros, 10)...), filestest.Limits, "archive_too_large",
			fmt.Sprint(filestest.Limits.FileBytes)},
		"10 GB of zeros, zip":             {rawZip(t, deflated.Bytes(), 10_000_000_000, 1), wide, "archive_too_large", "200 times"},
		"a zip that claims little":        {rawZip(t, deflated.Bytes(), 10, 1), wide, "archive_invalid", "cannot be read"},
		"a zip that claims everything":    {rawZip(t, deflated.Bytes(), 1<<64-1, 40), wide, "archive_too_large", "disk limit"},
		"one content under 10,000 names":  {rawZip(t, deflated.Bytes(), 16<<20, 10_000), wide, "archive_too_large", "200 times"},
		"a zip with too many names":       {rawZip(t, nil, 0, 60_000), wide, "archive_too_large", "50000"},
		"a zip with an endless directory": {rawZip(t, nil, 0, 300_000), wide, "archive_too_large", "directory"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSpacesIn(t, quickDir(t))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := sow(t, s, c.archive, c.limits)
			runtime.ReadMemStats(&after)
			if fault.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v, want %s that says %q", err, c.code, c.says)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
				t.Errorf("%d bytes of memory were used to refuse it, want at most 64 MiB", used)
			}
		})
	}
}

func TestThreat33FoldersThatAreOnlyImplied(t *testing.T) {
	limits := filestest.Limits
	limits.DiskBytes = 1 << 30 // it may hold more files than any space may start from
	_, _, err := sow(t, openSpacesIn(t, quickDir(t)), tarOf(t, manyFolders(600)...), limits)
	if !errors.Is(err, space.ErrArchiveTooLarge) || !strings.Contains(err.Error(), "50000") {
		t.Errorf("72,000 folders under 600 files: %v, want %v with its number", err, space.ErrArchiveTooLarge)
	}
}

// manyFolders returns files that each imply 120 folders of their own.
func manyFolders(n int) []tar.Header {
	var headers []tar.Header
	for i := range n {
		headers = append(headers, tarFile(fmt.Sprint(i)+strings.Repeat("/d", 120)+"/f", ""))
	}
	return headers
}

func tarChecksum(header []byte) string {
	sum := 8 * int(' ')
	for i, b := range header[:512] {
		if i < 148 || i >= 156 {
			sum += int(b)
		}
	}
	return fmt.Sprintf("%06o\x00 ", sum)
}

// rawZip returns a zip file with n entries that all claim size bytes and share one compressed content.
func rawZip(t testing.TB, deflated []byte, size uint64, n int) []byte {
	t.Helper()
	var one bytes.Buffer
	w := zip.NewWriter(&one)
	f, err := w.CreateRaw(&zip.FileHeader{Name: "000000", Method: zip.Deflate, CompressedSize64: uint64(len(deflated)),
		UncompressedSize64: size})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(deflated); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	raw := one.Bytes()
	at := bytes.LastIndex(raw, []byte("PK\x01\x02"))
	end := bytes.LastIndex(raw, []byte("PK\x05\x06"))
	if z := bytes.LastIndex(raw, []byte("PK\x06\x06")); z > 0 {
		end = z
	}
	entry := bytes.Clone(raw[at:end])
	out := bytes.Clone(raw[:at])
	for i := range n {
		copy(entry[46:], fmt.Sprintf("%06d", i))
		out = append(out, entry...)
	}
	tail := make([]byte, 22)
	copy(tail, "PK\x05\x06")
	binary.LittleEndian.PutUint16(tail[8:], uint16(n))
	binary.LittleEndian.PutUint16(tail[10:], uint16(n))
	binary.LittleEndian.PutUint32(tail[12:], uint32(n*len(entry)))
	binary.LittleEndian.PutUint32(tail[16:], uint32(at))
	return append(out, tail...)
}

func TestSeedFromFolder(t *testing.T) {
	host := t.TempDir()
	for path, text := range map[string]string{"open/project/a/f": "hello", "open/project/run.sh": "#!", "closed/secret": canary} {
		full := filepath.Join(host, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"open/project/in": "a/f", "open/project/out": "../../closed/secret", "open/project/abs": filepath.Join(host, "closed"),
		"open/way out": filepath.Join(host, "closed"),
	} {
		if err := os.Symlink(target, filepath.Join(host, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := openSpaces(t, filepath.Join(host, "open"))
	create := func(folder string, limits space.Limits) (int, error) {
		a := policy.Action{Type: policy.SpaceCreate, Space: filestest.One, Target: folder}
		n, err := s.Store.Create(t.Context(), s.Issue(a), s.UID, limits, space.Seed{Folder: folder})
		return n.Files, err
	}
	for folder, code := range map[string]string{
		"closed": "seed_not_permitted", "": "seed_not_permitted", "open/../closed": "seed_not_permitted", "opened": "seed_not_permitted",
		"open/none": "seed_not_found", "open/project/a/f": "seed_not_found", "open/way out": "seed_not_found",
		"open/project/abs": "seed_not_found",
	} {
		if _, err := create(host+"/"+folder, filestest.Limits); fault.CodeOf(err) != code {
			t.Errorf("start from %q: %v, want %s", folder, err, code)
		}
	}
	if _, err := create("open/project", filestest.Limits); fault.CodeOf(err) != "seed_not_permitted" {
		t.Errorf("start from a relative path: %v", err)
	}
	if _, err := create(host+"/open/project", space.Limits{DiskBytes: 6}); fault.CodeOf(err) != "archive_too_large" {
		t.Errorf("start from 7 bytes with room for 6: %v", err)
	}
	if _, err := create(host+"/open/project", space.Limits{FileBytes: 4}); fault.CodeOf(err) != "archive_too_large" {
		t.Errorf("start from a file of 5 bytes with room for 4: %v", err)
	}
	n, err := create(host+"/open/project", space.Limits{DiskBytes: 7, FileBytes: 5})
	if n != 2 || err != nil {
		t.Fatalf("%d files, %v, want 2", n, err)
	}
	files, _, err := s.Store.Open(filestest.One, s.UID, filestest.Limits)
	if err != nil {
		t.Fatal(err)
	}
	h := filestest.House{Subject: s, Files: files}
	got, err := h.List(t, ".", true, 0)
	if want := "a a/f in run.sh"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("the space holds %q, %v, want %q", got, err, want)
	}
}

// FuzzSeed unpacks any bytes as an archive. Nothing appears outside the space, and nothing is left of a refused archive.
func FuzzSeed(f *testing.F) {
	f.Add(tarOf(f, tarFile("a/f", "hello"), tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a"}))
	f.Add(tarOf(f, tarFile("../f", "hello")))
	f.Add(gzipped(f, tarOf(f, tarFile("f", "hello"))))
	f.Add(zipOf(f, zipEntry{"a/f", "hello", 0}, zipEntry{"a/l", "../a", os.ModeSymlink}))
	f.Add(zipOf(f, zipEntry{"../f", "x", 0}))
	f.Add(rawZip(f, []byte("\x03\x00"), 10, 3))
	f.Fuzz(func(t *testing.T, archive []byte) {
		top := quickDir(t)
		dir, _, err := sow(t, openSpacesIn(t, filepath.Join(top, "spaces")), archive, space.Limits{DiskBytes: 1 << 20, FileBytes: 1 << 20})
		if err != nil {
			if fault.KindOf(err) == fault.Internal {
				t.Errorf("%v: an archive is never the host's defect", err)
			}
			return
		}
		err = filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
			if err == nil && !strings.HasPrefix(path, dir) && !strings.HasPrefix(dir, path) && filepath.Base(path) != "staging" &&
				filepath.Base(path) != ".trash" {
				t.Errorf("%s appeared", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A space starts from as many files as it may hold, and from not one more, whatever the archive is.
func TestSeedFiles(t *testing.T) {
	limits := space.Limits{DiskBytes: 16 << 20, FileBytes: 1 << 20}
	most := int(space.MaxFiles(limits.DiskBytes))
	for name, pack := range map[string]func(files int) []byte{
		"tar": func(files int) []byte {
			headers := make([]tar.Header, files)
			for i := range headers {
				headers[i] = tarFile(fmt.Sprintf("%d/%d", i%100, i), "")
			}
			return tarOf(t, headers...)
		},
		"zip": func(files int) []byte {
			var raw bytes.Buffer
			w := zip.NewWriter(&raw)
			for i := range files {
				if _, err := w.Create(fmt.Sprintf("%d/%d", i%100, i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			return raw.Bytes()
		},
	} {
		const folders = 100
		if _, n, err := sow(t, openSpacesIn(t, quickDir(t)), pack(most-folders), limits); err != nil || n != most-folders {
			t.Errorf("%s at the bound: got %d files, %v, want %d", name, n, err, most-folders)
		}
		_, _, err := sow(t, openSpacesIn(t, quickDir(t)), pack(most-folders+1), limits)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != space.ErrArchiveTooLarge.Code || !strings.Contains(f.Msg, "16384") ||
			f.Suggestion == "" {
			t.Errorf("%s over the bound: got %v, want %s", name, err, space.ErrArchiveTooLarge.Code)
		}
	}
}
