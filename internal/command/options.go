package command

import (
	"path"
	"slices"
	"strings"
)

// taking is the kind of value that an option takes.
type taking byte

const (
	nothing  taking = 0
	value    taking = 'v' // a value that is not a file
	attached taking = 'o' // the same, and only where it stands right behind the option
	reading  taking = 'f' // a file that is read
	writing  taking = 'w' // a file, or the folder of files, that is written
	program  taking = 'p' // a pattern or a program, otherwise the first operand
	script   taking = 'P' // the same, from a file
	pattern  taking = 'i' // the names of files that are read
	pair     taking = '2' // a name and a value
	pairFile taking = '3' // a name and a file that is read
	listing  taking = '0' // a file that is read for the names of files that are read
	without  taking = 'X' // files that are left out, up to the next option
)

// options makes the table of a tool's options: letters, or long names with their dashes, each with = and the kind of its value.
func options(text string) map[string]taking {
	table := map[string]taking{}
	for _, word := range strings.Fields(text) {
		name, takes, _ := strings.Cut(word, "=")
		table[name] = taking(takes[0])
	}
	return table
}

var grepOptions = options(`A=v B=v C=v m=v d=v D=v e=p f=P --regexp=p --file=P --include=i --exclude=v --exclude-dir=v --exclude-from=f
	--max-count=v --after-context=v --before-context=v --context=v --label=v --color=o --colour=o --binary-files=v --directories=v
		--devices=v`)

var copyOptions = options("t=w S=v m=v o=v g=v --target-directory=w --suffix=v --backup=o --mode=v --preserve=o --sparse=o --reflink=o")

var zstdOptions = options("o=w T=v D=f M=v --filelist=0 --output-dir-flat=w --output-dir-mirror=w --patch-from=f --trace=w")

var xzOptions = options("F=v S=v T=v C=v M=v --files=0 --files0=0 --suffix=v --format=v --check=v --threads=v --memlimit=v")

// optionTable says which values the options of the file tools take. An option that is not listed counts as a flag, and a text after its =
// as a file.
var optionTable = map[string]map[string]taking{
	"grep": grepOptions, "egrep": grepOptions, "fgrep": grepOptions,
	"rg": options("A=v B=v C=v m=v g=i e=p f=P t=v T=v j=v M=v E=v r=v --regexp=p --file=P --glob=i --iglob=i --type=v --ignore-file=f " +
		"--color=o --colors=v"),
	"sed":  options("e=p f=P l=v i=o --expression=p --file=P --in-place=o --line-length=v"),
	"awk":  options("F=v v=v f=P e=p i=f l=v E=P W=v --field-separator=v --assign=v --file=P --source=p --include=f --exec=P"),
	"gawk": options("F=v v=v f=P e=p i=f l=v E=P W=v --field-separator=v --assign=v --file=P --source=p --include=f --exec=P"),
	"mawk": options("F=v v=v f=P W=v"),
	"jq":   options("f=P L=f --from-file=P --arg=2 --argjson=2 --slurpfile=3 --rawfile=3 --indent=v"),
	"tar": options(`f=f T=f X=f C=f g=f I=v F=v b=v H=v K=v N=v V=v --file=f --files-from=f --exclude-from=f --directory=f --exclude=v
		--exclude-ignore=v --exclude-tag=v --transform=v --xform=v --owner=v --group=v --mode=v --strip-components=v --format=v --label=v
			--mtime=v`),
	"sort": options("k=v t=v S=v o=w T=f --key=v --field-separator=v --buffer-size=v --sort=v --output=w --temporary-directory=f " +
		"--files0-from=0 --parallel=v"),
	"head":  options("n=v c=v --lines=v --bytes=v"),
	"tail":  options("n=v c=v s=v --lines=v --bytes=v --pid=v --sleep-interval=v --follow=o"),
	"wc":    options("--files0-from=0 --total=v"),
	"cut":   options("b=v c=v d=v f=v --bytes=v --characters=v --delimiter=v --fields=v --output-delimiter=v"),
	"paste": options("d=v --delimiters=v"), "uniq": options("f=v s=v w=v"), "fold": options("w=v"), "fmt": options("w=v g=v p=v"),
	"nl": options("b=v d=v f=v h=v i=v l=v n=v s=v v=v w=v"), "od": options("A=v j=v N=v S=v t=v w=o"), "xxd": options("c=v g=v l=v o=v s=v"),
	"hexdump": options("n=v s=v e=v f=f"), "strings": options("n=v t=v e=v T=v"), "base64": options("w=v"), "base32": options("w=v"),
	"split": options("a=v b=v C=v l=v n=v t=v --additional-suffix=v --lines=v --bytes=v --number=v"), "csplit": options("f=w b=v n=v"),
	"column": options("s=v c=v o=v N=v H=v R=v W=v"), "join": options("1=v 2=v j=v t=v o=v a=v e=v v=v"), "cmp": options("i=v n=v"),
	"diff": options(`x=v X=f I=v U=v C=v F=v W=v D=v S=v --exclude=v --exclude-from=f --from-file=f --to-file=f --label=v --unified=o
		--context=o
		--color=o --ignore-matching-lines=v`),
	"cp": copyOptions, "mv": copyOptions, "ln": copyOptions, "install": copyOptions, "mkdir": options("m=v --mode=v"),
	"truncate": options("s=v r=f --size=v --reference=f"), "touch": options("d=v t=v r=f --date=v --reference=f --time=v"),
	"date":  options("d=v f=f r=f s=v --date=v --file=f --reference=f --set=v"),
	"file":  options("f=f m=f F=v e=v --files-from=f --magic-file=f"),
	"shred": options("n=v s=v"), "gzip": options("S=v --suffix=v"), "zip": options("x=X i=i b=f t=v n=v P=v"), "unzip": options("d=w x=X P=v"),
	"zstd": zstdOptions, "unzstd": zstdOptions, "zstdcat": zstdOptions, "xz": xzOptions, "unxz": xzOptions, "xzcat": xzOptions,
	"du": options("X=f d=v B=v t=v --exclude=v --exclude-from=f --files0-from=0 --max-depth=v"),
	"ls": options("I=v w=v T=v --ignore=v --hide=v --color=o"),
	"rsync": options(`e=v f=v B=v T=f --exclude=v --include=v --filter=v --exclude-from=f --include-from=f --files-from=f --password-file=f
		--backup-dir=w --log-file=w --rsh=v --chmod=v`),
	"curl": options(`d=f T=f F=f K=f b=f E=f o=w c=w D=w H=v X=v u=v A=v e=v m=v w=v --data=f --data-binary=f --form=f --config=f --key=f
		--cert=f
		--upload-file=f --output=w --header=v --request=v --user=v`),
}

// item is an option's value, or an operand.
type item struct {
	arg
	takes taking // nothing for an operand
}

// items sorts the arguments of a file tool: the values of its options by their kinds, and its operands.
func items(tool string, rest []arg) []item {
	table := optionTable[tool]
	var found []item
	flags := true
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		next := func() arg {
			if i+1 < len(rest) {
				i++
				return rest[i]
			}
			return arg{known: true}
		}
		switch {
		case flags && a.known && a.text == "--":
			flags = false
		case !a.known || !flags || len(a.text) < 2 || a.text[0] != '-' || tool == "dd":
			found = append(found, item{a, nothing})
		case strings.HasPrefix(a.text, "--"):
			name, text, has := strings.Cut(a.text, "=")
			takes := longTaking(table, name)
			given := arg{text: text, known: true}
			switch {
			case takes == nothing && has:
				found = append(found, item{given, reading})
			case takes == nothing || takes == attached && !has:
			case takes == pair || takes == pairFile:
				next()
				found = append(found, item{next(), takes})
			case has:
				found = append(found, item{given, takes})
			default:
				found = append(found, item{next(), takes})
			}
		default:
			takes, text, has := shortTaking(table, a.text[1:])
			switch {
			case takes == without:
				for i+1 < len(rest) && !(rest[i+1].known && strings.HasPrefix(rest[i+1].text, "-")) {
					i++
				}
			case takes == nothing && len(a.text) > 2 && strings.ContainsAny(a.text, "./"):
				found = append(found, item{arg{text: a.text[2:], known: true}, reading})
			case takes == nothing || takes == attached:
			case has:
				found = append(found, item{arg{text: text, known: true}, takes})
			default:
				found = append(found, item{next(), takes})
			}
		}
	}
	return found
}

// longTaking returns what a long option takes. GNU programs accept any unique prefix of its name. If the prefix fits several options that
// take different things, it counts as one that takes a file.
func longTaking(table map[string]taking, name string) taking {
	if takes, ok := table[name]; ok || len(name) < 4 {
		return takes
	}
	takes := nothing
	for full, t := range table {
		switch {
		case !strings.HasPrefix(full, name):
		case takes == nothing:
			takes = t
		case takes != t:
			return reading
		}
	}
	return takes
}

// shortTaking returns the value kind of the first letter in a cluster that takes a value, and the text right after it.
func shortTaking(table map[string]taking, letters string) (takes taking, text string, has bool) {
	for i := range letters {
		if takes = table[letters[i:i+1]]; takes != nothing {
			return takes, letters[i+1:], i+1 < len(letters)
		}
	}
	return nothing, "", false
}

// operands notes the files among the operands of a command. The first skip operands are not files (patterns, programs, modes), unless an
// option gave them.
func (r *reader) operands(c *Command, rest []arg, skip int) error {
	write := writers[c.Name]
	found := items(c.Name, rest)
	written := len(found) - 1 // of a copy or a link, the last operand alone
	if copies[c.Name] {
		for written >= 0 && found[written].takes != nothing {
			written--
		}
		if slices.ContainsFunc(found, func(i item) bool { return i.takes == writing }) {
			written = -1
		}
	}
	negative := false // grep -v: it prints other lines than it searches for
	inverts := !strings.HasSuffix(c.Name, "awk")
	for _, i := range found {
		if i.takes == program || i.takes == script {
			skip = 0
		}
	}
	for _, a := range rest {
		negative = negative || inverts && a.known && (a.text == "--invert-match" || len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' &&
			strings.Contains(a.text, "v"))
	}
	for n, i := range found {
		switch i.takes {
		case nothing:
			if copies[c.Name] && (written < 0 || found[written].known) {
				write = n == written
				if c.Name == "ln" && n == 0 && n == written { // the link lies in the folder where it is made
					i.text = path.Base(i.text)
				}
			}
			if skip > 0 {
				if skip--; !negative {
					r.mentions.mention(i.arg)
				}
				continue
			}
			if err := r.operand(c, i.arg, write); err != nil {
				return err
			}
		case program, value:
			if i.takes == value && !strings.HasSuffix(c.Name, "awk") {
				continue // awk gives its variables names of files
			}
			if !negative {
				r.mentions.mention(i.arg)
			}
		case reading, script, pairFile, writing:
			if err := r.operand(c, i.arg, write || i.takes == writing); err != nil {
				return err
			}
		case listing:
			r.mentions.blind = true
			if err := r.operand(c, i.arg, false); err != nil {
				return err
			}
		case pattern:
			i.glob = i.glob || strings.ContainsAny(i.text, "*?[")
			if err := r.operand(c, i.arg, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// operand notes one file that a command is given; one that is not known may be any that the command line mentions.
func (r *reader) operand(c *Command, a arg, write bool) error {
	if !a.known {
		r.mentions.blind = true
		r.joins.join(a, write)
		r.mentions.mention(a)
		return nil
	}
	if c.Name == "dd" || c.Name == "curl" {
		name, text, has := strings.Cut(a.text, "=")
		if c.Name == "dd" {
			write = name == "of"
		}
		if has {
			a.text = text
		}
		a.text = strings.TrimPrefix(a.text, "@") // curl reads what stands behind an @
	}
	if a.text == "" {
		return nil
	}
	return r.open(arg{text: a.text, known: true, glob: a.glob}, write, true)
}
