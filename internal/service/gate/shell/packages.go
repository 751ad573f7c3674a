package shell

import (
	"slices"
	"strings"
)

// verb returns the first argument that is neither an option nor the value of one. It returns "" if there is none or it is not known. It
// returns "?" if an option precedes it that may or may not take a value.
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

// bunInstalls reports whether bun is asked to fetch packages. With options before it, the verb may be any word, because the options that
// take a value change with every version.
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
var flags = names(`-g --global -q -qq -s -d -dd -ddd --quiet --silent -v -vv -vvv --verbose -V --version -h --help -y --yes -f --force -D
	--save-dev
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

// fetching are the verbs that fetch packages from another machine, unless each of their operands is a file or an option says to stay
// offline.
var fetching = map[string]map[string]bool{
	"npm": names("install i in ins inst add ci clean-install install-test it install-ci-test update up upgrade exec x create view info " +
		"show v search s outdated publish audit"),
	"pnpm":   names("install i add ci update up upgrade dlx create fetch outdated publish audit"),
	"yarn":   names("install add up upgrade dlx create info outdated publish audit"),
	"bun":    names("install i add a update upgrade x create c outdated publish audit info"),
	"pip":    names("install download wheel index search"),
	"pip3":   names("install download wheel index search"),
	"uv":     names("pip add sync lock tool python publish self"),
	"poetry": names("install add update lock search publish self"),
	"cargo":  names("add install update fetch search publish"),
	"go":     names("get install"),
	"gem":    names("install update fetch search push"),
}

// fetches reports whether a package tool has to reach another machine for these arguments.
func fetches(tool, verb string, rest []arg) bool {
	if !fetching[tool][verb] {
		return false
	}
	operands, local := 0, 0
	for i, a := range rest {
		switch {
		case a.text == "--offline" || a.text == "--no-index" || a.text == "--dry-run":
			return false
		case !a.known:
			return false // its arguments are not known, so it asks
		case strings.HasPrefix(a.text, "-") || i > 0 && rest[i-1].text == "-r" || a.text == verb || tool == "uv" && a.text == "install":
		default:
			if operands++; isPackageFile(a.text) {
				local++
			}
		}
	}
	return operands == 0 || local < operands
}

// isPackageFile reports whether an operand of a package tool names a file or a folder.
func isPackageFile(name string) bool {
	if name == "." || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") ||
		strings.HasPrefix(name, "file:") {
		return true
	}
	return slices.ContainsFunc([]string{".whl", ".tgz", ".tar.gz", ".zip", ".gem", ".crate"}, func(end string) bool {
		return strings.HasSuffix(name, end) && !strings.Contains(name, ":")
	})
}
