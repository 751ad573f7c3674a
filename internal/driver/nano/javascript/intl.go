package javascript

import (
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"agentbox/internal/userland/posix"
)

// intl is the host's part of Intl and Date: languages and time zones.
type intl struct{ run *run }

// locales is Intl's data of languages from CLDR, written by locales/generate.mjs. A program reads only the parts that it needs.
//
//go:embed locales/*.json
var locales embed.FS

// Gas costs of the operations of Intl.
const (
	gasPerCompared = 4   // for a byte of the texts that are compared
	gasPerCollator = 500 // for the tables that a comparison begins with
)

// locale returns the data of a language.
func (it intl) locale(a *arguments) (any, error) {
	name := a.text()
	if a.err != nil {
		return nil, a.err
	}
	b, err := locales.ReadFile("locales/" + name + ".json")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, &thrown{"ERR_INVALID_ARG_VALUE", "nothing is known of the language " + name}
	}
	it.run.p.Charge(len(b) / 8)
	return string(b), err
}

// collators are made when they are used first. One compares for one program at a time.
type collators struct {
	mu   sync.Mutex // guards made and its entries
	made map[collation]*collate.Collator
}

type collation struct {
	locale string
	how    int
}

// mostCollators is how many are kept; a program may name others.
const mostCollators = 32

// The bits of how: the sensitivity, and whether digits are compared as numbers.
const (
	sensesLetters, sensesAccents, sensesCase = 0, 1, 2
	sensesMask                               = 3
	numerically                              = 4
)

func (c *collators) compare(k collation, x, y string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.made[k]
	if found == nil {
		var options []collate.Option
		switch k.how & sensesMask {
		case sensesLetters:
			options = append(options, collate.IgnoreCase, collate.IgnoreDiacritics)
		case sensesAccents:
			options = append(options, collate.IgnoreCase)
		case sensesCase:
			options = append(options, collate.IgnoreDiacritics)
		}
		if k.how&numerically != 0 {
			options = append(options, collate.Numeric)
		}
		if c.made == nil || len(c.made) >= mostCollators {
			c.made = map[collation]*collate.Collator{}
		}
		found = collate.New(language.Make(k.locale), options...)
		c.made[k] = found
	}
	return found.CompareString(x, y)
}

// collate compares two texts as a language orders them.
func (it intl) collate(a *arguments) (any, error) {
	k := collation{a.text(), a.int()}
	x, y := a.text(), a.text()
	if a.err != nil {
		return nil, a.err
	}
	it.run.p.Charge(gasPerCollator + gasPerCompared*(len(x)+len(y)))
	if x == y {
		return 0, nil
	}
	return it.run.runtime.orders.compare(k, x, y), nil
}

// zoneTable holds names of zones, by their minutes ahead of UTC.
type zoneTable struct {
	Zones map[string]int      `json:"zones"`
	Names [][]json.RawMessage `json:"names"`
}

func readZones() (t zoneTable, err error) {
	b, err := locales.ReadFile("locales/zones.json")
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(b, &t)
}

// zoneLanguages is the order of the languages in zones.json.
var zoneLanguages = []string{"en", "en-GB", "de", "fr", "es"}

// zoneText returns what a zone is called at a distance of UTC in seconds, long or short; nothing where that is not known.
func (it intl) zoneText(a *arguments) (any, error) {
	zone, offset, lang, long := a.text(), a.int(), a.text(), a.int() != 0
	if a.err != nil {
		return nil, a.err
	}
	t, err := it.run.runtime.zones()
	if err != nil {
		return nil, err
	}
	at, known := t.Zones[zone]
	index := slices.Index(zoneLanguages, lang)
	if !known || index < 0 {
		return "", nil
	}
	for _, raw := range t.Names[at] {
		var row []json.RawMessage
		var minutes int
		var names [2]string
		if err := json.Unmarshal(raw, &row); err != nil || len(row) != len(zoneLanguages)+1 {
			return nil, errors.Join(err, errors.New("zones.json is damaged"))
		}
		if err := errors.Join(json.Unmarshal(row[0], &minutes), json.Unmarshal(row[index+1], &names)); err != nil {
			return nil, err
		}
		if minutes*60 != offset {
			continue
		}
		if long {
			return names[0], nil
		}
		return names[1], nil
	}
	return "", nil
}

// zones lists the zones by name.
func (it intl) zoneList(*arguments) (any, error) {
	t, err := it.run.runtime.zones()
	if err != nil {
		return nil, err
	}
	var all []string
	for name := range t.Zones {
		if strings.Contains(name, "/") && !strings.HasPrefix(name, "US/") && !strings.HasPrefix(name, "Etc/") || name == "UTC" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	raw, err := json.Marshal(all)
	return string(raw), err
}

// local is the zone of the program.
func (it intl) local() *time.Location {
	if it.run.zone == nil {
		it.run.zone = it.run.p.Zone()
	}
	return it.run.zone
}

// zoneName returns a zone by its name as the database writes it, whatever the case of its letters: the program's own for none, nothing
// where there is no such zone.
func (it intl) zoneName(a *arguments) (any, error) {
	name := a.text()
	if a.err != nil {
		return nil, a.err
	}
	if name == "" {
		own := strings.TrimPrefix(it.local().String(), "/usr/share/zoneinfo/")
		if own == "" {
			own = "UTC"
		}
		return own, nil
	}
	t, err := it.run.runtime.zones()
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(name, "UTC") || strings.EqualFold(name, "GMT") {
		return "UTC", nil
	}
	if _, known := t.Zones[name]; known {
		return name, nil
	}
	it.run.p.Charge(len(t.Zones))
	for known := range t.Zones {
		if strings.EqualFold(known, name) {
			return known, nil
		}
	}
	if loc := it.located(name); loc != nil {
		return name, nil
	}
	return "", nil
}

// located returns the zone of a name, nil where there is none.
func (it intl) located(name string) *time.Location {
	if loc := it.run.zones[name]; loc != nil {
		return loc
	}
	it.run.p.Charge(posix.GasPerZone)
	if name == "Local" { // Go's name for the zone of the host
		return nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	if it.run.zones == nil || len(it.run.zones) >= mostCollators {
		it.run.zones = map[string]*time.Location{}
	}
	it.run.zones[name] = loc
	return loc
}

// zoneAhead returns how many seconds a zone is ahead of UTC at a time in milliseconds.
func (it intl) zoneAhead(a *arguments) (any, error) {
	name, at := a.text(), a.number()
	if a.err != nil {
		return nil, a.err
	}
	loc := it.local()
	if name != loc.String() {
		if loc = it.located(name); loc == nil {
			loc = time.UTC
		}
	}
	it.run.p.Charge(10)
	_, offset := time.UnixMilli(int64(at)).In(loc).Zone()
	return offset, nil
}
