package javascript

import (
	"context"
	"errors"
	"regexp"

	"github.com/evanw/esbuild/pkg/api"

	"agentbox/internal/driver/nano/contexts"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/program"
)

// Cell is the result of a cell of a context.
type Cell struct {
	Code  int         // 0 where it succeeded; the standard error has the reason of a failure
	State *wasm.Delta // of the interpreter behind it, for the next cell; nil where it was ended in the middle of what it did
}

// declared are the names that a cell declares at its top. The next cell may declare them again, as in a console.
var (
	declared = regexp.MustCompile(`(?m)^(?:const|let)\b`)
	classes  = regexp.MustCompile(`(?m)^class\s+([A-Za-z_$][\w$]*)`)
	imports  = regexp.MustCompile(`(?m)^import\s+(?:(\*\s+as\s+)?([A-Za-z_$][\w$]*)|\{([^}]*)\})\s+from\s+(["'][^"'\n]+["']);?`)
	renamed  = regexp.MustCompile(`\s+as\s+`)
)

// persistent makes the declarations at the top of a cell properties of the global object, which outlive it.
func persistent(text string) string {
	text = imports.ReplaceAllStringFunc(text, func(line string) string {
		m := imports.FindStringSubmatch(line)
		switch {
		case m[1] != "":
			return "var " + m[2] + " = await import(" + m[4] + ");"
		case m[2] != "":
			return "var { default: " + m[2] + " } = await import(" + m[4] + ");"
		}
		return "var {" + renamed.ReplaceAllString(m[3], ": ") + "} = await import(" + m[4] + ");"
	})
	return classes.ReplaceAllString(declared.ReplaceAllString(text, "var"), "var $1 = class $1")
}

// Cell evaluates TypeScript or JavaScript in a context. State is the state after the previous cell, nil for the first one. The next cell
// sees its top-level declarations. The cell prints and shows its displays and the value of its last expression.
func (r *Runtime) Cell(p *program.Process, state *wasm.Delta, code string) (_ Cell, err error) {
	ctx := context.Background()
	run := newRun(r, p.Account, p)
	run.cell, run.showing = true, contexts.NewShowing(p)
	defer run.showing.End()
	image := r.image
	if state != nil {
		if image, err = r.image.With(*state); err != nil {
			return Cell{}, err
		}
		defer func() { err = errors.Join(err, image.Close()) }()
	}
	in, err := image.New(ctx, p.Account, run)
	if err != nil {
		return Cell{}, err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	run.vm = &guest{in: in, ctx: ctx, cell: r.cell, known: r.known}
	c, err := run.evaluateCell(code)
	if err != nil {
		c.Code = run.failed(err)
		return c, nil
	}
	if err := run.vm.must("qjs_run_gc"); err != nil { // what nothing leads to any more is not kept
		c.Code = run.failed(err)
		return c, nil
	}
	after, err := in.Freeze()
	c.State = &after
	return c, err
}

// evaluateCell evaluates a cell and what it has begun.
func (r *run) evaluateCell(code string) (c Cell, err error) {
	if err := r.open(&command{code: &code}); err != nil {
		return c, err
	}
	for _, name := range []string{"globals", "begin"} {
		v, thrown, err := r.vm.apply(name)
		if err = errors.Join(err, r.vm.free(v)); err != nil || thrown {
			return c, errors.Join(err, errors.New("the prelude failed"))
		}
	}
	result, exit, err := r.evaluateText(code)
	if err != nil || exit != 0 {
		return Cell{Code: exit}, err
	}
	v, thrown, err := r.vm.apply("cell", result)
	if err == nil && thrown {
		c.Code, err = r.uncaught()
	}
	return c, errors.Join(err, r.vm.free(v))
}

// evaluateText evaluates the text of a cell. Where it fails, that was told, and the exit code is not 0.
func (r *run) evaluateText(code string) (result value, exit int, err error) {
	text, err := r.modules.transform(code, "[cell]", api.LoaderTS, api.FormatDefault)
	if kept, lost := r.keepLast(code, text); err == nil && lost {
		text, err = r.modules.transform(kept, "[cell]", api.LoaderTS, api.FormatDefault)
	}
	if err == nil {
		text = persistent(text)
	} else if err = r.raise(err); err == nil {
		exit, err = r.uncaught()
		return 0, exit, err
	}
	if err != nil {
		return 0, 0, err
	}
	v, thrown, err := r.vm.eval(text, "[cell]", asAsync)
	if err != nil {
		return 0, 0, err
	}
	if thrown {
		exit, err = r.uncaught()
		return 0, exit, err
	}
	if exit, err = r.loop(v); err != nil || exit != 0 {
		return 0, exit, err
	}
	of, err := r.vm.call("qjs_promise_result", uint64(v))
	return value(of), 0, errors.Join(err, r.vm.free(v))
}

// show shows a value of a cell.
func (r *run) show(a *arguments) (any, error) {
	raw, result := a.text(), a.int()
	if r.showing == nil || a.err != nil {
		return nil, a.err
	}
	r.showing.Show([]byte(raw), result != 0)
	return nil, nil
}
