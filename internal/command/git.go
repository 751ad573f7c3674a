package command

import (
	"path"
	"slices"
	"strings"

	"agentbox/internal/domain/policy"
)

// The effects of git depend on its verb, and on the configuration and the hooks of the repository, which can name commands. This file
// reads verbs that work on the repository itself. Verbs that talk to another machine have the trait network. A command from an option,
// a configuration or an alias is unknown.

// gitLocal are the verbs that work on a local repository. A verb in no table may be an alias, which runs anything.
var gitLocal = names(`add am annotate apply archive blame branch bundle cat-file check-attr check-ignore checkout cherry cherry-pick clean
	commit config
	count-objects describe diff diff-files diff-index diff-tree for-each-ref format-patch fsck gc grep hash-object init log ls-files ls-tree
	merge merge-base
	merge-file merge-tree mv name-rev notes prune range-diff rebase reflog remote repack replace rerere reset restore rev-list rev-parse
	revert rm shortlog
	show show-branch show-ref sparse-checkout stash status stripspace switch symbolic-ref tag update-index update-ref var verify-commit
	verify-tag
	whatchanged worktree write-tree`)

// gitNetwork are the verbs that talk to another machine, or exist to serve one.
var gitNetwork = names(`push fetch pull clone ls-remote submodule fetch-pack send-pack upload-pack receive-pack upload-archive http-fetch
	http-push http-backend
	remote-http remote-https remote-ftp remote-ext remote-fd daemon send-email imap-send request-pull svn p4 cvsimport cvsserver lfs
		credential`)

// gitRuns are options of verbs that run a command, or bring files that git runs.
var gitRuns = map[string][]string{
	"":             {"--upload-pack", "--receive-pack", "--ext-diff", "--template", "--config"},
	"rebase":       {"-x", "--exec", "-i", "--interactive"},
	"grep":         {"-O", "--open-files-in-pager"},
	"archive":      {"--remote", "--exec"},
	"clone":        {"-u", "-c"},
	"diff":         {"--ext-diff"},
	"format-patch": {"--ext-diff"},
}

// gitHarmless are beginnings of the names of settings that name no command and no file.
var gitHarmless = []string{
	"user.name", "user.email", "author.", "committer.", "color.", "advice.", "init.defaultbranch", "core.autocrlf", "core.quotepath",
	"core.filemode", "core.ignorecase",
	"core.abbrev", "core.eol", "core.safecrlf", "core.whitespace", "commit.gpgsign", "tag.gpgsign", "pull.", "push.default",
	"merge.conflictstyle", "merge.ff", "rebase.auto", "log.date",
	"diff.renames", "diff.algorithm", "diff.context", "status.", "branch.", "gc.auto", "safe.directory",
}

// gitTexts are options that take a text or a number, which names no file.
var gitTexts = names(`-m --message -b -B -c -C -n -S -G -L -U --author --date --since --until --after --before --format --pretty
	--max-count --skip --grep --cleanup --trailer
	--orphan --initial-branch --depth --source --onto --strategy -X -s --abbrev --sort --points-at --contains --merged --no-merged --conflict
		--reason`)

// git reads the arguments of git.
func (pr *programs) git(c *Command, rest []arg) error {
	verb, rest := pr.gitGlobals(c, rest)
	switch {
	case verb == nil:
		return nil // it prints its help or its version
	case !verb.known:
		pr.line.unknown(c)
		return nil
	}
	name := verb.text
	if name == "help" || name == "version" {
		return nil
	}
	c.Traits = append(c.Traits, policy.TraitRunsFile)
	pr.line.out.Unsealed = append(pr.line.out.Unsealed, "the configuration and the hooks of the git repository")
	remote := name == "clone" && gitElsewhere(rest) || name != "clone" && gitNetwork[name] || name == "remote" && gitVerb(rest, "update",
		"show", "prune") || name == "archive" && gitOption(rest, "--remote")
	switch {
	case remote:
		c.Traits = append(c.Traits, policy.TraitNetwork)
	case !gitLocal[name] && name != "clone":
		pr.line.unknown(c) // an alias, or a program of that name
		return nil
	}
	for _, o := range append(slices.Clone(gitRuns[""]), gitRuns[name]...) {
		if gitOption(rest, o) {
			pr.line.unknown(c)
		}
	}
	switch {
	case name == "config" && !gitReadsConfig(rest), name == "remote" && slices.ContainsFunc(rest, func(a arg) bool {
		return strings.Contains(a.text, "ext::")
	}):
		pr.line.unknown(c)
	case name == "clean" && !gitOption(rest, "-n") && !gitOption(rest, "--dry-run"), name == "rm" && (gitOption(rest, "-r") ||
		slices.ContainsFunc(rest, func(a arg) bool { return !a.known || a.glob })):
		c.Traits = append(c.Traits, policy.TraitDeletesTree)
	}
	if name == "config" {
		return nil
	}
	return pr.gitFiles(c, name, rest)
}

// gitGlobals reads the options before the verb. It returns the verb and the arguments after it.
func (pr *programs) gitGlobals(c *Command, rest []arg) (verb *arg, behind []arg) {
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		if !a.known || !strings.HasPrefix(a.text, "-") {
			return &rest[i], rest[i+1:]
		}
		name, value, has := strings.Cut(a.text, "=")
		switch name {
		case "-C", "--git-dir", "--work-tree", "--namespace":
			if !has && i+1 < len(rest) {
				i++
				value = rest[i].text
				if !rest[i].known {
					pr.line.unknown(c)
				}
			}
			_ = pr.line.open(arg{text: value, known: true}, false, true) // never fails: it is not a device of the network
			if name == "-C" {
				pr.line.places.dirs = append(pr.line.places.dirs, strings.TrimPrefix(path.Join("/", pr.line.cwd, value), "/"))
			}
		case "-c":
			if i++; i >= len(rest) || !rest[i].known || !gitSetting(rest[i].text) {
				pr.line.unknown(c)
			}
		case "--no-pager", "--bare", "--version", "--help", "-h", "-v", "--no-replace-objects", "--literal-pathspecs", "--no-optional-locks",
			"-P", "--html-path", "--man-path", "--info-path":
		default: // --exec-path, --config-env, --paginate and what later versions bring
			pr.line.unknown(c)
		}
	}
	return nil, nil
}

// gitSetting reports whether a setting, name=value or a name, is harmless.
func gitSetting(text string) bool {
	name, _, _ := strings.Cut(strings.ToLower(text), "=")
	return slices.ContainsFunc(gitHarmless, func(h string) bool {
		return name == h || strings.HasSuffix(h, ".") && strings.HasPrefix(name, h) || h == "rebase.auto" && strings.HasPrefix(name, h)
	})
}

// gitReadsConfig reports whether git config only shows settings, or changes harmless ones.
func gitReadsConfig(rest []arg) bool {
	var names []string
	for _, a := range rest {
		switch {
		case !a.known:
			return false
		case a.text == "-e" || a.text == "edit" || strings.HasPrefix(a.text, "--edit") || a.text == "-f" || strings.HasPrefix(a.text, "--file") ||
			strings.HasPrefix(a.text, "--blob"):
			return false
		case !strings.HasPrefix(a.text, "-") && a.text != "set" && a.text != "get" && a.text != "list" && a.text != "unset":
			names = append(names, a.text)
		}
	}
	return len(names) == 0 || len(names) == 1 || gitSetting(names[0])
}

// gitOption reports whether an option is among the arguments: a long one by any beginning that means it alone, a short one in a cluster
// too.
func gitOption(rest []arg, option string) bool {
	return slices.ContainsFunc(rest, func(a arg) bool {
		name, _, _ := strings.Cut(a.text, "=")
		if strings.HasPrefix(option, "--") {
			return len(name) > 4 && strings.HasPrefix(option, name)
		}
		return len(name) > 1 && name[0] == '-' && name[1] != '-' && strings.Contains(name, option[1:])
	})
}

// gitVerb reports whether the first operand is one of the words.
func gitVerb(rest []arg, words ...string) bool {
	i := slices.IndexFunc(rest, func(a arg) bool { return !strings.HasPrefix(a.text, "-") })
	return i >= 0 && (!rest[i].known || slices.Contains(words, rest[i].text))
}

// gitElsewhere reports whether git clone may clone from another machine: a URL, host:path, or an unknown word.
func gitElsewhere(rest []arg) bool {
	return slices.ContainsFunc(rest, func(a arg) bool {
		return !a.known || !strings.HasPrefix(a.text, "-") && strings.Contains(a.text, ":") && !strings.HasPrefix(a.text, "file://") ||
			strings.HasPrefix(a.text, "--recurse-sub") || a.text == "--recursive"
	})
}

// gitFiles notes the files that git is given: as operands, behind the colon of a revision, and as values of options.
func (pr *programs) gitFiles(c *Command, name string, rest []arg) error {
	write := name == "init" || name == "clone" || name == "worktree"
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		option, value, has := strings.Cut(a.text, "=")
		switch {
		case !a.known || !strings.HasPrefix(a.text, "-"):
			if _, below, ok := strings.Cut(a.text, ":"); a.known && ok && !strings.Contains(a.text, "://") {
				a.text = below
			}
			a.text = strings.TrimPrefix(a.text, "file://")
			if err := pr.line.operand(c, a, write && a.known && i == len(rest)-1); err != nil {
				return err
			}
		case option == "-o" || option == "--output" || option == "--output-directory":
			if !has && i+1 < len(rest) {
				i++
				value = rest[i].text
			}
			if err := pr.line.operand(c, arg{text: value, known: true}, true); err != nil {
				return err
			}
		case gitTexts[option] || len(option) > 1 && option[1] != '-' && strings.HasSuffix(option, "m"):
			if !has {
				i++
			}
		case has:
			if err := pr.line.operand(c, arg{text: value, known: true, glob: a.glob}, false); err != nil {
				return err
			}
		}
	}
	return nil
}
