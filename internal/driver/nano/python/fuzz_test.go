package python

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzCommandLine understands any command line as a command or an answer, and writes each command as JSON.
func FuzzCommandLine(f *testing.F) {
	for _, line := range []string{
		"-c\x00print(1)\x00a", "-Im\x00json.tool", "a.py\x00-V", "-VV", "-", "", "-W\x00error\x00-X\x00dev\x00-", "-c", "--\x00-c",
		"--check-hash-based-pycs", "-\xff\x00\xc3\x28",
		"-OOuE\x00x", "-h", "--zz", "-Wx-c", "-cx",
	} {
		f.Add(line, "PYTHONOPTIMIZE=9")
	}
	f.Fuzz(func(t *testing.T, line, variable string) {
		c, a := parse(append([]string{"python3"}, strings.Split(line, "\x00")...), pairs{variable})
		if (c == nil) == (a == nil) {
			t.Fatalf("a command %+v and an answer %+v", c, a)
		}
		if c != nil && !json.Valid(c.encode()) {
			t.Errorf("%q is not JSON", c.encode())
		}
		if a != nil && (a.code != 0) == (a.stderr == "") {
			t.Errorf("the answer %+v says nothing, or no error", a)
		}
	})
}
