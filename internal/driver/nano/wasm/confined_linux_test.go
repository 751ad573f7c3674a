//go:build !nocow

package wasm

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestAnImageWithoutAFile holds an image as a process does that may make no file: its content is there, nobody changes it, and it is freed.
func TestAnImageWithoutAFile(t *testing.T) {
	s, err := withoutFile([]byte("content"), 3*pageSize)
	if err != nil {
		t.Fatal(err)
	}
	if b := s.bytes(); len(b) != 3*pageSize || string(b[:7]) != "content" || !isZero(b[pageSize:]) {
		t.Errorf("got %d bytes that begin with %q", len(b), b[:7])
	}
	for i := range 3 {
		var m mapping
		b := m.resize(&Image{size: 3 * pageSize, store: s}, 4*pageSize, 8*pageSize)
		if len(b) != 4*pageSize || string(b[:7]) != "content" || !isZero(b[pageSize:]) {
			t.Fatalf("instance %d: got %d bytes that begin with %q", i, len(b), b[:7])
		}
		for at := range b {
			b[at] = 0xff
		}
		m.free()
	}
	if string(s.bytes()[:8]) != "content\x00" {
		t.Errorf("an instance has changed it: %q", s.bytes()[:8])
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if _, err := withoutFile(nil, 1<<62); err != unix.ENOMEM {
		t.Errorf("more than there is: got %v", err)
	}
}
