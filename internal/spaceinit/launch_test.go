package spaceinit

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLaunchMessages(t *testing.T) {
	for _, l := range []Launch{
		{Args: []string{"a"}},
		{Args: []string{"init", "owner", "space"}, Inside: 1000, User: 1<<32 - 1, Group: 7, Groups: true, Mounts: MaxMounts, Enter: []uint32{2,
			0}, Unified: true},
	} {
		got, err := DecodeLaunch(l.Encode())
		if err != nil || !cmp.Equal(got, l) {
			t.Errorf("got %+v, %v, want %+v", got, err, l)
		}
	}
	for _, l := range []Launched{{PID: 7}, {Failed: "why"}, {Failed: "why", Lost: true}, {PID: 7, Lost: true}} {
		got, err := DecodeLaunched(l.Encode())
		if err != nil || got != l {
			t.Errorf("got %+v, %v, want %+v", got, err, l)
		}
	}
	many := Launch{Args: []string{"a"}, Enter: make([]uint32, MaxMounts+1)}
	for name, message := range map[string][]byte{
		"nothing": nil, "no name": Launch{}.Encode(), "too many mounts": Launch{Args: []string{"a"}, Mounts: MaxMounts + 1}.Encode(),
		"too many groups": many.Encode(), "cut off": Launch{Args: []string{"abc"}}.Encode()[:9],
		"more": append(Launch{Args: []string{"a"}}.Encode(), 0),
	} {
		if l, err := DecodeLaunch(message); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: got %+v, %v, want ErrProtocol", name, l, err)
		}
	}
	for name, message := range map[string][]byte{"nothing": nil, "neither": Launched{}.Encode(), "both": Launched{PID: 1,
		Failed: "x"}.Encode()} {
		if l, err := DecodeLaunched(message); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: got %+v, %v, want ErrProtocol", name, l, err)
		}
	}
}

func FuzzLaunch(f *testing.F) {
	f.Add(Launch{Args: []string{"a"}, Enter: []uint32{1}}.Encode())
	f.Add(Launched{Failed: "x"}.Encode())
	f.Fuzz(func(t *testing.T, message []byte) {
		if l, err := DecodeLaunch(message); err == nil && !bytes.Equal(l.Encode(), message) {
			t.Errorf("%+v is not the same again", l)
		}
		if l, err := DecodeLaunched(message); err == nil && !bytes.Equal(l.Encode(), message) {
			t.Errorf("%+v is not the same again", l)
		}
	})
}
