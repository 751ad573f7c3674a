package javascript

import (
	"encoding/json"
	"path"
	"strings"

	"agentbox/internal/userland/program"
)

// command is a command line, understood.
type command struct {
	code       *string // of -e and -p
	print      bool    // the value of the last expression
	typescript bool    // of code
	file       string  // "-" is the standard input
	args       []string
	context    *string  // in which it is a cell
	tests      bool     // it runs tests
	options    []string // that the program sees as process.execArgv
}

// words returns process.argv without the first, which is the program.
func (c *command) words(r *run, cwd string) (all []string) {
	if c.code == nil {
		file := c.file
		if found, err := r.modules.resolveMain(file); err == nil && file != "-" {
			file = found
		} else if file != "-" && !path.IsAbs(file) {
			file = path.Join(cwd, file)
		}
		all = append(all, file)
	}
	return append(all, c.args...)
}

// harmless are options that change nothing here.
var harmless = map[string]bool{
	"--no-warnings": true, "--experimental-strip-types": true, "--experimental-transform-types": true, "--enable-source-maps": true,
	"--trace-warnings": true,
	"--use-strict":     true, "--no-deprecation": true, "--silent": true, "--smol": true, "--bun": true, "-b": true,
	"--experimental-vm-modules": true, "--module": true,
	"--experimental-default-type=module": true, "--input-type=module": true, "--input-type=commonjs": true, "--expose-gc": true,
	"--no-install": true,
}

// ofTests are the options of the test runner.
var ofTests = map[string]bool{
	"--test-reporter": true, "--test-only": true, "--test-name-pattern": true, "--test-skip-pattern": true, "--test-timeout": true,
	"--test-concurrency": true, "--test-isolation": true,
	"--test-force-exit": true, "--test-reporter-destination": true,
}

// parse understands a command line of node's, bun's or js's. Where it returns nil there is nothing to run, but an exit code. It is long
// because it is one switch over the options.
//
//nolint:cyclop // one case for each option of node
func parse(p *program.Process) (*command, int) {
	name := path.Base(p.Name())
	c := &command{typescript: name == "bun"}
	rest := p.Args[min(1, len(p.Args)):]
	if name == "bun" && len(rest) > 0 {
		switch rest[0] {
		case "run":
			rest = rest[1:]
		case "install", "i", "add", "remove", "rm", "update", "link", "x", "create", "init", "build", "test", "pm", "upgrade", "publish", "repl",
			"exec", "patch", "outdated", "audit":
			p.Lack(program.LackFeature, "bun "+rest[0])
			p.Errorf("a nano space runs files; bun %s is not available", rest[0])
			return nil, 1
		}
	}
	for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' {
		word := rest[0]
		rest = rest[1:]
		option, value, given := strings.Cut(word, "=")
		next := func() (string, bool) {
			if given {
				return value, true
			}
			if len(rest) == 0 {
				p.Errorf("%s requires an argument", word)
				return "", false
			}
			value, rest = rest[0], rest[1:]
			return value, true
		}
		switch {
		case word == "--":
			return c.ended(p, rest)
		case option == "-v" || option == "--version" || option == "-V":
			p.Out().Printf("%s\n", map[string]string{"bun": BunVersion, "node": NodeVersion}[name]+map[bool]string{true: Version}[name == "js"])
			return nil, 0
		case option == "-h" || option == "--help":
			p.Out().Printf("%s", strings.ReplaceAll(usage, "NAME", name))
			return nil, 0
		case option == "--context":
			name, ok := next()
			if !ok {
				return nil, 9
			}
			c.context = &name
		case option == "-e" || option == "-c" && c.context != nil || option == "--eval" || option == "-p" || option == "--print" ||
			option == "-pe":
			text, ok := next()
			if !ok {
				return nil, 9
			}
			c.code, c.print = &text, option[1] == 'p' || option == "--print"
		case option == "-r" || option == "--require" || option == "--import" || option == "--loader" || option == "--inspect" ||
			option == "--watch" ||
			option == "-i" || option == "--interactive" || option == "-c" || option == "--check":
			p.Lack(program.LackOption, option)
			p.Errorf("the option %s is not available in a nano space", option)
			return nil, 9
		case option == "--test" && name != "bun":
			c.tests = true
		case ofTests[option]:
			if option != "--test-only" && option != "--test-force-exit" {
				text, ok := next()
				if !ok {
					return nil, 9
				}
				word = option + "=" + text
			}
			c.options = append(c.options, word)
		case harmless[word] || strings.HasPrefix(word, "--max-old-space-size") || strings.HasPrefix(word, "--stack-size") ||
			option == "--input-type":
			if word == "--input-type" {
				_, _ = next()
			}
			c.options = append(c.options, word)
		default:
			p.Lack(program.LackOption, option)
			p.Errorf("bad option: %s", word)
			return nil, 9
		}
	}
	return c.ended(p, rest)
}

// ended takes the operands and refuses those of a cell.
func (c *command) ended(p *program.Process, rest []string) (*command, int) {
	if c.finish(rest); c.context != nil && len(c.args) > 0 {
		p.Errorf("with --context, code is given by -c, a file or - and takes no arguments")
		return nil, 9
	}
	return c, 0
}

// finish takes the operands.
func (c *command) finish(rest []string) {
	if c.tests {
		files, err := json.Marshal(append([]string{}, rest...))
		if err != nil { // words are text
			panic(err)
		}
		text := "await __agentbox.testFiles(" + string(files) + ");"
		c.code = &text
		return
	}
	if c.code != nil {
		c.args = rest
		return
	}
	c.file = "-"
	if len(rest) > 0 {
		c.file, c.args = rest[0], rest[1:]
	}
}

const usage = `Usage: NAME [options] [FILE | - | -e CODE | -p CODE] [arguments]

Runs JavaScript and TypeScript: ES modules and CommonJS, with Node's modules fs, path, os, process, util, events, assert, crypto, buffer, url,
timers, readline and streams of text. There are no sockets, no processes and no packages but those in node_modules.

  --context NAME     run in the context with that name, which keeps its variables from one call to the next, and print the last expression's value;
                     the code is given by -c, -e, a file or -
  -e, --eval CODE    run CODE
  -p, --print CODE   run CODE and print the value of its last expression
  --test [FILE...]   run the tests of files, or of all that are named as tests; --test-reporter spec, tap or dot, --test-name-pattern, --test-only
  -v, --version      print the version
`
