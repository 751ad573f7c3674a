package command

import (
	"strings"

	"agentbox/internal/domain/policy"
)

// names makes a set of words.
func names(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// system are the folders of the read-only root. A program in any other folder is a file that somebody made.
var system = names("/bin /usr/bin /usr/local/bin /sbin /usr/sbin /usr/local/sbin")

// devices are not files.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/random", "/dev/urandom",
	"/dev/tty"}

// byTrait gives traits by name alone.
var byTrait = map[string]map[string]bool{
	policy.TraitPrivilege: names(`sudo su doas pkexec runuser setpriv chroot nsenter unshare mount umount fusermount fusermount3 losetup
		modprobe insmod rmmod kexec sysctl ip6tables iptables nft setcap capsh ssh scp sftp sshd ssh-add ssh-agent ssh-copy-id ssh-keygen
		sshfs mosh systemctl systemd-run service init shutdown reboot halt poweroff passwd chpasswd useradd usermod userdel groupadd
		visudo crontab at batch docker podman buildah nerdctl ctr runc crun bwrap firejail lxc kubectl mknod pivot_root swapon swapoff
		debugfs dmsetup mkfs fdisk parted gdb strace ltrace bpftrace perf`),
	policy.TraitNetwork: names(`curl wget nc ncat netcat socat telnet ftp lftp tftp rsync aria2c axel httpie http https xh dig nslookup host
		whois ping ping6 traceroute tracepath mtr nmap masscan tcpdump tshark openvpn wg wg-quick ip ifconfig route arp iwconfig
		w3m lynx links elinks smbclient mail mailx sendmail mutt msmtp swaks gh glab aws gcloud az rclone s3cmd
		ngrok cloudflared tor torsocks proxychains irssi websocat grpcurl psql mysql mongo redis-cli apt apt-get aptitude dnf yum apk pacman brew
			snap flatpak`),
	policy.TraitInstalls: names(`npx bunx pnpx pipx apt apt-get aptitude dpkg dnf yum rpm apk pacman brew snap flatpak conda mamba
		easy_install corepack nix nix-env nix-shell guix`),
	policy.TraitInterpreter: names(
		`sh bash dash ash rbash zsh ksh mksh fish csh tcsh python python2 python3 node nodejs deno bun tsx ts-node wasm
		perl ruby php lua tclsh wish expect awk gawk mawk nawk sqlite3 sqlite sed ed ex vi vim nvim emacs nano less more man make gmake cmake
		irb ghci julia R Rscript octave scala groovy java jjs jshell go cargo rustc gcc cc tcc`),
}

// deleters count together towards the number of files that a command line deletes.
var deleters = names("rm unlink shred")

// named are names that a function must not take without being asked about.
var named = names(`sh bash dash python python3 node bun npm npx cat ls rm cp mv mkdir rmdir touch ln grep egrep fgrep sed awk gawk mawk
	find sort
	uniq head tail wc cut tr tee xargs env timeout nice nohup time tar gzip gunzip zip unzip chmod chown curl wget ssh sudo git jq diff
	date sleep basename dirname realpath readlink stat file du df seq id whoami uname hostname kill test`)

// poisonous reports whether a variable changes what later commands mean.
func poisonous(name string) bool {
	name, _, _ = strings.Cut(strings.TrimSuffix(name, "+"), "[")
	if poisons[name] {
		return true
	}
	if strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_") || name == "GIT_TERMINAL_PROMPT" ||
		name == "GIT_OPTIONAL_LOCKS" {
		return false // names and dates, and switches
	}
	for _, prefix := range []string{"LD_", "BASH_FUNC_", "GIT_", "npm_config_", "NPM_CONFIG_", "DYLD_", "MALLOC_", "GLIBC_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Poisonous reports whether an environment variable changes the meaning of the commands that inherit it.
func Poisonous(name string) bool { return poisonous(name) }

var poisons = names(`PATH BASH_CMDS BASH_ALIASES BASH_ENV ENV SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND SHELL GCONV_PATH LESSOPEN LESSCLOSE
	PAGER MANPAGER EDITOR VISUAL
	TAR_OPTIONS NODE_OPTIONS BUN_OPTIONS PYTHONSTARTUP PYTHONHOME PYTHONBREAKPOINT PYTHONINSPECT PERL5OPT PERL5LIB PERL5DB RUBYOPT RUBYLIB
	BROWSER LOCPATH NLSPATH HOSTALIASES TERMCAP TERMINFO XARGS_OPTIONS CDPATH BASH_LOADABLES_PATH BASH_XTRACEFD GREP_OPTIONS ZIPOPT ZIP UNZIP
	UNZIPOPT ZIPINFO ZIPINFOOPT GZIP XZ_OPT XZ_DEFAULTS BZIP BZIP2 TAPE RSYNC_RSH LESS MORE LESSKEY LESSKEYIN MAKEFLAGS MAKEFILES GNUMAKEFLAGS
	GOFLAGS GOENV RUSTC RUSTC_WRAPPER RUSTFLAGS CARGO_BUILD_RUSTC_WRAPPER SSH_ASKPASS JQ_LIBRARY_PATH RIPGREP_CONFIG_PATH INPUTRC
	PROMPT_DIRTRIM PS0
	JAVA_TOOL_OPTIONS _JAVA_OPTIONS LUA_INIT PHPRC AWKPATH AWKLIBPATH FPATH ZDOTDIR POSIXLY_CORRECT EXECIGNORE`)

// runsByOption are programs that are harmless, except for these options.
var runsByOption = map[string][]string{
	"tar": {"--checkpoint-action", "--to-command", "--use-compress-program", "-I", "--rsh-command", "-F", "--info-script",
		"--new-volume-script"},
	"sort":  {"--compress-program"},
	"split": {"--filter"},
	"zip":   {"-T", "--unzip-command"},
	"rsync": {"-e", "--rsh", "--rsync-path"},
	"rg":    {"--pre"},
	"fd":    {"-x", "-X", "--exec", "--exec-batch"},
	"ssh":   {"-o"},
	"diff":  {},
	"cpio":  {"--rsh-command"},
	"awk":   {"-f", "--file", "-i", "--include", "-E", "--exec"},
	"gawk":  {"-f", "--file", "-l", "--load", "-i", "--include", "-E", "--exec"},
	"mawk":  {"-f", "--file"},
}

// fileTools are the commands whose operands are files, and how many operands before them are not.
var fileTools = map[string]int{
	"cat": 0, "tac": 0, "nl": 0, "head": 0, "tail": 0, "less": 0, "more": 0, "wc": 0, "sort": 0, "uniq": 0, "cut": 0, "paste": 0, "join": 0,
	"comm": 0,
	"cp":   0, "mv": 0, "ln": 0, "install": 0, "tee": 0, "touch": 0, "truncate": 0, "rm": 0, "unlink": 0, "shred": 0, "dd": 0, "split": 0,
	"csplit": 0,
	"diff":   0, "cmp": 0, "od": 0, "xxd": 0, "hexdump": 0, "strings": 0, "base64": 0, "base32": 0, "md5sum": 0, "sha1sum": 0, "sha256sum": 0,
	"sha512sum": 0,
	"sha224sum": 0, "sha384sum": 0, "b2sum": 0, "sum": 0, "basenc": 0, "ptx": 0, "dircolors": 0, "pr": 0, "tsort": 0, "shuf": 0, "sdiff": 0,
	"fallocate": 0,
	"gzip":      0, "gunzip": 0, "zcat": 0, "bzip2": 0, "xz": 0, "zip": 0, "unzip": 0, "tar": 0, "rev": 0, "fold": 0, "fmt": 0, "expand": 0,
	"column": 0, "file": 0, "zstd": 0, "unzstd": 0, "zstdcat": 0, "unxz": 0, "xzcat": 0, "bunzip2": 0, "bzcat": 0,
	// of these only options name files
	"mkdir": 0, "rmdir": 0, "cksum": 0, "unexpand": 0, "rsync": 0, "scp": 0, "curl": 0, "date": 9, "du": maxWords,
	"chmod": 1, "chown": 1, "grep": 1, "egrep": 1, "fgrep": 1, "sed": 1, "awk": 1, "gawk": 1, "mawk": 1, "jq": 1, "rg": 1,
}

// writers are those that change the files that they are given.
var writers = names("mkdir rmdir cp mv ln install tee touch truncate rm unlink shred split csplit chmod chown gzip gunzip bzip2 xz " +
	"unxz bunzip2 zstd unzstd fallocate")

// copies are those of which the last operand alone is written, unless an option names the folder.
var copies = names("cp ln install")

// bunVerbs sorts bun's verbs; anything else is a file that it runs.
var bunVerbs = map[string]string{
	"add": "install", "a": "install", "install": "install", "i": "install", "update": "install", "upgrade": "install", "x": "install",
	"repl": "install", "create": "install", "c": "install", "init": "install", "link": "install", "unlink": "install", "remove": "install",
	"rm":    "install",
	"patch": "install", "publish": "install", "outdated": "install", "audit": "install", "pm": "install", "info": "install", "exec": "install",
	"run": "script", "test": "script", "build": "script", "dev": "script", "start": "script",
}

// harmless are the verbs that neither fetch nor run code.
var harmless = map[string]map[string]bool{
	"npm":    names("ls list ll la root prefix bin help explain why pkg version"),
	"pnpm":   names("ls list ll la root bin help why"),
	"yarn":   names("list why help"),
	"pip":    names("list show freeze check help inspect cache debug"),
	"pip3":   names("list show freeze check help inspect cache debug"),
	"uv":     names("version help tree"),
	"poetry": names("show check version about"),
	"cargo":  names("version help tree metadata fmt"),
	"go":     names("version help env fmt vet doc list"),
	"gem":    names("list help environment"),
}

// scripts are the verbs that run commands from a file of the space.
var scripts = map[string]map[string]bool{
	"npm":    names("run run-script rum urn test t tst start stop restart"),
	"pnpm":   names("run test t start"),
	"yarn":   names("run test start"),
	"uv":     names(""),
	"poetry": names(""),
	"cargo":  names("run test build check bench r t b c"),
	"go":     names("run test build generate"),
}

// manifests are the files that those verbs read.
var manifests = map[string]string{"npm": "package.json", "pnpm": "package.json", "yarn": "package.json", "cargo": "Cargo.toml",
	"go": "go.mod"}

// grantable are the commands for which one exact command line can get a standing approval: they run nothing but themselves. The list names
// what is allowed, not what is dangerous, so that a command that nobody considered is refused.
var grantable = names(`rm rmdir unlink mkdir touch cp mv ln chmod chown chgrp cat head tail wc ls stat du df file md5sum sha1sum sha256sum
	sha512sum
	cmp diff basename dirname realpath readlink date id whoami uname hostname truncate gzip gunzip`)
