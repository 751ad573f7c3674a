package runs_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// gathers starts a run that keeps files, and returns it when it rests.
func gathers(t *testing.T, s *testkit.Stack, in id.Space, operations string, patterns ...string) run.Run {
	t.Helper()
	doc, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Message: s.Message(operations),
		Artifacts: patterns})
	if err != nil {
		t.Fatal(err)
	}
	return s.Rest(doc.ID)
}

// kept returns the artifacts of a run in order, as path, size and media type, and checks that their contents are what they say.
func kept(t *testing.T, s *testkit.Stack, of id.Run) (found []string) {
	t.Helper()
	all, err := s.Engines.Look.Artifacts(t.Context(), testkit.WS, engines.Of{Run: of}, "", run.MaxArtifacts+1)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	for _, a := range all {
		doc, content, err := s.Engines.Artifacts.Open(t.Context(), testkit.WS, a.ID)
		if err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		raw, err := io.ReadAll(content)
		content.Close()
		if err != nil || event.DigestOf(raw) != a.Digest || int64(len(raw)) != *a.Size || doc.As != policy.Permitted || doc.Step == "" {
			t.Errorf("%+v has %d bytes: %v", doc, len(raw), err)
		}
		found = append(found, fmt.Sprintf("%s %d %s", a.Path, *a.Size, a.Media))
	}
	return found
}

func TestARunKeepsFilesAsArtifacts(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	doc := gathers(t, s, in, `[{"type":"createFile","path":"out/a.csv","content":"1,2"},{"type":"createFile","path":"b.txt","content":"no"},
		{"type":"shell","command":"mkdir -p out/deep && echo '{}' > out/deep/c.json && ln -s ../b.txt out/link && cp b.txt report"}]`,
		"out/**", "report", "none/*.txt")
	want := []string{"out/a.csv 3 text/csv", "out/deep/c.json 3 application/json", "report 2 text/plain"}
	if got := kept(t, s, doc.ID); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if g := doc.Artifacts; doc.Status != run.Succeeded || g == nil || g.Files != 3 || g.Bytes != 8 || g.LeftOut != 0 || g.Error != "" {
		t.Errorf("got %+v of %+v", g, doc)
	}
	if other := s.Ended(s.Start(in, `[{"type":"message","content":"x"}]`).ID); other.Artifacts != nil || kept(t, s, other.ID) != nil {
		t.Errorf("a run that names no files: %+v", other)
	}
	if _, err := s.Spaces.Ending.Destroy(t.Context(), s.Origin, testkit.WS, in); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, s, doc.ID); !slices.Equal(got, want) {
		t.Errorf("when the space is gone: got %q, want %q", got, want)
	}
	s.Verify()
}

// The name of a kept file shows no secret of the space's environment.
func TestTheNamesOfKeptFilesShowNoSecret(t *testing.T) {
	t.Parallel()
	s := open(t)
	const secret = "s3cr3t-value-of-the-space"
	in := s.SpaceOf(spaces.Request{Env: map[string]string{"SERVICE_KEY": secret}, BestEffort: true}).ID
	doc := gathers(t, s, in, `[{"type":"shell","command":"mkdir out; echo a > out/$SERVICE_KEY.txt"}]`,
		"out/**")
	if doc.Status == run.AwaitingApproval { // a name with a variable may be any name
		s.Decide(doc.ID, policy.Approve, "")
		doc = s.Ended(doc.ID)
	}
	if g := doc.Artifacts; g == nil || g.Files != 1 {
		t.Errorf("got %+v of %+v", g, doc)
	}
	for _, e := range s.Events(0) {
		if bytes.Contains(e.Data, []byte(secret)) {
			t.Errorf("%s has the value: %s", e.Type, e.Data)
		}
	}
}

// A background run, a run that fails and a run that is cancelled keep what there is when they end.
func TestEveryEndOfARunKeepsFiles(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	doc, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Background: true,
		Message:   s.Message(`[{"type":"shell","command":"echo x > out.log; echo ready; cat; echo more >> out.log","stdin":true}]`),
		Artifacts: run.Patterns{"*.log"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Prints(doc.ID, "ready")
	if err := give(s, doc.ID, runs.Given{Close: true}); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, s, s.Ended(doc.ID).ID); !slices.Equal(got, []string{"out.log 7 text/plain"}) {
		t.Errorf("a background run: %q", got)
	}
	doc = gathers(t, s, in, `[{"type":"shell","command":"echo one > failed.txt; exit 3"}]`, "failed.txt")
	if got := kept(t, s, doc.ID); !slices.Equal(got, []string{"failed.txt 4 text/plain"}) {
		t.Errorf("a command that fails: %q", got)
	}
	doc, err = s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Artifacts: run.Patterns{"cut.txt"},
		Message: s.Message(`[{"type":"shell","command":"echo half > cut.txt; echo ready; sleep 1000"}]`)})
	if err != nil {
		t.Fatal(err)
	}
	s.Prints(doc.ID, "ready")
	if err := s.Runs.Cancel(t.Context(), s.Origin, testkit.WS, doc.ID, ""); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, s, doc.ID); !slices.Equal(got, []string{"cut.txt 5 text/plain"}) {
		t.Errorf("a run that is cancelled: %q", got)
	}
	s.Verify()
}

// Files that policy keeps from the run's agent are no artifacts: files that it may not read, and names that are withheld from code.
func TestWithheldFilesAreNoArtifacts(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	secret := "of a person"
	if _, err := s.Spaces.Files.Write(t.Context(), s.Origin, testkit.WS, in, "out/.env", true, "", event.DigestOf([]byte(secret)),
		int64(len(secret)), strings.NewReader(secret)); err != nil {
		t.Fatal(err)
	}
	doc := gathers(t, s, in, `[{"type":"shell","command":"mkdir -p out && echo a > out/a && `+
		`python3 -c \"open('out/server' + '.key', 'w').write('own')\""}]`, "**")
	if got := kept(t, s, doc.ID); !slices.Equal(got, []string{"out/a 2 text/plain"}) {
		t.Errorf("got %q", got)
	}
	if g := doc.Artifacts; g.LeftOut != 1 || g.Named[0] != (run.LeftOut{Path: "out/server.key", Reason: "file_withheld"}) {
		t.Errorf("got %+v", g)
	}
	for _, e := range s.Events(0) {
		if strings.Contains(string(e.Data), event.DigestOf([]byte(secret)).Hex()) && e.Run != "" {
			t.Errorf("the run tells of it: %s", e.Data)
		}
	}
}

func TestTheBoundsOfTheArtifactsOfARun(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.SpaceOf(spaces.Request{BestEffort: true}).ID
	doc := gathers(t, s, in, fmt.Sprintf(`[{"type":"shell","command":"mkdir many && `+
		`python3 -c \"[open('many/%%d' %% i, 'w').close() for i in range(1000, %d)]\""}]`, 1000+run.MaxArtifacts), "many/*")
	if g := doc.Artifacts; g.Files != run.MaxArtifacts || g.LeftOut != 0 || len(kept(t, s, doc.ID)) != run.MaxArtifacts {
		t.Errorf("the most files: %+v", g)
	}
	doc = gathers(t, s, in, `[{"type":"shell","command":"echo > many/last"}]`, "many/*")
	if g := doc.Artifacts; g.Files != run.MaxArtifacts || g.LeftOut != 1 ||
		g.Named[0] != (run.LeftOut{Path: "many/last", Reason: run.ReasonTooManyArtifacts}) {
		t.Errorf("one file more: %+v", g)
	}
	if got := doc.Status; got != run.Succeeded {
		t.Errorf("got %s", got)
	}
	// the policy of the space bounds one file at 10 MiB
	doc = gathers(t, s, in, `[{"type":"shell","command":"mkdir big && python3 -c \"[open('big/%02d' % i, 'w').truncate((10 << 20) - 4 * `+
		`(i == 25) * (1 << 20)) for i in range(26)]\" && truncate -s 10485761 big/a && : > big/b"}]`, "big")
	if g := doc.Artifacts; g.Files != 27 || g.Bytes != run.MaxArtifactBytes || g.LeftOut != 1 ||
		g.Named[0] != (run.LeftOut{Path: "big/a", Reason: "file_too_large"}) {
		t.Errorf("the most bytes: %+v", g)
	}
	doc = gathers(t, s, in, `[{"type":"shell","command":"rm big/a && echo -n x > big/c"}]`, "big")
	if g := doc.Artifacts; g.Files != 27 || g.LeftOut != 1 || g.Named[0] != (run.LeftOut{Path: "big/c", Reason: run.ReasonArtifactsTooLarge}) {
		t.Errorf("a byte more: %+v", g)
	}
	_, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Artifacts: run.Patterns{"../x"},
		Message: s.Message(`[{"type":"message","content":"x"}]`)})
	if fault.CodeOf(err) != "artifacts_invalid" {
		t.Errorf("a pattern that leaves the space: %v", err)
	}
}

// A folder of the most entries that are searched has its last file found. With one entry more it is not, and the run says so.
func TestTheMostEntriesThatAreSearchedForArtifacts(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.SpaceOf(spaces.Request{BestEffort: true}).ID
	doc := gathers(t, s, in, fmt.Sprintf(`[{"type":"shell","command":"mkdir many && python3 -c \"[open('many/%%05d' %% i, 'w').close() `+
		`for i in range(%d)]\" && echo last > many/z.keep"}]`, run.MaxArtifactsSeen-1), "many/*.keep")
	if got := kept(t, s, doc.ID); !slices.Equal(got, []string{"many/z.keep 5 text/plain"}) || doc.Artifacts.Error != "" {
		t.Errorf("%d entries: got %q, %+v", run.MaxArtifactsSeen, got, doc.Artifacts)
	}
	doc = gathers(t, s, in, `[{"type":"shell","command":"echo first > many/0.keep"}]`, "many/*.keep")
	if got := kept(t, s, doc.ID); !slices.Equal(got, []string{"many/0.keep 6 text/plain"}) ||
		doc.Artifacts.Error != run.ReasonArtifactsUnseen || doc.Status != run.Succeeded {
		t.Errorf("%d entries: got %q, %+v", run.MaxArtifactsSeen+1, got, doc.Artifacts)
	}
}

// TestArtifactsTakeFromTheQuotaOfContent has room for three bytes: the run ends all the same.
func TestArtifactsTakeFromTheQuotaOfContent(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Content: 3})
	doc := gathers(t, s, s.Space().ID, `[{"type":"createFile","path":"a","content":"12"},{"type":"createFile","path":"b","content":"34"},
		{"type":"createFile","path":"c","content":"5"}]`, "*")
	if got := kept(t, s, doc.ID); !slices.Equal(got, []string{"a 2 text/plain", "c 1 text/plain"}) {
		t.Errorf("got %q", got)
	}
	if g := doc.Artifacts; doc.Status != run.Succeeded || g.LeftOut != 1 || g.Named[0].Path != "b" || g.Named[0].Reason == "" {
		t.Errorf("got %+v", g)
	}
}

// The files are read while the log is shut, or the daemon stops: a run that an earlier daemon began keeps them when the next one ends it.
func TestARunThatIsTakenUpKeepsFiles(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	in := s.Space().ID
	doc, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: testkit.WS, Space: in, Artifacts: run.Patterns{"*.txt"},
		Message: s.Message(`[{"type":"createFile","path":"a.txt","content":"1"},{"type":"shell","command":"echo ready; sleep 1000"}]`)})
	if err != nil {
		t.Fatal(err)
	}
	s.Prints(doc.ID, "ready")
	s.Restart()
	doc = s.Rest(doc.ID)
	if doc.Status == run.AwaitingApproval {
		s.Decide(doc.ID, policy.Refuse, "")
		doc = s.Ended(doc.ID)
	}
	if got := kept(t, s, doc.ID); !slices.Equal(got, []string{"a.txt 1 text/plain"}) {
		t.Errorf("%s: got %q", doc.Status, got)
	}
	if n := len(told[step.ArtifactCreated](t, s, step.EventArtifactCreated)); n != 1 {
		t.Errorf("recorded %d times", n)
	}
}
