package command_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/command"
)

// show writes a reading in one line: commands with their traits, files, what is not sealed, doubts.
func show(r command.Reading) string {
	var parts []string
	for _, c := range r.Commands {
		text := c.Line()
		if c.Name == "" {
			text = "?" + text
		}
		if len(c.Traits) > 0 {
			text += " <" + strings.Join(c.Traits, ",") + ">"
		}
		parts = append(parts, text)
	}
	for _, f := range r.Files {
		op := "<"
		if f.Write {
			op = ">"
		}
		if f.Argument {
			op = "arg" + op
		}
		if f.Pattern {
			op = "glob" + op
		}
		parts = append(parts, op+f.Path)
	}
	for _, u := range r.Unsealed {
		parts = append(parts, "unsealed:"+u)
	}
	for _, d := range r.Doubts {
		parts = append(parts, "doubt:"+d.What)
	}
	if r.Exact {
		parts = append(parts, "exact")
	}
	return strings.Join(parts, " | ")
}

func TestReading(t *testing.T) {
	const unknownName = "doubt:a command whose name is only known when it runs"
	for _, c := range []struct{ script, want string }{
		// one simple command in every place where one can stand
		{"ls -la", "ls -la | exact"},
		{"a | b && c || d; e & f", "a | b | c | d | e | f"},
		{"(a; { b; })", "a | b"},
		{"if a; then b; elif c; then d; else e; fi", "a | b | c | d | e"},
		{"while a; do b; done; until c; do d; done", "a | b | c | d"},
		{"for x in $(a); do b; done", "a | b"},
		{"for ((i=0; i<$(a); i++)); do b; done", "a | b | bash <interpreter,runs_file> | unsealed:the data that arithmetic evaluates"},
		{"case $(a) in x) b;; $(c)) d;; esac", "a | b | c | d"},
		{"select x in 1 2; do a; done", "a"},
		{"f() { a; }; b", "a | b"},
		{"function f { a; }", "a"},
		{"coproc a", "a"},
		{"coproc bash <<< 'sudo x'", "sudo x <privilege> | x | bash <interpreter>"},
		{"coproc N { a; } < x", "a | <x"},
		{"time a", "a"},
		{"! a", "a"},
		{"x=$(a) y=`b` c", "c | a | b"},
		{"echo $(a $(b))", "echo | a | b"},
		{"diff <(a) >(b)", "diff | a | b"},
		{"cat <<E\n$(a)\nE", "cat | a"},
		{"cat <<'E'\n$(a)\nE", "cat"},
		{`cat <<< "$(a)"`, "cat | a"},
		{"echo ${x:-$(a)} ${y/$(b)/c}", "echo | a | b"},
		{"echo $((1 + $(a)))", "echo | a | bash <interpreter,runs_file> | unsealed:the data that arithmetic evaluates"},
		{"[[ -n $(a) && x == $(b) ]]", "[[ | a | b"},
		{"((x = $(a)))", "a | bash <interpreter,runs_file> | unsealed:the data that arithmetic evaluates"},
		{"arr=($(a) [1]=$(b)); arr[$(c)]=1", "a | b | c | bash <interpreter,runs_file> | unsealed:the data that arithmetic evaluates"},
		{"declare x=$(a); export y=`b`", "declare x | a | export y | b"},
		{"trap 'a; b' EXIT", "a | b | trap a; b EXIT"},
		{"> x", ">x"},
		{"a # b", "a"},
		{"x=1", ""},

		// quoting does not hide a name
		{`su"do" a`, "sudo a <privilege> | a"},
		{`s\udo`, "sudo <privilege>"},
		{`'sudo'`, "sudo <privilege>"},
		{`$'su\x64o'`, "sudo <privilege>"},
		{`"sudo"`, "sudo <privilege>"},
		{"{sudo,ls}", "sudo ls <privilege> | ls"},
		{"su\\\ndo", "sudo <privilege>"},
		{"/usr/bin/sudo", "sudo <by_path,privilege>"},
		{"/usr/bin/../bin/sudo", "sudo <by_path,privilege>"},

		// what cannot be known
		{"$x a", "? a <unresolved> | " + unknownName},
		{`"$x" a`, "? a <unresolved> | " + unknownName},
		{"$(a) b", "? b <unresolved> | a | " + unknownName},
		{"${x}do a", "? a <unresolved> | " + unknownName},
		{"/bin/l? a", "? a <unresolved> | " + unknownName},
		{"~u/x", "? <unresolved> | " + unknownName},
		{"eval 'ls; sudo a'", "ls | sudo a <privilege> | a | eval ls; sudo a <unresolved> | doubt:what eval runs is only known when it runs"},
		{`eval "$x"`, "eval <unresolved> | doubt:what eval runs is only known when it runs"},
		{"a | bash", "a | bash <interpreter,unresolved> | doubt:what bash runs is only known when it runs"},
		{"bash $x", "bash <interpreter,unresolved> | doubt:what bash runs is only known when it runs"},
		{`bash -c "$x"`, "bash -c <interpreter,unresolved> | doubt:what bash runs is only known when it runs"},
		{"xargs $x", "xargs <unresolved> | doubt:what xargs runs is only known when it runs"},
		{"find . $x", "find . <unresolved> | arg<. | doubt:what find runs is only known when it runs"},
		{"x='a[$(id)]'; echo $((x))", "echo | doubt:arithmetic over text that holds a substitution"},
		{"test -v 'a[$(id)]'", "test -v a[$(id)] | doubt:arithmetic over text that holds a substitution"},
		{"echo ${x@P}", "echo | doubt:${...@...}"},
		{"a > $x", "a | doubt:a redirection into a file that is not known"},

		// one runs another
		{"bash -c 'a; b'", "a | b | bash -c a; b <inline_code,interpreter>"},
		{"sh -ec 'a'", "a | sh -ec a <inline_code,interpreter>"},
		{"bash -o pipefail -c a", "a | bash -o pipefail -c a <inline_code,interpreter>"},
		{"bash -c \"bash -c 'sudo a'\"",
			"sudo a <privilege> | a | bash -c sudo a <inline_code,interpreter> | bash -c bash -c 'sudo a' <inline_code,interpreter>"},
		{"bash <<'E'\na\nE", "a | bash <interpreter>"},
		{"bash <<< 'a'", "a | bash <interpreter>"},
		{"env A=b -i a", "env A=b -i a | -i a"},
		{"env -i A=b a c", "env -i A=b a c | a c"},
		{"env -u X a", "env -u X a | a"},
		{`env -u "$x" a`, "env -u a | a"},
		{"env -u $x a", "env -u a <unresolved> | doubt:what env runs is only known when it runs"},
		{"env -S 'a b'", "env -S a b <unresolved> | doubt:what env runs is only known when it runs"},
		{"env --split-string='a b' c", "env --split-string=a b c <unresolved> | c | doubt:what env runs is only known when it runs"},
		{"env -iS 'sudo a'", "env -iS sudo a <unresolved> | doubt:what env runs is only known when it runs"},
		{"env -vS'sudo a'", "env -vSsudo a <unresolved> | doubt:what env runs is only known when it runs"},
		{"env --split='sudo a'", "env --split=sudo a <unresolved> | doubt:what env runs is only known when it runs"},
		{"xargs --replace=ls ls", "xargs --replace=ls ls | ? <unresolved> | " + unknownName},
		{"xargs -ils ls", "xargs -ils ls <unresolved> | doubt:what xargs runs is only known when it runs"},
		{"xargs -rI ls ls", "xargs -rI ls ls | ? <unresolved> | " + unknownName},
		{"xargs -Ils ls", "xargs -Ils ls <unresolved> | ? <unresolved> | doubt:what xargs runs is only known when it runs | " + unknownName},
		{"trap -- 'sudo a' EXIT", "sudo a <privilege> | a | trap -- sudo a EXIT"},
		{"eval -- sudo a", "sudo a <privilege> | a | eval -- sudo a <unresolved> | doubt:what eval runs is only known when it runs"},
		{"tar xIf a b", "tar xIf a b <unresolved> | arg<xIf | arg<a | arg<b | doubt:what tar runs is only known when it runs"},
		{"tar xzf a", "tar xzf a | arg<xzf | arg<a"},
		{"declare -n p=PATH; p=x", "declare -n p | doubt:a name that stands for another"},
		{"printf -vPATH x", "printf -vPATH x <poisons_environment> | doubt:PATH="},
		{"read -aPATH", "read -aPATH <poisons_environment> | doubt:PATH="},
		{"xargs -n 1 rm", "xargs -n 1 rm | rm <deletes_tree>"},
		{"xargs -I{} sh -c 'a {}'", "xargs -I{} sh -c a {} | sh -c <interpreter,unresolved> | doubt:what sh runs is only known when it runs"},
		{"xargs -I X cp X y", "xargs -I X cp X y | cp y | arg>y | arg<X"},
		{"find . -exec a {} \\;", "find . -exec a {} ; | a | arg<."},
		{"find . -name x -execdir a {} +", "find . -name x -execdir a {} + | a | arg<."},
		{"find . -delete", "find . -delete <deletes_tree> | arg<."},
		{"find . -fprint .env", "find . -fprint .env | arg<. | >.env"},
		{"timeout -k 5 --signal=KILL 10 a b", "timeout -k 5 --signal=KILL 10 a b | a b"},
		{"timeout --sig KILL 10 a", "timeout --sig KILL 10 a | a"},
		{"nice -n 5 a", "nice -n 5 a | a"},
		{"nohup a", "nohup a | a"},
		{"stdbuf -oL a", "stdbuf -oL a | a"},
		{"command a; command -v b; builtin c; exec d", "command a | a | command -v b | builtin c | c | exec d | d"},
		{"exec -a name a", "exec -a name a | a"},
		{"busybox a b; toybox c", "busybox a b | a b | toybox c | c"},
		{"/usr/bin/time -o f a", "time -o f a <by_path> | a"},
		{"sudo -u root a", "sudo -u root a <privilege> | a"},
		{"flock f -c 'a; b'", "a | b | flock f -c a; b"},
		{"parallel a", "parallel a <unresolved> | doubt:what parallel runs is only known when it runs"},
		{"tar --checkpoint-action=exec=a x",
			"tar --checkpoint-action=exec=a x <unresolved> | arg<exec=a | arg<x | doubt:what tar runs is only known when it runs"},
		{"tar --to-com=a -xf x", "tar --to-com=a -xf x <unresolved> | arg<a | arg<x | doubt:what tar runs is only known when it runs"},
		{"sort --compress-program=a x",
			"sort --compress-program=a x <unresolved> | arg<a | arg<x | doubt:what sort runs is only known when it runs"},
		{"split --filter='sh -c x' f",
			"split --filter=sh -c x f <unresolved> | arg>sh -c x | arg>f | doubt:what split runs is only known when it runs"},

		// what poisons later commands
		{"PATH=/x a", "a | doubt:PATH="},
		{"PATH+=:x", "doubt:PATH="},
		{"export PATH=/x", "export PATH | doubt:PATH="},
		{"declare -x LD_PRELOAD=x", "declare -x LD_PRELOAD | doubt:LD_PRELOAD="},
		{"read PATH", "read PATH <poisons_environment> | doubt:PATH="},
		{"printf -v PATH x", "printf -v PATH x <poisons_environment> | doubt:PATH="},
		{"for PATH in x; do a; done", "a | doubt:PATH="},
		{"((PATH = 1))", "doubt:PATH="},
		{": ${PATH:=x}", ": | doubt:PATH="},
		{"env BASH_ENV=x a", "env BASH_ENV=x a | a | doubt:BASH_ENV="},
		{"alias ls=a", "alias ls=a <poisons_environment> | doubt:alias"},
		{"ls() { a; }", "a | doubt:function ls"},
		{"help() { a; }", "a | doubt:function help"},
		{":() { a; }; :", "a | : <function> | doubt:function :"},
		{"hash -p /x ls", "hash -p /x ls <poisons_environment> | doubt:hash"},
		{"enable -n echo", "enable -n echo <poisons_environment> | doubt:enable"},
		{". x", ". x <poisons_environment,runs_file> | arg<x | unsealed:x | doubt:."},
		{"unset -f a", "unset -f a | doubt:unset -f"},

		// functions are themselves only where they are certainly defined
		{"f() { a; }; f x", "a | f x <function>"},
		{"f x; f() { a; }", "f x | a"},
		{"if a; then f() { b; }; fi; f", "a | b | f"},
		{"f() { a; }; command f", "a | command f | f"},
		{"f() { a; }; ./f", "a | f <by_path,own_program> | arg<f | unsealed:f"},

		// deletion
		{"rm a b", "rm a b | arg>a | arg>b | exact"},
		{"rm -rf a", "rm -rf a <deletes_tree,recursive> | arg>a | exact"},
		{"rm --recur a", "rm --recur a <deletes_tree,recursive> | arg>a | exact"},
		{"rm -- -r", "rm -- -r | arg>-r | exact"},
		{"rm *", "rm * <deletes_tree> | globarg>*"},
		{`rm "$x"`, "rm <deletes_tree>"},
		{"rm {1..21}", "rm 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 <deletes_tree>" + files(">", 21)},

		// installation
		{"npm install x", "npm install x <installs_packages,network>"},
		{"npm --prefix y i x", "npm --prefix y i x <installs_packages,network>"},
		{"npm run build", "npm run build <runs_file> | unsealed:package.json"},
		{"npm ls", "npm ls"},
		{"npm --version", "npm --version"},
		{"npm whoami", "npm whoami <installs_packages,network>"},
		{"pnpm view x", "pnpm view x <installs_packages,network>"},
		{"bundle install", "bundle install <installs_packages,network>"},
		{"bundle exec x; bundle", "bundle exec x | bundle"},
		{"bundle $x", "bundle <installs_packages,network>"},
		{"bundle --gemfile x y", "bundle --gemfile x y <installs_packages,network>"},
		{"composer require x/y", "composer require x/y <installs_packages,network>"},
		{"pipenv install $x", "pipenv install <installs_packages,network>"},
		{"docker pull x", "docker pull x <network,privilege>"},
		{"apt-get -o a=b install x", "apt-get -o a=b install x <installs_packages,network>"},
		{"npm frobnicate", "npm frobnicate <installs_packages>"},
		{"npx x; bunx y", "npx x <installs_packages> | bunx y <installs_packages>"},
		{"bun add x; bun install", "bun add x <installs_packages,interpreter,network> | bun install <installs_packages,interpreter,network>"},
		{"bun run x.ts", "bun run x.ts <interpreter,runs_file> | arg<x.ts | unsealed:x.ts"},
		{"bun run build", "bun run build <interpreter,runs_file> | unsealed:package.json"},
		{"bun x.ts", "bun x.ts <interpreter,runs_file> | arg<x.ts | unsealed:x.ts"},
		{"pip install x; pip list", "pip install x <installs_packages,network> | pip list"},
		{"python3 -m pip install x", "python3 -m pip install x <installs_packages,interpreter,network>"},
		{"python3 -mpip install x", "python3 -mpip install x <installs_packages,interpreter,network>"},
		{"python3 -m json.tool", "python3 -m json.tool <interpreter,runs_file> | unsealed:the Python module json.tool"},

		// what an approval cannot seal
		{"python3 x.py a", "python3 x.py a <interpreter,runs_file> | arg<x.py | unsealed:x.py"},
		{"wasm x.wasm a -b", "wasm x.wasm a -b <interpreter,runs_file> | arg<x.wasm | unsealed:x.wasm"},
		{"wasm -- -x", "wasm -- -x <interpreter,runs_file> | arg<-x | unsealed:-x"},
		{"wasm $x", "wasm <interpreter,runs_file> | unsealed:a file that is only known when it runs"},
		{"wasm", "wasm <interpreter>"},
		{"python3 -W ignore x.py", "python3 -W ignore x.py <interpreter,runs_file> | arg<x.py | unsealed:x.py"},
		{"python3 -c 'x'", "python3 -c x <inline_code,interpreter>"},
		{"python3 --context c -c 'x'", "python3 --context c -c x <inline_code,interpreter> | unsealed:the interpreter context c"},
		{"python3 --context=c -c 'x'", "python3 --context=c -c x <inline_code,interpreter> | unsealed:the interpreter context c"},
		{"python3 --context=c x.py",
			"python3 --context=c x.py <interpreter,runs_file> | arg<x.py | unsealed:the interpreter context c | unsealed:x.py"},
		{`node --context=c -e "$AGENTBOX_CELL"`, "node --context=c -e <inline_code,interpreter> | unsealed:the interpreter context c"},
		{`python3 --context "$x" -c 1`,
			"python3 --context -c 1 <inline_code,interpreter> | unsealed:an interpreter context that is only known when it runs"},
		{"node -e x; node x.js", "node -e x <inline_code,interpreter> | node x.js <interpreter,runs_file> | arg<x.js | unsealed:x.js"},
		{"bash x.sh", "bash x.sh <interpreter,runs_file> | arg<x.sh | unsealed:x.sh"},
		{"bash < x.sh", "bash <interpreter,runs_file> | arg<x.sh | <x.sh | unsealed:x.sh"},
		{"./x", "x <by_path,own_program> | arg<x | unsealed:x"},
		{"/workspace/x/y", "y <by_path,own_program> | arg<x/y | unsealed:x/y"},
		{"/tmp/x", "x <by_path,own_program> | arg</tmp/x | unsealed:/tmp/x"},
		{"a | python3", "a | python3 <interpreter,runs_file> | unsealed:the standard input of python3"},
		{"python3 - <<'E'\nx\nE", "python3 - <inline_code,interpreter>"},

		// files
		{"a > x < y >> z 2> e &> b", "a | >x | <y | >z | >e | >b"},
		{"a 2>&1 >/dev/null", "a"},
		{"a > ../../etc/passwd", "a | >/etc/passwd"},
		{"a > /workspace/sub/../x", "a | >x"},
		{"a > ~/x", "a | >x"},
		{"cat < /dev/tcp/h/80", "cat | /dev/tcp <network>"},
		{"cat a b", "cat a b | arg<a | arg<b | exact"},
		{"grep x a", "grep x a | arg<a"},
		{"dd if=a of=b", "dd if=a of=b | arg<a | arg>b"},
		{"cd .git && cat config", "cd .git | cat config | arg<.git | arg<config | arg<.git/config"},
		{"cp a b", "cp a b | arg<a | arg>b | exact"},

		// what a standing approval may cover
		{"rm -r scratch", "rm -r scratch <deletes_tree,recursive> | arg>scratch | exact"},
		{"rm -r 'a b'", "rm -r a b <deletes_tree,recursive> | arg>a b | exact"},
		{"rm -r scratch &", "rm -r scratch <deletes_tree,recursive> | arg>scratch"},
		{"X=1 rm -r scratch", "rm -r scratch <deletes_tree,recursive> | arg>scratch"},
	} {
		r, err := command.ReadScript(c.script, command.Bash, "")
		if err != nil {
			t.Errorf("%q: %v", c.script, err)
			continue
		}
		if got := show(r); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.script, got, c.want)
		}
	}
}

func files(op string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, " | arg%s%d", op, i+1)
	}
	return out.String()
}

func TestRefusedCommandLines(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"syntax", "ls\nif a; then", "line 2, column 7"},
		{"quote", "echo 'a", "line 1, column 6"},
		{"NUL", "ls\x00", "NUL"},
		{"not UTF-8", "ls \xff", "UTF-8"},
		{"one character too many", strings.Repeat("é", command.MaxChars+1), "4097 characters; the limit is 4096"},
		{"too many commands", strings.Repeat("a;", 513), "more than 512 commands"},
		{"too many words by braces", "echo {1..10}{1..10}{1..10}{1..10}", "more than 1024 words"},
		{"far too many words by braces", "echo {1..99999999}", "braces expand"},
		{"within a substitution", "echo $(if)", "line 1"},
		{"within sh -c", "sh -c 'if a'", "line 1"},
		{"nested too deep", nest("a", 9), "nested more than 8 deep"},
	} {
		_, err := command.ReadScript(c.script, command.Bash, "")
		refused := &command.Error{}
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a refusal with %q", c.name, err, c.want)
		}
	}
	for _, c := range []struct{ name, script string }{
		{"as many characters as allowed", "echo " + strings.Repeat("é", command.MaxChars-5)},
		{"as many commands as allowed", strings.Repeat("a;", 512)},
		{"nested as deep as allowed", nest("a", 8)},
	} {
		if _, err := command.ReadScript(c.script, command.Bash, ""); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// nest wraps a command into env as often as n says.
func nest(command string, n int) string { return strings.Repeat("env ", n) + command }

func TestTextThatTwoShellsReadDifferently(t *testing.T) {
	// In sh these are nested subshells, in bash arithmetic.
	r, err := command.ReadScript("((sudo x))", command.POSIX, "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Commands, func(c command.Command) bool { return c.Name == "sudo" }) {
		t.Errorf("got %s, want sudo among the commands", show(r))
	}
	if _, err := command.ReadScript("cat <(a)", command.POSIX, ""); err == nil {
		t.Error("a process substitution is not a POSIX shell, and was read as one")
	}
}

func TestArgumentVectors(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"/bin/bash", "-c", "a; b"}, "a | b"},
		{[]string{"sh", "-c", "a"}, "a"},
		{[]string{"rm", "-r", "a b"}, "rm -r a b <deletes_tree,recursive> | arg>a b | exact"},
		{[]string{"sudo", "a"}, "sudo a <privilege> | a"},
		{[]string{"bash", "x.sh"}, "bash x.sh <interpreter,runs_file> | arg<x.sh | unsealed:x.sh"},
		{[]string{"bash", "-x", "-c", "sudo a"}, "sudo a <privilege> | a | bash -x -c sudo a <inline_code,interpreter>"},
		{[]string{"echo", "$(sudo)"}, "echo $(sudo)"},
		{[]string{"./bash", "-c", "a"}, "a | bash -c a <by_path,inline_code,interpreter,own_program> | arg<bash | unsealed:bash"},
	} {
		r, err := command.ReadArgv(c.argv, "")
		if err != nil {
			t.Errorf("%q: %v", c.argv, err)
			continue
		}
		if got := show(r); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.argv, got, c.want)
		}
	}
	for _, argv := range [][]string{nil, {""}, {"a\x00"}, {"a", "\xff"}, {"echo", strings.Repeat("x", command.MaxArgBytes)}} {
		if _, err := command.ReadArgv(argv, ""); err == nil {
			t.Errorf("%.20q was not refused", argv)
		}
	}
}

// gtfobins are programs that are known to start a shell or another program when they are asked in the right way.
var gtfobins = strings.Fields(
	`ab agetty alpine ansible-playbook ansible-test aoss apache2ctl apt apt-get ar aria2c arj arp as ascii-xfr ascii85
	ash aspell at atobm awk aws base58 basenc bash batcat bc bconsole bpftrace bridge bundle bundler busctl busybox byebug bzip2 c89 c99 cabal
	capsh cdist certbot check_by_ssh check_cups choom chroot clamscan cobc column comm composer cowsay cowthink cpan cpio cpulimit crash
	crontab csh csplit csvtool cupsfilter curl dash date dialog dig distcc dmesg dmidecode dmsetup dnf docker dosbox dotnet dpkg dstat dvips
	easy_install eb ed efax elvish emacs enscript env eqn espeak ex exiftool expand expect facter fc find finger fish flock fmt fold fping
	ftp gawk gcc gcloud gcore gdb gem genie genisoimage ghc ghci gimp ginsh git grc gtester hping3 iconv iftop install ionice irb ispell
	java jjs joe join journalctl jq jrunscript jtag julia knife ksh ksshell ksu kubectl latex latexmk ld.so ldconfig less lftp loginctl
	logrotate logsave look ltrace lua lualatex luatex lwp-download lwp-request mail make man mawk minicom more mosquitto msfconsole msgattrib
	msguniq mtr multitime mutt mypy mysql nano nasm nawk nc ncdu ncftp neofetch nft nice nl nmap node nohup npm nroff nsenter ntpdate octave
	openssl openvpn pandoc pax pdb pdflatex pdftex perf perl perlbug pexec php pic pico pidstat pip pkexec pkg posh pr pry psftp psql ptx
	puppet pwsh pyenv python python3 rake rbash rc readelf red redcarpet restic rev rlwrap rpm rpmdb rpmquery rpmverify rsync rtorrent ruby
	run-mailcap run-parts runscript rview rvim sash scanmem scp screen script scrot sed service setarch setfacl setlock sftp sg sh shuf slsh
	smbclient snap socat soelim softlimit split sqlite3 sqlmap ss ssh ssh-agent ssh-keygen ssh-keyscan sshpass start-stop-daemon stdbuf
	strace strings su sudo sysctl systemctl systemd-resolve tac tar task taskset tasksh tbl tclsh tcpdump tdbtool tee telnet terraform tex
	tftp tic time timedatectl timeout tmate tmux torify torsocks troff tshark unexpand unshare unzip uv vi view vigr vim vimdiff vipw virsh
	volatility w3m watch wget whiptail wireshark wish xargs xdg-user-dir xdotool xelatex xetex xmodmap xmore xpad xxd yarn yash yelp yum
	zathura zip zsh zsoelim zypper bun bunx npx deno zsh doas runuser setpriv parallel entr command builtin exec eval source . tsx`)

func TestThreat10NothingThatRunsOthersIsExact(t *testing.T) {
	for _, name := range gtfobins {
		for _, line := range []string{name, name + " x", name + " -c x", "command " + name + " x", "env " + name + " x", "/usr/bin/" + name +
			" x", "./" + name} {
			r, err := command.ReadScript(line, command.Bash, "")
			if err != nil {
				continue // refused altogether
			}
			if r.Exact && !harmlessButListed[name] {
				t.Errorf("%q could get a standing approval", line)
			}
		}
	}
}

// harmlessButListed are in the list because they read or write a file that they are given, which an exact command line shows.
var harmlessButListed = map[string]bool{"date": true}
