package nano

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
)

// BenchmarkExec measures whole commands over the library path: permit, worker, fresh instance, changes. p50 and p99 are those of single
// commands.
func BenchmarkExec(b *testing.B) {
	tier := openTier(b, 1)
	ids := id.NewSource(time.Now, rand.Reader)
	for _, x := range []struct {
		name, file, content string
		argv                []string
	}{
		{"echo", "", "", []string{"/bin/bash", "-c", "echo hi"}},
		{"pipe100", "", "", []string{"/bin/bash", "-c", "seq 100 | sort -n | tail -n 1"}},
		{"pipe100000", "", "", []string{"/bin/bash", "-c", "seq 100000 | sort -n | tail -n 1"}},
		{"python", "", "", []string{"python3", "-c", "print(1)"}},
		{"js", "", "", []string{"js", "-p", "1+1"}},
		{"python-context", "", "", []string{"python3", "--context", "c", "-c", "x = 1"}},
		{"js-context", "", "", []string{"js", "--context", "c", "-c", "x = 1"}},
		{"typescript", "f.ts", "interface P { name: string; n: number }\nconst p: P = { name: 'x', n: 1 };\nfunction f<T>(x: T): T { return x " +
			"}\nconsole.log(f<number>(p.n) as number);\n", []string{"bun", "f.ts"}},
	} {
		b.Run(x.name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "files")
			if err := os.Mkdir(dir, 0o700); err != nil {
				b.Fatal(err)
			}
			if x.file != "" {
				if err := os.WriteFile(filepath.Join(dir, x.file), []byte(x.content), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			h := spacetest.Host{Tier: tier, Permit: issue, IDs: ids}
			spec := space.Spec{ID: id.New[id.Space](ids), Dir: dir, Limits: space.DefaultLimits()}
			s, err := tier.Create(b.Context(), createPermit(b, spec), spec)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			run := func() {
				r, err := h.TryExec(b.Context(), s, spacetest.Command{Space: spec.ID, Argv: x.argv, MS: 60_000})
				if err != nil || r.Code != 0 {
					b.Fatalf("%+v, %v", r, err)
				}
			}
			run()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				run()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkSpace measures a new space with its first command.
func BenchmarkSpace(b *testing.B) {
	tier := openTier(b, 1)
	ids := id.NewSource(time.Now, rand.Reader)
	h := spacetest.Host{Tier: tier, Permit: issue, IDs: ids}
	dir := filepath.Join(b.TempDir(), "files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		spec := space.Spec{ID: id.New[id.Space](ids), Dir: dir, Limits: space.DefaultLimits()}
		s, err := tier.Create(b.Context(), createPermit(b, spec), spec)
		if err != nil {
			b.Fatal(err)
		}
		if r, err := h.TryExec(b.Context(), s, spacetest.Shell(spec.ID, "echo hi")); err != nil || r.Stdout != "hi\n" {
			b.Fatalf("%+v, %v", r, err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
