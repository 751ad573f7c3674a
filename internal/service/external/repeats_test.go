package external

import (
	"errors"
	"testing"

	"agentbox/internal/domain/event"
)

// TestRepeatedQuestionsAreBounded: code of the space asks a model and breaks the answer off, again and again. Each try is billed, so there
// are as many as there may be questions.
func TestRepeatedQuestionsAreBounded(t *testing.T) {
	s := &session{open: map[event.Digest][]int{}}
	s.def.Limits.Steps = 3
	hash := event.DigestOf([]byte("a question"))
	n, again, err := s.number(hash)
	if n != 1 || again || err != nil {
		t.Fatalf("the first: %d, %t, %v", n, again, err)
	}
	for try := range 3 {
		s.missed(hash, n)
		if n, again, err = s.number(hash); n != 1 || !again || err != nil {
			t.Fatalf("try %d: %d, %t, %v", try, n, again, err)
		}
	}
	s.missed(hash, n)
	if _, _, err := s.number(hash); !errors.Is(err, ErrSteps) {
		t.Errorf("one more: %v", err)
	}
	for want := 2; want <= 3; want++ { // other questions go on
		if n, again, err := s.number(event.DigestOf([]byte{byte(want)})); n != want || again || err != nil {
			t.Errorf("question %d: %d, %t, %v", want, n, again, err)
		}
	}
}
