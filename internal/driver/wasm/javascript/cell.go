package javascript

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/evanw/esbuild/pkg/api"

	"agentbox/internal/driver/wasm/engine"
	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// Cell is what a cell of a context has left.
type Cell struct {
	Code  int             `json:"-"`     // 0 where it succeeded; what it failed of is on the standard error
	Value json.RawMessage `json:"value"` // of the last expression, nil where it is no JSON
	Text  string          `json:"text"`  // of the last expression as the console shows it, "" for undefined
	State *engine.Delta   `json:"-"`     // of the interpreter behind it, for the next cell; nil where it was ended in the middle of what it did
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

// Cell evaluates TypeScript or JavaScript in a context: state is what the cell before left, nil for the first one. What it declares at its top, the
// next cell finds.
func (r *Runtime) Cell(p *program.Process, state *engine.Delta, code string) (_ Cell, err error) {
	ctx := context.Background()
	run := &run{runtime: r, account: p.Account, p: p, files: map[int]*vfs.Handle{}, maps: map[string]*sourceMap{}, lacks: map[string]bool{}, cell: true}
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
	after, err := in.Freeze()
	c.State = &after
	return c, err
}

// evaluateCell evaluates a cell and what it has begun.
func (r *run) evaluateCell(code string) (c Cell, err error) {
	if err := r.open(&command{code: &code}); err != nil {
		return c, err
	}
	if _, thrown, err := r.vm.apply("globals"); err != nil || thrown {
		return c, errors.Join(err, errors.New("the prelude failed"))
	}
	text, err := r.transform(code, "[cell]", api.LoaderTS, api.FormatDefault)
	if err == nil {
		text = persistent(text)
	} else if err = r.raise(err); err == nil {
		c.Code, err = r.uncaught()
		return c, err
	}
	if err != nil {
		return c, err
	}
	v, thrown, err := r.vm.eval(text, "[cell]", asAsync)
	if err != nil {
		return c, err
	}
	if thrown {
		c.Code, err = r.uncaught()
		return c, err
	}
	if c.Code, err = r.loop(v); err != nil || c.Code != 0 {
		return c, err
	}
	result, err := r.vm.call("qjs_promise_result", uint64(v))
	if err != nil {
		return c, err
	}
	shown, thrown, err := r.vm.apply("cell", value(result))
	if err != nil {
		return c, err
	}
	if thrown {
		c.Code, err = r.uncaught()
		return c, err
	}
	raw, err := r.vm.text(shown)
	if err = errors.Join(err, r.vm.free(shown), r.vm.free(v)); err != nil {
		return c, err
	}
	return c, json.Unmarshal([]byte(raw), &c)
}
