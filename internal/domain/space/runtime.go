package space

import (
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Nano is the name of the tier without processes: metered WebAssembly and a virtual shell. It is lighter than every other one.
const Nano = "nano"

// The runtimes that a space may request, besides the name of a tier.
const (
	RuntimeAuto  = "auto"  // in nano for as long as that suffices, then in the strongest
	RuntimeHeavy = "heavy" // in the strongest tier, which is never nano
)

// The kinds of a Lack.
const (
	LackCommand = "command" // a program
	LackOption  = "option"  // of a program that is there
	LackFeature = "feature" // of the system: one of the features that a tier may lack, a system call, a device
	LackModule  = "module"  // of a language
	LackPackage = "package" // that was to be installed
	LackNetwork = "network" // another host
)

// Lack is something that a command wanted and its tier has not.
type Lack struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"` // for a person: where it was wanted, or why it is not there
}

// String describes it to a person.
func (l Lack) String() string {
	text := "the " + l.Kind + " " + l.Name
	if l.Detail != "" {
		text += " (" + l.Detail + ")"
	}
	return text
}

// Lacking is the error of a command in a Tentative space that wanted what its tier lacks. The command has left nothing behind: no file,
// no process and no output that counts. It is a fault of kind Conflict and code tier_lacks.
type Lacking struct{ Lacks []Lack }

// Error names what lacks.
func (l *Lacking) Error() string { return l.fault().Error() }

// Unwrap returns the fault.
func (l *Lacking) Unwrap() error { return l.fault() }

func (l *Lacking) fault() *fault.Error {
	return fault.New(fault.Conflict, "tier_lacks", "the space's tier lacks %s", Names(l.Lacks)).
		With("promote the space to a heavier tier, or make one with runtime auto, which is promoted when it is needed")
}

// maxNamed bounds how many lacks a sentence names.
const maxNamed = 5

// Names lists lacks in words for a person.
func Names(lacks []Lack) string {
	if len(lacks) == 0 {
		return "something that the command wants"
	}
	var names []string
	for _, l := range lacks[:min(len(lacks), maxNamed)] {
		names = append(names, l.String())
	}
	text := strings.Join(names, ", ")
	if more := len(lacks) - len(names); more > 0 {
		text += " and more"
	}
	return text
}

// The codes of a Why.
const (
	WhyRequested = "requested"  // somebody asked for it
	WhyRouted    = "routed"     // a command was seen to need it before it ran
	WhyTierLacks = "tier_lacks" // a command was found to need it while it ran, and was run again
)

// Why says why a space is promoted.
type Why struct {
	Code      string
	Reason    string // for a person
	Run       id.Run // whose operation wants it, "" for none
	Operation string
}

// Need is something that a command wants and that is seen before it runs: a lighter tier has it not.
type Need struct {
	Kind   string   `json:"kind"` // of a Lack
	Name   string   `json:"name"`
	Of     string   `json:"of,omitempty" doc:"The language of a module or package: python or javascript"`
	Where  string   `json:"where,omitempty"` // where it was seen: the file and the line, or "" for the command itself
	Why    string   `json:"why,omitempty"`   // for a person, where the name does not say it
	Tried  bool     `json:"tried,omitempty" doc:"The command goes on where it is not there, or may not come to it"`
	Remote bool     `json:"remote,omitempty" doc:"Where no tier has it, it comes from another host"`
	Alone  bool     `json:"-"` // the command is nothing but a call of this program
	Tiers  []string `json:"tiers,omitempty" doc:"Other tiers of this host that have it; absent where none has"`
}

// String describes it to a person.
func (n Need) String() string { return n.Lack().String() }

// short is its name for a person, without where it was seen. A network has no name where the host is not known.
func (n Need) short() string { return strings.TrimSuffix("the "+n.Kind+" "+n.Name, " ") }

// Need returns the need of a command for a lack of a tier. The tier nano reports a module or package as a feature of its interpreter.
func (l Lack) Need() Need {
	if l.Kind != LackFeature {
		return Need{Kind: l.Kind, Name: l.Name}
	}
	what := strings.TrimPrefix(l.Detail, "the ")
	language := JavaScript
	if strings.HasPrefix(l.Name, "python") {
		language = Python
	}
	if name, ok := strings.CutPrefix(what, "module "); ok {
		return Need{Kind: LackModule, Name: name, Of: language}
	}
	if name, ok := strings.CutPrefix(what, "package "); ok {
		return Need{Kind: LackPackage, Name: name, Of: language}
	}
	if what == "networks" || what == "modules of the network" {
		what = LackNetwork
	}
	if kind, host, _ := strings.Cut(what, " "); kind == LackNetwork {
		return Need{Kind: LackNetwork, Name: host}
	}
	return Need{Kind: LackFeature, Name: l.Name}
}

// Lack returns the lack of a tier for a need of a command.
func (n Need) Lack() Lack {
	detail := n.Where + n.Why
	if n.Where != "" && n.Why != "" {
		detail = n.Where + ": " + n.Why
	}
	return Lack{Kind: n.Kind, Name: n.Name, Detail: detail}
}

// Command is a command whose tier is to be found.
type Command struct {
	Text  string            // of a shell
	Cwd   string            // relative to the space's files
	Env   map[string]string // of the command
	Reach bool              // the search finds only what keeps it from doing anything, such as a network, and reads fewer files
}

// Read returns the first most bytes of a file of a space. The path is relative to the space's files. It returns an error if the path does
// not exist, is not a file, or may not be read.
type Read func(path string, most int64) ([]byte, error)

// Place finds the needs of a command that a tier lacks; none if the tier has all. It decides by what it reads, and its work is bounded.
type Place func(has Offer, c Command, read Read) []Need

// Route says where a command of a space would run, and why.
type Route struct {
	Runtime string `json:"runtime"` // the runtime that the space requested
	Tier    string `json:"tier"`    // in which the space is
	To      string `json:"to"`      // in which the command would run; another one than Tier after the space was promoted
	Needs   []Need `json:"needs,omitempty" doc:"What the command was seen to need that its tier does not have"`
	Unmet   []Need `json:"unmet,omitempty" doc:"What it was seen to need that the tier in which it would run does not have: it fails there"`

	Unreachable []Need `json:"unreachable,omitempty" doc:"What only a network could meet. A command that needs it is refused: no tier has a network"`
}

// Lacks are the needs as a tier would say them.
func (r Route) Lacks() []Lack {
	lacks := make([]Lack, len(r.Needs))
	for i, n := range r.Needs {
		lacks[i] = n.Lack()
	}
	return lacks
}
