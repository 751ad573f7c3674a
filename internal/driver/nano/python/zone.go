package python

import (
	"encoding/binary"
	"time"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/posix"
)

// zoneName is how many bytes the guest has for the abbreviation of a zone, with the zero behind it.
const zoneName = 16

// zone tells the guest's C library what time zone holds at a time. Its parameters are the value of TZ (address, length), seconds since
// 1970, whether those are seconds of local time, and where the answer goes: as numbers of 32 bits whether summer time holds, the seconds
// ahead of UTC, the same in the other half of the year, and then the abbreviation.
func zone(in *wasm.Instance, stack []uint64) {
	s := in.State.(*state)
	name, ok := in.Bytes(uint32(stack[0]), uint32(stack[1]))
	out, okOut := in.Bytes(uint32(stack[4]), 12+zoneName)
	if !ok || !okOut || s.process == nil {
		return // the guest has filled the answer with UTC
	}
	s.process.Charge(50)
	if s.place == nil || s.zone != string(name) {
		s.process.Charge(posix.GasPerZone)
		s.zone = string(name)
		s.place = posix.Zone(s.zone)
	}
	at := time.Unix(int64(stack[2]), 0)
	if uint32(stack[3]) != 0 {
		u := at.UTC()
		at = time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), 0, s.place)
	}
	at = at.In(s.place)
	abbreviation, offset := at.Zone()
	opposite := offset + 3600 // as GNU's library has it, also where there is no summer time
	if at.IsDST() {
		opposite = offset - 3600
	}
	for _, month := range []time.Month{time.January, time.July} {
		if _, other := time.Date(at.Year(), month, 1, 0, 0, 0, 0, s.place).Zone(); other != offset {
			opposite = other
		}
	}
	summer := uint32(0)
	if at.IsDST() {
		summer = 1
	}
	binary.LittleEndian.PutUint32(out, summer)
	binary.LittleEndian.PutUint32(out[4:], uint32(int32(offset)))
	binary.LittleEndian.PutUint32(out[8:], uint32(int32(opposite)))
	clear(out[12:])
	copy(out[12:12+zoneName-1], abbreviation)
}
