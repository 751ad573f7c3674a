package cmdline

import "testing"

// TestNamesAreOfferedBeforeIds offers what has an id and a name.
func TestNamesAreOfferedBeforeIds(t *testing.T) {
	for _, c := range []struct{ id, name, begun, want string }{
		{"spc_1", "lab", "", "lab\tspc_1"},
		{"spc_1", "lab", "l", "lab\tspc_1"},
		{"spc_1", "lab", "spc_", "spc_1\tlab"},
		{"spc_1", "", "", "spc_1\t"},
		{"spc_1", "two words", "", "spc_1\ttwo words"},
		{"spc_1", "spc_2", "", "spc_1\tspc_2"},
	} {
		if got := completion(c.id, c.name, c.begun); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
