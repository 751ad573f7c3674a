package javascript

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/blake2s"
	"golang.org/x/crypto/ripemd160" //nolint:staticcheck // programs ask for it by name

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/vfs"
)

// early are the operations that the prelude may call while the image is made.
var early = map[string]bool{}

// operations are what the prelude asks of the host, by the name in its object __host.
var operations = map[string]operation{
	"exit":     func(_ *run, a *arguments) (any, error) { return nil, &wasm.Exit{Code: uint32(a.int()) & 0xff} },
	"now":      func(r *run, _ *arguments) (any, error) { return float64(r.account.Now(0).UnixNano()) / 1e6, nil },
	"entropy":  func(r *run, a *arguments) (any, error) { b := a.bytes(); return nil, r.fill(b, a.err) },
	"lack":     func(r *run, a *arguments) (any, error) { r.lack(a.text()); return nil, nil },
	"write":    func(r *run, a *arguments) (any, error) { fd := a.int(); return r.print(fd, []byte(a.text()), a.err) },
	"show":     (*run).show,
	"compile":  (*run).compile,
	"resolve":  func(r *run, a *arguments) (any, error) { from := a.text(); return r.resolve(from, a.text(), false) },
	"position": (*run).position,
	"line":     (*run).line,
	"encode":   func(_ *run, a *arguments) (any, error) { return []byte(strings.ToValidUTF8(a.text(), "\ufffd")), nil },
	"decode":   (*run).decode, "encoding": (*run).encodingName, "decodeAs": (*run).decodeAs,
	"base64":   (*run).base64,
	"unbase64": (*run).unbase64,
	"hash":     (*run).hash,
	"hmac":     (*run).hmac,
	"chdir":    (*run).chdir,
	"open":     (*run).openFile,
	"close":    (*run).closeFile,
	"read":     (*run).readAt,
	"writeAt":  (*run).writeAt,
	"readFile": (*run).readFile,
	"fstat":    func(r *run, a *arguments) (any, error) { h, err := r.handle(a.int()); return statOf(h, err) },
	"stat":     (*run).stat,
	"readdir":  (*run).readdir,
	"mkdir": func(r *run, a *arguments) (any, error) {
		name := a.text()
		return nil, r.p.FS.Mkdir(r.p.At(), name, uint32(a.int())&^r.p.Umask)
	},
	"umask": func(r *run, a *arguments) (any, error) {
		before, mask := r.p.Umask, a.int()
		if mask >= 0 { // else it is only asked for
			r.p.Umask = uint32(mask) & 0o777
		}
		return int(before), nil
	},
	"zone": func(r *run, a *arguments) (any, error) { // the variable TZ was set
		r.p.Charge(posix.GasPerZone)
		r.zone = posix.Zone(a.text())
		return nil, nil
	},
	"rmdir":  func(r *run, a *arguments) (any, error) { return nil, r.p.FS.Rmdir(r.p.At(), a.text()) },
	"unlink": func(r *run, a *arguments) (any, error) { return nil, r.p.FS.Unlink(r.p.At(), a.text()) },
	"rename": func(r *run, a *arguments) (any, error) {
		old := a.text()
		return nil, r.p.FS.Rename(r.p.At(), old, r.p.At(), a.text())
	},
	"link": func(r *run, a *arguments) (any, error) {
		old := a.text()
		return nil, r.p.FS.Link(r.p.At(), old, true, r.p.At(), a.text())
	},
	"symlink": func(r *run, a *arguments) (any, error) {
		target := a.text()
		return nil, r.p.FS.Symlink(target, r.p.At(), a.text())
	},
	"readlink": func(r *run, a *arguments) (any, error) { return str(r.p.FS.Readlink(r.p.At(), a.text())) },
	"chmod": func(r *run, a *arguments) (any, error) {
		name := a.text()
		return nil, r.p.FS.Chmod(r.p.At(), name, uint32(a.int()), true)
	},
	"utimes": (*run).utimes,
	"truncate": func(r *run, a *arguments) (any, error) {
		h, err := r.handle(a.int())
		return nil, errors.Join(err, truncate(h, a.int()))
	},
	"realpath": (*run).realpath,
	"awaits":   func(r *run, _ *arguments) (any, error) { return r.cell || r.awaited, nil },
	"execute":  (*run).execute,
	"pack":     (*run).pack,
	"unpack":   (*run).unpack,
	"sum":      (*run).sum,
	"settled":  func(r *run, a *arguments) (any, error) { return r.settled(a.take()) },
	"outcome": func(r *run, a *arguments) (any, error) {
		v, err := r.vm.call("qjs_promise_result", uint64(a.take()))
		return value(v), err
	},
	"key":    (*run).key,
	"cipher": (*run).cipher, "gcm": (*run).gcm, "pbkdf2": (*run).pbkdf2, "scrypt": (*run).scrypt, "hkdf": (*run).hkdf,
	"locale": (*run).locale, "collate": (*run).collate, "zones": (*run).zoneList, "zoneName": (*run).zoneName, "zoneOffset": (*run).zoneAhead,
	"zoneText": (*run).zoneText,
}

// settled returns the state of a promise.
func (r *run) settled(v value) (any, error) {
	if is, err := r.vm.call("qjs_is_promise", uint64(v)); err != nil || is == 0 {
		return pending, err
	}
	state, err := r.vm.call("qjs_promise_state", uint64(v))
	return int(state), err
}

func str(s string, err error) (any, error) { return s, err }

func (r *run) fill(b []byte, err error) error {
	if err != nil {
		return err
	}
	r.p.Charge(len(b))
	r.account.Entropy(b)
	return nil
}

// print writes to a standard stream.
func (r *run) print(fd int, text []byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	r.p.Charge(len(text))
	if fd == 2 {
		r.p.Stderrf("%s", text)
		return nil, nil
	}
	out := r.p.Out()
	_, err = out.Write(text)
	out.Flush() // as Node does: what was printed has arrived, whatever ends the program after that
	return nil, err
}

// compile makes a function of a file's text, of which the first line begins behind the parameters.
func (r *run) compile(a *arguments) (any, error) {
	file := a.text()
	if a.err != nil {
		return nil, a.err
	}
	s, err := r.required(file)
	if err != nil {
		return nil, err
	}
	if s.format == jsonText {
		return s.text, nil
	}
	v, threw, err := r.vm.eval("(function (exports, require, module, __filename, __dirname) {"+s.text+"\n})", file, 0)
	if err == nil && threw {
		return value(0), nil
	}
	return v, err
}

// position returns where a place in a file that was transformed came from.
func (r *run) position(a *arguments) (any, error) {
	file, line, column := a.text(), a.int(), a.int()
	if m := r.maps[file]; m != nil {
		if err := m.parse(); err != nil {
			return nil, err
		}
		line, column = m.original(line, column)
	}
	raw, err := json.Marshal([2]int{line, column})
	return string(raw), err
}

// line returns a line of a file, for an error that names it.
func (r *run) line(a *arguments) (any, error) {
	file, n := a.text(), a.int()
	if a.err != nil || !path.IsAbs(file) {
		return "", a.err
	}
	text, err := r.read(file)
	if err != nil {
		return "", nil //nolint:nilerr // it is gone; the error is told without it
	}
	for l := range strings.SplitSeq(text, "\n") {
		if n--; n == 0 {
			return strings.TrimSuffix(l, "\r"), nil
		}
	}
	return "", nil
}

// decode makes a string of UTF-8; with fatal, what is none is an error.
func (r *run) decode(a *arguments) (any, error) {
	b, fatal := a.bytes(), false
	text := string(b)
	fatal = a.int() != 0
	if a.err != nil {
		return nil, a.err
	}
	r.p.Charge(len(text))
	if utf8.ValidString(text) {
		return text, nil
	}
	if fatal {
		return nil, &thrown{"ERR_ENCODING_INVALID_ENCODED_DATA", "The encoded data was not valid for encoding utf-8"}
	}
	var s strings.Builder
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		if c == utf8.RuneError && size == 1 {
			size = spoiled(text)
		}
		s.WriteRune(c)
		text = text[size:]
	}
	return s.String(), nil
}

// spoiled returns how many bytes at the start of a text are one character that was begun and not ended: they become one U+FFFD, as the
// web's standard says.
func spoiled(text string) int {
	need, low, high := 0, byte(0x80), byte(0xbf)
	switch c := text[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		if c == 0xe0 {
			low = 0xa0
		} else if c == 0xed {
			high = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	}
	n := 1
	for ; n <= need && n < len(text) && text[n] >= low && text[n] <= high; n++ {
		low, high = 0x80, 0xbf
	}
	return n
}

func (r *run) base64(a *arguments) (any, error) {
	b := a.bytes()
	r.p.Charge(len(b))
	text := base64.StdEncoding.EncodeToString(b)
	if a.int() != 0 {
		text = base64.RawURLEncoding.EncodeToString(b)
	}
	return text, nil
}

// unbase64 decodes as leniently as Node does.
func (r *run) unbase64(a *arguments) (any, error) {
	clean := strings.Map(func(c rune) rune {
		switch {
		case c == '-':
			return '+'
		case c == '_':
			return '/'
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			return c
		}
		return -1
	}, a.text())
	r.p.Charge(len(clean))
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	b, err := base64.RawStdEncoding.DecodeString(clean)
	if err != nil {
		return nil, &thrown{"ERR_INVALID_ARG_VALUE", "The string is not base64"}
	}
	return b, nil
}

// hashes are those of node:crypto, by their names without dashes.
var hashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	"sha512256": sha512.New512_256, "sha512224": sha512.New512_224,
	"sha3224": func() hash.Hash { return sha3.New224() }, "sha3256": func() hash.Hash { return sha3.New256() },
	"sha3384": func() hash.Hash { return sha3.New384() }, "sha3512": func() hash.Hash { return sha3.New512() },
	"ripemd160": ripemd160.New, "ripemd": ripemd160.New, "rmd160": ripemd160.New,
	"blake2b512": func() hash.Hash { h, _ := blake2b.New512(nil); return h }, // without a key it cannot fail
	"blake2s256": func() hash.Hash { h, _ := blake2s.New256(nil); return h },
}

// mostShaken is how many bytes a hash of any length may have.
const mostShaken = 1 << 20

// shaken returns what SHAKE makes of bytes where the name asks for it, as shake128 or shake256/64: the length in bytes stands behind the
// slash.
func shaken(name string, b []byte) ([]byte, bool) {
	base, length, given := strings.Cut(strings.ToLower(name), "/")
	n := map[string]int{"shake128": 16, "shake256": 32}[base]
	if n == 0 {
		return nil, false
	}
	h := sha3.NewSHAKE128()
	if base == "shake256" {
		h = sha3.NewSHAKE256()
	}
	if given {
		var err error
		if n, err = strconv.Atoi(length); err != nil || n < 0 || n > mostShaken {
			return nil, false
		}
	}
	_, _ = h.Write(b) // it cannot fail
	out := make([]byte, n)
	_, _ = h.Read(out)
	return out, true
}

func hashOf(name string) (func() hash.Hash, error) {
	h := hashes[strings.NewReplacer("-", "", "/", "", "rsa-", "").Replace(strings.ToLower(name))]
	if h == nil {
		return nil, &thrown{"ERR_CRYPTO_INVALID_DIGEST", "Invalid digest: " + name}
	}
	return h, nil
}

const gasPerHashed = 8

func (r *run) hash(a *arguments) (any, error) {
	name, b := a.text(), a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	r.p.Charge(len(b) * gasPerHashed)
	if out, ok := shaken(name, b); ok {
		return out, nil
	}
	base, _, _ := strings.Cut(name, "/")
	if strings.HasPrefix(strings.ToLower(name), "sha512/") {
		base = name
	}
	made, err := hashOf(base)
	if err != nil {
		return nil, err
	}
	h := made()
	h.Write(b)
	return h.Sum(nil), nil
}

func (r *run) hmac(a *arguments) (any, error) {
	name := a.text()
	key := append([]byte(nil), a.bytes()...)
	b := a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	made, err := hashOf(name)
	if err != nil {
		return nil, err
	}
	r.p.Charge((len(b) + len(key)) * gasPerHashed)
	h := hmac.New(made, key)
	h.Write(b)
	return h.Sum(nil), nil
}

func (r *run) chdir(a *arguments) (any, error) {
	n, err := r.p.FS.Lookup(r.p.At(), a.text(), true)
	if err != nil {
		return nil, err
	}
	if n.Kind() != vfs.Directory {
		return nil, vfs.ENOTDIR
	}
	r.p.Cwd = n
	return str(n.Path())
}

// openFile opens a file by the flags of the file system, which the prelude makes of Node's.
func (r *run) openFile(a *arguments) (any, error) {
	name, flags, perm := a.text(), vfs.Flags(a.int()), uint32(a.int())
	if a.err != nil {
		return nil, a.err
	}
	h, err := r.p.OpenAs(name, flags, perm&0o777)
	if err != nil {
		return nil, err
	}
	fd := 10
	for r.files[fd] != nil {
		fd++
	}
	r.files[fd] = h
	return fd, nil
}

func (r *run) handle(fd int) (*vfs.Handle, error) {
	if h := r.files[fd]; h != nil {
		return h, nil
	}
	if h := r.p.File(fd); h != nil {
		return h, nil
	}
	return nil, vfs.EBADF
}

func (r *run) closeFile(a *arguments) (any, error) {
	fd := a.int()
	h := r.files[fd]
	if h == nil {
		return nil, vfs.EBADF
	}
	delete(r.files, fd)
	return nil, r.p.Close(h)
}

// readAt reads into a buffer, at a position or, where that is negative, on.
func (r *run) readAt(a *arguments) (any, error) {
	fd := a.int()
	b, at := a.bytes(), 0
	size := len(b)
	if at = a.int(); a.err != nil {
		return nil, a.err
	}
	h, err := r.handle(fd)
	if err != nil {
		return nil, err
	}
	r.p.Charge(size)
	into := make([]byte, size) // while it waits other guests may run, and the memory of this one may not be held
	var n int
	if at >= 0 {
		n, err = h.ReadAt(into, int64(at))
	} else {
		n, err = h.Read(into)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	copy(b, into[:n])
	return n, nil
}

func (r *run) writeAt(a *arguments) (any, error) {
	fd := a.int()
	b := append([]byte(nil), a.bytes()...)
	at := a.int()
	if a.err != nil {
		return nil, a.err
	}
	h, err := r.handle(fd)
	if err != nil {
		return nil, err
	}
	if fd == 1 || fd == 2 {
		if _, err := r.print(fd, b, nil); err != nil {
			return nil, err
		}
		return len(b), nil
	}
	r.p.Charge(len(b))
	var n int
	if at >= 0 {
		n, err = h.WriteAt(b, int64(at))
	} else {
		n, err = h.Write(b)
	}
	return n, err
}

func (r *run) readFile(a *arguments) (any, error) {
	h, err := r.p.Open(a.text(), vfs.Read)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.p.Close(h) }()
	if h.Kind() == vfs.Directory {
		return nil, vfs.EISDIR
	}
	b, err := h.ReadAll()
	if err != nil {
		return nil, err
	}
	r.account.Release(int64(len(b)))
	r.p.Charge(len(b))
	return b, nil
}

func truncate(h *vfs.Handle, size int) error {
	if h == nil {
		return nil
	}
	return h.Truncate(int64(size))
}
