package tiering_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/space"
)

// full is a tier with the usual programs, numpy and pip.
var full = space.Offer{
	Tier: "namespace", Programs: strings.Fields("apt-get bash cat curl git ls mkdir node npm npx pip python3 rsync scp sh ssh true uv wget"),
	Modules: strings.Fields("json numpy os pip"), Packages: strings.Fields("numpy pip scikit-learn"), Node: strings.Fields("fs path"),
}

func TestWhatNeedsAnotherHost(t *testing.T) {
	files := map[string]string{
		"package.json": `{"scripts":{"get":"curl -s https://example.com/x","build":"node ` +
			`build.js"},"dependencies":{"left-pad":"1","here":"file:../here","there":"2"}}`,
		"node_modules/there/package.json": "{}", "node_modules/.bin/tsc": "x",
		"empty/package.json": `{"scripts":{}}`, "done/package.json": `{"dependencies":{"there":"2"}}`,
		"done/node_modules/there/package.json": "{}",
		"needs.txt":                            "# these\nnumpy>=1\nflask==3 # web\n./own\n-r more.txt\n", "local.txt": "--no-index\nflask\n",
		"setup.sh": "set -e\npip install flask\n", "careful.sh": "pip install flask || true\n",
		".git/config": "[core]\n[remote \"origin\"]\n\turl = git@github.com:a/b.git\n[remote \"near\"]\n\turl = /workspace/bare\n",
	}
	for _, c := range []struct{ command, want string }{
		{"npm install", "package left-pad"},
		{"npm install --offline", ""},
		{"cd empty && npm install", ""},
		{"cd done && npm install", ""},
		{"cd done && npm ci", "package there"},
		{"npm i lodash@4 ./own ../other.tgz file:x", "package lodash"},
		{"npm i --registry http://localhost:4873 lodash", ""},
		{"npm i --registry https://packages.example.com lodash", "package lodash"},
		{"npm i --prefix app lodash", ""},
		{"npm init -y && npm install express", "package express"},
		{"npm run get", "network example.com"},
		{"npm run build; npm ls; npm --version", ""},
		{"npm view lodash", "network npm view"},
		{"npx cowsay hi", "package cowsay"},
		{"npx tsc", ""},
		{"npx --no-install cowsay", ""},
		{"npx --version", ""},
		{"yarn", "package left-pad"},
		{"pip install flask", "package flask"},
		{"python3 -m pip install flask", "package flask"},
		{"pip install numpy 'Scikit_Learn>=1'", ""},
		{"pip install -U numpy", "network the package numpy"},
		{"pip install ./local.whl --no-index", ""},
		{"pip install local-1.0-py3-none-any.whl", ""},
		{"pip install --no-index -f wheels flask", ""},
		{"pip install -f wheels flask", ""},
		{"pip install -r needs.txt", "package flask"},
		{"pip install -r local.txt", ""},
		{"pip install -e . -c limits.txt", ""},
		{"pip install -t out flask", "package flask"},
		{"pip install -i http://127.0.0.1:8000/simple flask", ""},
		{"pip install git+https://github.com/a/b", "network github.com"},
		{"pip install 'b @ https://example.com/b.whl'", "network example.com"},
		{"pip list; pip --version; pip show numpy; pip check; pip freeze", ""},
		{"pip search x", "network pip search"},
		{"uv pip install flask", "package flask"},
		{"uv --offline pip install flask", ""},
		{"uvx ruff check", "network the package ruff"},
		{"uv add flask", "network the package flask"},
		{"uv --version", ""},
		{"git clone https://user:secret@github.com/a/b.git", "network github.com"},
		{"git clone --depth 1 -b main git@github.com:a/b.git x", "network github.com"},
		{"git clone /workspace/bare x; git clone ./bare y; git clone file:///workspace/bare z", ""},
		{"git push", "network github.com"},
		{"git push near main", ""},
		{"git pull origin main", "network github.com"},
		{"git fetch upstream", ""},
		{"git commit -m 'see https://example.com'; git log; git status; git init", ""},
		{"curl https://example.com/x", "network example.com"},
		{"curl -sSfL -o out https://example.com:8443/x?token=secret", "network example.com"},
		{"curl -H 'Referer: https://a.example' http://localhost:8000/", ""},
		{"curl -e https://a.example http://127.0.0.1/", ""},
		{"curl --referer https://a.example http://[::1]/", ""},
		{"curl example.com", "network example.com"},
		{"curl file:///workspace/x; curl --version; curl --unix-socket s http://d/", ""},
		{"curl --retry 3 --silent https://example.com", "network example.com"},
		{"wget -q -O - https://example.com | tar x", "network example.com"},
		{"ssh -i key user@example.com ls", "network example.com"},
		{"ssh localhost ls; ssh -V", ""},
		{"scp a.txt user@example.com:", "network example.com"},
		{"rsync -a src/ dst/; scp a b", ""},
		{"rsync -a src/ host.example:dst/", "network host.example"},
		{"apt-get update", "network apt-get update"},
		{"sudo apt-get install -y gcc", "network apt-get install"},
		{"apt-get install ./x.deb; apt-get --version", ""},
		{"cargo build; go build ./...; docker ps", ""},
		{"cargo install x", "network cargo install"},
		{"cargo update; bundle install", "network cargo update, network bundle install"},
		{"apt-get -o Dpkg::Use-Pty=0 install gcc", "network apt-get install"},
		{"uv add flask==3; uvx ruff==1", "network the package flask, network the package ruff"},
		{"npm --loglevel warn install lodash", "package lodash"},
		{"npm --prefix app install lodash; npm -w a install lodash", ""},
		{"npm whoami", "network npm whoami"},
		// The command deals with the failure, or may not come to it.
		{"curl -s https://example.com || echo offline", ""},
		{"if pip install flask; then python3 x.py; fi", ""},
		{"test -d node_modules || npm install", ""},
		{"! curl https://example.com", ""},
		{"get() { curl https://example.com; }", ""},
		{"x=$(curl https://example.com) || x=none", ""},
		{"curl https://example.com || curl https://example.org; curl https://example.com", "network example.com"},
		// Where it stands does not matter.
		{"bash setup.sh", "package flask"},
		{"bash careful.sh", ""},
		{"bash -c 'pip install flask'", "package flask"},
		{"timeout --signal KILL 5 curl https://example.com", "network example.com"},
		{"ionice -P 5 curl https://example.com", "network example.com"},
		{"flock -w 5 f curl https://example.com; flock f -c 'curl https://example.org'", "network example.com, network example.org"},
		{"busybox sh -c 'pip install flask'", "package flask"},
		{"rbash -o pipefail -c 'pip install flask'", "package flask"},
		{"for x in a b; do wget https://example.com/$x.tgz https://example.com/; done", "network example.com"},
		{"(cd x; mkdir y && timeout 5 curl https://example.com)", "network example.com"},
		{"echo 'npm install'; cat <<'E'\ncurl https://example.com\nE", ""},
		{"pip install $name; curl $url; git clone \"$repo\"; npm install $x", ""},
	} {
		var got []string
		for _, n := range standard(t).Place(full, space.Command{Text: c.command, Reach: true}, of(files, nil)) {
			if n.Alone {
				continue
			}
			got = append(got, n.Kind+" "+n.Name)
			if n.Kind != space.LackNetwork && !n.Remote || n.Tried {
				t.Errorf("%s: got %+v", c.command, n)
			}
		}
		if all := strings.Join(got, ", "); all != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.command, all, c.want)
		}
	}
}

// The search for other hosts reads no module that a program imports.
func TestALookForOtherHostsReadsLittle(t *testing.T) {
	asked := 0
	standard(t).Place(full, space.Command{Text: "python3 app.py; node app.js", Reach: true}, of(map[string]string{"app.py": "import a, b, c\n",
		"app.js": "require('./x')\n"}, &asked))
	if asked > 2 {
		t.Errorf("%d files were read, want the two that are named at most", asked)
	}
}
