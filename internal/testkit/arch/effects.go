package arch

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/cha"
	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// Effects says what touches the world and who may. The proof has three parts:
//
//  1. A package of From reaches an effect only through a function of Drivers that takes a permit, or through one that is Allowed.
//  2. Every exported function and method of Drivers that has a way to an effect takes a permit, or is Allowed.
//  3. A function that takes a permit does nothing before it has redeemed it, or passed it on, and has seen that this succeeded.
//
// The ways are those of a call graph over the module's own functions: static calls, functions that are mentioned at all, every
// implementation of an interface that the module declares, and the types that can flow to any other dynamic call.
type Effects struct {
	Sinks    []string // functions of others that touch the world: full names, or "pkg.*", "(pkg.T).*" for all of a package or type
	Harmless []string // exceptions from Sinks, in the same form
	Pure     []string // patterns of third-party packages that touch nothing; every other one is a sink
	Permit   string   // the type, relative to the module: internal/domain/policy.Permit
	From     []string // patterns of packages
	Drivers  []string // patterns of packages
	// patterns of packages that only their own driver imports: their functions are judged where the driver itself exports them
	Inner   []string
	Allowed map[string]string // functions, relative to the module, "(*pkg.T).*" or "pkg.*", and why they need no permit
}

// Check reports the places where the proof fails, and entries of Allowed that nothing needs.
func (e Effects) Check(m *Module) []Finding {
	program, _ := ssautil.Packages(m.Packages, ssa.InstantiateGenerics)
	program.Build()
	p := &proof{Effects: e, module: m, reaches: map[*ssa.Function]bool{}, used: map[string]bool{}}
	p.graph(program)
	var found []Finding
	found = append(found, p.fromServices()...)
	found = append(found, p.exported()...)
	found = append(found, p.inner()...)
	found = append(found, p.redeemed()...)
	for _, name := range slices.Sorted(maps.Keys(e.Allowed)) {
		if !p.used[name] {
			found = append(found, Finding{"permit", name, "stands on the list of what needs no permit, and nothing needs it there"})
		}
	}
	return found
}

type proof struct {
	Effects
	module  *Module
	ours    []*ssa.Function                   // with a body, in the order of their names
	next    map[*ssa.Function][]*ssa.Function // ways within the module
	sinks   map[*ssa.Function]string          // the first effect that a function has itself
	reaches map[*ssa.Function]bool            // has a way to an effect that no permit guards
	used    map[string]bool                   // entries of Allowed that were needed
}

// graph collects the module's functions, their ways to each other and their own effects.
func (p *proof) graph(program *ssa.Program) {
	all := ssautil.AllFunctions(program)
	byClass := cha.CallGraph(program)
	byFlow := vta.CallGraph(all, byClass)
	p.next, p.sinks = map[*ssa.Function][]*ssa.Function{}, map[*ssa.Function]string{}
	for f := range all {
		if f.Blocks == nil || !p.module.Ours(packageOf(f)) {
			continue
		}
		p.ours = append(p.ours, f)
		ways := map[*ssa.Function]bool{}
		for _, block := range f.Blocks {
			for _, instruction := range block.Instrs {
				for _, target := range p.ways(instruction, byClass.Nodes[f], byFlow.Nodes[f]) {
					ways[target] = true
				}
			}
		}
		for target := range ways {
			if name := p.sink(target); name != "" {
				if p.sinks[f] == "" || name < p.sinks[f] {
					p.sinks[f] = name
				}
			} else if target.Blocks != nil {
				p.next[f] = append(p.next[f], target)
			}
		}
		slices.SortFunc(p.next[f], byName)
	}
	slices.SortFunc(p.ours, byName)
	p.spread()
}

func byName(a, b *ssa.Function) int { return strings.Compare(a.String(), b.String()) }

// ways returns every function that an instruction calls, may call, or mentions.
func (p *proof) ways(instruction ssa.Instruction, byClass, byFlow *callgraph.Node) []*ssa.Function {
	var targets []*ssa.Function
	for _, operand := range instruction.Operands(nil) {
		if f, ok := (*operand).(*ssa.Function); ok {
			targets = append(targets, f)
		}
	}
	call, ok := instruction.(ssa.CallInstruction)
	if !ok {
		return targets
	}
	node := byFlow
	if common := call.Common(); common.IsInvoke() {
		if named, ok := types.Unalias(common.Value.Type()).(*types.Named); ok && named.Obj().Pkg() != nil &&
			p.module.Ours(named.Obj().Pkg().Path()) {
			node = byClass
		}
	}
	if node == nil {
		return targets
	}
	for _, edge := range node.Out {
		if edge.Site == call {
			targets = append(targets, edge.Callee.Func)
		}
	}
	return targets
}

// sink returns the name of a function that touches the world, or nothing.
func (p *proof) sink(f *ssa.Function) string {
	object, ok := f.Object().(*types.Func)
	if !ok || object.Pkg() == nil || p.module.Ours(object.Pkg().Path()) {
		return ""
	}
	name := strings.ReplaceAll(object.FullName(), "*", "")
	path := object.Pkg().Path()
	if listed(p.Harmless, path, name) {
		return ""
	}
	if listed(p.Sinks, path, name) || !standard(path) && !matchAny(p.Pure, path) {
		return object.FullName()
	}
	return ""
}

// listed reports whether a function is named by a list: itself, its type or its package.
func listed(list []string, path, name string) bool {
	if slices.Contains(list, name) || slices.Contains(list, path+".*") {
		return true
	}
	receiver, _, method := strings.Cut(name, ").")
	return method && slices.Contains(list, receiver+").*")
}

// packageOf returns the path of the package in which a function is written, also for closures, wrappers and instances.
func packageOf(f *ssa.Function) string {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if f.Origin() != nil {
		f = f.Origin()
	}
	switch {
	case f.Pkg != nil:
		return f.Pkg.Pkg.Path()
	case f.Object() != nil && f.Object().Pkg() != nil:
		return f.Object().Pkg().Path()
	}
	return ""
}

func (p *proof) inside(f *ssa.Function, patterns []string) bool {
	return matchAny(patterns, p.module.Rel(packageOf(f)))
}

// name returns a function's name relative to the module; a closure's is that of the function around it.
func (p *proof) name(f *ssa.Function) string {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if f.Origin() != nil {
		f = f.Origin()
	}
	return strings.ReplaceAll(f.String(), p.module.Path+"/", "")
}

// guarded reports whether a function of a driver takes a permit.
func (p *proof) guarded(f *ssa.Function) bool {
	return p.inside(f, p.Drivers) && p.takes(f)
}

// takes reports whether a function takes a permit, wherever it stands: those of the simulation do, and are no drivers.
func (p *proof) takes(f *ssa.Function) bool {
	return slices.ContainsFunc(f.Params, func(v *ssa.Parameter) bool { return p.permit(v.Type()) })
}

func (p *proof) permit(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && p.module.Rel(named.Obj().Pkg().Path())+"."+named.Obj().Name() == p.Permit
}

// allowed reports whether the list lets a function do without a permit.
func (p *proof) allowed(f *ssa.Function) bool {
	name := p.name(f)
	receiver, _, _ := strings.Cut(name, ").")
	for _, entry := range []string{name, receiver + ").*", p.module.Rel(packageOf(f)) + ".*"} {
		if _, ok := p.Allowed[entry]; ok {
			p.used[entry] = true
			return true
		}
	}
	return false
}

// spread marks the functions that have a way to an effect which passes no guarded function.
func (p *proof) spread() {
	for changed := true; changed; {
		changed = false
		for _, f := range p.ours {
			if !p.reaches[f] && p.effect(f) {
				p.reaches[f], changed = true, true
			}
		}
	}
}

func (p *proof) effect(f *ssa.Function) bool {
	return p.sinks[f] != "" || slices.ContainsFunc(p.next[f], func(g *ssa.Function) bool { return p.reaches[g] && !p.guarded(g) })
}

// fromServices is the first part of the proof.
func (p *proof) fromServices() []Finding {
	var found []Finding
	came := map[*ssa.Function]*ssa.Function{}
	var queue []*ssa.Function
	for _, f := range p.ours {
		if p.inside(f, p.From) {
			came[f], queue = nil, append(queue, f)
		}
	}
	for len(queue) > 0 {
		f := queue[0]
		queue = queue[1:]
		if !p.reaches[f] || p.guarded(f) || p.allowed(f) {
			continue
		}
		if p.sinks[f] != "" {
			found = append(found, Finding{"permit", p.module.at(f.Pos()), p.path(came, f) + " -> " + p.sinks[f] + " without a permit"})
			continue
		}
		for _, g := range p.next[f] {
			if _, seen := came[g]; !seen {
				came[g], queue = f, append(queue, g)
			}
		}
	}
	return found
}

func (p *proof) path(came map[*ssa.Function]*ssa.Function, f *ssa.Function) string {
	names := []string{p.name(f)}
	for g := came[f]; g != nil; g = came[g] {
		names = append(names, p.name(g))
	}
	slices.Reverse(names)
	return strings.Join(slices.Compact(names), " -> ")
}

// exported is the second part of the proof.
func (p *proof) exported() []Finding {
	var found []Finding
	for _, f := range p.ours {
		object := f.Object()
		if object == nil || !object.Exported() || f.Synthetic != "" || !p.inside(f, p.Drivers) || p.inside(f, p.Inner) {
			continue
		}
		if p.reaches[f] && !p.guarded(f) && !p.allowed(f) {
			found = append(found, Finding{"permit", p.module.at(f.Pos()), fmt.Sprintf("%s touches the world (%s) and takes no permit", p.name(f),
				p.why(f))})
		}
	}
	return found
}

// inner finds who imports a driver's inner package and does not belong to the driver, which is the folder two floors below internal.
func (p *proof) inner() []Finding {
	var found []Finding
	driver := func(rel string) string {
		return strings.Join(strings.SplitN(rel, "/", 4)[:min(3, strings.Count(rel, "/")+1)], "/")
	}
	for _, pkg := range p.module.Packages {
		for path := range pkg.Imports {
			if rel := p.module.Rel(path); matchAny(p.Inner, rel) && driver(rel) != driver(p.module.Rel(pkg.PkgPath)) {
				found = append(found, Finding{"permit", p.module.Rel(pkg.PkgPath), "imports " + rel + ", which is for its own driver alone"})
			}
		}
	}
	return found
}

// why names the effect to which a function has a way.
func (p *proof) why(f *ssa.Function) string {
	for seen := map[*ssa.Function]bool{}; p.sinks[f] == ""; {
		seen[f] = true
		i := slices.IndexFunc(p.next[f], func(g *ssa.Function) bool { return p.reaches[g] && !p.guarded(g) && !seen[g] })
		if i < 0 {
			return "through " + p.name(f)
		}
		f = p.next[f][i]
	}
	return p.sinks[f] + " in " + p.name(f)
}

// redeemed is the third part of the proof.
func (p *proof) redeemed() []Finding {
	var found []Finding
	for _, f := range p.ours {
		if !p.guarded(f) || !p.reaches[f] || f.Synthetic != "" {
			continue
		}
		granted := p.granted(f)
		for _, block := range f.Blocks {
			for _, instruction := range block.Instrs {
				name := p.touches(f, instruction)
				if name == "" || slices.ContainsFunc(granted, func(g *ssa.BasicBlock) bool { return g.Dominates(block) }) {
					continue
				}
				found = append(found, Finding{"permit", p.module.at(instruction.Pos()), fmt.Sprintf("%s reaches %s before its permit is redeemed",
					p.name(f), name)})
			}
		}
	}
	return found
}

// granted returns the blocks that are entered only after a call that was given a permit returned no error.
func (p *proof) granted(f *ssa.Function) []*ssa.BasicBlock {
	var blocks []*ssa.BasicBlock
	for _, block := range f.Blocks {
		for _, instruction := range block.Instrs {
			call, ok := instruction.(*ssa.Call)
			if !ok || !slices.ContainsFunc(call.Call.Args, func(v ssa.Value) bool { return p.permit(v.Type()) }) {
				continue
			}
			for _, failure := range failures(call) {
				blocks = append(blocks, successes(failure)...)
			}
		}
	}
	return blocks
}

// failures returns the error that a call returns: the call itself, or the last of its results.
func failures(call *ssa.Call) []ssa.Value {
	if implementsError(call.Type()) {
		return []ssa.Value{call}
	}
	var values []ssa.Value
	for _, user := range *call.Referrers() {
		if result, ok := user.(*ssa.Extract); ok && implementsError(result.Type()) {
			values = append(values, result)
		}
	}
	return values
}

// successes returns the blocks that follow a comparison of an error with nil, on the side where it is nil.
func successes(failure ssa.Value) []*ssa.BasicBlock {
	var blocks []*ssa.BasicBlock
	for _, user := range *failure.Referrers() {
		comparison, ok := user.(*ssa.BinOp)
		if !ok {
			continue
		}
		for _, next := range *comparison.Referrers() {
			branch, ok := next.(*ssa.If)
			if !ok {
				continue
			}
			success := branch.Block().Succs[0] // err == nil
			if comparison.Op.String() == "!=" {
				success = branch.Block().Succs[1]
			}
			if len(success.Preds) == 1 {
				blocks = append(blocks, success)
			}
		}
	}
	return blocks
}

// touches names the unguarded effect to which an instruction leads, or nothing. A call that is given the permit is judged by its callee.
func (p *proof) touches(f *ssa.Function, instruction ssa.Instruction) string {
	targets := p.ways(instruction, nil, nil)
	if call, ok := instruction.(ssa.CallInstruction); ok && call.Common().IsInvoke() || ok && call.Common().StaticCallee() == nil {
		targets = append(targets, p.dynamic(f, call)...)
	}
	for _, target := range targets {
		if name := p.sink(target); name != "" {
			return name
		}
		if p.reaches[target] && !p.takes(target) {
			return p.why(target)
		}
	}
	return ""
}

// dynamic returns the targets of f's dynamic call: those of its ways that have the call's method or signature.
func (p *proof) dynamic(f *ssa.Function, call ssa.CallInstruction) []*ssa.Function {
	var targets []*ssa.Function
	common := call.Common()
	for _, g := range p.next[f] {
		if common.IsInvoke() && g.Name() == common.Method.Name() || !common.IsInvoke() && types.Identical(g.Signature, common.Signature()) {
			targets = append(targets, g)
		}
	}
	return targets
}
