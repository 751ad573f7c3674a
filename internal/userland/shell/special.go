package shell

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// special are variables that are made when they are read.
func special(name string) bool {
	switch name {
	case "LINENO", "RANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "SRANDOM", "BASHPID", "BASH_COMMAND", "BASH_SUBSHELL", "FUNCNAME",
		"BASH_SOURCE", "BASH_LINENO",
		"PIPESTATUS", "DIRSTACK", "BASHOPTS", "SHELLOPTS", "GROUPS", "BASH_ARGV0", "BASH_ALIASES":
		return true
	}
	return false
}

// dynamicVariable returns a variable that is made when it is read.
func dynamicVariable(sh *shell, name string) *variable {
	s := ""
	switch name {
	case "LINENO":
		s = strconv.Itoa(sh.line)
	case "RANDOM":
		s = strconv.Itoa(nextRandom(sh))
	case "SRANDOM":
		s = strconv.FormatUint(uint64(sh.w.random()), 10)
	case "SECONDS":
		s = strconv.Itoa(int(sh.p.Now().Sub(sh.started).Seconds()))
	case "EPOCHSECONDS":
		s = strconv.FormatInt(sh.p.Now().Unix(), 10)
	case "EPOCHREALTIME":
		now := sh.p.Now()
		s = fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
	case "BASHPID":
		s = strconv.Itoa(sh.pid)
	case "BASH_COMMAND":
		s = sh.command
	case "BASH_SUBSHELL":
		s = strconv.Itoa(sh.level)
	case "BASH_ARGV0":
		s = sh.name
	case "BASHOPTS":
		s = strings.Join(slices.DeleteFunc(shoptNames(), func(n string) bool { return !sh.shopts[n] }), ":")
	case "SHELLOPTS":
		var names []string
		for i, o := range optionTable() {
			if sh.on[i] {
				names = append(names, o.name)
			}
		}
		sort.Strings(names)
		s = strings.Join(names, ":")
	default:
		v := &variable{kind: indexed, set: true}
		switch name {
		case "PIPESTATUS":
			if sh.pipes == nil && sh.ranAny {
				v.vals = []string{strconv.Itoa(sh.single)}
			}
			for _, p := range sh.pipes {
				v.vals = append(v.vals, strconv.Itoa(p))
			}
		case "GROUPS":
			v.vals = []string{"0"}
		case "DIRSTACK":
			v.vals = append([]string{pwd(sh)}, sh.dirs...)
		case "BASH_ALIASES":
			v = &variable{kind: associative, set: true, m: map[string]item{}}
			for _, k := range slices.Sorted(maps.Keys(sh.aliases)) {
				v.put(k, sh.aliases[k])
			}
		case "FUNCNAME":
			if len(sh.frames) == 0 {
				return nil
			}
			for i := len(sh.frames) - 1; i >= 0; i-- {
				v.vals = append(v.vals, sh.frames[i].name)
			}
			if !sh.fromText { // a text has no name
				v.vals = append(v.vals, "main")
			}
		case "BASH_SOURCE":
			for i := len(sh.frames) - 1; i >= 0; i-- {
				v.vals = append(v.vals, sh.frames[i].source)
			}
			for i := len(sh.sources) - 1; i >= 0; i-- {
				v.vals = append(v.vals, sh.sources[i])
			}
			if !sh.fromText && sh.name != "" {
				v.vals = append(v.vals, sh.name)
			}
			if len(v.vals) == 0 {
				return nil
			}
		case "BASH_LINENO":
			for i := len(sh.frames) - 1; i >= 0; i-- {
				v.vals = append(v.vals, strconv.Itoa(sh.frames[i].line))
			}
			if !sh.fromText {
				v.vals = append(v.vals, "0")
			}
		default:
			return nil
		}
		return v
	}
	return &variable{set: true, str: s, integer: name == "RANDOM" || name == "SECONDS"}
}

// nextRandom is bash's generator.
func nextRandom(sh *shell) int {
	if !sh.seeded {
		sh.seed, sh.seeded = sh.w.random(), true
	}
	last := int64(int32(sh.seed))
	if last == 0 {
		last = 123459876
	}
	next := 16807*(last%127773) - 2836*(last/127773)
	if next < 0 {
		next += 0x7fffffff
	}
	sh.seed = uint32(next)
	return int((sh.seed>>16 ^ sh.seed&65535) & 32767)
}
