package gate_test

import (
	"testing"

	"agentbox/internal/domain/policy"
)

// TestGitInStandard holds that standard permits git on a local repository, refuses its network, and asks where git would run what is not
// known.
func TestGitInStandard(t *testing.T) {
	h := build(t, nil)
	for want, lines := range map[policy.Outcome][]string{
		policy.Allow: {
			"git status", "git status --short", "git add .", "git add -A", "git add src/a.go", "git commit -m 'message'",
			"git commit -am 'fix *.env handling'", "git diff", "git diff HEAD~1 -- a.txt",
			"git diff --stat", "git log", "git log --oneline -5", "git log --format='%H %s'", "git branch", "git branch -d x", "git checkout main",
			"git checkout -b feature", "git switch -c x",
			"git init", "git init -b main", "git init sub", "git merge feature", "git stash", "git stash pop", "git show HEAD",
			"git show HEAD:a.txt", "git rev-parse HEAD", "git ls-files", "git tag v1",
			"git -C sub status", "git --no-pager log", "git -c user.name=a -c user.email=a@b.c commit -m x", "git config user.name a",
			"git config --get user.name", "git config --list",
			"git config init.defaultBranch main", "git rebase main", "git cherry-pick abc", "git reset --hard HEAD", "git restore a.txt",
			"git mv a b", "git rm a.txt", "git blame a.txt", "git grep todo",
			"git clean -n", "git remote -v", "git remote add origin https://example.com/x.git", "git clone ./repo copy",
			"git clone file:///workspace/repo copy", "git worktree add x", "git --version", "git help",
			"git apply a.patch", "git format-patch -1 -o out", "git archive -o a.tar HEAD", "GIT_AUTHOR_NAME=a git commit -m x",
			"cd repo && git add . && git commit -qm x", "git describe --tags",
			"git log --author=ada --since=yesterday", "git commit --message 'add .env to .gitignore'", "git notes add -m x",
		},
		policy.Deny: {
			"git push", "git push origin main", "git fetch", "git pull", "git clone https://example.com/x.git", "git clone git@example.com:x/y.git",
			"git clone ssh://example.com/x", "git ls-remote",
			"git submodule update --init", "git remote update", "git remote show origin", "git -C sub push", "git -c user.name=x push",
			"git send-email x.patch", "git archive --remote=ssh://x HEAD", "git clone $url",
			"git clone --recurse-submodules ./a b", "git add x.env", "git show HEAD:x.env", "git diff --no-index /dev/null x.env",
			"git hash-object x.env", "git blame server.pem", "git log -p -- x.env",
			"git archive -o /etc/a.tar HEAD", "git format-patch -o /etc -1", "git init /etc/x", "git clone ./a /etc/b",
			"git checkout HEAD -- prod.key", "git --git-dir=.git status", "git fetch --upload-pack='rm -r x'",
		},
		policy.RequireApproval: {
			"git lol", "git -c alias.x='!rm -r y' x", "git -c core.pager='rm -r x' log", "git -c core.editor=x commit",
			"git -c core.fsmonitor=./x status", "git -c core.hooksPath=h commit -m x",
			"git -c diff.external=./x diff", "git config alias.x '!rm -r y'", "git config --global alias.x '!y'", "git config core.hooksPath h",
			"git config core.pager x", "git config set core.editor x",
			"git config -e", "git config -f other user.name x", "git config filter.x.clean cmd", "git --exec-path=. status",
			"git --config-env=core.pager=X log", "git -p log", "git --paginate log",
			"git rebase -x 'rm -r y' main", "git rebase --exec ls main", "git rebase -i main", "git diff --ext-diff", "git log --ext-diff -p",
			"git grep -Oless todo", "git grep --open-files-in-pager=x todo",
			"git init --template=t", "git clone --template=t ./a b", "git clone -c core.pager=x ./a b", "git clone -u ./x ./a b", "git difftool",
			"git mergetool", "git bisect run ./x", "git filter-branch --tree-filter ls",
			"git for-each-repo x", "git $verb", "git -c \"$x\" log", "GIT_PAGER=x git log", "GIT_EXTERNAL_DIFF=x git diff",
			"GIT_SSH_COMMAND=x git status", "GIT_CONFIG_COUNT=1 git status", "GIT_DIR=x git status",
			"EDITOR=x git commit", "PAGER=x git log", "git clean -fd", "git clean -xdf", "git rm -r src", "git rm *.txt",
			"git remote add x 'ext::rm -r y'", "git add x.en?", "a=$(cat f); git add x.$a", "git instaweb", "git gui",
		},
	} {
		for _, line := range lines {
			if d := h.judge(h.shell("guarded", line)).Decision; d.Outcome != want {
				t.Errorf("%q: got %s (%s), want %s", line, d.Outcome, d.Reason, want)
			}
		}
	}
	for _, name := range []string{"GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_DIR", "GIT_SSH", "GIT_EDITOR", "GIT_CONFIG_KEY_0"} {
		a := h.shell("guarded", "git log")
		a.Env = map[string]string{name: "x"}
		if d := h.judge(a).Decision; d.Outcome == policy.Allow {
			t.Errorf("git with %s in its environment is allowed", name)
		}
	}
}
