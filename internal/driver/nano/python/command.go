package python

import (
	"fmt"
	"strconv"
	"strings"
)

// kind says where the program of a command lies.
type kind string

const (
	kindCommand kind = "command" // in the argument of -c
	kindModule  kind = "module"  // -m
	kindFile    kind = "file"
	kindStdin   kind = "stdin"
	kindCell    kind = "cell"
)

// Version is the version that `python3 -V` prints.
const Version = "3.13.5"

const usage = "usage: python3 [option] ... [-c cmd | -m mod | file | -] [arg] ...\n"

// command is a command line of Python's, understood.
type command struct {
	Kind              kind
	Source            string // the code, the module's name or the file's path
	Name              string
	Args              []string
	Original          []string
	Cwd               string
	Env               pairs
	SafePath          bool
	IgnoreEnvironment bool
	Unbuffered        bool
	SkipFirstLine     bool
	Optimize          int
	Warnings          []string
	Extra             []string
	Context           *string // in which it is a cell
}

// answer is a command line that needs no interpreter: what it prints, and the exit code.
type answer struct {
	stdout, stderr string
	code           int
	option         string // that the nano tier does not have
}

// parse understands a command line as CPython does. It returns either a command or an answer.
func parse(args []string, env pairs) (*command, *answer) {
	c := &command{Kind: kindStdin, Args: []string{""}, Env: env, Original: args}
	versions := 0
	rest := args[min(1, len(args)):]
	for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' {
		word := rest[0]
		rest = rest[1:]
		if strings.HasPrefix(word, "--") {
			switch word {
			case "--":
			case "--version":
				versions++
				continue
			case "--context":
				if len(rest) == 0 {
					return nil, &answer{stderr: "Argument expected for the --context option\n" + usage + try, code: 2}
				}
				c.Context, rest = &rest[0], rest[1:]
				continue
			case "--help", "--help-all", "--help-env", "--help-xoptions":
				return nil, &answer{stdout: help}
			case "--check-hash-based-pycs":
				rest = rest[min(1, len(rest)):]
				continue
			default:
				name, ok := strings.CutPrefix(word, "--context=")
				if !ok {
					return nil, unknown(word)
				}
				c.Context = &name
				continue
			}
			break
		}
		for i := 1; i < len(word); i++ {
			if strings.IndexByte("cmWX", word[i]) < 0 {
				if a := c.flag(word[i], &versions); a != nil {
					return nil, a
				}
				continue
			}
			value := word[i+1:]
			if value == "" {
				if len(rest) == 0 {
					return nil, &answer{stderr: fmt.Sprintf("Argument expected for the -%c option\n", word[i]) + usage + try, code: 2}
				}
				value, rest = rest[0], rest[1:]
			}
			switch word[i] {
			case 'W':
				c.Warnings = append(c.Warnings, value)
			case 'X':
				c.Extra = append(c.Extra, value)
			case 'c':
				c.Kind, c.Source, c.Args = kindCommand, value+"\n", append([]string{"-c"}, rest...)
				return c.finish(versions)
			case 'm':
				c.Kind, c.Source, c.Args = kindModule, value, append([]string{"-m"}, rest...)
				return c.finish(versions)
			}
			break
		}
	}
	if len(rest) > 0 {
		c.Args = rest
		if rest[0] != "-" {
			c.Kind, c.Source = kindFile, rest[0]
		}
	}
	return c.finish(versions)
}

const try = "Try `python3 -h' for more information.\n"

func unknown(option string) *answer {
	text := "Unknown option: " + option + "\n"
	if strings.HasPrefix(option, "--") {
		text = "unknown option " + option + "\n"
	}
	return &answer{stderr: text + usage + try, code: 2}
}

// flag takes an option without a value.
func (c *command) flag(letter byte, versions *int) *answer {
	switch letter {
	case 'b', 'B', 'd', 'q', 'R', 's', 'S', 'v':
		// Nothing to do: there are no bytecode files, no site packages and no prompt.
	case 'E':
		c.IgnoreEnvironment = true
	case 'I':
		c.IgnoreEnvironment, c.SafePath = true, true
	case 'P':
		c.SafePath = true
	case 'O':
		c.Optimize = min(c.Optimize+1, 2)
	case 'u':
		c.Unbuffered = true
	case 'x':
		c.SkipFirstLine = true
	case 'V':
		*versions++
	case 'h', '?':
		return &answer{stdout: help}
	case 'i':
		return &answer{stderr: "python3: a nano space has no terminal: the option -i is not available\n", code: 2, option: "-i"}
	default:
		return unknown("-" + string(letter))
	}
	return nil
}

// finish takes what the environment says beside the options.
func (c *command) finish(versions int) (*command, *answer) {
	if versions > 0 {
		text := "Python " + Version + "\n"
		if versions > 1 {
			text = "Python " + Version + " (main, Jun 11 2025, 00:00:00) [Clang 19.1.7]\n"
		}
		return nil, &answer{stdout: text}
	}
	if c.Context != nil && (c.Kind == kindModule || len(c.Args) > 1) {
		return nil, &answer{stderr: "python3: with --context, code is given by -c, a file or - and takes no arguments\n", code: 2}
	}
	if c.IgnoreEnvironment {
		return c, nil
	}
	c.SafePath = c.SafePath || c.Env.get("PYTHONSAFEPATH") != ""
	c.Unbuffered = c.Unbuffered || c.Env.get("PYTHONUNBUFFERED") != ""
	if o := c.Env.get("PYTHONOPTIMIZE"); o != "" && c.Optimize == 0 {
		c.Optimize = 1
		if n, err := strconv.Atoi(o); err == nil {
			c.Optimize = min(max(n, 0), 2)
		}
	}
	if w := c.Env.get("PYTHONWARNINGS"); w != "" {
		c.Warnings = append(strings.Split(w, ","), c.Warnings...)
	}
	return c, nil
}

const help = usage + `Options that matter in a nano space:
-c cmd : program passed in as string (terminates option list)
--context name : run in the context with that name, which keeps its variables
         from one call to the next, and print the last expression's value
-E     : ignore PYTHON* environment variables (such as PYTHONPATH)
-h     : print this help message and exit (also -? or --help)
-I     : isolate Python from the user's environment (implies -E and -P)
-m mod : run library module as a script (terminates option list)
-O     : remove assert and __debug__-dependent statements
-OO    : do -O changes and also discard docstrings
-P     : don't prepend a potentially unsafe path to sys.path
-u     : force the stdout and stderr streams to be unbuffered
-V     : print the Python version number and exit (also --version)
-W arg : warning control; arg is action:message:category:module:lineno
-x     : skip first line of source, allowing use of non-Unix forms of #!cmd
file   : program read from script file
-      : program read from stdin
arg ...: arguments passed to program in sys.argv[1:]
`
