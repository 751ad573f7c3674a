package command_test

import (
	"fmt"
	"slices"
	"testing"

	"agentbox/internal/command"
	"agentbox/internal/domain/policy"
)

// TestMovingOutOfTheSpaceIsDeletion holds which command lines take something out of the files that a space keeps, and so count as the
// removal of a tree, and which only rename.
func TestMovingOutOfTheSpaceIsDeletion(t *testing.T) {
	for line, deletes := range map[string]bool{
		// to where nothing is kept
		"mv folder /tmp/gone": true, "mv folder /tmp": true, "mv a b c /tmp/": true, "mv -f -- folder /tmp/gone": true,
		"mv notes.txt /tmp/x": true,
		"mv -t /tmp folder":   true, "mv --target-directory=/tmp folder": true, "mv --targ /tmp folder": true, "mv -ft/tmp folder": true,
		"mv -bt /tmp a": true, "mv -T folder /tmp/x": true,
		"mv folder /dev/shm/x": true, "mv folder /var/tmp": true, "mv folder /dev/null": true, "mv folder /nowhere": true, "mv folder ~": true,
		"mv folder ~/x": true, "mv folder '/tmp/a b'": true,
		"mv folder ../tmp/x": true, "mv folder ./a/../../tmp": true, "mv /workspace/folder /tmp/x": true, "mv * /tmp": true,
		"mv folder /tm*": true, "mv folder ../t*/x": true,
		"mv folder{,/../../tmp/x}": true, "/bin/mv folder /tmp": true, "command mv folder /tmp": true, "busybox mv folder /tmp": true,
		"timeout 5 mv folder /tmp": true, "mv /proc/self/cwd/folder /tmp": true,
		// by way of variables, and of what the line mentions
		"d=/tmp/gone; mv folder $d": true, `d=/tmp/gone; mv folder "$d"`: true, `mv folder "$TMPDIR"`: true, `mv folder "$TMPDIR/x"`: true,
		"mv folder $HOME/x": true, `d=$TMPDIR; mv folder "$d/x"`: true,
		`for f in *; do mv "$f" /tmp; done`: true, "a='folder /tmp/x'; mv $a": true, "o='-t /tmp'; mv $o folder": true,
		"echo /tmp/gone | xargs mv folder": true, `a=(folder /tmp/x); mv "${a[@]}"`: true,
		"ls | xargs mv -t /tmp": true, "ls | xargs -I{} mv {} /tmp": true, "find . -name '*.md' -exec mv {} /tmp \\;": true,
		`f() { mv "$1" "$2"; }; f folder /tmp/x`: true, `mv folder "$(echo /tmp/x)"`: true,
		`sh -c 'mv folder /tmp/x'`: true, `while read f; do mv "$f" /tmp; done < list`: true,
		// from another folder
		"cd /tmp; mv /workspace/folder gone": true, "cd /tmp && mv ../workspace/folder gone": true, "cd; mv /workspace/folder gone": true,
		"cd src; mv a ../../tmp/x": true, `cd "$TMPDIR"; mv /workspace/folder gone`: true,
		"pushd /tmp; mv /workspace/folder .": true, "env -C /tmp mv /workspace/folder gone": true,
		"env --chdir=/tmp mv /workspace/folder gone": true, "d=/tmp; cd $d; mv /workspace/folder .": true,
		// by way of a link that the same line makes
		"ln -sfn /tmp t; mv victim t/": true, "ln -s /tmp t && mv victim t": true, "ln -s /tmp; mv victim tmp/x": true,
		"ln -s /tmp src/t; mv victim src/t/x": true, "ln -s ../../tmp src/t; mv victim src/t": true, "ln -st src /tmp; mv victim src/tmp": true,
		"ln -s / r; mv victim r/tmp/x": true, "ln -s /tmp t; cd t; mv /workspace/victim .": true, `d=/tmp; ln -s "$d" t; mv victim t`: true,
		`ln -s "$TMPDIR" t; mv victim t`: true, "mv victim t; ln -s /tmp t": true, "ln -s /tmp t; ls | xargs mv -t t": true,
		"ln -s ../tmp/x t; mv -t t victim": true, "ln -s /tmp t; ln -s t u; mv victim u": true,
		"ln -s src t; mv victim t": false, "ln -s /tmp t; mv a b": false, "ln -s ../src out/t; mv victim out/t": false,
		"ln a b; mv b c": false,

		// within the files of the space, or of what is not kept anyway
		"mv a b": false, "mv folder other/": false, "mv -t out a b": false, "mv a /workspace/b": false, "mv /workspace/a /workspace/b": false,
		"mv * out": false, "mv a .": false, "mv a $PWD/b": false,
		"mv /tmp/a b": false, "mv /tmp/a /tmp/b": false, "cd /tmp; mv a b": false, "cd src; mv a ../b": false,
		"cd src && mv a ../../workspace/b": false, "mv a": false, "mv": false, "mv --help": false,
		`for f in *.txt; do mv "$f" "${f%.txt}.md"; done`: false, `for f in *.txt; do mv "$f" "out/$f"; done`: false,
		"d=out; mkdir -p $d; mv a $d": false, `find . -name '*.md' -exec mv {} out \;`: false,
		"ls | xargs -I{} mv {} out/{}": false, "ls | xargs mv -t out": false, `while read f; do mv "$f" "$f.old"; done < list`: false,
		`f() { mv "$1" "$2"; }; f a b`: false, "mv a \"$(date +%F).log\"": false,
		"mv $(ls | head -n 1) out": false, "cp -r folder /tmp/x": false, "ln -s /tmp t": false,
	} {
		r, err := command.ReadScript(line, command.Bash, "")
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := slices.ContainsFunc(r.Commands, func(c command.Command) bool { return c.Has(policy.TraitDeletesTree) }); got != deletes {
			t.Errorf("%s: got %t, want %t: %s", line, got, deletes, fmt.Sprint(r.Commands))
		}
		if r.Leaves != deletes {
			t.Errorf("%s: leaves is %t, want %t", line, r.Leaves, deletes)
		}
	}
	r, err := command.ReadArgv([]string{"mv", "folder", "../../tmp"}, "a/b")
	if err != nil || r.Commands[0].Has(policy.TraitDeletesTree) {
		t.Errorf("from a folder of the space: got %v, %v, want no trait", r.Commands, err)
	}
	r, err = command.ReadArgv([]string{"mv", "folder", "../../../tmp"}, "a/b")
	if err != nil || !r.Commands[0].Has(policy.TraitDeletesTree) {
		t.Errorf("from a folder of the space, out of it: got %v, %v, want the trait", r.Commands, err)
	}
}
