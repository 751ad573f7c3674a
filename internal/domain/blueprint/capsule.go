package blueprint

import "slices"

// The types of capsules. An agent writes its capsules itself, but not the manifest: that is the list of its artifacts.
const (
	StatusCapsule   = "status"
	PlanCapsule     = "plan"
	DecisionCapsule = "decision"
	RiskCapsule     = "risk"
	ManifestCapsule = "manifest"
)

// CapsuleTypes returns the types of capsules in the order in which they are shown.
func CapsuleTypes() []string {
	return []string{StatusCapsule, PlanCapsule, RiskCapsule, DecisionCapsule, ManifestCapsule}
}

// Kin says what one agent is to another agent of its lineage.
type Kin string

// The relatives of an agent.
const (
	Parent   Kin = "parent"
	Ancestor Kin = "ancestor" // above the parent
	Child    Kin = "child"
	Sibling  Kin = "sibling"
)

// reaching are the scopes that let an agent be read, by what it is to the reader.
var reaching = map[Kin][]string{
	Parent: {"children", "descendants"}, Ancestor: {"descendants"}, Child: {"parent"}, Sibling: {"siblings"},
}

// sources are the sources of a reader that show it the capsules of a type.
var sources = map[string]string{
	StatusCapsule: "status_capsules", RiskCapsule: "status_capsules", PlanCapsule: "plan_capsules", DecisionCapsule: "decision_capsules",
	ManifestCapsule: "artifact_manifests",
}

// Reaches reports whether the scopes of an agent let a relative read it. Writer is what the agent is to the relative. Without scopes, its
// parent, its children and its siblings may read it.
func (c Comms) Reaches(writer Kin) bool {
	scopes := c.Scopes
	if len(scopes) == 0 {
		scopes = []string{"parent", "children", "siblings"}
	}
	return slices.ContainsFunc(reaching[writer], func(scope string) bool { return slices.Contains(scopes, scope) })
}

// Writes returns the types of the capsules that the agent itself writes.
func (c Comms) Writes() []string {
	return slices.DeleteFunc(CapsuleTypes(), func(capsule string) bool {
		return capsule == ManifestCapsule || !slices.Contains(c.Capsule, capsule)
	})
}

// Takes reports whether the agent is shown capsules of a type.
func (c Context) Takes(capsule string) bool {
	source, known := sources[capsule]
	return known && slices.Contains(c.Sources, source)
}

// SourceOf returns the entry of context.sources that shows capsules of a type; "" for no type.
func SourceOf(capsule string) string { return sources[capsule] }

// Budget returns the most characters of a capsule of a type; of all decisions together, where they are read. It is 0 for no type.
func (c Context) Budget(capsule string) int {
	return map[string]int{
		StatusCapsule: c.Status, RiskCapsule: c.Status, PlanCapsule: c.Plan, DecisionCapsule: c.Decision, ManifestCapsule: c.Manifest,
	}[capsule]
}

// Shown returns the types of capsules that a reader is shown of a writer: those that the writer's blueprint names, that the reader's
// context.sources take, and only where the scopes of the writer reach the reader. Kin is what the writer is to the reader.
func Shown(reader, writer Blueprint, kin Kin) []string {
	if !writer.Comms.Reaches(kin) {
		return nil
	}
	return slices.DeleteFunc(CapsuleTypes(), func(capsule string) bool {
		return !slices.Contains(writer.Comms.Capsule, capsule) || !reader.Context.Takes(capsule)
	})
}
