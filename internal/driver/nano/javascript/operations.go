package javascript

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"errors"
	"hash"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/blake2s"
	"golang.org/x/crypto/ripemd160" //nolint:staticcheck // programs ask for it by name

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/vfs"
)

// early are the operations that the prelude may call while the image is made.
var early = map[string]bool{}

// operations are the host's functions for the prelude, by their names in its object __host.
var operations = map[string]operation{
	"exit":    func(_ *run, a *arguments) (any, error) { return nil, &wasm.Exit{Code: uint32(a.int()) & 0xff} },
	"now":     func(r *run, _ *arguments) (any, error) { return float64(r.account.Now().UnixNano()) / 1e6, nil },
	"entropy": func(r *run, a *arguments) (any, error) { b := a.bytes(); return nil, r.fill(b, a.err) },
	"lack":    func(r *run, a *arguments) (any, error) { r.modules.lack(a.text()); return nil, nil },
	"write":   func(r *run, a *arguments) (any, error) { fd := a.int(); return r.print(fd, []byte(a.text()), a.err) },
	"show":    (*run).show,
	"compile": on(modules.compile),
	"resolve": func(r *run, a *arguments) (any, error) {
		from := a.text()
		return r.modules.resolve(from, a.text(), false)
	},
	"position": on(modules.position),
	"line":     on(modules.line),
	"encode":   func(_ *run, a *arguments) (any, error) { return []byte(strings.ToValidUTF8(a.text(), "\ufffd")), nil },
	"decode":   on(buffers.decode), "encoding": on(buffers.encodingName), "decodeAs": on(buffers.decodeAs),
	"base64":   on(buffers.base64),
	"unbase64": on(buffers.unbase64),
	"hash":     on(crypto.hash),
	"hmac":     on(crypto.hmac),
	"chdir":    on(filesystem.chdir),
	"open":     on(filesystem.open),
	"close":    on(filesystem.close),
	"read":     on(filesystem.readAt),
	"writeAt":  on(filesystem.writeAt),
	"readFile": on(filesystem.readFile),
	"fstat":    func(r *run, a *arguments) (any, error) { h, err := r.filesystem.handle(a.int()); return statOf(h, err) },
	"stat":     on(filesystem.stat),
	"readdir":  on(filesystem.readdir),
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
	"utimes": on(filesystem.utimes),
	"truncate": func(r *run, a *arguments) (any, error) {
		h, err := r.filesystem.handle(a.int())
		return nil, errors.Join(err, truncate(h, a.int()))
	},
	"realpath": on(filesystem.realpath),
	"awaits":   func(r *run, _ *arguments) (any, error) { return r.cell || r.awaited, nil },
	"execute":  (*run).execute,
	"pack":     on(compression.pack),
	"unpack":   on(compression.unpack),
	"sum":      on(compression.sum),
	"settled":  func(r *run, a *arguments) (any, error) { return r.settled(a.take()) },
	"outcome": func(r *run, a *arguments) (any, error) {
		v, err := r.vm.call("qjs_promise_result", uint64(a.take()))
		return value(v), err
	},
	"key":    on(crypto.key),
	"cipher": on(crypto.cipher), "gcm": on(crypto.gcm), "pbkdf2": on(crypto.pbkdf2), "scrypt": on(crypto.scrypt), "hkdf": on(crypto.hkdf),
	"locale": on(intl.locale), "collate": on(intl.collate), "zones": on(intl.zoneList), "zoneName": on(intl.zoneName),
	"zoneOffset": on(intl.zoneAhead),
	"zoneText":   on(intl.zoneText),
}

// part holds the host's functions of one module of Node.
type part interface {
	buffers | crypto | filesystem | intl | modules | compression
}

// on makes an operation of a method of a part.
func on[T part](do func(T, *arguments) (any, error)) operation {
	return func(r *run, a *arguments) (any, error) { return do(T{r}, a) }
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
	out.Flush() // as in Node: earlier output has arrived before anything ends the program
	return nil, err
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

func truncate(h *vfs.Handle, size int) error {
	if h == nil {
		return nil
	}
	return h.Truncate(int64(size))
}
