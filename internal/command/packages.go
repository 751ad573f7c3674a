package command

import (
	"slices"
	"strings"

	"agentbox/internal/domain/policy"
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
		case takes[tool].names(a.text):
			i++
		case slices.ContainsFunc(rest[i+1:], func(a arg) bool { return !a.known || !strings.HasPrefix(a.text, "-") }):
			return "?"
		}
	}
	return ""
}

// bunInstalls reports whether bun would fetch packages. With options before it, the verb may be any word, because the options that
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

// installers are the modules and programs of Python and Node that fetch packages.
var installers = names("pip ensurepip easy_install pipx uv conda npm npx pnpm yarn corepack")

// installer reports whether a program of the system, named by its path, fetches packages.
func installer(name string) bool {
	return strings.HasPrefix(name, "/") && slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return installers[part] })
}

// fetching are the verbs that reach another machine, most of them for packages, unless each of their operands is a file or an option says
// to stay offline.
var fetching = map[string]map[string]bool{
	"npm": names("install i in ins inst add ci clean-install install-test it install-ci-test update up upgrade exec x create view info " +
		"show v search s outdated publish audit login adduser ping whoami"),
	"pnpm": names("install i add ci update up upgrade dlx create fetch outdated publish audit view info show search login adduser ping " +
		"whoami"),
	"yarn":       names("install add up upgrade dlx create info outdated publish audit view show search login adduser ping whoami"),
	"bun":        names("install i add a update upgrade x create c outdated publish audit info"),
	"pip":        names("install download wheel index search"),
	"pip3":       names("install download wheel index search"),
	"uv":         names("pip add sync lock tool python publish self"),
	"poetry":     names("add install update lock search publish self"),
	"cargo":      names("add install update fetch search publish"),
	"go":         names("get install"),
	"gem":        names("install update fetch search push"),
	"apt":        names("install update upgrade full-upgrade source download"),
	"apt-get":    names("install update upgrade dist-upgrade source download build-dep"),
	"aptitude":   names("install update upgrade"),
	"dnf":        names("install update upgrade"),
	"yum":        names("install update upgrade"),
	"apk":        names("add update upgrade"),
	"zypper":     names("install in refresh update"),
	"brew":       names("install update upgrade tap"),
	"snap":       names("install refresh"),
	"flatpak":    names("install update"),
	"conda":      names("install create update"),
	"mamba":      names("install create update"),
	"micromamba": names("install create update"),
	"bundle":     names("install update"),
	"composer":   names("install require update"),
	"docker":     names("pull push run login"),
	"podman":     names("pull push run login"),
	"pipenv":     names("install update"),
	"pipx":       names("install run"),
	"gh":         names("api auth clone gist issue pr release repo"),
}

// Fetches reports whether a verb of a program reaches another machine, unless all of its arguments lie in the space.
func Fetches(tool, verb string) bool { return fetching[tool][verb] }

// fetcher marks the programs of which nothing is known but the verbs that fetch.
func (pr *programs) fetcher(c *Command, rest []arg) {
	if fetching[c.Name] == nil {
		return
	}
	v := verb(c.Name, rest)
	unknown := slices.ContainsFunc(rest, func(a arg) bool { return !a.known })
	if v != "?" && !(unknown && (v == "" || fetching[c.Name][v])) && !fetches(c.Name, v, rest) {
		return
	}
	c.Traits = append(c.Traits, policy.TraitNetwork)
	if !byTrait[policy.TraitNetwork][c.Name] && !byTrait[policy.TraitPrivilege][c.Name] {
		c.Traits = append(c.Traits, policy.TraitInstalls)
	}
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
