package bench

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/memory"
)

const benchSpace id.Space = "spc_01ARZ3NDEKTSV4RRFFQ69G5FAV"

func permitFor(b *testing.B, a policy.Action) policy.Permit {
	canonical, err := a.Canonical()
	if err != nil {
		b.Fatal(err)
	}
	return policy.Issue(canonical, nil)
}

func benchFiles(b *testing.B) space.Files {
	spaces, err := disk.OpenSpaces(b.Context(), b.TempDir(), memory.NewKeys(rand.Reader), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	p := permitFor(b, policy.Action{Type: policy.SpaceCreate, Space: benchSpace})
	if _, err := spaces.Create(b.Context(), p, 0, space.DefaultLimits(), space.Seed{}); err != nil {
		b.Fatal(err)
	}
	files, _, err := spaces.Open(benchSpace, 0, space.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	return files
}

// BenchmarkFileCreate makes files of 4 KiB: ours checks the permit, the path, the quota and the content's hash and makes the name durable
// too; the yardstick writes, syncs and renames.
func BenchmarkFileCreate(b *testing.B) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 256)
	b.Run("ours", func(b *testing.B) {
		files := benchFiles(b)
		a := policy.Action{Type: policy.FileCreate, Space: benchSpace, Content: event.DigestOf(content), Size: int64(len(content))}
		for i := 0; b.Loop(); i++ {
			a.Path = fmt.Sprintf("d%d/f%d", i%16, i)
			if _, err := files.Write(b.Context(), permitFor(b, a), bytes.NewReader(content)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("yardstick", func(b *testing.B) {
		dir := b.TempDir()
		for i := range 16 {
			if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("d%d", i)), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		for i := 0; b.Loop(); i++ {
			temp := filepath.Join(dir, "temp")
			file, err := os.Create(temp)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := file.Write(content); err != nil {
				b.Fatal(err)
			}
			if err := file.Sync(); err != nil {
				b.Fatal(err)
			}
			if err := file.Close(); err != nil {
				b.Fatal(err)
			}
			if err := os.Rename(temp, filepath.Join(dir, fmt.Sprintf("d%d/f%d", i%16, i))); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFileRead reads a file of 4 KiB three folders down, beside os.ReadFile.
func BenchmarkFileRead(b *testing.B) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 256)
	b.Run("ours", func(b *testing.B) {
		files := benchFiles(b)
		a := policy.Action{Type: policy.FileCreate, Space: benchSpace, Path: "a/b/c/f", Content: event.DigestOf(content),
			Size: int64(len(content))}
		if _, err := files.Write(b.Context(), permitFor(b, a), bytes.NewReader(content)); err != nil {
			b.Fatal(err)
		}
		a = policy.Action{Type: policy.FileRead, Space: benchSpace, Path: "a/b/c/f"}
		for b.Loop() {
			file, err := files.Read(b.Context(), permitFor(b, a))
			if err != nil {
				b.Fatal(err)
			}
			if got, err := io.ReadAll(file); err != nil || len(got) != len(content) {
				b.Fatal(len(got), err)
			}
			if err := file.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("yardstick", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "a/b/c/f")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if got, err := os.ReadFile(path); err != nil || len(got) != len(content) {
				b.Fatal(len(got), err)
			}
		}
	})
}
