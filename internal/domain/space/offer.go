package space

import (
	"slices"
	"strings"

	"agentbox/internal/domain/fault"
)

// Offer is what a tier of this host offers to the commands of its spaces. Every list is in order. An offer without programs makes no
// statement: readers treat it as one that has everything except a network.
type Offer struct {
	Tier     string   `json:"tier"`
	Root     string   `json:"root,omitempty" doc:"Root file system of the programs: host, or a folder's name; absent where the tier has its own"`
	Network  bool     `json:"network" doc:"Commands reach other hosts. No tier offers that yet"`
	Programs []string `json:"programs" nullable:"false" doc:"By the names under which a shell finds them"`
	Modules  []string `json:"python_modules" nullable:"false" doc:"What Python imports, at the top"`
	Packages []string `json:"python_packages" nullable:"false" doc:"What pip says is installed, by the names as pip compares them"`
	Node     []string `json:"node_modules" nullable:"false" doc:"Of Node's own library, without node:"`
	Lacks    []string `json:"lacks" nullable:"false" doc:"Features that the tier does not have"`
}

// Known reports whether the offer makes a statement.
func (o Offer) Known() bool { return len(o.Programs) > 0 }

// Program reports whether a shell finds a program of a name.
func (o Offer) Program(name string) bool { return !o.Known() || listed(o.Programs, name) }

// Module reports whether Python imports a module of a name, of which only the top counts.
func (o Offer) Module(name string) bool {
	top, _, _ := strings.Cut(name, ".")
	return !o.Known() || listed(o.Modules, top)
}

// Package reports whether a package of Python is installed.
func (o Offer) Package(name string) bool { return !o.Known() || listed(o.Packages, PackageName(name)) }

// Builtin reports whether Node has a module of its own library, with node: or without.
func (o Offer) Builtin(name string) bool {
	name = strings.TrimPrefix(name, "node:")
	top, _, _ := strings.Cut(name, "/")
	return !o.Known() || listed(o.Node, name) || listed(o.Node, top)
}

// Has reports whether the tier satisfies a need of a command.
func (o Offer) Has(n Need) bool {
	switch n.Kind {
	case LackNetwork:
		return o.Network
	case LackCommand, LackOption:
		name, _, _ := strings.Cut(n.Name, " ")
		return o.Program(name)
	case LackFeature:
		return !slices.Contains(o.Lacks, n.Name)
	case LackModule:
		if n.Of == JavaScript || strings.HasPrefix(n.Name, "node:") {
			return o.Builtin(n.Name)
		}
		return o.Module(n.Name)
	case LackPackage:
		return n.Of != JavaScript && o.Package(n.Name) || !o.Known()
	}
	return true
}

func listed(names []string, name string) bool {
	_, found := slices.BinarySearch(names, name)
	return found
}

// PackageName returns the name of a package of Python as pip compares it: Flask_SQLAlchemy is flask-sqlalchemy.
func PackageName(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c == '-' || c == '_' || c == '.' })
	return strings.Join(parts, "-")
}

// Offers are those of all tiers of a host, from the weakest to the strongest.
type Offers []Offer

// With names the tiers that satisfy a need of a command.
func (all Offers) With(n Need) []string {
	var names []string
	for _, o := range all {
		if o.Has(n) {
			names = append(names, o.Tier)
		}
	}
	return names
}

// Unreachable returns those of the needs that only a network could meet, where no tier has one.
func (all Offers) Unreachable(needs []Need) []Need {
	var found []Need
	for _, n := range needs {
		if !n.Tried && (n.Kind == LackNetwork || n.Remote) && len(all.With(n)) == 0 {
			found = append(found, n)
		}
	}
	return found
}

// The suggestion if no tier has something.
const bringIn = "bring the files in (`agentbox space create --from FOLDER`, or upload them); `agentbox doctor` shows what each tier has"

// NoNetworkCode is the code of NoNetwork.
const NoNetworkCode = "network_unavailable"

// NoNetwork is the refusal of a command that only a network could serve. It is a fault of kind Unavailable and code network_unavailable.
func NoNetwork(needs []Need) *fault.Error {
	var names []string
	for _, n := range needs[:min(len(needs), maxNamed)] {
		names = append(names, strings.TrimPrefix(n.String(), "the network "))
	}
	text := strings.Join(names, ", ")
	if len(needs) > maxNamed {
		text += " and more"
	}
	const said = "the command needs a network for %s; no tier of this host has a network yet, so that it was not run"
	return fault.New(fault.Unavailable, NoNetworkCode, said, text).With(bringIn)
}

// Absent returns those of the needs without which a command does nothing, and which no tier has.
func (all Offers) Absent(needs []Need) []Need {
	var found []Need
	for _, n := range needs {
		if n.Alone && !n.Tried && n.Kind == LackCommand && len(all.With(n)) == 0 {
			found = append(found, n)
		}
	}
	return found
}

// NoProgramCode is the code of NoProgram.
const NoProgramCode = "program_unavailable"

// NoProgram is the refusal of a command that calls a program which no tier has. It is a fault of kind Unavailable and code
// program_unavailable.
func NoProgram(n Need) *fault.Error {
	return fault.New(fault.Unavailable, NoProgramCode, "no tier of this host has %s, so nothing was run and no question was asked", n.short()).
		With(bringIn)
}

// Advice tells the requester how to run a command whose tier lacks something; "" if there is no advice.
func (all Offers) Advice(tier string, lacks []Lack) string {
	var gone, away []string
	has := map[string][]string{}
	var tiers []string
	for _, l := range lacks[:min(len(lacks), maxNamed)] {
		n := l.Need()
		with := slices.DeleteFunc(all.With(n), func(name string) bool { return name == tier })
		switch {
		case len(with) > 0:
			last := with[len(with)-1]
			if has[last] == nil {
				tiers = append(tiers, last)
			}
			has[last] = append(has[last], n.short())
		case n.Kind == LackNetwork || n.Kind == LackFeature || n.Kind == LackOption:
			away = append(away, n.short())
		default:
			gone = append(gone, n.short())
		}
	}
	var said []string
	for _, name := range tiers {
		how := "promote the space to it, or make one with the runtime auto or heavy"
		if name == Nano {
			how = "make a space with the runtime nano"
		}
		said = append(said, "the tier "+name+" has "+strings.Join(has[name], ", ")+": "+how)
	}
	if len(away) > 0 {
		said = append(said, "no tier of this host has "+strings.Join(away, ", "))
	}
	if len(gone) > 0 {
		said = append(said, "no tier of this host has "+strings.Join(gone, ", ")+": "+bringIn)
	}
	return strings.Join(said, "; ")
}
