package space_test

import (
	"slices"
	"testing"

	"agentbox/internal/domain/space"
)

func TestADisplayFitsUpToItsBounds(t *testing.T) {
	of := func(n, bytes int) []space.Display {
		return slices.Repeat([]space.Display{{Value: 1, Media: space.DisplayText, Data: make([]byte, bytes)}}, n)
	}
	ok := space.Display{Value: 1, Media: space.DisplayPNG, Data: make([]byte, 100)}
	with := func(change func(*space.Display)) space.Display { d := ok; change(&d); return d }
	for name, c := range map[string]struct {
		d     space.Display
		there []space.Display
		want  bool
	}{
		"the first":                  {ok, nil, true},
		"the last":                   {ok, of(space.MaxDisplays-1, 1), true},
		"one too many":               {ok, of(space.MaxDisplays, 1), false},
		"as large as may be":         {with(func(d *space.Display) { d.Data = make([]byte, space.MaxDisplayBytes) }), nil, true},
		"too large":                  {with(func(d *space.Display) { d.Data = make([]byte, space.MaxDisplayBytes+1) }), nil, false},
		"up to the bound of all":     {ok, of(1, space.MaxDisplaysBytes-100), true},
		"beyond the bound of all":    {ok, of(1, space.MaxDisplaysBytes-99), false},
		"of no type that is known":   {with(func(d *space.Display) { d.Media = "text/javascript" }), nil, false},
		"of no value":                {with(func(d *space.Display) { d.Value = 0 }), nil, false},
		"of a negative size":         {with(func(d *space.Display) { d.Height = -1 }), nil, false},
		"of a type with a long name": {with(func(d *space.Display) { d.Type = string(make([]byte, space.MaxDisplayType+1)) }), nil, false},
	} {
		if got := c.d.Fits(c.there); got != c.want {
			t.Errorf("a display that is %s: %t, want %t", name, got, c.want)
		}
	}
}
