package arch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"

	"agentbox/internal/testkit/arch"
)

func TestPackagesOfOneNameAreReported(t *testing.T) {
	module := &arch.Module{Path: "m", Packages: []*packages.Package{
		{Name: "main", PkgPath: "m/cmd/a"}, {Name: "main", PkgPath: "m/cmd/b"}, {Name: "alone", PkgPath: "m/alone"},
		{Name: "shell", PkgPath: "m/gate/shell"}, {Name: "shell", PkgPath: "m/user/shell"},
		{Name: "keys", PkgPath: "m/a/keys"}, {Name: "keys", PkgPath: "m/b/keys"},
	}}
	var got []string
	for _, f := range arch.Twins(module, map[string]string{"keys": "both are keys", "alone": "it had a twin"}) {
		got = append(got, f.At)
	}
	if diff := cmp.Diff([]string{"gate/shell, user/shell", "alone"}, got); diff != "" {
		t.Errorf("findings differ (-want +got):\n%s", diff)
	}
}
