package bound_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"agentbox/internal/userland/bound"
)

// TestLongTextsAreCopiedPieceByPiece appends, joins and copies long texts: they are what append makes of them, cost something for each
// byte, and end where the account does.
func TestLongTextsAreCopiedPieceByPiece(t *testing.T) {
	long := strings.Repeat("abcdefg", bound.Piece)
	for name, f := range map[string]func(a *bound.Account) (string, error){
		"append": func(a *bound.Account) (string, error) {
			var all []byte
			for _, part := range []string{long[:10], long[10:bound.Piece], long[bound.Piece : bound.Piece+1], long[bound.Piece+1:]} {
				var err error
				if all, err = bound.Append(a, all, part); err != nil {
					return "", err
				}
			}
			return string(all), nil
		},
		"text": func(a *bound.Account) (string, error) { return bound.Text(a, long[:100], long[100:]) },
		"copy": func(a *bound.Account) (string, error) {
			b := make([]byte, len(long))
			err := a.Copy(b, []byte(long))
			return string(b), err
		},
	} {
		l := limits
		l.Gas = 1 << 40
		a := bound.New(l, [32]byte{1}, began)
		got, err := f(a)
		if err != nil || got != long {
			t.Fatalf("%s: got %d bytes, %v", name, len(got), err)
		}
		if least := int64(len(long)-bound.Piece) / 4; a.Used() < least {
			t.Errorf("%s: it cost %d gas, want at least %d", name, a.Used(), least)
		}
		l.Gas = a.Used() / 2
		if _, err := f(bound.New(l, [32]byte{1}, began)); !errors.As(err, new(*bound.Stopped)) {
			t.Errorf("%s with half of the gas: got %v, want a stop", name, err)
		}
	}
	a := bound.New(limits, [32]byte{1}, began)
	b, err := bound.Append(a, []byte("x"), "yz")
	if s, e := bound.Text(a, b); err != nil || e != nil || s != "xyz" || !bytes.Equal(b, []byte("xyz")) || a.Used() != 0 {
		t.Errorf("what is short: got %q, %q, %v, %v for %d gas", b, s, err, e, a.Used())
	}
}

// TestTheContextOfAnExecutionEndsWithIt waits for a stop.
func TestTheContextOfAnExecutionEndsWithIt(t *testing.T) {
	a := account()
	ctx := a.Context()
	if ctx.Err() != nil {
		t.Fatal(ctx.Err())
	}
	a.Stop(&bound.Stopped{TimedOut: true})
	a.Stop(&bound.Stopped{Canceled: true})
	<-ctx.Done()
	if ctx.Err() == nil {
		t.Error("it goes on")
	}
}
