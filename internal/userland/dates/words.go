package dates

import (
	"strconv"
	"strings"
	"time"
)

// dateToken is a word, a number or a character of a date.
type dateToken struct {
	kind        byte
	n           int64
	nanoseconds int // of a number with a fraction
	digits      int
	negative    bool   // -0 is
	unit        byte   // s, M, H, d, m, Y
	text        string // of a word that is not known
	end         int    // behind it
}

// The kinds of tokens. A character is its own kind.
const (
	unsignedWord byte = 'a' + iota
	signedWord
	fractionWord
	signedFractionWord
	monthWord
	weekdayWord
	ordinalWord
	unitWord
	shiftWord // today, tomorrow
	agoWord
	zoneWord
	summerWord // DST
	halfWord   // am, pm
	letterT
	unknownWord // or a number that is too large
)

// dateTokens splits a date. Text in parentheses is a comment.
func dateTokens(s string, now time.Time) []dateToken {
	var all []dateToken
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c >= '\t' && c <= '\r':
			i++
		case c == '(':
			i += dateComment(s[i:])
		case isDigit(c) || c == '+' || c == '-':
			t, size, ok := dateNumber(s[i:])
			if i += size; !ok {
				return append(all, dateToken{kind: unknownWord, end: i})
			}
			if t.end = i; t.kind != 0 {
				all = append(all, t)
			}
		case isLetter(c):
			end := i
			for end < len(s) && (isLetter(s[end]) || s[end] == '.') {
				end++
			}
			t, ok := dateWord(strings.ToLower(s[i:end]), now)
			if t.end = end; !ok {
				return append(all, dateToken{kind: unknownWord, text: strings.ToUpper(s[i:end]), end: end})
			}
			all = append(all, t)
			i = end
		default:
			i++
			all = append(all, dateToken{kind: c, end: i})
		}
	}
	return all
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// dateComment returns the length of a comment, which has others in it. One without an end is all that is left.
func dateComment(s string) int {
	depth := 0
	for i := range len(s) {
		if s[i] == '(' {
			depth++
		} else if s[i] == ')' {
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// dateNumber reads a number. A sign without one is nothing.
func dateNumber(s string) (t dateToken, size int, ok bool) {
	i, hasSign := 0, false
	if s[0] == '+' || s[0] == '-' {
		hasSign, t.negative = true, s[0] == '-'
		for i++; i < len(s) && (s[i] == ' ' || s[i] >= '\t' && s[i] <= '\r'); i++ {
			continue
		}
		if i == len(s) || s[i] < '0' || s[i] > '9' {
			return dateToken{}, i, true
		}
	}
	from := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(s[from:i], 10, 64)
	if err != nil {
		return t, i, false
	}
	t.n, t.digits, t.kind = n, i-from, unsignedWord
	if i+1 < len(s) && (s[i] == '.' || s[i] == ',') && s[i+1] >= '0' && s[i+1] <= '9' {
		t.kind = fractionWord
		unit := 100_000_000
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			t.nanoseconds += int(s[i]-'0') * unit
			unit /= 10
		}
	}
	if t.negative {
		t.n, t.nanoseconds = -t.n, -t.nanoseconds
	}
	if hasSign {
		t.kind++ // signed, signedFraction
	}
	return t, i, true
}

// dateWords are the words that mean one thing only.
var dateWords = map[string]dateToken{
	"am": {kind: halfWord, n: 'a'}, "a.m.": {kind: halfWord, n: 'a'}, "pm": {kind: halfWord, n: 'p'}, "p.m.": {kind: halfWord, n: 'p'},
	"dst": {kind: summerWord}, "t": {kind: letterT, n: -7 * 3600},
	"tues": {kind: weekdayWord, n: 2}, "wednes": {kind: weekdayWord, n: 3}, "thur": {kind: weekdayWord, n: 4}, "thurs": {kind: weekdayWord,
		n: 4}, "sept": {kind: monthWord, n: 9},
	"year": {kind: unitWord, unit: 'Y', n: 1}, "month": {kind: unitWord, unit: 'm', n: 1}, "fortnight": {kind: unitWord, unit: 'd', n: 14},
	"week": {kind: unitWord, unit: 'd', n: 7},
	"day":  {kind: unitWord, unit: 'd', n: 1}, "hour": {kind: unitWord, unit: 'H', n: 1}, "minute": {kind: unitWord, unit: 'M', n: 1},
	"min":    {kind: unitWord, unit: 'M', n: 1},
	"second": {kind: unitWord, unit: 's', n: 1}, "sec": {kind: unitWord, unit: 's', n: 1},
	"tomorrow": {kind: shiftWord, n: 1}, "yesterday": {kind: shiftWord, n: -1}, "today": {kind: shiftWord}, "now": {kind: shiftWord},
	"ago": {kind: agoWord, n: -1}, "hence": {kind: agoWord, n: 1},
	"last": {kind: ordinalWord, n: -1}, "this": {kind: ordinalWord}, "next": {kind: ordinalWord, n: 1}, "first": {kind: ordinalWord, n: 1},
	"third":  {kind: ordinalWord, n: 3},
	"fourth": {kind: ordinalWord, n: 4}, "fifth": {kind: ordinalWord, n: 5}, "sixth": {kind: ordinalWord, n: 6}, "seventh": {kind: ordinalWord,
		n: 7}, "eighth": {kind: ordinalWord, n: 8},
	"ninth": {kind: ordinalWord, n: 9}, "tenth": {kind: ordinalWord, n: 10}, "eleventh": {kind: ordinalWord, n: 11},
	"twelfth": {kind: ordinalWord, n: 12},
}

// dateZones are zones by their abbreviations, in minutes east of Greenwich.
var dateZones = map[string]int64{
	"gmt": 0, "ut": 0, "utc": 0, "wet": 0, "west": 60, "bst": 60, "art": -180, "brt": -180, "brst": -120, "nst": -210, "ndt": -150,
	"ast": -240, "adt": -180, "clt": -240,
	"clst": -180, "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420, "akst": -540,
	"akdt": -480, "hst": -600, "hast": -600,
	"hadt": -540, "sst": -720, "wat": 60, "cet": 60, "cest": 120, "met": 60, "mez": 60, "mest": 120, "mesz": 120, "eet": 120, "eest": 180,
	"cat": 120, "sast": 120, "eat": 180,
	"msk": 180, "msd": 240, "ist": 330, "sgt": 480, "kst": 540, "jst": 540, "gst": 600, "nzst": 720, "nzdt": 780,
}

// dateWord reads a word in small letters.
func dateWord(w string, now time.Time) (dateToken, bool) {
	if t, ok := dateWords[w]; ok {
		return t, true
	}
	name := w
	if len(name) == 4 && name[3] == '.' {
		name = name[:3]
	}
	for m := time.January; m <= time.December; m++ {
		if full := strings.ToLower(m.String()); name == full || len(name) == 3 && full[:3] == name {
			return dateToken{kind: monthWord, n: int64(m)}, true
		}
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if full := strings.ToLower(d.String()); name == full || len(name) == 3 && full[:3] == name {
			return dateToken{kind: weekdayWord, n: int64(d)}, true
		}
	}
	if t, ok := dateZone(w, now); ok {
		return t, true
	}
	if t, ok := dateWords[strings.TrimSuffix(w, "s")]; ok && t.kind == unitWord {
		return t, true
	}
	if len(w) == 1 && w != "j" {
		return dateToken{kind: zoneWord, n: militaryHours(w[0]) * 3600}, true
	}
	if bare := strings.ReplaceAll(w, ".", ""); bare != w {
		return dateZone(bare, now)
	}
	return dateToken{}, false
}

// dateZone reads the abbreviation of a zone. The local zone's abbreviations come first.
func dateZone(w string, now time.Time) (dateToken, bool) {
	for _, m := range []time.Month{time.January, time.July} {
		name, offset := time.Date(now.Year(), m, 1, 0, 0, 0, 0, now.Location()).Zone()
		if strings.ToLower(name) == w && w != "utc" {
			return dateToken{kind: zoneWord, n: int64(offset)}, true
		}
	}
	minutes, ok := dateZones[w]
	return dateToken{kind: zoneWord, n: minutes * 60}, ok
}

// militaryHours is what a letter stands for: A to M east of Greenwich without J, N to Y west of it, Z.
func militaryHours(c byte) int64 {
	switch {
	case c == 'z':
		return 0
	case c < 'j':
		return int64(c-'a') + 1
	case c <= 'm':
		return int64(c - 'a')
	}
	return -int64(c-'n') - 1
}
