package toolbox

import (
	"context"
	"testing"

	"github.com/itchyny/gojq"
)

// asked is a context that counts how often it is asked.
type asked struct {
	context.Context
	n int
}

func (a *asked) Done() <-chan struct{} { a.n++; return nil }

// TestJQCannotBeBoundedByThePublicInterface shows why the machine of jq is reached by reflection. A function that is given to the
// compiler does not take the place of the library's own; one call of that asks no context, however long it works; and what a list
// collects is nowhere to be seen. Where this fails, there is a better way now.
func TestJQCannotBeBoundedByThePublicInterface(t *testing.T) {
	query, err := gojq.Parse(`("a" * 100000000 | length), ([range(300000)] | length)`)
	if err != nil {
		t.Fatal(err)
	}
	called := false
	own := func(any, []any) any { called = true; return "" }
	code, err := gojq.Compile(query, gojq.WithFunction("_multiply", 2, 2, own), gojq.WithFunction("length", 0, 0, own))
	if err != nil {
		t.Fatal(err)
	}
	ctx := &asked{Context: context.Background()}
	iter := code.RunWithContext(ctx, nil)
	if v, _ := iter.Next(); v != 100_000_000 {
		t.Fatalf("got %v", v)
	}
	if called {
		t.Error("a function of ours takes the place of the library's")
	}
	if ctx.n > 64 {
		t.Errorf("a text of 100 MB asked the context %d times", ctx.n)
	}
	if v, _ := iter.Next(); v != 300_000 {
		t.Fatalf("got %v", v)
	}
}
