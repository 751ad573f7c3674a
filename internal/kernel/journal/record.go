package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// A record holds the parts of an event that have no column of their own in a store, in a form that is read back in a microsecond:
//
//	byte      1, the form's version
//	uvarint   mask of what follows and of the two flags
//	uvarint   event_version, hash_version, occurred_at in microseconds since 1970
//	byte      zone, redaction level (4 bits each)
//	texts     uvarint length and bytes each, in the order of the mask
//	digests   commitment, previous hash, hash, 32 bytes each
//	seal      8 bytes of the SHA-256 of the hash and of what the hash does not cover: recorded_at and the entity
//
// The stream is not in it where it follows from the room, nor the actor's id where it is the principal.
const recordVersion = 1

const (
	hasSecrets = 1 << iota
	actorIsPrincipal
	hasStream
	hasActor
	hasPrincipal
	hasRoom
	hasThread
	hasStep
	hasMission
	hasCausation
	hasPolicy
	hasModel
	hasDisplay
	hasKey
	allBits = 1<<iota - 1
)

const sealBytes = 8

// RecordTail is how many bytes at the end of a record RecordHash needs.
const RecordTail = len(event.Digest{}) + sealBytes

var (
	zones      = []event.Zone{event.Sandbox, event.Supervised, event.HighStakes}
	redactions = []event.Redaction{event.RedactNone, event.RedactPartial, event.RedactFull}
	actorTypes = []id.PrincipalKind{id.User, id.Agent, id.Service}
)

var errRecord = errors.New("the record cannot be read")

// EntitySeparator separates an entity's type and its id in a shared column. It cannot occur in a text of an event, because it is a control
// character.
const EntitySeparator = "\x1f"

// EntityText is an event's entity in one text, "" for none.
func EntityText(e *event.Event) string {
	if e.EntityID == "" {
		return ""
	}
	return e.EntityType + EntitySeparator + e.EntityID
}

// AppendRecord appends an event's record.
func AppendRecord(dst []byte, e *event.Event) []byte {
	mask := uint64(0)
	set := func(bit uint64, is bool) {
		if is {
			mask |= bit
		}
	}
	set(hasSecrets, e.ContainsSecrets)
	set(actorIsPrincipal, e.Actor.ID == string(e.Principal))
	set(hasStream, e.Stream != event.RoomStream(e.Workspace, e.Room))
	set(hasActor, e.Actor.ID != string(e.Principal))
	set(hasPrincipal, e.Principal != "")
	set(hasRoom, e.Room != "")
	set(hasThread, e.Thread != "")
	set(hasStep, e.Step != "")
	set(hasMission, e.Mission != "")
	set(hasCausation, e.Causation != "")
	set(hasPolicy, len(e.PolicyContext) > 0)
	set(hasModel, len(e.ModelContext) > 0)
	set(hasDisplay, len(e.Display) > 0)
	set(hasKey, e.IdempotencyKey != "")

	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, mask)
	dst = binary.AppendUvarint(dst, uint64(e.Version))
	dst = binary.AppendUvarint(dst, uint64(e.Chain.HashVersion))
	dst = binary.AppendUvarint(dst, uint64(e.OccurredAt.UnixMicro()))
	dst = append(dst, byte(slices.Index(zones, e.Zone)<<4|slices.Index(redactions, e.Redaction)), byte(slices.Index(actorTypes, e.Actor.Type)))
	if mask&hasStream != 0 {
		dst = appendField(dst, e.Stream.Type)
		dst = appendField(dst, e.Stream.ID)
	}
	if mask&hasActor != 0 {
		dst = appendField(dst, e.Actor.ID)
	}
	for _, text := range []string{string(e.Principal), string(e.Room), string(e.Thread), string(e.Step), e.Mission, string(e.Causation)} {
		if text != "" {
			dst = appendField(dst, text)
		}
	}
	for _, raw := range [][]byte{e.PolicyContext, e.ModelContext, e.Display} {
		if len(raw) > 0 {
			dst = binary.AppendUvarint(dst, uint64(len(raw)))
			dst = append(dst, raw...)
		}
	}
	if e.IdempotencyKey != "" {
		dst = appendField(dst, e.IdempotencyKey)
	}
	dst = append(dst, e.Chain.Commitment[:]...)
	dst = append(dst, e.Chain.Prev[:]...)
	dst = append(dst, e.Chain.Hash[:]...)
	seal := sealOf(e)
	return append(dst, seal[:]...)
}

func appendField(dst []byte, text string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// sealOf is 8 bytes that change when anything does that the event's own hash does not cover.
func sealOf(e *event.Event) [sealBytes]byte {
	var room [256]byte
	b := append(room[:0], e.Chain.Hash[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.RecordedAt.UnixMicro()))
	if e.EntityID != "" {
		b = append(append(append(b, e.EntityType...), EntitySeparator...), e.EntityID...)
	}
	sum := event.DigestOf(b)
	return [sealBytes]byte(sum[:sealBytes])
}

// DecodeRecord fills in the fields that a record holds. The columns of e must be set already: the workspace, the run, the correlation, the
// entity and recorded_at. An error means that these are not the bytes that AppendRecord makes of the event.
func DecodeRecord(record []byte, e *event.Event) error {
	r := recordReader{rest: string(record)} // one allocation for all texts
	if r.byte() != recordVersion {
		return errRecord
	}
	mask := r.uvarint()
	if mask&^allBits != 0 || mask&hasActor != 0 == (mask&actorIsPrincipal != 0) {
		return errRecord
	}
	e.Version, e.Chain.HashVersion = r.int(), r.int()
	e.OccurredAt = time.UnixMicro(int64(r.uvarint())).UTC()
	levels, actor := r.byte(), r.byte()
	if int(levels>>4) >= len(zones) || int(levels&15) >= len(redactions) || int(actor) >= len(actorTypes) {
		return errRecord
	}
	e.Zone, e.Redaction, e.Actor.Type = zones[levels>>4], redactions[levels&15], actorTypes[actor]
	e.ContainsSecrets = mask&hasSecrets != 0
	text := func(bit uint64) string {
		if mask&bit == 0 {
			return ""
		}
		return r.text()
	}
	stream := event.Stream{Type: text(hasStream)}
	stream.ID = text(hasStream)
	e.Actor.ID = text(hasActor)
	e.Principal, e.Room, e.Thread, e.Step = id.Principal(text(hasPrincipal)), id.Room(text(hasRoom)), id.Thread(text(hasThread)),
		id.Step(text(hasStep))
	e.Mission, e.Causation = text(hasMission), id.Event(text(hasCausation))
	e.PolicyContext, e.ModelContext, e.Display = raw(text(hasPolicy)), raw(text(hasModel)), raw(text(hasDisplay))
	e.IdempotencyKey = text(hasKey)
	if mask&actorIsPrincipal != 0 {
		e.Actor.ID = string(e.Principal)
	}
	e.Stream = stream
	if mask&hasStream == 0 {
		e.Stream = event.RoomStream(e.Workspace, e.Room)
	}
	r.digest(&e.Chain.Commitment)
	r.digest(&e.Chain.Prev)
	r.digest(&e.Chain.Hash)
	if r.bad {
		return errRecord
	}
	// The same bytes after writing it back prove a correct read, seal included; there is no second way to write the same event.
	var room [1024]byte
	if !bytes.Equal(AppendRecord(room[:0], e), record) {
		return errRecord
	}
	return nil
}

// RecordHash returns the event's hash from a record; false if the record is too short to have one. It does not check the hash; a read of
// the event does.
func RecordHash(record []byte) (hash event.Digest, ok bool) {
	end := len(record) - sealBytes
	if end < len(hash) {
		return hash, false
	}
	copy(hash[:], record[end-len(hash):end])
	return hash, true
}

func raw(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// recordReader takes a record apart; after the first thing that is not there, bad is set and everything else is empty.
type recordReader struct {
	rest string
	bad  bool
}

func (r *recordReader) take(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, ""
		return ""
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *recordReader) byte() byte {
	if b := r.take(1); b != "" {
		return b[0]
	}
	return 0
}

func (r *recordReader) uvarint() uint64 {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.bad = true
	return 0
}

func (r *recordReader) int() int {
	n := r.uvarint()
	if n > 1<<31-1 {
		r.bad = true
	}
	return int(n)
}

func (r *recordReader) text() string { return r.take(r.uvarint()) }

func (r *recordReader) digest(d *event.Digest) { copy(d[:], r.take(uint64(len(d)))) }

// AppendBody appends the part of an event that is stored apart from its record, to be sealed and destroyed: the salt, then the data.
func AppendBody(dst []byte, e *event.Event) []byte {
	return append(append(dst, e.Chain.Salt...), e.Data...)
}

// SplitBody takes a body apart; false for one that is too short.
func SplitBody(body []byte) (salt, data []byte, ok bool) {
	if len(body) < SaltBytes {
		return nil, nil, false
	}
	return body[:SaltBytes:SaltBytes], body[SaltBytes:], true
}

// UUIDBytes returns the 16 bytes of an event's id; false for a text that is not a UUID in lower case.
func UUIDBytes(e id.Event) (b [16]byte, ok bool) {
	text := string(e)
	if len(text) != 36 || strings.ToLower(text) != text {
		return b, false
	}
	var digits [32]byte
	copy(digits[0:], text[0:8])
	copy(digits[8:], text[9:13])
	copy(digits[12:], text[14:18])
	copy(digits[16:], text[19:23])
	copy(digits[20:], text[24:36])
	_, err := hex.Decode(b[:], digits[:])
	return b, err == nil && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-'
}

// UUIDText is the event id of 16 bytes; false for another number of them.
func UUIDText(b []byte) (id.Event, bool) {
	if len(b) != 16 {
		return "", false
	}
	var text [36]byte
	hex.Encode(text[0:8], b[0:4])
	hex.Encode(text[9:13], b[4:6])
	hex.Encode(text[14:18], b[6:8])
	hex.Encode(text[19:23], b[8:10])
	hex.Encode(text[24:36], b[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return id.Event(text[:]), true
}

// Filed holds the fields of a record that the event is also filed under.
type Filed struct {
	Stream event.Stream
	Thread id.Thread
	Step   id.Step
	Cause  id.Event
	Key    string // its idempotency key
	Bad    bool   // the record cannot be read so far
}

// FiledOf reads a record no further than it has to.
func FiledOf(record []byte, ws id.Workspace) Filed {
	r := recordReader{rest: string(record)}
	if r.byte() != recordVersion {
		return Filed{Bad: true}
	}
	mask := r.uvarint()
	for range 3 { // event_version, hash_version, occurred_at
		r.uvarint()
	}
	r.take(2)
	var f Filed
	var room string
	for bit := uint64(hasStream); bit <= hasKey; bit <<= 1 {
		if mask&bit == 0 {
			continue
		}
		switch text := r.text(); bit {
		case hasStream:
			f.Stream = event.Stream{Type: text, ID: r.text()}
		case hasRoom:
			room = text
		case hasThread:
			f.Thread = id.Thread(text)
		case hasStep:
			f.Step = id.Step(text)
		case hasCausation:
			f.Cause = id.Event(text)
		case hasKey:
			f.Key = text
		}
	}
	if mask&hasStream == 0 {
		f.Stream = event.RoomStream(ws, id.Room(room))
	}
	f.Bad = r.bad
	return f
}
