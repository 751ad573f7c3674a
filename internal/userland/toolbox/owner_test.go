package toolbox_test

import (
	"runtime"
	"strings"
	"testing"

	"agentbox/internal/userland/shelltest"
)

// TestTheUserIsTheSameEverywhere asks each command that names the user.
func TestTheUserIsTheSameEverywhere(t *testing.T) {
	const script = `export USER=agent; id; id -un; whoami; groups; logname; touch f; ls -l f | cut -d' ' -f3,4; stat -c '%U %G' f; find f ` +
		`-printf '%u\n'`
	r := shelltest.Execute(programs(), shelltest.Limits, script)
	const want = "uid=0(agent) gid=0(agent) groups=0(agent)\nagent\nagent\nagent\nagent\nagent agent\nagent agent\nagent\n"
	if r.Out != want || r.Err != "" {
		t.Errorf("got %q %q, want %q", r.Out, r.Err, want)
	}
}

// TestHelpShowsTheOptions looks at what an agent reads first.
func TestHelpShowsTheOptions(t *testing.T) {
	r := shelltest.Execute(programs(), shelltest.Limits, `uniq --help; date --help`)
	for _, want := range []string{"Usage: uniq [OPTION]...", "  -c, --count\n", "  -f, --skip-fields=ARG\n", "--group[=ARG]\n", "Usage: date ",
		"  -d, --date=ARG\n", "  -I[=ARG]\n"} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("%q is missing in %s", want, r.Out)
		}
	}
	if r.Code != 0 || r.Err != "" {
		t.Errorf("ended with %d, %q", r.Code, r.Err)
	}
}

// TestPaddingIsNotMadeInMemory fills up to widths of a gigabyte, and looks at what Go has allocated for that.
func TestPaddingIsNotMadeInMemory(t *testing.T) {
	limits := small()
	limits.Gas = 2_000_000_000
	for _, script := range []string{
		`printf '\ta\tb\n' | expand -t 1000000000 > /dev/null`,
		`printf '\ta\tb\n' | expand -t 1000000000,2000000000 > /dev/null`,
		`printf '%0.s ' {1..100} | unexpand -t 1000000000 > /dev/null`,
		`numfmt --padding=1000000 1 > /dev/null`,
		`seq -f %1000000g 3 > /dev/null`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := shelltest.Execute(programs(), limits, script)
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > 64<<20 {
			t.Errorf("%s: %d bytes were allocated, code %d, %v", script, made, r.Code, r.Stopped)
		}
	}
}

// TestAFolderThatCannotBeMadeSaysWhy makes folders on the read-only root and below a file.
func TestAFolderThatCannotBeMadeSaysWhy(t *testing.T) {
	r := shelltest.Execute(programs(), shelltest.Limits, `mkdir /srv; mkdir -p /srv/x; mkdir -p /usr/bin; touch f; mkdir -p f/x; mkdir -p f`)
	const readOnly = "mkdir: cannot create directory ‘/srv’: Read-only file system\n"
	const want = readOnly + readOnly + "mkdir: cannot create directory ‘f’: Not a directory\nmkdir: cannot create directory ‘f’: File exists\n"
	if r.Out != "" || r.Err != want {
		t.Errorf("got %q %q, want %q", r.Out, r.Err, want)
	}
}
