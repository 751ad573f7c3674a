package toolbox_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"agentbox/internal/userland"
)

// packed is a text as xz packs it, with the number of its dictionary's size in the header of its only block.
func packed(t *testing.T, text string, dictionary byte) string {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	header := b.Bytes()[12:24] // behind the header of the stream
	if header[0] != 2 || header[2] != 0x21 {
		t.Fatalf("the header of the block is %x", header)
	}
	header[4] = dictionary
	binary.LittleEndian.PutUint32(header[8:], crc32.ChecksumIEEE(header[:8]))
	return b.String()
}

// TestADictionaryOfXZIsBounded forges headers: the largest dictionary that is made, the next one, and the largest of all.
func TestADictionaryOfXZIsBounded(t *testing.T) {
	for dictionary, want := range map[byte]string{
		28: "hello\n0\n",
		29: "xz: f.xz: the file needs a dictionary of 100663296 bytes; at most 67108864 are supported here: pack it with xz -9 or less\n1\n",
		40: "xz: f.xz: the file needs a dictionary of 4294967295 bytes; at most 67108864 are supported here: pack it with xz -9 or less\n1\n",
		41: "xz: f.xz: Compressed data is corrupt\n1\n",
	} {
		r, err := userland.Run("xzcat f.xz 2>&1; echo $?", userland.Options{Files: map[string]string{"f.xz": packed(t, "hello\n", dictionary)}})
		if err != nil || r.Stdout != want {
			t.Errorf("%d: got %q, %v, want %q", dictionary, r.Stdout, err, want)
		}
	}
	r, err := userland.Run("tar xf f.xz 2>&1", userland.Options{Files: map[string]string{"f.xz": packed(t, "hello\n", 29)}})
	if err != nil || !strings.Contains(r.Stdout, "tar: xz: the file needs a dictionary of 100663296 bytes") {
		t.Errorf("tar: got %q, %v", r.Stdout, err)
	}
}

// TestXZ unpacks files, and what is not a whole file.
func TestXZ(t *testing.T) {
	long := strings.Repeat("some text that repeats, and more of it\n", 20_000)
	files := map[string]string{"f.xz": packed(t, "hello\n", 22), "long.xz": packed(t, long, 22),
		"plain": "plain\n", "other.xz": "plain text\n",
		"two.xz": packed(t, "a\n", 22) + "\x00\x00\x00\x00" + packed(t, "b\n", 22), "empty.xz": packed(t, "", 22)}
	files["short.xz"] = files["long.xz"][:200]
	flipped := []byte(files["f.xz"])
	flipped[30] ^= 1
	files["bad.xz"] = string(flipped)
	files["trailing.xz"] = files["f.xz"] + "abcdefghijkl"
	for script, want := range map[string]string{
		`xz -d f.xz; cat f; ls f.xz 2>/dev/null`:        "hello\n",
		`unxz -k f.xz; cat f; ls f.xz`:                  "hello\nf.xz\n",
		`xzcat long.xz | wc -c; xz -dc <f.xz`:           "780000\nhello\n",
		`xzcat two.xz empty.xz f.xz`:                    "a\nb\nhello\n",
		`xz -t f.xz; echo $?; xz -tq bad.xz`:            "0\n",
		`echo x >f; unxz f.xz 2>&1; cat f`:              "xz: f: File exists\nx\n",
		`echo x >f; unxz -f f.xz; cat f`:                "hello\n",
		`unxz plain 2>&1; echo $?`:                      "xz: plain: Filename has an unknown suffix, skipping\n2\n",
		`unxz other.xz 2>&1; echo $?; ls other*`:        "xz: other.xz: File format not recognized\n1\nother.xz\n",
		`xzcat short.xz 2>&1 >/dev/null; echo $?`:       "xz: short.xz: Unexpected end of input\n1\n",
		`xzcat bad.xz 2>&1 >/dev/null; echo $?`:         "xz: bad.xz: Compressed data is corrupt\n1\n",
		`xzcat trailing.xz 2>&1; echo $?`:               "hello\nxz: trailing.xz: Compressed data is corrupt\n1\n",
		`unxz short.xz 2>/dev/null; ls short*`:          "short.xz\n",
		`xz plain 2>&1; echo $?`:                        "xz: packing is not supported here: use gzip or zstd; xz -d unpacks\n1\n",
		`tar -jcf a.tar.bz2 plain 2>&1; echo $?; ls a*`: "tar: the option j is not supported here: only plain archives and gzip are\n2\n",
		`tar -Jcf a.tar.xz plain 2>&1; echo $?; ls a*`:  "tar: the option J is not supported here: only plain archives and gzip are\n2\n",
	} {
		r, err := userland.Run(script, userland.Options{Files: files})
		if err != nil || r.Stdout != want {
			t.Errorf("%s: got %q, %v, stderr %q, want %q", script, r.Stdout, err, r.Stderr, want)
		}
	}
}

// TestXZOfTheRealOne reads what the real xz and tar pack: with each check, in several blocks with their sizes, and with a filter.
func TestXZOfTheRealOne(t *testing.T) {
	for _, name := range []string{"xz", "tar"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("the real %s is missing: install the Debian packages xz-utils and tar", name)
			}
			t.Skipf("the real %s is not here to compare with; the Debian packages xz-utils and tar bring it", name)
		}
	}
	for script, want := range map[string]string{
		`seq 200000 | xz -9`:                                    "200000\n",
		`seq 200000 | xz -0 --check=none`:                       "200000\n",
		`seq 200000 | xz --check=crc32 --block-size=9999`:       "200000\n",
		`seq 200000 | xz -T2 --check=sha256 --block-size=99999`: "200000\n",
		`seq 9 | xz --x86 --lzma2`:                              "xz: f: Unsupported filter: only LZMA2 is supported here\n",
	} {
		file, err := exec.CommandContext(t.Context(), "bash", "-c", script).Output()
		if err != nil {
			t.Fatal(err)
		}
		r, err := userland.Run("xzcat f 2>&1 | tail -n 1", userland.Options{Files: map[string]string{"f": string(file)}})
		if err != nil || r.Stdout != want {
			t.Errorf("%s: got %q, %v", script, r.Stdout, err)
		}
	}
	dir := t.TempDir()
	archive := exec.CommandContext(t.Context(), "bash", "-c", "mkdir d; seq 9 >d/a; tar -cJf - d")
	archive.Dir = dir
	file, err := archive.Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := userland.Run("tar -tf f; tar xJf f; tail -n 1 d/a", userland.Options{Files: map[string]string{"f": string(file)}})
	if want := "d/\nd/a\n9\n"; err != nil || r.Stdout != want {
		t.Errorf("got %q, %v, want %q", r.Stdout, err, want)
	}
}
