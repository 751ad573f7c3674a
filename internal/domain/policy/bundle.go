package policy

import (
	"encoding/json"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// MaxBundleBytes is the most Cedar text that one bundle holds; the largest preset has about a tenth of it.
const MaxBundleBytes = 256 << 10

// Bundle is a policy as a whole: Cedar rules, and the numbers that services need before they ask the gate. Spaces and runs pin it by its
// hash.
type Bundle struct {
	Name   string       `json:"name"`   // of the preset or the file that it came from
	Cedar  string       `json:"cedar"`  // policies with the annotations @id, @reason, @suggestion and, to ask, @decision("require_approval")
	Limits Limits       `json:"limits"` // bounds that the rules repeat, for those who must clamp before they ask
	Hash   event.Digest `json:"sha256"` // of everything above, in canonical form
}

// MaxApprovers is the most persons that a policy may demand for one question.
const MaxApprovers = 2

// Limits are the bounds of a bundle. All numbers are positive but Approvers, which may be 0.
type Limits struct {
	FileBytes int64 `json:"file_bytes"` // of one file that is read or written
	CommandMS int64 `json:"command_ms"` // wall time of one command; a requested timeout may only be lower
	// guards: globs of paths that are refused at any depth; for display, the rules hold them too
	Blocked   []string  `json:"blocked,omitempty"`
	Withhold  *Withhold `json:"withhold,omitempty"`     // walls: which files that people bring in are kept from code; nil withholds none
	Weakest   string    `json:"weakest_tier,omitempty"` // the tier of the weakest isolation in which code may run; "" accepts every one
	Approvers int       `json:"approvers,omitempty"`    // persons who have to approve whatever asks under this bundle; 0 means one
}

// NewBundle makes a bundle and its hash.
func NewBundle(name, cedar string, limits Limits) (Bundle, error) {
	if len(cedar) > MaxBundleBytes {
		return Bundle{}, fault.New(fault.Invalid, "policy_too_large", "the policy has %d bytes; the limit is %d", len(cedar), MaxBundleBytes)
	}
	if limits.FileBytes <= 0 || limits.CommandMS <= 0 {
		return Bundle{}, fault.New(fault.Invalid, "policy_invalid", "a policy's limits must be positive")
	}
	if limits.Approvers < 0 || limits.Approvers > MaxApprovers {
		return Bundle{}, fault.New(fault.Invalid, "policy_invalid", "a policy may demand 1 to %d approvers, not %d", MaxApprovers,
			limits.Approvers)
	}
	if limits.Weakest != "" && !TierName(limits.Weakest) {
		return Bundle{}, fault.New(fault.Invalid, "policy_invalid", "a policy's weakest tier is a tier's name, such as namespace, not %.32q",
			limits.Weakest)
	}
	b := Bundle{Name: name, Cedar: cedar, Limits: limits}
	hash, err := b.digest()
	b.Hash = hash
	return b, err
}

// Verify reports whether the bundle still is what its hash says.
func (b Bundle) Verify() error {
	hash, err := b.digest()
	if err != nil {
		return err
	}
	if hash != b.Hash || b.Hash.IsZero() {
		return fault.New(fault.Denied, ReasonPolicyUnavailable, "the policy bundle is not what its hash says; nothing is permitted under it")
	}
	return nil
}

func (b Bundle) digest() (event.Digest, error) {
	b.Hash = event.Digest{}
	raw, err := json.Marshal(b)
	if err != nil {
		return event.Digest{}, fault.Wrap(err, fault.Invalid, "policy_invalid", "the policy cannot be written as JSON")
	}
	canonical, err := Canonicalize(raw)
	if err != nil {
		return event.Digest{}, err
	}
	return event.DigestOf(canonical), nil
}

// TierName reports whether a text may be the name of a tier: 1 to 32 small letters, digits and _.
func TierName(name string) bool {
	return name != "" && len(name) <= 32 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Adjustment is how the definition of an agent adjusts a preset for its space. It adds to what the preset refuses, and permits nothing but
// the domains that it names. The zero value adjusts nothing.
type Adjustment struct {
	ReadOnly  bool     // no operation changes a file
	Deny      []string // patterns of paths
	Withhold  []string // patterns of paths
	Domains   []string
	Tools     []string // tools that need no question
	CommandMS int64    // the time of a command, where it is shorter than the preset's; 0 for the preset's
}
