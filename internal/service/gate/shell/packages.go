package shell

import (
	"slices"
	"strings"
)

// verb returns the first argument that is neither an option nor the value of one; "" where there is none or it is not known, and "?" where
// an option stands before it of which nobody knows whether it takes a value.
func verb(tool string, rest []arg) string {
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		switch {
		case !a.known:
			return ""
		case !strings.HasPrefix(a.text, "-"):
			return a.text
		case strings.Contains(a.text, "=") || flags[a.text]:
		case takesValue[tool][a.text]:
			i++
		case slices.ContainsFunc(rest[i+1:], func(a arg) bool { return !a.known || !strings.HasPrefix(a.text, "-") }):
			return "?"
		}
	}
	return ""
}

// bunInstalls reports whether bun is told to fetch packages. With options before it, the verb may be any word: which of them take a value
// changes with every version.
func bunInstalls(rest []arg) bool {
	for i, a := range rest {
		switch {
		case a.text == "-i", a.text == "--install", strings.HasPrefix(a.text, "--install="):
			return true
		case inline("bun", a.text):
			return false
		case i > 0 && strings.HasPrefix(rest[0].text, "-") && bunVerbs[a.text] == "install":
			return true
		}
	}
	return false
}

// flags are options of package tools that take no value.
var flags = names(`-g --global -q -qq -s -d -dd -ddd --quiet --silent -v -vv -vvv --verbose -V --version -h --help -y --yes -f --force -D --save-dev
	--no-color --json --long -a --all -u --upgrade --isolated --no-input --disable-pip-version-check --workspaces --offline --if-present`)

// takesValue are options of package tools that take the next argument.
var takesValue = map[string]map[string]bool{
	"npm":  names("--prefix -C --loglevel -w --workspace --userconfig --globalconfig --cache --registry --script-shell"),
	"pnpm": names("--dir -C --filter -F"),
	"yarn": names("--cwd"),
	"pip":  names("--log --proxy --cache-dir --timeout --retries --python --cert"),
	"pip3": names("--log --proxy --cache-dir --timeout --retries --python --cert"),
	"go":   names("-C"),
}

// installers are the modules and programs of Python and Node that fetch packages.
var installers = names("pip ensurepip easy_install pipx uv conda npm npx pnpm yarn corepack")

// installer reports whether a program of the system, named by its path, fetches packages.
func installer(name string) bool {
	return strings.HasPrefix(name, "/") && slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return installers[part] })
}
