package cmdline

import "testing"

// TestHelpFitsTheTerminal breaks the lines of a help text.
func TestHelpFitsTheTerminal(t *testing.T) {
	const text = `Do makes a thing, and says
what it has made.
TASK is a text.

  - left: as it is

Usage:
  agentbox do TASK [flags]

Examples:
  agentbox do 'a long text that is to be copied as one line'

Flags:
  -h, --help           help for do
      --name string    what the thing is called, unless it has a name already
      --a-flag-whose-name-leaves-no-room   what it does
`
	for width, want := range map[int]string{
		100: `Do makes a thing, and says what it has made.
TASK is a text.

  - left: as it is

Usage:
  agentbox do TASK [flags]

Examples:
  agentbox do 'a long text that is to be copied as one line'

Flags:
  -h, --help           help for do
      --name string    what the thing is called, unless it has a name already
      --a-flag-whose-name-leaves-no-room   what it does
`,
		44: `Do makes a thing, and says what it has made.
TASK is a text.

  - left: as it is

Usage:
  agentbox do TASK [flags]

Examples:
  agentbox do 'a long text that is to be copied as one line'

Flags:
  -h, --help           help for do
      --name string    what the thing is
                       called, unless it has
                       a name already
      --a-flag-whose-name-leaves-no-room
      what it does
`,
	} {
		if got := fitted(text, width); got != want {
			t.Errorf("in %d characters: got\n%s\nwant\n%s", width, got, want)
		}
	}
}
