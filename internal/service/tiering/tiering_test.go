package tiering_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/tiering"
)

var has = space.Offer{
	Tier: space.Nano, Programs: strings.Fields("bash cat env find grep ls node python3 sh sort timeout which xargs"),
	Modules: strings.Fields("importlib json os re sys typing"), Node: strings.Fields("fs path util"),
}

func standard(t testing.TB) *tiering.Service {
	t.Helper()
	rules, err := tiering.Standard()
	if err != nil {
		t.Fatal(err)
	}
	return tiering.New(rules)
}

// of reads files of a space that are given; asked counts how often.
func of(files map[string]string, asked *int) space.Read {
	return func(path string, most int64) ([]byte, error) {
		if asked != nil {
			*asked++
		}
		text, ok := files[path]
		if !ok {
			return nil, errors.New("it is not there")
		}
		return []byte(text[:min(int64(len(text)), most)]), nil
	}
}

func TestPlace(t *testing.T) {
	files := map[string]string{
		"app.py": "import os\nimport helper as h, json\nfrom lib.deep import thing\n", "helper.py": "import numpy\n", "lib/__init__.py": "",
		"lib/deep.py": "from . import more\n",
		"lib/more.py": "x = 1\n", "plain.py": "import os, sys\n",
		"docs.py":    "\"\"\"\nimport numpy\n\"\"\"\n# import pandas\ntext = 'import torch'\n",
		"try.py":     "try:\n    import numpy\nexcept ImportError:\n    import scipy\nimport os\n",
		"typed.py":   "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n",
		"many.py":    "from os import (\n    path,\n    getcwd,\n)\nimport \\\n  requests\n",
		"dynamic.py": "import importlib\nimportlib.import_module('torch')\n",
		"run.sh":     "#!/bin/bash\ncat x | rustc -\n", "py": "#!/usr/bin/env -S python3 -u\nimport pandas\n", "prog": "\x7fELF\x02",
		"mod.wasm": "\x00asm\x01",
		"bare":     "gcc x.c\n", "rel/a.mjs": "import './b'\nimport fs from 'node:fs'\n// import 'commented'\n",
		"rel/b.ts":                        "import {x} from 'left-pad/sub'\nrequire('net')\n",
		"node_modules/there/package.json": "{}", "local.js": "const x = require('there'); import('@scope/gone/sub')\n",
		"url.js":           "const u = 'https://example.org'; require('fs')\n",
		"requirements.txt": "# what we need\nrequests[socks]>=2 ; python_version > '3'\n-r other.txt\nflask\n",
		"package.json": `{"scripts":{"build":"tsc -p .","again":"npm run ` +
			`again"},"dependencies":{"left-pad":"1"},"devDependencies":{"typescript":"5"}}`,
		"sub/app.py": "import near\n", "sub/near.py": "import json\n", "loop.py": "import loop\n", "self.sh": "bash self.sh\n",
		"heavy.py": "import ctypes\n",
	}
	for _, c := range []struct{ command, want string }{
		{"ls -l | sort", ""},
		{"", ""},
		{"ls |", ""}, // the shell says so itself
		{"gcc -o x x.c", "command gcc at line 1"},
		{"ls\nif true; then cargo build; fi", "command cargo at line 2"},
		{"for f in *; do echo $(ffmpeg -i $f); done", "command ffmpeg at line 1"},
		{"$cmd x; \"$0\"", ""},
		{"f() { ls; }; f", ""},
		{"/usr/bin/git log", "command git at line 1"},
		{"command -v git || which git", ""},
		{"env A=b timeout -k 3 5 make all", "command make at line 1"},
		{"env -a zero --chdir sub make all", "command make at line 1"},
		{"busybox gcc x.c", "command busybox at line 1"},
		{"taskset 3 gcc x.c", "command taskset at line 1, command gcc at line 1"},
		{"command -v gcc; env -u A", ""},
		{"node --require ./url.js -e 'require(\"left-pad\")'", "package left-pad at line 1:1"},
		{"find . -okdir gcc {} \\;", "command gcc at line 1"},
		{"find . -name '*.c' -exec clang {} \\;", "command clang at line 1"},
		{"ls | xargs -n 1 -I{} jqx {}", "command jqx at line 1"},
		{"bash -c 'rustc x'", "command rustc at line 1"},
		{"bash script.sh -c 'rustc x'", ""},
		{"eval 'rustc x'", "command rustc at line 1"},
		{"bash <<'EOF'\nrustc x\nEOF", "command rustc at line 1"},
		{"bash <<< 'rustc x'", "command rustc at line 1"},
		{"LD_PRELOAD=x.so ls", "feature LD_PRELOAD"},
		{"./run.sh", "command rustc at run.sh"},
		{"bash run.sh", "command rustc at run.sh"},
		{"/workspace/run.sh", "command rustc at run.sh"},
		{"/elsewhere/run.sh", ""},
		{"./py", "module pandas at py:2"},
		{"./prog --help", "feature binaries at prog"},
		{"./mod.wasm", ""},
		{"./bare", "command gcc at bare"},
		{"./gone", ""},
		{"python3 app.py", "module numpy at helper.py:1"},
		{"python3 -u plain.py -c 'import numpy'", ""},
		{"python3 --context c app.py", ""},
		{"python3 -u --context=c -c 'import numpy'", ""},
		{"python3 app.py --context c", "module numpy at helper.py:1"},
		{"node --context c -e 'require(\"left-pad\")'", ""},
		{"python3 docs.py", ""},
		{"python3 try.py", ""},
		{"python3 typed.py", ""},
		{"python3 many.py", "module requests at many.py:5"},
		{"python3 dynamic.py", "module torch at dynamic.py:2"},
		{"python3 heavy.py", "module ctypes at heavy.py:1"},
		{"python3 loop.py", ""},
		{"bash self.sh", ""},
		{"cd sub && python3 app.py", ""},
		{"python3 sub/app.py", ""},
		{"python3 -c 'import near'", "module near at line 1:1"},
		{"cd sub; python3 -c 'import near'", ""},
		{"python3 -c 'import os; import numpy as np, pandas.core'", "module numpy at line 1:1, module pandas at line 1:1"},
		{"python3 - <<'EOF'\nimport os\nfrom scipy.stats import norm\nEOF", "module scipy at line 1:2"},
		{"python3 < helper.py", "module numpy at line 1:1"},
		{"cat > new.py <<'EOF'\nimport torch\nEOF\npython3 new.py", "module torch at new.py:1"},
		{"python3 -m json.tool x", ""},
		{"python3 -m pytest -q", "module pytest at line 1"},
		{"python3 -m pip install flask", "package flask at line 1"},
		{"pip install -r requirements.txt 'numpy>=2'",
			"command pip at line 1, package requests at requirements.txt:2, package flask at requirements.txt:4, package numpy at line 1"},
		{"node rel/a.mjs", "package left-pad at rel/b.ts:1, module node:net at rel/b.ts:2"},
		{"node local.js", "package @scope/gone at local.js:1"},
		{"node url.js", ""},
		{"node -e \"require('path'); require('express')\"", "package express at line 1:1"},
		{"node <<< \"import x from 'node:worker_threads'\"", "module node:worker_threads at line 1:1"},
		{"npm install", "command npm at line 1, package left-pad at package.json, package typescript at package.json"},
		{"npm i @types/node@22 left-pad@1", "command npm at line 1, package @types/node at line 1, package left-pad at line 1"},
		{"npm run build", "command npm at line 1, command tsc at package.json"},
		{"npm run again", "command npm at line 1"},
	} {
		var got []string
		for _, n := range standard(t).Place(has, space.Command{Text: c.command}, of(files, nil)) {
			text := n.Kind + " " + n.Name
			if n.Where != "" {
				text += " at " + n.Where
			}
			got = append(got, text)
		}
		if all := strings.Join(got, ", "); all != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.command, all, c.want)
		}
	}
}

func TestRulesDecide(t *testing.T) {
	rules, err := tiering.ParseRules([]byte(`
nano: {commands: [gcc], modules: [numpy, "node:net"], packages: [left-pad]}
heavy: {commands: [sort], modules: [os.fork, "node:fs"], packages: [right-pad], env: ["GPU*", "MODE=fast*now"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := tiering.New(rules)
	for _, c := range []struct {
		text string
		env  map[string]string
		want string
	}{
		{"gcc x", nil, ""},
		{"ls | sort", nil, "sort"},
		{"python3 -c 'import numpy, json'", nil, ""},
		{"python3 -c 'from os import fork'", nil, "os"},
		{"python3 -c 'import os'", nil, ""},
		{"node -e 'require(\"node:net\"); require(\"left-pad\")'", nil, ""},
		{"node -e 'require(\"fs\"); require(\"right-pad\")'", nil, "node:fs right-pad"},
		{"ls", map[string]string{"GPU_COUNT": "1", "MODE": "fast and now", "A": "b"}, "GPU_COUNT MODE"},
		{"ls", map[string]string{"MODE": "slow now", "XGPU": "1"}, ""},
	} {
		var got []string
		for _, n := range p.Place(has, space.Command{Text: c.text, Env: c.env}, nil) {
			got = append(got, n.Name)
		}
		if all := strings.Join(got, " "); all != c.want {
			t.Errorf("%s %v: got %q, want %q", c.text, c.env, all, c.want)
		}
	}
}

func TestALookIsBounded(t *testing.T) {
	files, asked := map[string]string{}, 0
	var chain strings.Builder
	for i := range 200 {
		files[fmt.Sprintf("m%d.py", i)] = fmt.Sprintf("import m%d\n", i+1)
		fmt.Fprintf(&chain, "tool%d; ", i)
	}
	standard(t).Place(has, space.Command{Text: "python3 m0.py"}, of(files, &asked))
	if asked != tiering.MaxFiles {
		t.Errorf("%d files were read, want %d", asked, tiering.MaxFiles)
	}
	if got := standard(t).Place(has, space.Command{Text: chain.String()}, nil); len(got) != 32 {
		t.Errorf("%d needs are told, want 32", len(got))
	}
	files = map[string]string{"a.py": strings.Repeat("#", tiering.MaxFileBytes-14) + "\nimport numpy\nimport scipy\n"}
	if got := standard(t).Place(has, space.Command{Text: "python3 a.py"}, of(files, nil)); len(got) != 1 || got[0].Name != "numpy" {
		t.Errorf("of a file that is too long: got %v, want what stands within the bound", got)
	}
	for _, text := range []string{strings.Repeat("(", 5000), strings.Repeat("$(", 5000), "eval " + strings.Repeat("'eval '", 1000),
		strings.Repeat("x ", 1<<20)} {
		standard(t).Place(has, space.Command{Text: text}, nil)
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	list := func(n int, of string) string {
		return "nano: {commands: [" + strings.Join(slices.Repeat([]string{of}, n), ",") + "]}"
	}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"nothing":                  {"", true},
		"a comment":                {"# nothing\n", true},
		"what there is not":        {"light: {}\n", false},
		"a word that there is not": {"nano: {command: [ls]}\n", false},
		"a text for a list":        {"nano: {commands: ls}\n", false},
		"two documents":            {"nano: {}\n---\nnano: {}\n", false},
		"an alias":                 {"nano: &a {}\nheavy: *a\n", false},
		"a tag":                    {"nano: !!map {}\n", false},
		"the most entries":         {list(5000, "x"), true},
		"one too many":             {list(5001, "x"), false},
		"the longest":              {list(1, strings.Repeat("x", 200)), true},
		"one too long":             {list(1, strings.Repeat("x", 201)), false},
		"an empty one":             {list(1, `""`), false},
		"one with a space":         {list(1, `"a b"`), false},
		"a path":                   {list(1, "/bin/ls"), false},
		"a scoped package":         {`heavy: {packages: ["@a/b"]}`, true},
		"no file":                  {"bounds: {files: 0}", true},
		"fewer than none":          {"bounds: {files: -1}", false},
		"the most files":           {"bounds: {files: 64}", true},
		"a file too many":          {"bounds: {files: 65}", false},
		"the fewest bytes":         {"bounds: {file_bytes: 1}", true},
		"none":                     {"bounds: {file_bytes: 0}", false},
		"the most bytes":           {"bounds: {file_bytes: 1048576}", true},
		"a byte too many":          {"bounds: {file_bytes: 1048577}", false},
		"the largest":              {"#" + strings.Repeat("x", tiering.MaxRulesBytes-1), true},
		"one byte too large":       {"#" + strings.Repeat("x", tiering.MaxRulesBytes), false},
		"a bomb":                   {strings.Repeat("[", 10_000), false},
		"no text":                  {"\xff", false},
	} {
		_, err := tiering.ParseRules([]byte(c.text))
		if (err == nil) != c.ok || err != nil && fault.CodeOf(err) != "runtime_rules_invalid" {
			t.Errorf("%s: got %v, want it taken: %t", name, err, c.ok)
		}
	}
}

// TestBrokenRulesSayWhere breaks rules as people do. The refusal names the line in plain words, without the parser's and without secrets.
func TestBrokenRulesSayWhere(t *testing.T) {
	const key = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
	for text, want := range map[string]string{
		"nano:\n  commands: [a\nheavy: {}\n": `line 3: a comma or a ] is missing before this: "heavy: {}"; or the fault is above it: ` +
			`what the parser reads there begins on line 2: "commands: [a"`,
		"nano:\n\tcommands: []\n":                              `line 2: indent with spaces and not with tabs: "commands: []"`,
		"nano:\n  commands: @" + key + "\n":                    "line 2: a value cannot begin so",
		"nano:\n  comands: []\n":                               `line 2: there is no key "comands" here; did you mean commands?`,
		"nano:\n  env: []\n":                                   `line 2: there is no key "env" here`,
		"nano: {}\nheavy: {}\nnano: {}\n":                      `line 3: the key "nano" stands here twice`,
		"nano:\n  commands: " + key + "\n":                     "line 2: nano.commands is a list of names, such as [a, b]",
		"heavy:\n  env:\n    - a\n    - {b: " + key + "}\n":    "line 4: heavy.env is a list of names, such as [a, b]",
		"heavy: [" + key + "]\n":                               "line 1: keys with values are wanted here: commands, modules, packages, env",
		"- nano\n":                                             "line 1: keys with values are wanted here: nano, heavy, bounds",
		"bounds:\n  files: many\n":                             "line 2: bounds.files is a whole number",
		"bounds:\n  files: 1.5\n":                              "line 2: bounds.files is a whole number",
		"bounds:\n  file_bytes: 18446744073709551615\n":        "a number of bounds is too large",
		"bounds:\n  file_bytes: 99999999999999999999999999999": "line 2: bounds.file_bytes is a whole number",
	} {
		_, err := tiering.ParseRules([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "cannot be used: "+want) || strings.Contains(err.Error(), key[10:]) ||
			strings.Contains(err.Error(), "tiering.") || strings.Contains(err.Error(), "unmarshal") {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	for _, text := range []string{"null\n", "nano:\nheavy:\n  env:\nbounds:\n  files:\n", "nano: {commands: [1, true]}\n", "# nothing\n"} {
		if _, err := tiering.ParseRules([]byte(text)); err != nil {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func FuzzPlace(f *testing.F) {
	for _, text := range []string{"python3 -c 'import x'", "node -e 'require(\"x\")' /* ` */", "cat > a.py <<E\nimport y\nE\npython3 a.py",
		"import (\\\n'''", "from .. import *"} {
		f.Add(text, text)
	}
	rules, err := tiering.Standard()
	if err != nil {
		f.Fatal(err)
	}
	p := tiering.New(rules)
	f.Fuzz(func(t *testing.T, text, content string) {
		read := func(string, int64) ([]byte, error) { return []byte(content), nil }
		for _, command := range []string{text, "python3 a.py", "node a.js", "./x", "npm run x"} {
			first, second := p.Place(has, space.Command{Text: command}, read), p.Place(has, space.Command{Text: command}, read)
			if !reflect.DeepEqual(first, second) {
				t.Fatalf("%q: got %v, then %v", command, first, second)
			}
		}
	})
}
