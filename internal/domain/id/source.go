package id

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// crockford is the alphabet of ULIDs: base 32 without I, L, O and U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Source makes identifiers from a clock and a source of random bytes. Those it makes within one millisecond still sort in the order
// they were made: the random part is drawn once per millisecond and counted up. A Source is safe for concurrent use.
type Source struct {
	now     func() time.Time
	entropy io.Reader

	mu   sync.Mutex
	ms   uint64
	tail [10]byte // the 80 random bits of the last identifier
}

// NewSource returns a source that reads the time from now and random bytes from entropy. A read error of entropy panics: without
// randomness identifiers could repeat, and no caller could go on.
func NewSource(now func() time.Time, entropy io.Reader) *Source {
	return &Source{now: now, entropy: entropy}
}

// Behind makes every later identifier sort after the id of an event that an earlier source made, even if the clock was set back since. It
// ignores an id that holds no time.
func (s *Source) Behind(e Event) {
	at, ok := e.made()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok && at >= s.ms && at < latest {
		s.begin(at + 1)
	}
}

// latest is the last millisecond that an identifier can name.
const latest = 1<<48 - 1

// made returns the millisecond of an event's identifier.
func (e Event) made() (uint64, bool) {
	if len(e) != 36 || e[8] != '-' || e[14] != '7' {
		return 0, false
	}
	ms, err := strconv.ParseUint(string(e[:8]+e[9:13]), 16, 64)
	return ms, err == nil
}

// New makes an identifier of one kind.
func New[T kind](s *Source) T {
	var none T
	return T(none.prefix() + s.ulid())
}

// NewWorkspace makes the identifier of a workspace without a chosen name.
func NewWorkspace(s *Source) Workspace { return Workspace("ws_" + strings.ToLower(s.ulid())) }

// NewPrincipal makes a principal of one of the three kinds. It panics for any other kind, because that is a mistake in the program.
func NewPrincipal(s *Source, kind PrincipalKind) Principal {
	prefix, ok := principalPrefix[kind]
	if !ok {
		panic(fmt.Sprintf("id: no principal kind %q", kind))
	}
	return Principal(prefix + s.ulid())
}

// NewEvent makes an event identifier, a UUIDv7.
func NewEvent(s *Source) Event {
	ms, tail := s.next()
	var u [16]byte
	putMillis(u[:6], ms)
	copy(u[6:], tail[:])
	u[6] = 0x70 | u[6]&0x0f
	u[8] = 0x80 | u[8]&0x3f
	var text [36]byte
	hex.Encode(text[0:8], u[0:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:36], u[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return Event(text[:])
}

// Least returns the identifier that sorts in front of all of its kind which are made at that time or later. It names nothing.
func Least[T kind](at time.Time) T {
	var none T
	return T(none.prefix() + ulid(uint64(min(max(at.UnixMilli(), 0), latest)), [10]byte{}))
}

func (s *Source) ulid() string { return ulid(s.next()) }

func ulid(ms uint64, tail [10]byte) string {
	var raw [16]byte
	putMillis(raw[:6], ms)
	copy(raw[6:], tail[:])
	// 128 bits as 26 characters of 5 bits, the first of which holds only 3.
	var text [26]byte
	var acc uint64
	bits, at := 0, 25
	for i := 15; i >= 0; i-- {
		acc |= uint64(raw[i]) << bits
		bits += 8
		for bits >= 5 {
			text[at] = crockford[acc&31]
			at, acc, bits = at-1, acc>>5, bits-5
		}
	}
	text[0] = crockford[acc&31]
	return string(text[:])
}

// next returns the time in milliseconds and 80 bits that no earlier call of the same millisecond got. The clock may step back: then the
// last time is kept, so that order holds.
func (s *Source) next() (uint64, [10]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := uint64(s.now().UnixMilli())
	if ms > s.ms {
		s.begin(ms)
		return s.ms, s.tail
	}
	for i := 9; i >= 0; i-- {
		s.tail[i]++
		if s.tail[i] != 0 {
			break
		}
	}
	return s.ms, s.tail
}

// begin goes on to another millisecond. The lock is held.
func (s *Source) begin(ms uint64) {
	s.ms = ms
	if _, err := io.ReadFull(s.entropy, s.tail[:]); err != nil {
		panic(fmt.Sprintf("id: read random bytes: %v", err))
	}
	// Both version bits of a UUIDv7 cut into the tail; the counter must never carry through them within a millisecond.
	s.tail[2] &= 0x3f
	s.tail[3] &= 0x7f
}

func putMillis(b []byte, ms uint64) {
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
}

func isULID(text string) bool {
	if len(text) != 26 || text[0] > '7' {
		return false
	}
	for i := range len(text) {
		if !isCrockford(text[i]) {
			return false
		}
	}
	return true
}

func isCrockford(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U'
}
