package runs_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/tiering"
	"agentbox/internal/testkit"
)

// The features that the tiers of the tests claim.
var (
	nanoHas = space.Offer{Programs: strings.Fields("bash cat echo ls node python3 sh true"), Modules: strings.Fields("json os"),
		Node: []string{"fs"}}
	smallHas = space.Offer{Programs: strings.Fields("bash cat echo git ls node npm python3 sh true"),
		Modules: strings.Fields("ctypes json os"), Node: []string{"fs", "net"}}
	fullHas = space.Offer{
		Programs: strings.Fields("bash cat curl echo gcc git ls node npm pip python3 sh true"),
		Modules:  strings.Fields("ctypes json numpy os pip"), Packages: []string{"numpy", "pip"},
		Node: []string{"fs", "net"},
	}
)

// offering opens a stack whose tiers say what they have.
func offering(t testing.TB, nano *space.Offer, heavy *space.Offer) *testkit.Stack {
	t.Helper()
	rules, err := tiering.Standard()
	if err != nil {
		t.Fatal(err)
	}
	o := testkit.Options{Program: program, Place: tiering.New(rules).Place}
	if nano != nil {
		o.Light = &testkit.Light{Has: *nano}
	}
	if o.Alone = heavy == nil; !o.Alone {
		o.Has = *heavy
	}
	return testkit.Open(t, o)
}

func TestWhereACommandRunsFollowsWhatTheTiersHave(t *testing.T) {
	t.Parallel()
	const nowhere = "-"
	commands := []string{"python3 -c 'import numpy'", "python3 -c 'import ctypes'", "gcc -o x x.c", "git status", "cargo build",
		"cargo build || gcc x.c", "pip install numpy", "pip install flask", "npm install left-pad",
		"git clone https://example.com/a.git", "npm run build", "echo hello"}
	for _, c := range []struct {
		host        string
		nano, heavy *space.Offer
		to          []string // where each command runs, - where it is refused; and what no tier meets behind a colon
	}{
		{"a full root", &nanoHas, &fullHas, []string{"namespace", "namespace", "namespace", "namespace", "nano:cargo", "namespace", "namespace",
			nowhere, nowhere, nowhere, "namespace", "nano"}},
		{"a small root", &nanoHas, &smallHas, []string{
			"nano:numpy", "namespace", "nano:gcc", "namespace", "nano:cargo", "nano:cargo gcc", nowhere, nowhere, nowhere, nowhere, "namespace",
			"nano",
		}},
		{"nano only", &nanoHas, nil, []string{"nano:numpy", "nano:ctypes", "nano:gcc", "nano:git", "nano:cargo", "nano:cargo gcc", nowhere,
			nowhere, nowhere, nowhere, "nano:npm", "nano"}},
		{"no nano", nil, &smallHas, []string{
			"namespace:numpy", "namespace", "namespace:gcc", "namespace", "namespace:cargo", "namespace:cargo gcc", nowhere, nowhere, nowhere,
			nowhere, "namespace", "namespace",
		}},
	} {
		t.Run(c.host, func(t *testing.T) {
			s := offering(t, c.nano, c.heavy)
			made := s.Space()
			for i, command := range commands {
				r, err := s.Spaces.Routing.Route(t.Context(), s.Origin, testkit.WS, made.ID, space.Command{Text: command})
				if err != nil {
					t.Fatal(err)
				}
				got := r.To
				var names []string
				for _, n := range r.Unmet {
					names = append(names, n.Name)
				}
				if len(names) > 0 && r.To == r.Tier {
					got += ":" + strings.Join(names, " ")
				}
				if len(r.Unreachable) > 0 {
					got = nowhere
				}
				if got != c.to[i] {
					t.Errorf("%s: got %s, want %s (%+v)", command, got, c.to[i], r)
				}
			}
			s.Verify()
		})
	}
}

// Nobody is asked about what cannot happen, and no space is promoted for it.
func TestNobodyIsAskedAboutWhatNeedsANetwork(t *testing.T) {
	t.Parallel()
	const manifest, script = `{\"scripts\":{\"get\":\"curl https://example.com\"},\"dependencies\":{\"left-pad\":\"1\"}}`,
		`pip install flask\n`
	for _, c := range []struct {
		policy, command string
		asks            bool // about the same where nothing is missing
	}{
		{"standard", "mkdir d; rm -r d; bash setup.sh", true}, {"standard", "mkdir d; rm -r d; npm run get", true}, {"asking", "npm install",
			true}, {"asking", "pip install -r needs.txt", true},
		{"asking", "curl https://example.com/", true}, {"permissive", "npm install left-pad", false}, {"permissive", "pip install flask", false},
		{"permissive", "git clone https://example.com/a.git", false},
		{"permissive", "curl https://example.com/", false}, {"permissive", "apt-get update", false},
	} {
		files := `{"id":"1","type":"createFile","path":"package.json","content":"` + manifest +
			`"},{"id":"2","type":"createFile","path":"setup.sh","content":"` + script +
			`"},{"id":"3","type":"createFile","path":"needs.txt","content":"flask\n"},`
		ops := `[` + files + `{"id":"a","type":"shell","command":"` + c.command + `"},{"id":"b","type":"shell","command":"echo on"}]`
		bundle := func(s *testkit.Stack) spaces.Request {
			preset, own := c.policy, json.RawMessage(nil)
			if preset == "asking" {
				preset, own = "permissive", json.RawMessage(`{"ask":{"traits":["network","installs_packages"]}}`)
			}
			b, err := s.Gate.Bundles.Resolve(preset, own)
			if err != nil {
				t.Fatal(err)
			}
			return spaces.Request{Bundle: &b}
		}
		if c.asks { // the case is one of which a person would be asked
			s := offering(t, &nanoHas, &fullHas)
			s.Spaces.Routing.Place = nil
			if r := s.Rest(s.Start(s.SpaceOf(bundle(s)).ID, ops).ID); r.Status != run.AwaitingApproval {
				t.Fatalf("%s under %s: the run is %s, want a question: %+v", c.command, c.policy, r.Status, s.Results(r.ID))
			}
		}
		s := offering(t, &nanoHas, &fullHas)
		made := s.SpaceOf(bundle(s))
		r := s.Rest(s.Start(made.ID, ops).ID)
		if r.Status == run.AwaitingApproval {
			t.Errorf("%s under %s: a person is asked", c.command, c.policy)
			continue
		}
		results := s.Results(r.ID)
		got := results[3]
		if got.Type != run.OpShell || got.OK() || got.ReasonCode != space.NoNetworkCode || !strings.Contains(got.Error,
			"no tier of this host has a network") || !strings.Contains(got.Suggestion, "--from") {
			t.Errorf("%s under %s: got %+v", c.command, c.policy, got)
		}
		if got.Command != c.command || got.ExitCode != nil {
			t.Errorf("%s: got %+v", c.command, got)
		}
		if !results[4].OK() || results[4].Tier != space.Nano {
			t.Errorf("what follows it: got %+v", results[4])
		}
		if ran := s.Options.Light.Ran(); !slices.Equal(ran, []string{"echo on"}) {
			t.Errorf("%s: in nano ran %q", c.command, ran)
		}
		s.Verify()
	}
}

// Nobody is asked about a program that no tier has. Where a command does something beside, a person is asked about that.
func TestNobodyIsAskedAboutAProgramThatNoTierHas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command string
		heavy   *space.Offer
		asks    bool
	}{
		{"pip install --no-index ./x", nil, false}, {"cd lib && pip install --no-index ./x", nil, false},
		{"pip install --no-index ./x", &smallHas, false}, {"pip install --no-index ./x", &fullHas, true},
		{"pip install --no-index ./x || true", nil, true}, {"mkdir d; rm -r d; pip install --no-index ./x", nil, true},
		{"pip install --no-index ./x > f", nil, true}, {"pip install --no-index $(ls)", nil, true},
	} {
		s := offering(t, &nanoHas, c.heavy)
		standard, err := s.Gate.Bundles.Resolve("standard", nil)
		if err != nil {
			t.Fatal(err)
		}
		made := s.SpaceOf(spaces.Request{Bundle: &standard})
		r := s.Rest(s.Start(made.ID, `[{"id":"m","type":"createFile","path":"x/pyproject.toml","content":""},`+
			`{"id":"a","type":"shell","command":"`+c.command+`"},{"id":"b","type":"shell","command":"echo on"}]`).ID)
		if asked := r.Status == run.AwaitingApproval; asked != c.asks {
			t.Errorf("%s: asked is %t, want %t", c.command, asked, c.asks)
			continue
		}
		if c.asks {
			continue
		}
		got := s.Results(r.ID)[1]
		if got.OK() || got.ExitCode != nil || got.ReasonCode != space.NoProgramCode || !strings.Contains(got.Error, "no tier of this host has") ||
			!strings.Contains(got.Error, "pip") || got.Suggestion == "" {
			t.Errorf("%s: got %+v", c.command, got)
		}
		if ran := s.Options.Light.Ran(); !slices.Equal(ran, []string{"echo on"}) {
			t.Errorf("%s: ran %q", c.command, ran)
		}
		s.Verify()
	}
}

// Policy comes first: what it denies, it denies for its own reason.
func TestWhatIsDeniedIsNotSaidToNeedANetwork(t *testing.T) {
	t.Parallel()
	s := offering(t, &nanoHas, &fullHas)
	strict, err := s.Gate.Bundles.Resolve("standard", nil)
	if err != nil {
		t.Fatal(err)
	}
	made := s.SpaceOf(spaces.Request{Bundle: &strict})
	r := s.Rest(s.Start(made.ID, `[{"id":"a","type":"shell","command":"curl https://example.com/"}]`).ID)
	if got := s.Results(r.ID)[0]; got.Type != run.ResPolicyDenied || !strings.Contains(got.Reason, "a space has no network") {
		t.Errorf("got %+v", got)
	}
}

func TestAFailureSaysWhichTierHasWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, runtime, command string
		nano, heavy            *space.Offer
		want, never            string // in the suggestion
		tier                   string
	}{
		{"nano, which was asked for", "nano", "true # want module numpy", &nanoHas, &fullHas, "the tier namespace has the module numpy",
			"no tier", "nano"},
		{"nowhere", "nano", "true # want module torch", &nanoHas, &fullHas, "no tier of this host has the module torch", "runtime auto", "nano"},
		{"a small root", "auto", "true # want module numpy", &nanoHas, &smallHas, "no tier of this host has the module numpy", "runtime auto",
			"nano"},
		{"nano only", "auto", "true # want command git", &nanoHas, nil, "no tier of this host has the command git", "runtime auto", "nano"},
		{"the namespace tier", "heavy", "no-such-program", &nanoHas, &smallHas, "no tier of this host has the command no-such-program", "runtime",
			"namespace"},
	} {
		t.Run(c.host, func(t *testing.T) {
			s := offering(t, c.nano, c.heavy)
			permissive, err := s.Gate.Bundles.Resolve("permissive", nil)
			if err != nil {
				t.Fatal(err)
			}
			made := s.SpaceOf(spaces.Request{Runtime: c.runtime, Bundle: &permissive})
			r := s.Rest(s.Start(made.ID, `[{"id":"a","type":"shell","command":"`+c.command+`"}]`).ID)
			got := s.Results(r.ID)[0]
			if got.OK() || got.ExitCode == nil || *got.ExitCode != 127 || len(got.Lacks) != 1 || got.Tier != c.tier {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(got.Suggestion, c.want) || strings.Contains(got.Suggestion, c.never) {
				t.Errorf("it suggests %q, want %q and not %q", got.Suggestion, c.want, c.never)
			}
			if moved := told[space.Promoted](t, s, space.EventPromoted); len(moved) > 0 {
				t.Errorf("got %+v", moved)
			}
			s.Verify()
		})
	}
}
