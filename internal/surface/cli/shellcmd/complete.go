package shellcmd

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/term"
)

// builtins are the commands that a shell has itself.
var builtins = []string{
	"alias", "break", "case", "cd", "command", "continue", "declare", "do", "done", "echo", "elif", "else", "esac", "eval", "exec", "exit",
	"export", "false",
	"fi", "for", "function", "getopts", "hash", "if", "in", "let", "local", "printf", "pushd", "popd", "pwd", "read", "readonly", "return",
	"select", "set",
	"shift", "source", "test", "then", "time", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait",
	"while",
}

// maxOffers is how many completions are shown.
const maxOffers = 200

// special are the characters of a name that mean something to a shell.
const special = " \t\\'\"`$&|;<>()[]{}*?!#~=%^"

// complete completes the word in front of the cursor: a command at the beginning of a command, else a path. Offers are the candidates if
// there are several.
func (s *session) complete(ctx context.Context, line string, pos int) (newLine string, newPos int, offers []string) {
	before := line[:pos]
	begin := wordBegin(before)
	word := unquoted(before[begin:])
	var found []string
	if leads(before[:begin]) && !strings.Contains(word, "/") {
		found = s.commandsLike(ctx, word)
	} else {
		found = s.pathsLike(ctx, word)
	}
	if len(found) == 0 {
		return line, pos, nil
	}
	whole := found[0]
	for _, f := range found[1:] {
		for !strings.HasPrefix(f, whole) {
			_, size := utf8.DecodeLastRuneInString(whole)
			whole = whole[:len(whole)-size]
		}
	}
	if len(found) > 1 && whole == word {
		return line, pos, found
	}
	text := quoted(whole)
	if len(found) == 1 && !strings.HasSuffix(whole, "/") {
		text += " "
	}
	return before[:begin] + text + line[pos:], begin + len(text), nil
}

// wordBegin is where the last word of a text begins.
func wordBegin(text string) int {
	begin, quote := 0, rune(0)
	escaped := false
	for n, c := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\\':
			escaped = true
		case c == '\'' || c == '"':
			quote = c
		case strings.ContainsRune(" \t;|&<>()=", c):
			begin = n + 1
		}
	}
	return begin
}

// leads reports whether a command begins behind a text.
func leads(before string) bool {
	before = strings.TrimRight(before, " \t")
	if before == "" || strings.ContainsRune(";|&(", rune(before[len(before)-1])) {
		return true
	}
	words := strings.Fields(before)
	return slices.Contains([]string{"do", "then", "else", "if", "while", "until", "!", "{", "time", "exec", "sudo", "xargs", "env"},
		words[len(words)-1])
}

// unquoted returns an unfinished word without its quotes and escapes.
func unquoted(word string) string {
	var b strings.Builder
	escaped, quote := false, rune(0)
	for _, c := range word {
		switch {
		case escaped:
			escaped = false
			b.WriteRune(c)
		case c == '\\' && quote != '\'':
			escaped = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// quoted writes a name so that a shell takes it as it is.
func quoted(name string) string {
	var b strings.Builder
	for _, c := range name {
		if strings.ContainsRune(special, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// pathsLike returns the paths of the space that begin with a text; folders end with a slash.
func (s *session) pathsLike(ctx context.Context, text string) (found []string) {
	folder, name := path.Split(text)
	at := folder
	if !path.IsAbs(folder) {
		at = path.Join(cmdline.First(s.carried.folder, "/"), folder)
	}
	inside, ok := s.carried.inside(path.Clean(at))
	if !ok {
		return nil // the API shows the space's files, and nothing else
	}
	listing, err := s.api.Files(ctx, s.space.ID, inside, false)
	if err != nil {
		return nil
	}
	for _, e := range listing.Entries {
		entry := path.Base(e.Path)
		if !strings.HasPrefix(entry, name) || term.Plain(entry) != entry || strings.ContainsAny(entry, "\n\t") || name == "" && entry[0] == '.' {
			continue
		}
		if e.Type == "directory" {
			entry += "/"
		}
		found = append(found, folder+entry)
	}
	slices.Sort(found)
	return found
}

// commandsLike returns the commands that begin with a text. Which programs there are a command says, once in a session and where policy
// allows it unasked.
func (s *session) commandsLike(ctx context.Context, text string) (found []string) {
	if s.programs == nil {
		s.programs = slices.Clone(builtins)
		op := run.Operation{Type: run.OpShell, Command: "ls /usr/local/bin /usr/bin /bin"}
		if s.allowed(ctx, op) {
			var out strings.Builder
			within, cancel := context.WithCancel(ctx)
			defer cancel()
			if s.keys != nil {
				defer s.keys.Watch(cancel, nil)()
			}
			o := follow.Ordered{Api: s.api, Space: s.space.ID, Title: "agentbox shell", Output: func(_ string, data []byte) error {
				out.Write(data)
				return nil
			}, Asks: unasked, Queued: s.unlessQueued(cancel)}
			_, _, err := o.Do(within, op)
			if err != nil {
				defer func() { s.programs = nil }() // the next completion asks again
			} else {
				for name := range strings.FieldsSeq(out.String()) {
					if !strings.HasPrefix(name, "/") && !strings.HasSuffix(name, ":") && term.Plain(name) == name {
						s.programs = append(s.programs, name)
					}
				}
			}
		}
		slices.Sort(s.programs)
		s.programs = slices.Compact(s.programs)
	}
	for _, name := range s.programs {
		if text != "" && strings.HasPrefix(name, text) {
			found = append(found, name)
		}
	}
	return found
}

// unlessQueued cancels a completion whose run is still queued after a moment. A completion is not worth the wait for another run.
func (s *session) unlessQueued(cancel func()) func(ctx context.Context, r id.Run) (stop func()) {
	return func(ctx context.Context, r id.Run) func() {
		late, stopTimer := s.i.Clock.NewTimer(follow.QueuedLong)
		ctx, stop := context.WithCancel(ctx)
		var looking sync.WaitGroup
		looking.Go(func() {
			defer stopTimer()
			select {
			case <-late:
			case <-ctx.Done():
				return
			}
			if shown, err := s.api.Run(ctx, r); err == nil && shown.Status == run.Queued {
				cancel()
			}
		})
		return func() {
			stop()
			looking.Wait()
		}
	}
}

// offer shows the completions of a word.
func (s *session) offer(offers []string) {
	shown := offers[:min(len(offers), maxOffers)]
	width := 0
	for _, o := range shown {
		width = max(width, utf8.RuneCountInString(path.Base(o))+2)
	}
	columns := max(1, s.width()/max(1, width))
	var b strings.Builder
	for n, o := range shown {
		name := path.Base(o)
		if strings.HasSuffix(o, "/") {
			name += "/"
		}
		b.WriteString(name)
		if n%columns == columns-1 || n == len(shown)-1 {
			b.WriteString("\r\n")
			continue
		}
		b.WriteString(strings.Repeat(" ", max(1, width-utf8.RuneCountInString(name))))
	}
	if more := len(offers) - len(shown); more > 0 {
		fmt.Fprintf(&b, "and %d more\r\n", more)
	}
	_, _ = s.editor.Write([]byte(b.String())) // a terminal that is gone shows nothing
}
