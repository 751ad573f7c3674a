package label_test

import (
	"errors"
	"testing"

	"agentbox/internal/domain/label"
)

// TestAResourceHasATypeAndAnID holds that neither may be missing.
func TestAResourceHasATypeAndAnID(t *testing.T) {
	for r, want := range map[label.Resource]error{{Type: "room", ID: "1"}: nil, {ID: "1"}: label.ErrInvalidResource,
		{Type: "room"}: label.ErrInvalidResource} {
		if err := r.Check(); !errors.Is(err, want) {
			t.Errorf("%+v: got %v, want %v", r, err, want)
		}
	}
}

// TestARoomOnlyNarrowsALabel holds that a label without a room is not lowered by naming one.
func TestARoomOnlyNarrowsALabel(t *testing.T) {
	wide := label.Label{Level: label.Confidential}
	narrow := wide
	narrow.Room = "room_1"
	if wide.Lowers(narrow) || !narrow.Lowers(wide) {
		t.Errorf("to a room: lowers %t, want false; from it: lowers %t, want true", wide.Lowers(narrow), narrow.Lowers(wide))
	}
}
