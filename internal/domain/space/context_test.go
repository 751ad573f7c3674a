package space_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"agentbox/internal/domain/space"
)

func TestTheFileOfAContextSaysWhichItIs(t *testing.T) {
	for _, language := range []string{space.Python, space.JavaScript} {
		path, err := space.ContextPath("a.b-c_1", language)
		if err != nil {
			t.Fatal(err)
		}
		c, ok := space.ContextOf(space.Entry{Path: path, Type: "file", Size: 7})
		if !ok || c.Name != "a.b-c_1" || c.Language != language || c.Size != 7 || c.Path != path {
			t.Errorf("%s: %+v, %t", path, c, ok)
		}
		if c, ok := space.ContextOf(space.Entry{Path: path, Type: "directory"}); ok {
			t.Errorf("a folder is %+v", c)
		}
	}
	for _, path := range []string{"a.py", ".agentbox/contexts/.py", ".agentbox/contexts/a.rb", ".agentbox/contexts/a.py.new",
		".agentbox/contexts/b/a.py"} {
		if c, ok := space.ContextOf(space.Entry{Path: path, Type: "file"}); ok {
			t.Errorf("%s is %+v", path, c)
		}
	}
	if _, err := space.ContextPath("a", "ruby"); !errors.Is(err, space.ErrContextLanguage) {
		t.Errorf("ruby: %v", err)
	}
	long := "a23456789012345678901234567890123456789012345678901234567890123"
	for name, ok := range map[string]bool{"": false, "a": true, ".a": false, "../a": false, "a/b": false, "a b": false, "a\n": false,
		long + "4": true, long + "45": false} {
		if _, err := space.ContextPath(name, space.Python); (err == nil) != ok {
			t.Errorf("the name %q: %v", name, err)
		}
	}
}

func TestTheHeadOfAContextSaysHowManyCellsItHas(t *testing.T) {
	head := append([]byte(space.ContextMagic), "py\x00\x00"...)
	head = append(binary.LittleEndian.AppendUint64(head, 42), 0, 0, 0, 0)
	if n := space.ContextCells(head); n != 42 {
		t.Errorf("%d", n)
	}
	for _, other := range [][]byte{nil, head[:len(head)-1], []byte("something else that is as long as a head would have to be")} {
		if n := space.ContextCells(other); n != 0 {
			t.Errorf("%q: %d", other, n)
		}
	}
}
