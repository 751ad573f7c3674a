package content_test

import (
	"errors"
	"testing"

	"agentbox/internal/domain/content"
)

func TestRoom(t *testing.T) {
	u := content.Usage{Bytes: 90}
	for _, c := range []struct {
		size, quota int64
		fits        bool
	}{
		{10, 100, true}, {11, 100, false}, {0, 90, true}, {1, 90, false}, {0, 89, false}, {1 << 62, 0, true}, {1<<63 - 1, 100, false},
	} {
		if err := u.Room(c.size, c.quota); (err == nil) != c.fits || err != nil && !errors.Is(err, content.ErrQuota) {
			t.Errorf("%d bytes beside %d of %d: %v, want room: %t", c.size, u.Bytes, c.quota, err, c.fits)
		}
	}
}

func TestFreedAdds(t *testing.T) {
	var f content.Freed
	f.Count(true, 3)
	f.Count(false, 5)
	f.Add(content.Freed{Kept: 1, KeptBytes: 2, Freed: 3, FreedBytes: 4})
	if want := (content.Freed{Kept: 2, KeptBytes: 7, Freed: 4, FreedBytes: 7}); f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
}
