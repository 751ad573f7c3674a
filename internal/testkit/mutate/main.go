// Command mutate changes a package in many small ways, one at a time, and says which changes its tests do not notice.
//
// A change that no test notices has to stand in the list of explained ones, with its reason. The command fails on one that does not,
// and on one that is listed although tests notice it or the code has gone. RATIONALE says why the project has its own program for this.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/tools/go/packages"
)

func main() {
	list := flag.String("explained", "internal/testkit/mutate/explained.txt", "the `file` of survivors that have a reason")
	only := flag.String("only", "", "only mutants whose file, function and change fit this `expression`")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: mutate [-explained FILE] [-only EXPRESSION] PACKAGE[:FILE,FILE][@OTHER,OTHER][=OPEN]...\n"+
			"Tests of OTHER folders notice mutants too. OPEN survivors of a package are let pass for now.")
		flag.PrintDefaults()
	}
	flag.Parse()
	explained, err := readExplained(*list)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// Everything that is made lies in one folder, which goes also where somebody interrupts the work.
	root, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Setenv("TMPDIR", root)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		os.RemoveAll(root)
		os.Exit(2)
	}()
	open, err := mutate(".", flag.Args(), explained, wanted, os.Stdout)
	os.RemoveAll(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if open > 0 {
		os.Exit(1)
	}
}

// readExplained reads the list of survivors that have a reason: a line "FILE FUNCTION", below it changes after one tab, and below
// those a line after two tabs that says why nobody can notice them, or need. Empty lines and those that begin with # say nothing.
func readExplained(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	explained := map[string]string{}
	var place string
	var open []string // changes whose reason follows
	for i, line := range strings.Split(string(text), "\n") {
		change, isChange := strings.CutPrefix(line, "\t")
		reason, isReason := strings.CutPrefix(change, "\t")
		key := place + "\t" + change
		_, twice := explained[key]
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isReason && len(open) > 0 && strings.TrimSpace(reason) != "":
			for _, key := range open {
				explained[key] = reason
			}
			open = nil
		case isChange && !isReason && place != "" && !twice:
			explained[key] = ""
			open = append(open, key)
		case !isChange && len(open) == 0:
			place = line
		default:
			return nil, fmt.Errorf("%s:%d: a change stands once, below its file and function, and above its reason", name, i+1)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%s: the last change has no reason", name)
	}
	return explained, nil
}

// mutate tries the mutants of packages, each "PATTERN[:FILE,FILE][@FOLDER,FOLDER][=OPEN]", and returns how many survivors are open,
// and how many explained ones are stale, beyond those that are let pass.
func mutate(module string, arguments []string, explained map[string]string, wanted *regexp.Regexp, out io.Writer) (int, error) {
	module, err := filepath.Abs(module)
	if err != nil {
		return 0, err
	}
	beyond := 0
	for _, argument := range arguments {
		what, number, counted := strings.Cut(argument, "=")
		pass, err := strconv.Atoi(number)
		if counted && err != nil {
			return beyond, fmt.Errorf("%s: behind = stands how many survivors are let pass", argument)
		}
		open := 0
		where, others, _ := strings.Cut(what, "@")
		pattern, files, _ := strings.Cut(where, ":")
		found, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: module}, pattern)
		if err != nil {
			return beyond, err
		}
		for _, pkg := range found {
			for _, e := range pkg.Errors {
				err = errors.Join(err, e)
			}
			if err != nil {
				return beyond, err
			}
			n, err := mutatePackage(module, pkg, listed(files), listed(others), explained, wanted, out)
			if err != nil {
				return beyond, fmt.Errorf("%s: %w", pkg.PkgPath, err)
			}
			open += n
		}
		if counted && open != pass {
			fmt.Fprintf(out, "%s: %d are open, and %d are let pass\n", what, open, pass)
		}
		beyond += max(0, open-pass)
	}
	return beyond, nil
}

func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func mutatePackage(module string, pkg *packages.Package, files, others []string, explained map[string]string, wanted *regexp.Regexp,
	out io.Writer) (int, error) {
	began := time.Now()
	t, err := build(module, pkg, files, others)
	if err != nil || t == nil {
		return 0, err
	}
	defer t.close()
	if err := t.look(); err != nil {
		return 0, err
	}
	if len(t.suites) == 0 {
		fmt.Fprintf(out, "%s: it has no tests\n", t.folder)
	}
	counts := map[verdict]int{}
	accounted, open, tried, known := map[string]bool{}, 0, 0, 0
	for _, m := range t.mutants {
		if !wanted.MatchString(m.key()) {
			continue
		}
		tried++
		v, err := t.try(m)
		if err != nil {
			return 0, err
		}
		counts[v]++
		_, listed := explained[m.key()]
		accounted[m.key()] = true
		switch isKilled := v == killed || v == timedOut; {
		case listed && isKilled:
			open++
			fmt.Fprintf(out, "%s:%d: %s: %s: %s, but the list explains it: take it out\n", m.file, m.line, m.function, m.change, v)
		case listed:
			known++
		case !isKilled:
			open++
			fmt.Fprintf(out, "%s:%d: %s: %s: %s\n", m.file, m.line, m.function, m.change, v)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(explained)) {
		file, _, _ := strings.Cut(key, " ")
		ours := path.Dir(file) == t.folder && (len(files) == 0 || slices.Contains(files, path.Base(file)))
		if ours && !accounted[key] && wanted.MatchString(key) {
			open++
			fmt.Fprintf(out, "%s: the list explains it, but there is no such mutant: take it out\n", strings.ReplaceAll(key, "\t", ": "))
		}
	}
	fmt.Fprintf(out, "%s: %d mutants: %d killed, %d timed out, %d survived, %d never differ, %d not reached; %d explained, %d open; %d "+
		"lines refused; %s\n",
		t.folder, tried, counts[killed], counts[timedOut], counts[survived], counts[same], counts[unreached], known, open, len(t.refused),
		time.Since(began).Round(time.Second))
	return open, nil
}
