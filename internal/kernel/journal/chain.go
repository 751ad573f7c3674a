package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"agentbox/internal/domain/event"
)

// HashVersion is the version of the chain that is written: the hash covers a salted commitment to the data instead of the data.
const HashVersion = 2

// SaltBytes is the length of the salt of a commitment.
const SaltBytes = 16

// Commit returns the commitment to an event's data: the SHA-256 of the salt and the data. After salt and data are destroyed, nobody can
// tell or guess the data from it.
func Commit(salt, data []byte) event.Digest {
	h := sha256.New()
	h.Write(salt)
	h.Write(data)
	var d event.Digest
	h.Sum(d[:0])
	return d
}

// HashOf returns the hash of an event: the SHA-256 of the bytes of AppendHeader.
func HashOf(e *event.Event) event.Digest {
	var room [1024]byte
	return event.DigestOf(AppendHeader(room[:0], e))
}

// Seal ties an event, which has its places already, to the one before it in its stream.
func Seal(e *event.Event, salt []byte, prev event.Digest) {
	e.Chain = event.Chain{HashVersion: HashVersion, Salt: salt, Commitment: Commit(salt, e.Data), Prev: prev}
	e.Chain.Hash = HashOf(e)
}

// AppendHeader appends the canonical JSON (RFC 8785) that an event's hash covers: its wire form without data, recorded_at, entity_type and
// entity_id, with hash_version, data_commitment and prev_event_hash lifted out of chain. Anybody can make it from an event's JSON.
func AppendHeader(dst []byte, e *event.Event) []byte {
	dst = append(dst, `{"actor":{"actor_id":`...)
	dst = appendText(dst, e.Actor.ID)
	dst = append(dst, `,"actor_type":`...)
	dst = appendText(dst, string(e.Actor.Type))
	dst = append(dst, '}')
	dst = appendOptional(dst, `,"actor_principal_id":`, string(e.Principal))
	dst = appendOptional(dst, `,"causation_id":`, string(e.Causation))
	dst = append(dst, `,"contains_secrets":`...)
	dst = strconv.AppendBool(dst, e.ContainsSecrets)
	dst = append(dst, `,"correlation_id":`...)
	dst = appendText(dst, string(e.Correlation))
	dst = append(dst, `,"data_commitment":`...)
	dst = appendDigest(dst, e.Chain.Commitment)
	dst = appendRaw(dst, `,"display":`, e.Display)
	dst = append(dst, `,"event_id":`...)
	dst = appendText(dst, string(e.ID))
	dst = append(dst, `,"event_type":`...)
	dst = appendText(dst, e.Type)
	dst = append(dst, `,"event_version":`...)
	dst = strconv.AppendInt(dst, int64(e.Version), 10)
	dst = append(dst, `,"hash_version":`...)
	dst = strconv.AppendInt(dst, int64(e.Chain.HashVersion), 10)
	dst = appendOptional(dst, `,"idempotency_key":`, e.IdempotencyKey)
	dst = appendOptional(dst, `,"mission_id":`, e.Mission)
	dst = appendRaw(dst, `,"model_context":`, e.ModelContext)
	dst = append(dst, `,"occurred_at":"`...)
	dst = e.OccurredAt.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	dst = appendRaw(dst, `,"policy_context":`, e.PolicyContext)
	dst = append(dst, `,"prev_event_hash":`...)
	dst = appendDigest(dst, e.Chain.Prev)
	dst = append(dst, `,"redaction_level":`...)
	recorded := e.Redaction
	if e.Chain.Redaction != "" {
		recorded = e.Chain.Redaction
	}
	dst = appendText(dst, string(recorded))
	dst = appendOptional(dst, `,"room_id":`, string(e.Room))
	dst = appendOptional(dst, `,"run_id":`, string(e.Run))
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = appendOptional(dst, `,"step_id":`, string(e.Step))
	dst = append(dst, `,"stream":{"stream_id":`...)
	dst = appendText(dst, e.Stream.ID)
	dst = append(dst, `,"stream_type":`...)
	dst = appendText(dst, e.Stream.Type)
	dst = append(dst, `},"stream_seq":`...)
	dst = strconv.AppendUint(dst, e.StreamSeq, 10)
	dst = appendOptional(dst, `,"thread_id":`, string(e.Thread))
	dst = append(dst, `,"workspace_id":`...)
	dst = appendText(dst, string(e.Workspace))
	dst = append(dst, `,"zone":`...)
	dst = appendText(dst, string(e.Zone))
	return append(dst, '}')
}

func appendOptional(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return appendText(append(dst, name...), text)
}

func appendRaw(dst []byte, name string, raw []byte) []byte {
	if len(raw) == 0 {
		return dst
	}
	return append(append(dst, name...), raw...)
}

func appendDigest(dst []byte, d event.Digest) []byte {
	if d.IsZero() {
		return append(dst, `""`...)
	}
	dst = append(dst, `"sha256:`...)
	dst = hex.AppendEncode(dst, d[:])
	return append(dst, '"')
}

// appendText writes a string as RFC 8785 wants it: the five short escapes, \u00xx for the other controls, everything else as it is.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\r':
			dst = append(dst, `\r`...)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, c)
		}
	}
	return append(append(dst, text[from:]...), '"')
}
