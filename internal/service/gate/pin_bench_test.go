package gate_test

import "testing"

// BenchmarkResolve is what making a space under a preset takes of the policy, once that is known.
func BenchmarkResolve(b *testing.B) {
	h := build(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Bundles.Resolve("standard", nil); err != nil {
			b.Fatal(err)
		}
	}
}
