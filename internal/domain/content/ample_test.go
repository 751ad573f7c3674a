package content

import "testing"

// There is ample room for a size that 256 at once cannot fill what is left with.
func TestWhereNobodyNeedWait(t *testing.T) {
	for _, c := range []struct {
		used, size, quota int64
		want              bool
	}{
		{0, 1 << 40, 0, true}, {0, 1, -1, true}, {0, 1, 1, false}, {0, 1, 256, true}, {0, 1, 255, false}, {0, 2, 512, true}, {0, 3, 512, false},
		{256, 1, 512, true}, {257, 1, 512, false}, {512, 1, 512, false},
	} {
		if got := (Usage{Bytes: c.used}).Ample(c.size, c.quota); got != c.want {
			t.Errorf("%d of %d used, %d more: got %t", c.used, c.quota, c.size, got)
		}
	}
}
